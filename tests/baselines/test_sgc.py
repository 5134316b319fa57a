"""SGC against dense powers and PyG's layer, its regression against scikit-learn."""

import pytest
import torch
import torch_geometric.nn as pyg
from sklearn.linear_model import LogisticRegression

from elugcn.baselines.sgc import SGC, SGCConfig, smooth_features
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from tests.baselines.helpers import Draw, fit


def test_features_are_sparse_until_they_fill_up() -> None:
    ring = torch.stack([torch.arange(100), (torch.arange(100) + 1) % 100])
    adj = normalized_adjacency(torch.cat([ring, ring.flip(0)], dim=1), 100)
    x = CSR.from_tensor(torch.eye(100))
    # Step k reaches 2k + 1 of 100 nodes.
    assert isinstance(smooth_features(x, adj, 12), CSR)
    assert isinstance(smooth_features(x, adj, 13), torch.Tensor)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
@pytest.mark.parametrize("share", [0.02, 0.2, 1.0])
def test_the_network_is_pygs(order: int, share: float) -> None:
    torch.manual_seed(order)
    edges = torch.randint(0, 90, (2, 150))
    edges = torch.unique(torch.cat([edges, edges.flip(0)], dim=1), dim=1)
    edges = edges[:, edges[0] != edges[1]]
    x = torch.randn(90, 16) * (torch.rand(90, 16) < share)
    model = SGC().build(SGCConfig(order=order), Shapes(16, 3))
    torch.nn.init.normal_(model.bias)
    twin = pyg.SGConv(16, 3, K=order)
    twin.load_state_dict({"lin.weight": model.weight.T, "lin.bias": model.bias})
    g = GraphInputs(
        CSR.from_tensor(x) if share < 1 else x, normalized_adjacency(edges, 90)
    )
    torch.testing.assert_close(model(g), twin(x, edges))


def test_training_reaches_the_optimum_of_the_regression(checked: Draw) -> None:
    """Convex: the minimiser is scikit-learn's."""
    graph, decay = checked(0, n=300, n_features=16), 0.01
    fitted = fit(
        graph, "sgc", order=1, weight_decay=decay, epochs=1000, lr=0.1, patience=1000,
        feature_norm="none", select="loss",
    )  # fmt: skip
    data = graph.data
    adj = normalized_adjacency(data.edge_index, 300)
    smoothed = (adj.to_dense() @ data.x).numpy()
    train = data.train_mask.numpy()
    # Adam's decay is (decay/2)‖W‖²; scikit-learn sums losses and weighs them by C.
    twin = LogisticRegression(C=1 / (decay * train.sum()), max_iter=5000, tol=1e-8)
    twin.fit(smoothed[train], data.y.numpy()[train])
    log_p = torch.from_numpy(twin.predict_proba(smoothed[train])).log()
    expected = torch.nn.functional.nll_loss(log_p, data.y[data.train_mask])
    # The intercept decays here and not there.
    last = fitted.history[-1]["loss"]
    assert last == pytest.approx(float(expected), rel=0.05)
