"""Theorem 1, measured: complexity of the classes, distance of propagated labels."""

from __future__ import annotations

from elugcn.evaluation.statistics import Summary
from elugcn_reproduction.experiments.accuracy import PAPER_DATASETS
from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Scope,
    two_views,
)
from elugcn_reproduction.experiments.measured import (
    by_dataset,
    flat,
    plan_measured,
    several,
    show,
    summary,
    with_std,
)
from elugcn_reproduction.figures import draw_pairs
from elugcn_reproduction.page import Page

GRAPHS = {"original": "original graph", "elu": "ELU graph", "lpa": "label propagation"}
# Quantity of a run, heading, factor (shares in percent).
QUANTITIES = {
    "complexity_one": ("complexity, one layer", 1.0),
    "complexity_two": ("complexity, two layers", 1.0),
    "label_distance": ("label distance", 1.0),
    "reached": ("nodes reached, %", 100.0),
    "label_accuracy": ("labels right, %", 100.0),
    "own_class": ("own class, %", 100.0),
}
DRAWN = ("complexity_one", "complexity_two", "label_distance")
Tables = dict[tuple[str, str], dict[str, Summary]]  # by dataset and graph


def plan(scope: Scope) -> list[Planned]:
    """The two-view setting: its graph is always learned and used."""
    return plan_measured(scope, "theory", PAPER_DATASETS, two_views)


def write(finished: list[Finished], page: Page) -> None:
    """Both quantities of the theorem on both graphs."""
    found = by_dataset(finished)
    tables: Tables = {
        (dataset, graph): {
            quantity: summary(runs, graph, quantity, scale=scale)
            for quantity, (_, scale) in QUANTITIES.items()
        }
        for dataset, runs in found.items()
        for graph in GRAPHS
    }
    page.csv(
        ["dataset", "graph", *with_std(QUANTITIES), "runs"],
        [[*key, *flat(of.values()), len(found[key[0]])] for key, of in tables.items()],
    )
    page.text(_in_words(tables))
    series = {
        QUANTITIES[quantity][0]: {
            name: [tables[dataset, graph][quantity] for dataset in found]
            for graph, name in GRAPHS.items()
            if any(tables[dataset, graph][quantity].runs for dataset in found)
        }
        for quantity in DRAWN
    }
    page.figure(
        draw_pairs(list(found), series),
        "Davies-Bouldin complexity and label distance of the original and ELU graph",
    )
    page.text(_METHOD)
    page.table(
        ["dataset", "graph", *(title for title, _ in QUANTITIES.values()), "runs"],
        [
            [
                dataset,
                GRAPHS[graph],
                *(show(s, 2 if QUANTITIES[q][1] == 1.0 else 1) for q, s in of.items()),
                len(found[dataset]),
            ]
            for (dataset, graph), of in tables.items()
        ],
    )


_METHOD = """\
Mean ± standard deviation over runs, on the nodes outside the training set; lower is
better for complexity and distance.

- Complexity is the Davies-Bouldin index with the paper's p = 2 (root mean square
  distance to the centroid of the class, over the distance of two centroids). One
  layer: of the rows of ÂX and S\\*X, the smoothed features of the proof. Two layers: of
  ÂÂX and ÂS\\*X, the two views of the model without weights and activation. X is
  scaled as the method scales it. S\\* has rank c at most, so the rows of S\\*X lie in
  at most c directions; the rows of ÂX have no such limit.
- Label distance is ‖AY − Y_true‖/√n with Y the training labels and A = Â or S\\*. Rows
  of AY are made distributions: what is negative counts as zero, then the row is
  divided by its sum; a node that no label reaches keeps a row of zeros, whose distance
  is 1. One step of Â reaches few nodes, so label propagation, with which the appendix
  states the theorem, stands beside it: over Â, or, where the options say
  `lpa_graph: coupled` (squirrel), between nodes that point to the same nodes.
- Labels right: the largest entry of AY is the true class. Own class: the weight that a
  node gives to its own class, all labels known (the term I₀P₀ + I₁P₁ of the proof;
  where the method gives Â self-loops they count)."""


def _in_words(tables: Tables) -> str:
    """What the numbers say, beside what the paper says."""

    def better(quantity: str, other: str) -> str:
        """On how many datasets the ELU graph is better."""
        sign = -1.0 if quantity == "own_class" else 1.0
        pairs = [
            (of[quantity].mean, tables[dataset, other][quantity].mean)
            for (dataset, graph), of in tables.items()
            if graph == "elu"
        ]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        return several(sum(sign * a < sign * b for a, b in both), len(both))

    return (
        f"With the ELU graph the complexity is lower "
        f"{better('complexity_one', 'original')} after one layer and "
        f"{better('complexity_two', 'original')} after two. The labels it spreads are "
        f"nearer to the truth than by one step of the original graph "
        f"{better('label_distance', 'original')}, and than by label propagation "
        f"{better('label_distance', 'lpa')}. The weight of a node's own class, which "
        f"the proof wants large, is larger {better('own_class', 'original')}. The "
        "paper's Theorem 1 says that the bound on the GCN's generalisation is best for "
        "a graph with AY = Y_true, and the next one that the ELU graph comes near it."
    )


THEORY = Experiment(
    "theory",
    "Theorem 1, measured",
    "Is the ELU graph better than the original one by the two quantities of the "
    "theorem: the complexity of the classes, and the distance of propagated labels "
    "to the truth? (Theorem 1 of the paper and its proof)",
    plan,
    write,
)
