"""How things are computed fast, and nothing else; import from here only.

``reference.py`` defines every operation in plain PyTorch. ``fast.py`` computes the same
with loops in C and falls back to the reference where they do not apply. The environment
variable ``ELUGCN_ENGINE=reference`` selects the first; this is the one place that
chooses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from elugcn.engine import compiled
from elugcn.engine.edges import (
    attend,
    pair_products,
    row_softmax,
    row_sum,
    row_topk,
    some_entries,
    weighted_spmm,
)
from elugcn.engine.inputs import GraphInputs, LowRank, MeanPropagation, Views
from elugcn.engine.private_torch import has_onednn
from elugcn.engine.reference import LossTargets, contrastive_loss, entropy_loss, spmm
from elugcn.engine.sparse import (
    CSR,
    SPARSE_DENSITY,
    Features,
    as_features,
    normalized_adjacency,
    rows_of,
)
from elugcn.engine.workspace import Workspace

if TYPE_CHECKING or compiled.loops is None:
    from elugcn.engine.reference import (
        dropout,
        dropout_linear,
        propagate_linear,
        relu_dropout_linear_,
        two_view_loss,
    )
else:
    from elugcn.engine.fast import (
        dropout,
        dropout_linear,
        propagate_linear,
        relu_dropout_linear_,
        two_view_loss,
    )


def engine_name() -> str:
    """``fast``, or ``reference`` where it was asked for or nothing is compiled."""
    return "reference" if compiled.loops is None else "fast"


def capabilities() -> dict[str, object]:
    """What the engine runs on, for records of a run."""
    return {
        "engine": engine_name(),
        "compiled": compiled.loops is not None,
        "lanes": 0 if compiled.loops is None else compiled.loops.widest(16),
        "onednn": has_onednn(),
        "threads": torch.get_num_threads(),
    }


__all__ = [
    "CSR",
    "SPARSE_DENSITY",
    "Features",
    "GraphInputs",
    "LossTargets",
    "LowRank",
    "MeanPropagation",
    "Views",
    "Workspace",
    "as_features",
    "attend",
    "capabilities",
    "contrastive_loss",
    "dropout",
    "dropout_linear",
    "engine_name",
    "entropy_loss",
    "normalized_adjacency",
    "pair_products",
    "propagate_linear",
    "relu_dropout_linear_",
    "row_softmax",
    "row_sum",
    "row_topk",
    "rows_of",
    "some_entries",
    "spmm",
    "two_view_loss",
    "weighted_spmm",
]
