"""How much memory a fit will take, before it takes it.

    peak ≈ program + features + graph + weights + the arrays of a training step + slack

The step dominates on large graphs: a fixed number of n×h arrays. The constants were
fitted to measured peaks on drawn graphs of 2,000 to 200,000 nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by what they are for; ``slack`` is what the allocator keeps unused."""

    program: float
    features: float
    graph: float
    weights: float
    step: float

    @property
    def slack(self) -> float:
        """What the allocator keeps unused."""
        used = self.features + self.graph + self.weights + self.step
        return min(used, _MAX_SLACK)

    @property
    def total(self) -> float:
        """The peak of the whole fit."""
        return float(sum(asdict(self).values())) + self.slack

    def megabytes(self) -> dict[str, float]:
        """Every part and the total, rounded."""
        parts = asdict(self) | {"slack": self.slack, "total": self.total}
        return {name: round(size / _MB, 1) for name, size in parts.items()}


def estimate_memory(data: Data, config: MethodConfig) -> MemoryEstimate:
    """The peak memory of a fit; rough for methods that are not like a GCN.

    Args:
        data: A checked graph.
        config: Width, layers and views are read.
    """
    x, n = data.x, int(data.num_nodes)
    members = _members(data, config)
    views = {(m.feature_norm, m.self_loops, m.direction) for m in members}
    # Members that read the graph in another way are trained one after the other.
    copies = min(len(views), 2)
    given = 4.0 * x.numel() if x.layout == torch.strided else 0.0
    scaled = max(_scaled_features(data, m.feature_norm) for m in members)
    return MemoryEstimate(
        program=_PROGRAM,
        features=given + copies * scaled,
        graph=float(copies * _EDGE_BYTES * data.edge_index.size(1))
        + _EXPLICIT_BYTES * max(_explicit_entries(n, m) for m in members),
        weights=_weights(data, members),
        step=max(_step(data, m) for m in members),
    )


def check_memory(data: Data, config: MethodConfig) -> None:
    """Refuse a training that exceeds the memory of this computer; warn if it may.

    Only what training itself allocates counts, because features may lie on a disk.
    """
    members = _members(data, config)
    needed = _weights(data, members) + max(_step(data, m) for m in members)
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


def _width(data: Data, config: Any) -> int:
    """Columns of the hidden layer; a method without one has the classes."""
    width = getattr(config, "hidden_channels", _classes(data))
    return int(width * getattr(config, "heads", 1))


def _classes(data: Data) -> int:
    return int(data.y.max()) + 1


def _weights(data: Data, members: Sequence[MethodConfig]) -> float:
    """The first layer of every member, and what trains the largest."""
    each = [4.0 * int(data.x.size(1)) * _width(data, m) for m in members]
    return sum(each) + _COPIES * max(each)


def _step(data: Data, config: Any) -> float:
    """The arrays of one training step."""
    n, width, classes = int(data.num_nodes), _width(data, config), _classes(data)
    draws = getattr(config, "draws", 1)
    if getattr(config, "sample", 0):
        # X as a dense matrix, a bag of rows of X per node, and the rows of a step.
        d, bag = int(data.x.size(1)), min(n, int(config.neighbours))
        return float(4 * n * d + 12 * n * bag + 20 * config.sample * draws * d)
    two_views = getattr(config, "uses_elu_view", False)
    layers = max(1, getattr(config, "num_layers", 2) - 1)
    options = [
        getattr(config, "norm", "none") != "none",
        bool(getattr(config, "residual", False)),
        getattr(config, "jump", "none") not in ("none", False),
    ]
    in_place = hasattr(config, "drop_node") and not any(options) and layers == 1
    each = _ARRAYS_IN_PLACE if in_place else _ARRAYS
    arrays = (draws + two_views) * layers * (each + _ARRAYS_PER_OPTION * sum(options))
    outputs = _OUTPUTS_CONTRAST if two_views else _OUTPUTS
    edges = data.edge_index.size(1) + n * config.self_loops
    attention = _ATTENTION_BYTES * edges * getattr(config, "heads", 0)
    return float(4 * n * (arrays * width + outputs * classes) + attention)


def _explicit_entries(n: int, config: Any) -> float:
    """Entries of the ELU graph besides its factors."""
    mode = getattr(config, "graph_mode", "implicit")
    if mode == "implicit":
        return 0.0
    return float(n * (min(config.topk, n) if mode == "topk" else config.keep * n))


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
