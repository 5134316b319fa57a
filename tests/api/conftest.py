from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from torch_geometric.data import Data

from elugcn.api import Fitted, fit

Fit = Callable[..., Fitted]


@pytest.fixture(scope="session")
def data(sbm: Callable[..., Data]) -> Data:
    return sbm(0)


@pytest.fixture(scope="session")
def quick_fit(sbm: Callable[..., Data]) -> Fit:
    """A short fit; the same one is made once."""

    @cache
    def make(method: str, options: tuple[tuple[str, Any], ...]) -> Fitted:
        return fit(sbm(0), method, dict(options), n_threads=1)

    def quick(method: str = "elu-gcn", **options: Any) -> Fitted:
        short = {} if method == "lpa" else {"epochs": 4}
        return make(method, tuple(sorted((short | options).items())))

    return quick


@pytest.fixture(scope="session")
def fitted(quick_fit: Fit) -> Fitted:
    """A two-view model with a stored graph: every kind of tensor is there."""
    return quick_fit(
        "elu-gcn", graph_mode="topk", topk=4, eta=0.4, feature_norm="standard"
    )
