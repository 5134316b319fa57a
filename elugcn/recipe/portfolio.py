"""The members that the default tries, in their order; the same for every graph.

The linear ones follow what each adds to those before it, over the development graphs
and those of the tables (``reproduction/results/portfolio.md``). The networks are those
that added something to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elugcn.methods.problem import GraphTraits


@dataclass(frozen=True)
class Member:
    """A method with its options, under a name that the report shows."""

    name: str
    method: str
    options: Mapping[str, Any]
    elu: bool = False  # whether it uses ELU nodes or the ELU graph
    directed: bool = False  # whether it needs edges with a direction
    many_labels: bool = False  # whether it needs more than 100 labels per class
    few_features: bool = False  # whether it needs X as a dense matrix that is small
    thorough: bool = False  # whether it is tried with the largest effort only

    def scaled(self, feature_norm: str) -> Member:
        """The member with a scaling, where it asks for the best one."""
        if self.options.get("feature_norm") != BEST:
            return self
        return replace(self, options={**self.options, "feature_norm": feature_norm})


BEST = "best"  # the scaling of the best linear member
FEW_FEATURES = 1_000  # with which X may be a dense matrix


def suited(members: Sequence[Member], traits: GraphTraits) -> list[Member]:
    """The members that a graph has the directions, labels and features for."""
    few = traits.num_features <= FEW_FEATURES
    return [
        m
        for m in members
        if (traits.directed or not m.directed)
        and (traits.many_labels or not m.many_labels)
        and (few or not m.few_features)
    ]


def _linear(name: str, *, directed: bool = False, **options: Any) -> Member:
    return Member(name, "linear", {"select": "loss", **options}, directed=directed)


_PPR: dict[str, Any] = {"form": "pagerank", "order": 10, "self_loops": True}
_POWER: dict[str, Any] = {"form": "power", "self_loops": True}
# Rows of the adjacency against the direction of the edges.
_OUT: dict[str, Any] = {"feature_norm": "none", "direction": "out", "directed": True}

# Rung 0: closed form. N, S: D^-½ A D^-½ without and with self-loops; PPR: PageRank.
LINEAR = (
    _linear("tf-idf [N, N², X, NX, N²X]", feature_norm="tfidf", inputs="both"),
    _linear("PPR(.2) X", feature_norm="none", alpha=0.2, **_PPR),
    _linear("edges N", feature_norm="none", inputs="edges", order=1),
    _linear("scaled [X, SX, S²X]", feature_norm="column", self_loops=True),
    _linear("tf-idf PPR(.1)", feature_norm="tfidf", alpha=0.1, **_PPR),
    _linear("normalised PPR(.2)", alpha=0.2, **_PPR),
    _linear("scaled S⁸X", feature_norm="column", **_POWER, order=8),
    _linear("tf-idf X", feature_norm="tfidf", form="power", order=0),
    _linear("normalised X", form="power", order=0),
    _linear("scaled S²X", feature_norm="column", **_POWER, order=2),
    _linear("edges [N, N²]", feature_norm="none", inputs="edges"),
    _linear("edges N, out", inputs="edges", order=1, **_OUT),
    _linear("edges [N, N²], out", inputs="edges", **_OUT),
    _linear("[N, X, NX], out", inputs="both", order=1, **_OUT),
    _linear(
        "edges, in and out", inputs="edges", order=1, **_OUT | {"direction": "apart"}
    ),
    Member("label propagation", "lpa", {}),
)

# ELU targets: what a linear member becomes with ELU nodes as further targets.
TARGET_WEIGHTS = (1.0, 4.0)

# One view and nothing of the ELU graph.
_ALONE: dict[str, Any] = {"eta": 0.0, "lambda_con": 0.0, "refit_eta": False}
_PSEUDO: dict[str, Any] = {"pseudo_weight": 0.5}
_RANDOM: dict[str, Any] = _ALONE | {
    "drop_node": 0.5, "draws": 2, "sharpening": 0.3, "hidden_channels": 32,
    "patience": 200,
}  # fmt: skip
_FAR = _RANDOM | {"order": 8, "dropout": 0.5, "lambda_cons": 1.0}
_NEAR = _RANDOM | {
    "order": 2, "dropout": 0.2, "input_dropout": 0.0, "lambda_cons": 0.7,
}  # fmt: skip
# Rows of the propagation for a sample of nodes, normalised (GRAND+).
_SAMPLED = _RANDOM | {
    "order": 8, "sample": 500, "norm": "batch", "dropout": 0.8, "input_dropout": 0.5,
    "lambda_cons": 1.0, "sharpening": 0.2, "lr": 0.2, "hidden_channels": 64,
}  # fmt: skip
_TWO_VIEWS: dict[str, Any] = {
    "eta": 0.3, "lambda_con": 0.3, "dropout": 0.8, "hidden_channels": 64,
    "refit_eta": True,
}  # fmt: skip
_RESIDUAL: dict[str, Any] = _ALONE | {
    "norm": "batch", "residual": True, "input_dropout": 0.0, "dropout": 0.5,
    "weight_decay": 1e-2, "hidden_channels": 64, "feature_norm": BEST,
    "patience": 50,
}  # fmt: skip
_JUMPS: dict[str, Any] = _ALONE | {
    "jump": "cat", "norm": "l2", "dropout": 0.2, "feature_norm": "none",
    "weight_decay": 0.0, "self_loops": False, "hidden_channels": 64,
}  # fmt: skip
_DEEP: dict[str, Any] = _ALONE | {
    "num_layers": 8, "residual": True, "norm": "batch", "dropout": 0.2,
    "feature_norm": "none", "weight_decay": 0.0, "hidden_channels": 64,
}  # fmt: skip
_RAW_MLP: dict[str, Any] = {
    "feature_norm": "none", "dropout": 0.5, "weight_decay": 1e-3,
}  # fmt: skip


def _network(name: str, options: Mapping[str, Any], **flags: bool) -> Member:
    return Member(name, "elu-gcn", options, **flags)


# Rung 1: networks.
NETWORKS = (
    _network("far propagation", _FAR),
    _network("near propagation", _NEAR),
    _network(
        "sampled propagation, ELU targets",
        _SAMPLED | {"pseudo_weight": 0.3},
        elu=True,
        few_features=True,
    ),
    _network("two views", _TWO_VIEWS, elu=True),
    _network("two views, scaled", _TWO_VIEWS | {"feature_norm": BEST}, elu=True),
    _network("residual, ELU targets", _RESIDUAL | _PSEUDO, elu=True),
    _network("jumps", _JUMPS, many_labels=True),
    _network("jumps, out", _JUMPS | {"direction": "out"}, directed=True),
    _network("deep residual", _DEEP, many_labels=True),
    Member("MLP", "mlp", _RAW_MLP),
    _network("far propagation, ELU targets", _FAR | _PSEUDO, elu=True, thorough=True),
    _network("near propagation, ELU targets", _NEAR | _PSEUDO, elu=True, thorough=True),
    _network("residual", _RESIDUAL | {"feature_norm": "none"}, thorough=True),
    Member("APPNP", "appnp", {}, thorough=True),
)
