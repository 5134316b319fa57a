"""How far can anyone get on Caltech36? Models that are not graph networks at all.

    python benchmarks/caltech36.py > benchmarks/caltech36.md

The class is the status of a person, and the year of the class says most of it. So a
random forest is given the columns as a person would: the year as a number, which
columns are missing, and, from the graph, the share of every training label and of every
year among the friends. The same splits as `elugcn reproduce social`; nothing is tuned.
The first row is no model: each year's most frequent class, counted on all nodes, test
nodes too, so nothing that knows the year alone is right more often. Needs
facebook100/Caltech36.mat in $ELUGCN_DATA.
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.sparse import csr_matrix, diags
from sklearn.ensemble import RandomForestClassifier

from elugcn import load_dataset
from elugcn.errors import InputError

GENDER, DORM, YEAR = 1, 4, 5
Matrix = NDArray[np.float64]


def columns(info: NDArray[np.int64]) -> Matrix:
    """What the table says of each person."""
    missing = info[:, 1:] == 0
    return np.column_stack([info[:, YEAR], info[:, DORM], info[:, GENDER], missing])


def among_friends(adjacency: Any, info: NDArray[np.int64], known: Matrix) -> Matrix:
    """The share of each training label and of each year among a person's friends."""
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    mean = diags(1.0 / np.maximum(degree, 1.0)) @ adjacency
    years = info[:, [YEAR]] == np.unique(info[:, YEAR])
    return np.column_stack([mean @ known, mean @ years.astype(float), np.log1p(degree)])


def best_by_year(info: NDArray[np.int64]) -> float:
    """Right at most, in percent, if the year is all that is known."""
    status, year = info[:, 0], info[:, YEAR]
    right = sum(np.bincount(status[year == y]).max() for y in np.unique(year))
    return 100 * float(right) / len(info)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    folder = os.environ.get("ELUGCN_DATA")
    if not folder:
        raise SystemExit("set ELUGCN_DATA to the folder that has facebook100")
    path = Path(folder) / "facebook100" / "Caltech36.mat"
    right: dict[str, list[float]] = {"columns": [], "columns and friends": []}
    for split in range(given.first, given.first + given.splits):
        try:
            data = load_dataset("caltech36", split)
        except InputError as error:
            raise SystemExit(str(error)) from None
        content = loadmat(str(path), variable_names=["A", "local_info"])
        info = content["local_info"].astype(np.int64)
        y, train, test = (data[k].numpy() for k in ("y", "train_mask", "test_mask"))
        known = np.eye(int(y.max()) + 1)[y] * train[:, None]
        friends = among_friends(csr_matrix(content["A"]).astype(float), info, known)
        table = columns(info)
        for name, x in zip(right, (table, np.hstack([table, friends])), strict=True):
            forest = RandomForestClassifier(500, min_samples_leaf=2, random_state=split)
            forest.fit(x[train], y[train])
            right[name].append(100 * float(forest.score(x[test], y[test])))
    print(f"| Caltech36, {given.splits} splits | test accuracy, % |\n|---|---|")
    print(f"| the year alone, at most | {best_by_year(info):.1f} |")
    for name, values in right.items():
        spread = statistics.stdev(values)
        print(
            f"| random forest: {name} | {statistics.mean(values):.1f} ± {spread:.1f} |"
        )


if __name__ == "__main__":
    main()
