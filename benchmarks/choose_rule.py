"""Mean of the members, best member, or the mean unless validation prefers the best.

    python benchmarks/choose_rule.py caltech36 --seeds 10

Every split, from 100 on, so none that is reported, is fitted once with the tuned
values, and all three rules choose among the same trained members. Needs the dataset's
files in $ELUGCN_DATA. Only for graphs whose splits are drawn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from elugcn import load_dataset
from elugcn.config import resolve_config
from elugcn.data.checks import check_data
from elugcn.errors import InputError
from elugcn.fitting import fit_graph
from elugcn.methods import elu_gcn
from elugcn.methods.base import Problem
from elugcn.methods.elu_candidates import Candidate, choose

RULES = ("mean", "best", "mean unless worse")


def by_rule(candidates: Sequence[Candidate], problem: Problem) -> list[Candidate]:
    """What each rule returns."""
    mean, best = (choose(candidates, problem, ensemble) for ensemble in (True, False))
    return [mean, best, best if mean.val_accuracy < best.val_accuracy else mean]


def main() -> None:
    """Fit every split and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=100)
    given = parser.parse_args()
    found: list[list[float]] = []
    answers: list[Candidate] = []

    def watched(
        candidates: Sequence[Candidate], problem: Problem, ensemble: bool
    ) -> Candidate:
        answers[:] = by_rule(candidates, problem)
        return choose(candidates, problem, ensemble)

    elu_gcn.choose = watched  # type: ignore[attr-defined]
    try:
        config = resolve_config("elu-gcn", given.dataset)
        for seed in range(given.first, given.first + given.seeds):
            graph = check_data(load_dataset(given.dataset, seed))
            fit_graph(graph, "elu-gcn", config, seed=seed, n_threads=1)
            test = graph.data.test_mask
            right = [c.logits.argmax(dim=1) == graph.data.y for c in answers]
            found.append([100 * float(r[test].double().mean()) for r in right])
            print(f"split {seed}: {found[-1]}", file=sys.stderr)
    except InputError as error:
        raise SystemExit(str(error)) from None
    print(
        f"| {given.dataset}, {given.seeds} splits | test accuracy, % | over the mean |"
    )
    print("|---|---|---|")
    for rule, values in zip(RULES, zip(*found, strict=True), strict=True):
        ahead = [v - row[0] for v, row in zip(values, found, strict=True)]
        error = statistics.stdev(ahead) / len(ahead) ** 0.5 if len(ahead) > 1 else 0.0
        over = "–" if rule == "mean" else f"{statistics.mean(ahead):.2f} ± {error:.2f}"
        print(f"| {rule} | {statistics.mean(values):.2f} | {over} |", flush=True)


if __name__ == "__main__":
    main()
