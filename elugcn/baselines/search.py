"""What the search spaces of the baselines share; they depend on traits of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elugcn.methods.problem import GraphTraits

Starts = list[dict[str, Any]]
# Edges per node above which a graph counts as dense.
DENSE = 10
# Nodes above which a graph counts as large.
LARGE = 10_000
# Homophily below which neighbours count as unlike each other.
UNLIKE = 0.5


def choices(trial: Any, values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """One of the given values for each option."""
    return {k: trial.suggest_categorical(k, list(v)) for k, v in values.items()}


def suggest(trial: Any, traits: GraphTraits, **values: Sequence[Any]) -> dict[str, Any]:
    """How the graph is read, and one of the given values for each option."""
    reading: dict[str, Sequence[Any]] = {}
    if traits.directed:
        reading["direction"] = ("out", "both")
    if keeps_features(traits):
        reading["feature_norm"] = ("row", "none")
    return choices(trial, reading | values)


def suggest_learned(
    trial: Any, traits: GraphTraits, **values: Sequence[Any]
) -> dict[str, Any]:
    """The same for methods that learn a graph, with dropout of X and decay."""
    shared: dict[str, Sequence[Any]] = {}
    if keeps_features(traits):
        shared["input_dropout"] = (None, 0.0, 0.5)
    dense = is_dense(traits)
    shared["weight_decay"] = (0.0, 5e-4, 1e-3, 5e-3) if dense else (5e-4, 1e-3)
    return suggest(trial, traits, **(shared | values))


def keeps_features(traits: GraphTraits) -> bool:
    """Whether features may be better left as they are: few ones, many edges.

    In such graphs (people and pages) a single rare column says much. Scaling and
    dropout of the features can then cost accuracy.
    """
    return traits.sparse_features and is_dense(traits)


def is_dense(traits: GraphTraits) -> bool:
    """Whether nodes have many neighbours."""
    return traits.num_edges > DENSE * traits.num_nodes


def is_large(traits: GraphTraits) -> bool:
    """Whether settings of small citation graphs are far from this graph."""
    return traits.num_nodes > LARGE


def neighbours_unlike(traits: GraphTraits) -> bool:
    """Whether edges mostly join different classes; False if that is not known."""
    return traits.homophily < UNLIKE
