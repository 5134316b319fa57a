from collections.abc import Callable
from typing import Any

import pytest

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph
from elugcn.diagnosis.fitted import Reading
from elugcn.fitting import Fitted, fit_graph


def fit(graph: CheckedGraph, method: str = "elu-graph", **options: Any) -> Fitted:
    config = resolve_config(method, None, None, {"epochs": 20} | options)
    return fit_graph(graph, method, config, seed=0, n_threads=1)


@pytest.fixture(scope="session")
def fitted(checked: Callable[..., CheckedGraph]) -> Fitted:
    """A graph in which some classes are not known and some nodes are cut off."""
    graph = checked(homophily=0.6)
    data = graph.data
    alone = data.test_mask.nonzero().flatten()[:5]
    cut = (data.edge_index.unsqueeze(2) == alone).any(dim=2).any(dim=0)
    data.edge_index = data.edge_index[:, ~cut]
    data.y[data.test_mask.nonzero().flatten()[20:30]] = -1
    return fit(graph)


@pytest.fixture(scope="session")
def reading(fitted: Fitted) -> Reading:
    return Reading.of(fitted)
