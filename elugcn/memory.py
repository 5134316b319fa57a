"""How much memory a fit will take, before it takes it.

    peak ≈ program + features + graph + weights + the arrays of a training step + slack

The step dominates on large graphs: a fixed number of n×h arrays. The constants were
fitted to peaks of gcn and elu-gcn on drawn graphs of 50,000 to a million nodes, those
of norms, residuals, jumps and attention on Facebook100; on a graph that small arrays
fill, the allocator keeps about as much again as is in use.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import psutil
import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.sparse import SPARSE_DENSITY
from elugcn.errors import InputError
from elugcn.methods.base import BaseConfig
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.gat import GATConfig
from elugcn.methods.network_config import GCNConfig, RandomPropagationConfig
from elugcn.methods.scaling import kind_for
from elugcn.nn.field import FEWER, HELD

PARTS = ("program", "features", "graph", "weights", "step", "slack")
# The methods whose peaks the constants were fitted to.
FITTED = ("gcn", "elu-gcn", "gat")
# Python, PyTorch and the package, loaded.
_PROGRAM = 400 * 2.0**20
# Arrays of n×h floats that a view holds at the worst moment of a step, with Â in every
# layer and with a propagation of several orders in the first; arrays of n×c floats for
# the output, and for the contrast of two views.
_ARRAYS, _ARRAYS_MIXED = 3.5, 9.0
# And for each of a norm, residuals and jumps: what they keep for their gradient.
_ARRAYS_OPTION = 3.0
_OUTPUTS, _OUTPUTS_CONTRAST = 12, 32
# A GCN without options trains in place (see nn/propagate.py): before and after Â, for
# both views, and a pair more a view for every further layer.
_IN_PLACE = 2
_OUTPUTS_IN_PLACE, _OUTPUTS_CONTRAST_IN_PLACE = 5, 14
# Bytes of an edge (both ways count): the pair as read, Â with its indices; and of the
# attention that a head gives it: score, softmax, dropout, their gradients.
_EDGE_BYTES, _ATTENTION_BYTES = 36, 56
# Bytes of a stored feature as CSR, with its transposed order and its value scaled for
# dropout; and of one in a dense X beside its four: a random one for dropout, and one
# that says whether it is zero.
_SPARSE_BYTES, _DENSE_BYTES = 60, 2
# Of a sample of nodes that is propagated: bytes of an entry of a bag (its column and
# value), and arrays of rows of features of each draw (norm, dropout, their gradients).
_BAG_BYTES, _ROWS = 12, 5
# Bytes of an entry of an explicit ELU graph, built or with its transpose in training.
_EXPLICIT_BYTES = 64
# Copies of the first layer's weights while they are trained: gradient, two moments of
# Adam, the best so far. Each member keeps its own.
_COPIES = 4
# Above this many times the memory of the machine a fit is refused: the estimate is
# rough for some methods, and there may be swap.
_HOPELESS = 2
# What the allocator keeps beside, at most: arrays above 32 MB are given back at once.
_SLACK = 75 * 2.0**20


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by what they are for."""

    program: float
    features: float
    graph: float
    weights: float
    step: float

    @property
    def slack(self) -> float:
        """What the allocator keeps without use."""
        return min(self._used, _SLACK)

    @property
    def total(self) -> float:
        """The peak of the whole fit."""
        return self.program + self._used + self.slack

    @property
    def _used(self) -> float:
        return self.features + self.graph + self.weights + self.step

    def megabytes(self) -> dict[str, float]:
        """Every part, rounded, for printing."""
        return {
            name: round(getattr(self, name) / 2**20, 1) for name in (*PARTS, "total")
        }


def estimate_memory(data: Data, config: BaseConfig) -> MemoryEstimate:
    """The peak memory of fitting a GCN-like method to a graph.

    Args:
        data: A checked graph.
        config: Its width, views and members are read; a method without width counts
            as one of width c.
    """
    n, x = int(data.num_nodes), data.x
    read = x.numel() * 4.0 if x.layout == torch.strided else 0.0
    edges = float(data.edge_index.size(1) * _EDGE_BYTES)
    features, graph = read + _features(data, config.feature_norm), edges
    # A member that reads the graph its own way has X and Â once more.
    if others := _other_readers(data, config):
        features += max(_features(data, m.feature_norm) for m in others)
        graph += edges
    members = _members(data, config)
    graph += _EXPLICIT_BYTES * max(explicit_entries(n, m) for m in members)
    weights, step = _weights(data, members), _largest_step(data, members)
    return MemoryEstimate(_PROGRAM, features, graph, weights, step)


def check_room(data: Data, config: BaseConfig) -> None:
    """Refuse to train what no machine of this size can, warn of what may not fit.

    Only what training itself makes counts: features may lie on a disk.
    """
    members = _members(data, config)
    needed = _weights(data, members) + _largest_step(data, members)
    memory = psutil.virtual_memory()
    says = f"training would need about {needed / 2**30:,.1f} GB of memory"
    if needed > _HOPELESS * memory.total:
        raise InputError(
            f"{says} and this machine has {memory.total / 2**30:,.1f} GB: try fewer "
            "hidden_channels"
        )
    if needed > memory.available:
        free = f"{memory.available / 2**30:,.1f} GB are free"
        warnings.warn(f"{says} and {free}: it may not fit", stacklevel=2)


def _largest_step(data: Data, members: Sequence[BaseConfig]) -> float:
    """Bytes of a step of the member that takes most."""
    n, classes = int(data.num_nodes), int(data.y.max()) + 1
    return max(
        _sampled_step(data, member)
        if isinstance(member, RandomPropagationConfig) and member.sample
        else _step(n, classes, member) + _attention(data, member)
        for member in members
    )


def _weights(data: Data, members: Sequence[BaseConfig]) -> float:
    """Bytes of the first layer of every member, and of what trains the largest."""
    d, classes = int(data.x.size(1)), int(data.y.max()) + 1
    each = [4.0 * d * _width(member, classes) for member in members]
    return sum(each) + _COPIES * max(each)


def _width(config: BaseConfig, classes: int) -> int:
    """Columns of the hidden layer; a method without one has the classes."""
    width = int(getattr(config, "hidden_channels", classes))
    return width * int(getattr(config, "heads", 1))


def explicit_entries(n: int, config: BaseConfig) -> float:
    """Entries of the ELU graph that a member holds besides the factors."""
    if not isinstance(config, ELUGCNConfig) or config.graph_mode == "implicit":
        return 0.0
    if config.graph_mode == "topk":
        return float(n) * min(config.topk, n)
    return config.keep * n * n


def _features(data: Data, feature_norm: str) -> float:
    """Bytes of X as a method reads it, beside X as it was given."""
    x, (n, d) = data.x, data.x.shape
    kind = kind_for(x, feature_norm)
    ahead = _validation_rows(data) * d
    filled = _filled(x) if kind != "standard" else n * d
    stays_sparse = x.layout != torch.strided and kind != "standard"
    if stays_sparse or filled < SPARSE_DENSITY * n * d:
        own = float(filled * _SPARSE_BYTES)
        ahead = min(ahead, filled / SPARSE_DENSITY)
    else:
        own = (_DENSE_BYTES + 4.0 * (kind != "none")) * n * d
        ahead = ahead if ahead <= FEWER * n * d else 0
    # Features that are propagated once, for validation (see nn/field.py).
    return own + (4.0 * ahead if ahead <= HELD else 0.0)


def _filled(x: Tensor) -> int:
    return int(torch.count_nonzero(x if x.layout == torch.strided else x.values()))


def _other_readers(data: Data, config: BaseConfig) -> list[BaseConfig]:
    """Members that ``seen_by`` gives a reading of their own."""
    mine = config.feature_norm, config.view
    return [m for m in _members(data, config) if (m.feature_norm, m.view) != mine]


def _validation_rows(data: Data) -> int:
    """Nodes within a step of the validation nodes, O(E)."""
    mask = data.get("val_mask")
    if mask is None:
        return 0
    near = mask.clone()
    near[data.edge_index[1][mask[data.edge_index[0]]]] = True
    near[data.edge_index[0][mask[data.edge_index[1]]]] = True
    return int(near.sum())


def trained_members(
    data: Data, config: ELUGCNConfig
) -> tuple[list[tuple[str, ELUGCNConfig]], list[str]]:
    """The members that a graph of this size gets, and the names left out."""
    entries = data.edge_index.size(1) + int(data.num_nodes) * config.self_loops
    return config.affordable(entries)


def _members(data: Data, config: BaseConfig) -> list[BaseConfig]:
    if not isinstance(config, ELUGCNConfig):
        return [config]
    return [config.gcn(), *(m for _, m in trained_members(data, config)[0])]


def _step(n: int, classes: int, config: BaseConfig) -> float:
    """Bytes of the arrays of one training step."""
    width = _width(config, classes)
    views, outputs = int(getattr(config, "draws", 1)), _OUTPUTS
    if isinstance(config, ELUGCNConfig) and config.uses_elu_view:
        views, outputs = views + 1, _OUTPUTS_CONTRAST
    layers = max(1, int(getattr(config, "num_layers", 2)) - 1)
    if _trains_in_place(config):
        arrays = _IN_PLACE * (1 + (layers - 1) * views)
        outputs = _OUTPUTS_IN_PLACE if views == 1 else _OUTPUTS_CONTRAST_IN_PLACE
        return 4.0 * n * (arrays * width + outputs * classes)
    each = _ARRAYS_MIXED if getattr(config, "order", 0) else _ARRAYS
    if isinstance(config, GCNConfig):
        used = (config.norm != "none", config.residual, config.jump != "none")
        each += _ARRAYS_OPTION * sum(used)
    return 4.0 * n * (views * layers * each * width + outputs * classes)


def _attention(data: Data, config: BaseConfig) -> float:
    """Bytes of what a GAT holds for every edge and loop."""
    if not isinstance(config, GATConfig):
        return 0.0
    entries = data.edge_index.size(1) + int(data.num_nodes) * config.self_loops
    return float(_ATTENTION_BYTES * entries * config.heads)


def _sampled_step(data: Data, config: RandomPropagationConfig) -> float:
    """Bytes of X as a dense matrix, the bags of every node, and the rows of a step."""
    n, d = int(data.num_nodes), int(data.x.size(1))
    bags = n * min(n, config.neighbours) * _BAG_BYTES
    masks = [data.get(name) for name in ("train_mask", "val_mask")]
    rows = config.sample + sum(int(m.sum()) for m in masks if m is not None)
    return 4.0 * n * d + bags + 4.0 * rows * d * config.draws * _ROWS


def _trains_in_place(config: BaseConfig) -> bool:
    """Whether a GCN has nothing but products with Â, ReLU and dropout."""
    if not isinstance(config, GCNConfig) or config.order or config.residual:
        return False
    if isinstance(config, ELUGCNConfig) and (
        config.draws > 1 or config.graph_mode != "implicit"
    ):
        return False
    return (config.norm, config.jump) == ("none", "none") and (
        config.direction != "apart"
    )
