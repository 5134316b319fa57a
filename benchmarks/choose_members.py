"""Which of several settings of elu-gcn validation prefers, over draws of the labels.

    python benchmarks/choose_members.py cora benchmarks/members/cora-*.yaml \
        > benchmarks/members/cora.md

Seeds of one public split agree with each other more than with other nodes. So the 20
training labels a class are drawn anew, outside validation and test, and every setting
is trained on every draw. The mean share of validation nodes that are right decides;
test nodes are not looked at. Needs the dataset's files in $ELUGCN_DATA.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from elugcn import load_dataset
from elugcn.config import resolve_config
from elugcn.data.checks import check_data
from elugcn.errors import InputError
from elugcn.fitting import fit_graph


def main() -> None:
    """Train every setting on every draw and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("settings", type=Path, nargs="+")
    parser.add_argument("--labels-per-class", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=200)
    given = parser.parse_args()
    right: dict[Path, list[float]] = {file: [] for file in given.settings}
    try:
        configs = {f: resolve_config("elu-gcn", file=f) for f in right}
        for seed in range(given.first, given.first + given.seeds):
            data = load_dataset(
                given.dataset, seed, labels_per_class=given.labels_per_class
            )
            graph = check_data(data)
            for file, config in configs.items():
                fitted = fit_graph(graph, "elu-gcn", config, seed=seed, n_threads=1)
                accuracy = fitted.accuracy(data.val_mask)
                assert accuracy is not None
                right[file].append(100 * accuracy)
                print(f"draw {seed}, {file.stem}: {accuracy:.4f}", file=sys.stderr)
    except InputError as error:
        raise SystemExit(str(error)) from None
    draws = f"{given.seeds} draws of {given.labels_per_class} labels a class"
    print(f"| {given.dataset}, {draws} | right on validation, % | less than the best |")
    print("|---|---|---|")
    best = max(right, key=lambda f: statistics.mean(right[f]))
    for file, values in sorted(right.items(), key=lambda i: -statistics.mean(i[1])):
        behind = [b - v for b, v in zip(right[best], values, strict=True)]
        error = statistics.stdev(behind) / len(behind) ** 0.5 if len(behind) > 1 else 0
        less = "–" if file == best else f"{statistics.mean(behind):.2f} ± {error:.2f}"
        print(f"| {file.stem} | {statistics.mean(values):.2f} | {less} |", flush=True)


if __name__ == "__main__":
    main()
