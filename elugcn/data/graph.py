"""The one place where the tensors of a graph are put together."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.holdout import SPLITS

Values = Tensor | NDArray[Any]


def make_data(
    x: Values,
    edge_index: Tensor,
    y: Values,
    *,
    edge_weight: Tensor | None = None,
    masks: Iterable[Values] | None = None,
    **described: Any,
) -> Data:
    """A graph from its parts; numpy arrays become tensors that share their memory.

    Args:
        x: Features [n, d].
        edge_index: Clean edges [2, E].
        y: Class of each node, -1 where unknown.
        edge_weight: Weight of each edge; None where all are 1.
        masks: Training, validation and test nodes; None where there is no split.
        **described: Anything else the graph carries: its name, class names, ...
    """
    parts: dict[str, Any] = {"x": _tensor(x), "edge_index": edge_index, "y": _tensor(y)}
    if edge_weight is not None:
        parts["edge_weight"] = edge_weight
    if masks is not None:
        parts |= zip(SPLITS, map(_tensor, masks), strict=True)
    return Data(**parts, **described)


def _tensor(values: Values) -> Tensor:
    return torch.from_numpy(values) if isinstance(values, np.ndarray) else values
