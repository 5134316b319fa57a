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
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

from elugcn.api import fit
from elugcn.data.tables import load_tables
from elugcn.data.validation import check_data

N, CITIES, PARTNERS = 600, 20, 4
SIGNALS = (("age",), ("city",), ("edges",), ("age", "edges"), ("city", "edges"))
LABELS = (5, 30, 100)  # per class


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
    _, (y, city, known) = people(signal, labels, seed)
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
        found.append(by_edges(signal, labels, seed))
    return max(found)


def by_edges(signal: tuple[str, ...], labels: int, seed: int) -> float:
    """Label propagation from all labels."""
    data, (y, _, known) = people(signal, labels, seed)
    full = data.clone()
    full.train_mask = torch.zeros(N, dtype=torch.bool)
    full.train_mask[known] = True
    full.val_mask = full.test_mask = full.train_mask & False
    logits = fit(check_data(full), "lpa", n_threads=1).result.logits
    return float((logits.argmax(1) == y)[~full.train_mask].double().mean())


def by_auto(
    signal: tuple[str, ...], labels: int, seed: int, **options: Any
) -> tuple[float, Any]:
    data, (y, _, known) = people(signal, labels, seed)
    rest = torch.ones(N, dtype=torch.bool)
    rest[known] = False
    result = fit(data, "auto", options, seed=seed, n_threads=1).result
    return float((result.logits.argmax(1) == y)[rest].double().mean()), result


def of_all_columns(signal: tuple[str, ...], labels: int, seed: int) -> float:
    """Logistic regression on every column: it does not know either which one counts."""
    data, (y, _, known) = people(signal, labels, seed)
    rest = np.ones(N, dtype=bool)
    rest[known] = False
    x = data.x.numpy()
    model = LogisticRegression(max_iter=1000).fit(x[known], y[known])
    return float((model.predict(x) == y.numpy())[rest].mean())


def mean(found: Any) -> float:
    return float(np.mean(list(found)))


# Accuracy of auto (quick) where the age alone tells the class. A random forest has
# 93.1 % with 5 labels per class and 99.1 % with 30 on the same six draws.
AGE = {30: "96.7 % on three draws; 100 % is within reach"}


def expect(signal: tuple[str, ...], labels: int, request: Any) -> None:
    """Mark what is not good enough yet."""
    if signal == ("age",) and labels in AGE:
        reason = f"{labels} labels per class: {AGE[labels]}"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))


@pytest.mark.parametrize("labels", LABELS[1:])
@pytest.mark.parametrize("signal", SIGNALS, ids="+".join)
def test_the_column_that_counts_is_found(
    signal: tuple[str, ...], labels: int, request: pytest.FixtureRequest
) -> None:
    expect(signal, labels, request)
    found = mean(by_auto(signal, labels, seed, effort="quick")[0] for seed in range(3))
    assert found >= mean(reach(signal, labels, seed) for seed in range(3)) - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("signal", SIGNALS, ids="+".join)
def test_ten_labels(signal: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    """Nobody finds one of 22 columns for certain with ten labels.

    So the bar is what has to find it, too: logistic regression on all columns; or
    label propagation. On one draw two methods differ by 5 to 8 points either way, so
    that 5 points are about two standard errors of a mean of six.
    """
    expect(signal, 5, request)
    if "edges" in signal:
        bar, seeds = by_edges, range(3)
    else:
        bar, seeds = of_all_columns, range(6)
    found = mean(by_auto(signal, 5, seed, effort="quick")[0] for seed in seeds)
    assert found >= mean(bar(signal, 5, seed) for seed in seeds) - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("signal", [("city",), ("age", "edges")], ids="+".join)
def test_with_networks(signal: tuple[str, ...]) -> None:
    found, result = by_auto(signal, 30, 0, epochs=100)
    assert {"elu-gcn", "mlp"} <= {t["method"] for t in result.metadata["trials"]}
    assert found >= reach(signal, 30, 0) - 0.02


def test_few_labels_are_judged_in_folds_and_train_the_answer() -> None:
    _, result = by_auto(("edges",), 30, 0, effort="quick")
    assert result.metadata["judged_on"] == "60 labelled nodes, in 5 folds"
    assert result.metadata["refit"]
