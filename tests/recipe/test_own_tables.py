"""Own tables in which one column, or the edges alone, say the class.

600 nodes of two classes with an age, a city (20 values) and a height. What is within
reach is known: 100 % by the age, what scikit-learn gets from the cities, and what label
propagation gets from the edges.
"""

import csv
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

from elugcn.api import fit
from elugcn.data.tables import load_tables
from elugcn.data.validation import check_data

N, CITIES, PARTNERS = 600, 20, 4
SIGNALS = (("age",), ("city",), ("edges",), ("age", "edges"), ("city", "edges"))
LABELS = (5, 30, 100)  # per class
SEEDS = range(2)


@cache
def people(signal: tuple[str, ...], labels: int, seed: int) -> tuple[Data, Any]:
    """The tables as a graph, with the true classes, and the cities as they were."""
    rng = np.random.default_rng([seed, labels, len("".join(signal))])
    y = rng.permutation(N) % 2
    age = rng.integers(18, 80, N)
    if "age" in signal:
        age = np.where(y == 1, rng.integers(50, 80, N), rng.integers(18, 50, N))
    city = rng.integers(0, CITIES, N)
    if "city" in signal:
        class_of_city = rng.permutation(CITIES) % 2
        city = np.array([rng.choice(np.flatnonzero(class_of_city == c)) for c in y])
    height = rng.normal(170, 10, N)
    known = np.concatenate([
        rng.permutation(np.flatnonzero(y == c))[:labels] for c in (0, 1)
    ])  # fmt: skip
    edges = []
    for i in range(N):
        for _ in range(PARTNERS):
            like = rng.uniform() < 0.9
            among = (
                np.flatnonzero((y == y[i]) == like) if "edges" in signal else range(N)
            )
            j = int(rng.choice(among))
            if j != i:
                edges.append((f"p{i}", f"p{j}"))
    shown = set(known.tolist())
    with TemporaryDirectory() as folder:
        nodes, links = Path(folder) / "nodes.csv", Path(folder) / "edges.csv"
        with nodes.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "age", "city", "height", "label"])
            for i in range(N):
                label = ("no", "yes")[y[i]] if i in shown else ""
                writer.writerow(
                    [f"p{i}", age[i], f"city {city[i]}", f"{height[i]:.1f}", label]
                )
        with links.open("w", newline="") as file:
            csv.writer(file).writerows([("source", "target"), *edges])
        data = load_tables(nodes, links)
    return data, (torch.from_numpy(y), torch.from_numpy(city), torch.from_numpy(known))


def reach(signal: tuple[str, ...], labels: int, seed: int) -> float:
    """What the best of the simple methods gets right of the other nodes."""
    data, (y, city, known) = people(signal, labels, seed)
    rest = torch.ones(N, dtype=torch.bool)
    rest[known] = False
    found = []
    if "age" in signal:
        found.append(1.0)
    if "city" in signal:
        columns = np.eye(CITIES)[city.numpy()]
        model = LogisticRegression(C=10.0).fit(columns[known], y[known])
        found.append(float((model.predict(columns) == y.numpy())[rest.numpy()].mean()))
    if "edges" in signal:
        full = data.clone()
        full.train_mask = ~rest
        full.val_mask = full.test_mask = rest & False
        logits = fit(check_data(full), "lpa", n_threads=1).result.logits
        found.append(float((logits.argmax(1) == y)[rest].double().mean()))
    return max(found)


def by_auto(
    signal: tuple[str, ...], labels: int, seed: int, **options: Any
) -> tuple[float, Any]:
    data, (y, _, known) = people(signal, labels, seed)
    rest = torch.ones(N, dtype=torch.bool)
    rest[known] = False
    result = fit(data, "auto", options, seed=seed, n_threads=1).result
    return float((result.logits.argmax(1) == y)[rest].double().mean()), result
