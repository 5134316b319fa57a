"""What the search spaces of the baselines share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elugcn.methods.problem import GraphTraits

# Edges per node above which a graph counts as dense.
DENSE = 10
# Nodes above which a graph counts as large.
LARGE = 10_000
# Homophily below which neighbours count as unlike each other.
UNLIKE = 0.5


def choices(trial: Any, **values: Sequence[Any]) -> dict[str, Any]:
    """One of the given values for each option."""
    return {k: trial.suggest_categorical(k, list(v)) for k, v in values.items()}


def graph_choices(trial: Any, traits: GraphTraits) -> dict[str, Any]:
    """How the graph is read: direction of edges and scaling of features."""
    values: dict[str, Sequence[Any]] = {}
    if traits.directed:
        values["direction"] = ("out", "both")
    if keeps_features(traits):
        values["feature_norm"] = ("row", "none")
    return choices(trial, **values)


def keeps_features(traits: GraphTraits) -> bool:
    """Whether features may be better left as they are: few ones, many edges.

    In such graphs (people and pages) a single rare column says much. Scaling and
    dropout of the features can then cost accuracy.
    """
    return traits.sparse_features and has_many_edges(traits)


def has_many_edges(traits: GraphTraits) -> bool:
    """Whether nodes have many neighbours."""
    return traits.num_edges > DENSE * traits.num_nodes


def is_large(traits: GraphTraits) -> bool:
    """Whether settings of small citation graphs are far from this graph."""
    return traits.num_nodes > LARGE


def neighbours_unlike(traits: GraphTraits) -> bool:
    """Whether edges mostly join different classes; False if that is not known."""
    return traits.homophily < UNLIKE
