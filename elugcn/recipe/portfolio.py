"""The members that the default tries, in their order; the same for every graph.

Each was chosen by what it adds to those before it, over the development graphs and
those of the tables, judged by leaving one graph out
(``reproduction/results/portfolio.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Member:
    """A method with its options, under a name that the report shows."""

    name: str
    method: str
    options: Mapping[str, Any]
    elu: bool = False  # whether it uses ELU nodes or the ELU graph


def _linear(name: str, **options: Any) -> Member:
    return Member(name, "linear", {"select": "loss", **options})


_PPR: dict[str, Any] = {"form": "pagerank", "order": 10, "self_loops": True}
_POWER: dict[str, Any] = {"form": "power", "self_loops": True}

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
    Member("label propagation", "lpa", {}),
)

# ELU targets: what a linear member becomes with ELU nodes as further targets.
TARGET_WEIGHTS = (1.0, 4.0)

_RANDOM: dict[str, Any] = {
    "order": 8, "drop_node": 0.5, "dropout": 0.5, "draws": 2, "lambda_cons": 1.0,
    "sharpening": 0.3, "epochs": 600,
}  # fmt: skip
_ALONE: dict[str, Any] = {"eta": 0.0, "lambda_con": 0.0, "refit_eta": False}

# Rung 1: networks.
NETWORKS = (
    Member("random propagation", "elu-gcn", _ALONE | _RANDOM),
)
