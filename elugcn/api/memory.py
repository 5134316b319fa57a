"""How much memory a fit will take, before it takes it.

    peak ≈ program + features + graph + weights + the arrays of a training step + slack

The step dominates on large graphs: a fixed number of n×h arrays. The constants were
fitted to measured peaks on drawn graphs of 2,000 to 200,000 nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import psutil
import torch
from torch_geometric.data import Data

from elugcn.data.scaling import FeatureScaler
from elugcn.engine import SPARSE_DENSITY
from elugcn.errors import InputError
from elugcn.methods.options import MethodConfig

_MB, _GB = 2.0**20, 2.0**30
_PROGRAM = 400 * _MB  # Python, PyTorch and the package, loaded
_MAX_SLACK = 75 * _MB  # the most that the allocator keeps unused
# Arrays of n×h floats per view and layer at the worst moment of a step: of a GCN
# without further options, which is trained in place, and of any other network. Each of
# a norm, residuals and jumps keeps more for its gradient.
_ARRAYS_IN_PLACE, _ARRAYS, _ARRAYS_PER_OPTION = 2.0, 3.5, 3.0
_OUTPUTS, _OUTPUTS_CONTRAST = 12, 24  # arrays of n×c floats, for one view and for two
# Bytes per edge: the pair as read, and Â with its indices; per edge and head of a GAT.
_EDGE_BYTES, _ATTENTION_BYTES = 36, 56
# Bytes per stored entry of sparse features, and of an explicit ELU graph.
_SPARSE_BYTES, _EXPLICIT_BYTES = 60, 64
_DENSE_BYTES = 2  # per entry of dense features besides the four of each copy
# Copies of the first layer's weights in training: gradient, Adam's two moments, best.
_COPIES = 4
# Runs that need this many times the machine's memory are refused: the estimate is
# rough for some methods, and there may be swap.
_REFUSED = 2
# What a method without these options does.
_ABSENT: dict[str, Any] = {
    "draws": 1, "graph_mode": "implicit", "heads": 0, "jump": "none", "norm": "none",
    "num_layers": 2, "residual": False, "sample": 0,
}  # fmt: skip


def estimate_memory(data: Data, config: MethodConfig) -> dict[str, float]:
    """The peak memory of a fit to a checked graph in MB: the parts, and their total.

    It is rough for methods that are not like a GCN.
    """
    x, members = data.x, _members(data, config)
    # Members that read the graph in another way are trained one after the other.
    views = {(m.feature_norm, m.self_loops, m.direction) for m in members}
    copies = min(len(views), 2)
    given = 4.0 * x.numel() if x.layout == torch.strided else 0.0
    scaled = max(_scaled_features(data, m.feature_norm) for m in members)
    entries = max(_explicit_entries(int(data.num_nodes), m) for m in members)
    edges = copies * _EDGE_BYTES * data.edge_index.size(1)
    parts = {
        "features": given + copies * scaled,
        "graph": edges + _EXPLICIT_BYTES * entries,
        **_training(data, members),
    }
    slack = min(sum(parts.values()), _MAX_SLACK)
    parts = {"program": _PROGRAM, **parts, "slack": slack}
    parts["total"] = sum(parts.values())
    return {name: size / _MB for name, size in parts.items()}


def check_memory(data: Data, config: MethodConfig) -> None:
    """Refuse a training that exceeds the memory of this computer; warn if it may.

    Only what training itself allocates counts, because features may lie on a disk.
    """
    needed = sum(_training(data, _members(data, config)).values())
    memory = psutil.virtual_memory()
    need = f"training would need about {needed / _GB:,.1f} GB of memory"
    if needed > _REFUSED * memory.total:
        raise InputError(
            f"{need}; this computer has {memory.total / _GB:,.1f} GB; try fewer "
            "hidden_channels"
        )
    if needed > memory.available:
        free = f"{memory.available / _GB:,.1f} GB are available"
        warnings.warn(f"{need}; {free}", stacklevel=2)


def _members(data: Data, config: MethodConfig) -> Sequence[MethodConfig]:
    """The configurations of the networks that are trained."""
    loops = int(data.num_nodes) * config.self_loops
    return config.networks(data.edge_index.size(1) + loops)


def _training(data: Data, members: Sequence[MethodConfig]) -> dict[str, float]:
    """The first layers of all members and what trains the largest; the largest step."""
    each = [4.0 * data.x.size(1) * _width(data, m) for m in members]
    step = max(_step(data, m) for m in members)
    return {"weights": sum(each) + _COPIES * max(each), "step": step}


def _width(data: Data, config: MethodConfig) -> int:
    """Columns of the hidden layer; a method without one has the classes."""
    width = getattr(config, "hidden_channels", int(data.y.max()) + 1)
    return int(width * getattr(config, "heads", 1))


def _step(data: Data, config: MethodConfig) -> float:
    """The arrays of one training step."""
    n, d, c = int(data.num_nodes), int(data.x.size(1)), int(data.y.max()) + 1
    option = _ABSENT | dict(config)
    draws, sample, layers = option["draws"], option["sample"], option["num_layers"] - 1
    if sample:
        # X as a dense matrix, a bag of rows of X per node, and the rows of a step.
        bag = min(n, option["neighbours"])
        return float(4 * n * d + 12 * n * bag + 20 * sample * draws * d)
    two_views = getattr(config, "uses_elu_view", False)
    extras = [
        option[name] not in ("none", False) for name in ("norm", "residual", "jump")
    ]
    in_place = "drop_node" in option and not any(extras) and layers == 1
    each = _ARRAYS_IN_PLACE if in_place else _ARRAYS
    each += _ARRAYS_PER_OPTION * sum(extras)
    hidden = (draws + two_views) * max(1, layers) * each * _width(data, config)
    outputs = _OUTPUTS_CONTRAST if two_views else _OUTPUTS
    edges = data.edge_index.size(1) + n * config.self_loops
    attention = _ATTENTION_BYTES * edges * option["heads"]
    return float(4 * n * (hidden + outputs * c) + attention)


def _explicit_entries(n: int, config: MethodConfig) -> float:
    """Entries of the ELU graph besides its factors."""
    option = _ABSENT | dict(config)
    if option["graph_mode"] == "implicit":
        return 0.0
    topk = option["graph_mode"] == "topk"
    return float(n * (min(option["topk"], n) if topk else option["keep"] * n))


def _scaled_features(data: Data, feature_norm: str) -> float:
    """X as a method reads it, besides X as it was given."""
    x = data.x
    scaled = getattr(data, "features_scaled", False)
    kind = "none" if scaled and feature_norm == "auto" else feature_norm
    kind = FeatureScaler.fit(x, kind).kind
    filled = x.numel()
    if kind in ("row", "none"):
        values = x if x.layout == torch.strided else x.values()
        filled = int(torch.count_nonzero(values))
    if filled < SPARSE_DENSITY * x.numel():
        return float(_SPARSE_BYTES * filled)
    return float((_DENSE_BYTES + 4 * (kind != "none")) * x.numel())
