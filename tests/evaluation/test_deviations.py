"""Which cells are far from the paper's, by hand."""

import pytest

from elugcn.config import resolve_config
from elugcn.evaluation.cells import Cell, Comparison
from elugcn.evaluation.deviations import UNKNOWN, deviations, known_reason
from elugcn.evaluation.paper import Published
from elugcn.evaluation.statistics import summarize


def cell(method: str, accuracies: list[float], paper: Published | None) -> Cell:
    return Cell(method, "cora", summarize(accuracies), paper=paper)


def comparison(*cells: Cell) -> Comparison:
    names = tuple(c.method for c in cells)
    return Comparison(names, ("cora",), {(c.method, "cora"): c for c in cells})


# Mean 80, standard deviation √2 ≈ 1.414.
RUNS = [0.79, 0.81]


@pytest.mark.parametrize(
    ("mean", "std", "far"),
    [
        (82.9, 1.0, True),  # 2.9 > 2·1.414
        (82.8, 1.0, False),  # 2.8 < 2.828
        (83.0, 1.6, False),  # 3.0 < 2·1.6
        (77.0, None, True),
    ],
)
def test_two_of_the_larger_deviation(mean: float, std: float | None, far: bool) -> None:
    found = deviations(comparison(cell("gcn", RUNS, Published(mean, std))))
    assert [d.difference for d in found] == ([pytest.approx(80 - mean)] if far else [])


def test_nothing_to_compare_with() -> None:
    cells = cell("gcn", RUNS, None), cell("cogsl", RUNS, Published(None, None))
    assert deviations(comparison(*cells, cell("gat", [], Published(1.0, 0.1)))) == []


def test_what_is_known() -> None:
    assert "direction" in known_reason("gcn", "chameleon")
    # Of a method that leaves the direction alone nothing else is said.
    for method in ("elu-gcn-paper", "appnp", "nodeformer"):
        for dataset in ("chameleon", "squirrel"):
            used = resolve_config(method, dataset).direction == "out"
            assert ("direction" in known_reason(method, dataset)) == used
    assert "direction" not in known_reason("elu-gcn-paper", "squirrel")
    assert "reconstruction" in known_reason("bagcn", "cora")
    assert "Northeastern" in known_reason("gcn", "caltech36")
    assert "of width 64" in known_reason("nodeformer", "computers")
    assert known_reason("nodeformer", "pubmed") == UNKNOWN
    assert known_reason("appnp", "cora") == UNKNOWN
