"""SGC against dense powers and PyG's layer, and its regression against scikit-learn."""

from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from sklearn.linear_model import LogisticRegression

from elugcn.config import resolve_config
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.sgc import SGC, SGCConfig, smooth_features


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    return fit_graph(graph, "sgc", resolve_config("sgc", options=options), seed=seed)


def dense(x: CSR | torch.Tensor) -> torch.Tensor:
    return x.to_dense() if isinstance(x, CSR) else x


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("share", [0.01, 0.2, 1.0])
def test_smoothing_is_a_dense_power(order: int, share: float) -> None:
    torch.manual_seed(order)
    data = draw(n=90).data
    adj = normalized_adjacency(data.edge_index, 90)
    x = data.x * (torch.rand_like(data.x) < share)
    given = CSR.from_tensor(x) if share < 1 else x
    expected = torch.linalg.matrix_power(adj.to_dense(), order) @ x
    torch.testing.assert_close(dense(smooth_features(given, adj, order)), expected)


def test_features_are_sparse_as_long_as_they_are() -> None:
    ring = torch.stack([torch.arange(100), (torch.arange(100) + 1) % 100])
    adj = normalized_adjacency(torch.cat([ring, ring.flip(0)], dim=1), 100)
    x = CSR.from_tensor(torch.eye(100))
    # Step k reaches 2k + 1 of 100 nodes.
    assert isinstance(smooth_features(x, adj, 12), CSR)
    assert isinstance(smooth_features(x, adj, 13), torch.Tensor)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_the_network_is_pygs(order: int) -> None:
    torch.manual_seed(order)
    data = draw(n=90).data
    adj = normalized_adjacency(data.edge_index, 90)
    model = SGC(16, 3, order)
    torch.nn.init.normal_(model.bias)
    twin = pyg.SGConv(16, 3, K=order)
    twin.load_state_dict({"lin.weight": model.weight.T, "lin.bias": model.bias})
    torch.testing.assert_close(model(data.x, adj), twin(data.x, data.edge_index))


def test_training_reaches_the_optimum_of_the_regression() -> None:
    """Convex: the minimiser is scikit-learn's, whatever road leads there."""
    graph = draw()
    decay = 0.01
    fitted = fit(
        graph, order=1, weight_decay=decay, epochs=1000, lr=0.1, patience=1000,
        feature_norm="none", select="loss",
    )  # fmt: skip
    data = graph.data
    adj = normalized_adjacency(data.edge_index, 300)
    smoothed = (adj.to_dense() @ data.x).numpy()
    train = data.train_mask.numpy()
    # Adam's decay is (decay/2)‖W‖²; scikit-learn sums losses and weighs them by C.
    twin = LogisticRegression(C=1 / (decay * train.sum()), max_iter=5000, tol=1e-8)
    twin.fit(smoothed[train], data.y.numpy()[train])
    last = fitted.prediction.history[-1]["loss"]
    p = torch.from_numpy(twin.predict_proba(smoothed[train])).log()
    expected = torch.nn.functional.nll_loss(p, data.y[data.train_mask])
    # The intercept is decayed here and not there.
    assert last == pytest.approx(float(expected), rel=0.05)


def test_it_has_no_width() -> None:
    with pytest.raises(InputError, match="unknown option 'hidden_channels'"):
        resolve_config("sgc", options={"hidden_channels": 8})
    with pytest.raises(InputError, match="order"):
        SGCConfig(order=-1)
