"""Which linear members the default tries, and in which order: learned from data.

``python -m elugcn_reproduction.portfolio FOLDER`` fits every candidate on the
development graphs and on those of the tables, two splits each, and keeps what they
predict in FOLDER: the same call goes on where it stopped. Then it chooses members one
after another, by the mean test accuracy of their ensemble over the graphs. Leaving one
graph out shows what a list chosen on the others is worth on a graph that it has not
seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elugcn.atomic import atomic_path
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.data.validation import check_data
from elugcn.evaluation.jobs import pairs
from elugcn.methods.contract import FitContext
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for
from elugcn.recipe.auto import AutoConfig
from elugcn.recipe.ensemble import greedy_weights
from elugcn.recipe.judging import Judging
from elugcn.recipe.portfolio import LINEAR, Member
from elugcn.recipe.trials import Search
from elugcn_reproduction.commands import RESULTS
from elugcn_reproduction.experiments.unseen import GRAPHS, TABLES
from elugcn_reproduction.page import Page

SPLITS = 2
LENGTH = 10  # members to choose
COMMAND = "python -m elugcn_reproduction.portfolio runs/portfolio"
SCALINGS = ("none", "auto", "column", "tfidf")
# S and N: D^-½ A D^-½ with and without self-loops; R: the mean of the neighbours.
PROPAGATIONS: Mapping[str, Mapping[str, Any]] = {
    "X": {"form": "power", "order": 0},
    **{
        f"S^{k} X": {"form": "power", "order": k, "self_loops": True}
        for k in (1, 2, 4, 8)
    },
    "PPR(.1) X": {"form": "pagerank", "order": 10, "alpha": 0.1, "self_loops": True},
    "PPR(.2) X": {"form": "pagerank", "order": 10, "alpha": 0.2, "self_loops": True},
    "R^2 X": {"form": "power", "order": 2, "norm": "row"},
    "[X, RX]": {"order": 1, "norm": "row"},
    "[X, RX, R^2 X]": {"order": 2, "norm": "row"},
    "[RX, R^2 X]": {"order": 2, "norm": "row", "own": False},
    "[X, NX, N^2 X]": {"order": 2},
    "[X, ..., N^4 X]": {"order": 4},
    "[X, SX, S^2 X]": {"order": 2, "self_loops": True},
    "[N, N^2, X, NX, N^2 X]": {"inputs": "both"},
}
EDGES: Mapping[str, Mapping[str, Any]] = {
    "N": {"order": 1},
    "[N, N^2]": {"order": 2},
    "[R, R^2]": {"order": 2, "norm": "row"},
}


def candidates() -> list[Member]:
    """Every scaling with every propagation; edges alone; label propagation."""
    found = [
        Member(f"{s} {p}", "linear", {"select": "loss", "feature_norm": s, **options})
        for s, (p, options) in product(SCALINGS, PROPAGATIONS.items())
    ]
    edges = {"select": "loss", "feature_norm": "none", "inputs": "edges"}
    found += [
        Member(f"edges {p}", "linear", edges | dict(options))
        for p, options in EDGES.items()
    ]
    return [*found, Member("label propagation", "lpa", {})]


class Graph:
    """What every candidate says of one split of a graph."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self.p_true: NDArray[Any] = stored["p_true"]  # of the judged nodes, M×m
            self.proba: NDArray[Any] = stored["proba"]  # of the test nodes, M×n×c
            self.y: NDArray[Any] = stored["y"]  # of the test nodes
        self._known: dict[frozenset[int], float] = {}

    def accuracy(self, members: list[int]) -> float:
        """Of the greedy ensemble of some candidates, in percent."""
        key = frozenset(members)
        if key not in self._known:
            self._known[key] = self._accuracy(sorted(members))
        return self._known[key]

    def _accuracy(self, members: list[int]) -> float:
        p_true = torch.from_numpy(self.p_true[members])
        weights = greedy_weights(p_true, torch.ones(p_true.size(1))).numpy()
        mean = np.tensordot(weights, self.proba[members].astype(np.float64), 1)
        return float(100 * (mean.argmax(axis=1) == self.y).mean())


def fit_candidates(name: str, number: int, path: Path) -> None:
    """Fit every candidate on a split and keep what it says."""
    split, seed = pairs(dataset_info(name), SPLITS, None)[number]
    data = check_data(load_dataset(name, split), seed=seed).data
    config = AutoConfig()
    problem = Problem.of(data, config, torch.device("cpu"))
    judging = Judging.of(problem, seed, refit=False)
    search = Search(problem, config, judging, FitContext(seed=seed))
    test, p_true, proba = data.test_mask, [], []
    for member in candidates():
        trial = search.judge(search.begin(member))
        judged = torch.softmax(trial.judged, dim=1)
        p_true.append(judged.gather(1, search.truth[:, None])[:, 0].numpy())
        logits = search.blend([(trial, 1.0)]).logits[test]
        proba.append(torch.softmax(logits, dim=1).numpy().astype(np.float16))
    with atomic_path(path) as work, work.open("wb") as file:
        np.savez(file, p_true=p_true, proba=proba, y=data.y[test].numpy())


def mean_accuracy(graphs: Mapping[str, list[Graph]], members: list[int]) -> float:
    """Mean over the graphs of the mean over their splits."""
    return fmean(fmean(one.accuracy(members) for one in of) for of in graphs.values())


def choose(graphs: Mapping[str, list[Graph]], count: int) -> list[int]:
    """Candidates one after another: each adds the most to those before it."""
    chosen: list[int] = []
    for _ in range(LENGTH):
        others = [i for i in range(count) if i not in chosen]
        chosen.append(max(others, key=lambda i: mean_accuracy(graphs, [*chosen, i])))
    return chosen


def left_out(graphs: Mapping[str, list[Graph]], count: int) -> list[float]:
    """Accuracy of the first k members on graphs that had no say in the choice."""
    found: list[list[float]] = []
    for name, own in graphs.items():
        rest = {other: of for other, of in graphs.items() if other != name}
        chosen = choose(rest, count)
        found.append([
            fmean(one.accuracy(chosen[:k]) for one in own) for k in range(1, LENGTH + 1)
        ])  # fmt: skip
    return [fmean(at) for at in zip(*found, strict=True)]


def write(graphs: Mapping[str, list[Graph]], folder: Path) -> list[Path]:
    """The page: the chosen list, and what its beginning is worth."""
    names = [member.name for member in candidates()]
    chosen = choose(graphs, len(names))
    unseen = left_out(graphs, len(names))
    page = Page(
        "portfolio",
        "The portfolio of linear members",
        "Which linear members should the default try first (not in the paper)?",
        COMMAND,
    )
    everything = mean_accuracy(graphs, list(range(len(names))))
    default = [config_for(member.method, member.options) for member in LINEAR]
    used = [config_for(m.method, m.options) in default for m in candidates()]
    ours = [i for i, is_used in enumerate(used) if is_used]
    page.text(
        f"{len(names)} candidates on {len(graphs)} graphs, {SPLITS} splits each. Mean "
        "test accuracy in percent of the greedy ensemble, with one member more in each "
        f"row. All candidates together: {everything:.2f}. The {len(ours)} members of "
        f"the default that are candidates: {mean_accuracy(graphs, ours):.2f}. “On "
        "graphs left out”: the list is chosen on all graphs but one and judged on that "
        "one; mean over the graphs."
    )
    rows = [
        (
            k,
            names[i],
            f"{mean_accuracy(graphs, chosen[:k]):.2f}",
            f"{unseen[k - 1]:.2f}",
            "yes" if used[i] else "no",
        )
        for k, i in enumerate(chosen, start=1)
    ]
    header = ("", "member", "on all graphs", "on graphs left out", "in the default")
    page.table(header, rows)
    page.csv(("members", "added", "all", "left_out", "in_default"), rows)
    return page.save(folder)


def main(folder: Path, names: Iterable[str] = (*GRAPHS, *TABLES)) -> None:
    """Fit what is missing, then write the page."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    graphs: dict[str, list[Graph]] = {}
    for name in names:
        info = dataset_info(name)
        count = 1 if info.fixed_splits and info.n_splits == 1 else SPLITS
        for number in range(count):
            path = folder / f"{name}-{number}.npz"
            if not path.exists():
                print(f"{name}, split {number}", file=sys.stderr, flush=True)
                fit_candidates(name, number, path)
            graphs.setdefault(name, []).append(Graph(path))
    for path in write(graphs, RESULTS):
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
