"""Datasets put together from numpy arrays."""

from collections.abc import Iterable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.splits import SPLITS

Array = NDArray[Any]


def undirected(source: Array, target: Array, n: int) -> Tensor:
    """``edge_index`` [2, E] in both directions, without self-loops and repeats."""
    return clean_edges(source, target, None, n, directed=False)[0]


def dataset(
    x: Array,
    edge_index: Tensor,
    y: Array,
    masks: Iterable[Array],
    class_names: Iterable[object],
    **more: Any,
) -> Data:
    """A graph from its parts; tensors share the memory of the arrays.

    Args:
        x: Features, float32 [n, d].
        edge_index: Clean edges [2, E].
        y: Class of each node, int64 [n], -1 where unknown.
        masks: Training, validation and test nodes, bool [n] each.
        class_names: One name per class.
        **more: Other attributes of the graph.
    """
    data = Data(x=torch.from_numpy(x), edge_index=edge_index, y=torch.from_numpy(y))
    for name, mask in zip(SPLITS, masks, strict=True):
        data[name] = torch.from_numpy(mask)
    data.class_names = [str(name) for name in class_names]
    data.update({"directed": False, **more})
    return data
