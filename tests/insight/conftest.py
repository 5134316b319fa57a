"""A graph worked by hand, and one that was fitted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted, fit
from elugcn.data.validation import CheckedGraph
from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.elu.utilization import definition_one
from elugcn.insight import DiagnosisContext
from elugcn.methods.contract import FitResult
from elugcn.methods.registry import config_for


def mask(n: int, *nodes: int) -> Tensor:
    """The nodes, as a mask of n."""
    out = torch.zeros(n, dtype=torch.bool)
    out[list(nodes)] = True
    return out


def small(
    y: list[int],
    edges: tuple[list[int], list[int]] = ([], []),
    train: tuple[int, ...] = (),
    val: tuple[int, ...] = (),
    test: tuple[int, ...] = (),
    **more: Any,
) -> Data:
    """A graph whose nodes have a feature each."""
    n = len(y)
    return Data(
        x=torch.eye(n), edge_index=torch.tensor(edges).long(), y=torch.tensor(y),
        train_mask=mask(n, *train), val_mask=mask(n, *val), test_mask=mask(n, *test),
        num_nodes=n, **more,
    )  # fmt: skip


def row_of_six(**more: Any) -> Data:
    """0 - 1 - 2 - 3 - 4 - 5, labels at both ends, the class of 4 is not known."""
    steps = [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]
    edges = steps[0] + steps[1], steps[1] + steps[0]
    more = {"class_names": ["left", "right"], "directed": False} | more
    return small([0, 0, 0, 1, -1, 1], edges, (0, 5), (1,), (2, 3), **more)


def by_hand(
    data: Data,
    lpa: Tensor | None,
    gcn: Tensor,
    *,
    method: str = "elu-gcn",
    graph: ELUGraph | None = None,
    proba: Tensor | None = None,
    **options: Any,
) -> Fitted:
    """What a fit would return that gave these probabilities.

    ``lpa`` and ``gcn`` are those of Definition 1, which a method without it lacks;
    ``proba`` are the method's, if they are not those of the GCN.
    """
    use = None if lpa is None else definition_one(lpa, gcn, logits=False)
    logits = (gcn if proba is None else proba).log()
    result = FitResult(logits=logits, label_utilization=use, graph=graph)
    config, classes = config_for(method, options), np.arange(gcn.size(1))
    return Fitted(method, config, 0, data, result, classes, threads=1, device="cpu")


@pytest.fixture(scope="session")
def fitted(checked: Callable[..., CheckedGraph]) -> Fitted:
    """150 nodes of 3 classes; 5 nodes are cut off, 10 classes are not known."""
    graph = checked(homophily=0.6)
    data = graph.data
    tested = data.test_mask.nonzero().flatten()
    cut = torch.isin(data.edge_index, tested[:5]).any(dim=0)
    data.edge_index = data.edge_index[:, ~cut]
    data.y[tested[20:30]] = -1
    return fit(graph, "elu-graph", {"epochs": 20}, n_threads=1)


@pytest.fixture(scope="session")
def context(fitted: Fitted) -> DiagnosisContext:
    return DiagnosisContext(fitted)
