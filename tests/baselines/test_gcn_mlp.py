"""GCN and MLP against PyG's and torch's layers, and what their options decay."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

from elugcn.engine import GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from elugcn.methods.registry import config_for, get_method
from tests.baselines.helpers import Draw, gradient, objective


@pytest.mark.parametrize("loops", [True, False])
def test_gcn_is_pygs(loops: bool) -> None:
    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 60))
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    edges = edges[:, edges[0] != edges[1]].unique(dim=1)
    x, adj = torch.randn(30, 6), normalized_adjacency(edges, 30, self_loops=loops)
    config = config_for("gcn", {"hidden_channels": 5})
    model = get_method("gcn").build(config, Shapes(6, 3)).eval()
    z = x
    for i, (w, b) in enumerate(((model.W1, model.b1), (model.W2, model.b2))):
        torch.nn.init.normal_(b)
        layer = GCNConv(*w.shape, add_self_loops=loops)
        layer.lin.weight.data, layer.bias.data = w.data.T.clone(), b.data
        z = layer(F.relu(z) if i else z, edges)
    torch.testing.assert_close(model(GraphInputs(x, adj)), z)


@pytest.mark.parametrize("activation", ["relu", "none"])
def test_mlp_is_two_linear_maps(checked: Draw, activation: str) -> None:
    options = {"dropout": 0.0, "activation": activation}
    loss, model, problem = objective(checked(n=90), "mlp", **options)
    torch.nn.init.normal_(model.b1)
    h = problem.x @ model.W1 + model.b1
    z = (F.relu(h) if activation == "relu" else h) @ model.W2 + model.b2
    torch.testing.assert_close(model(problem.inputs), z)
    expected = F.cross_entropy(z[problem.train_index], problem.y[problem.train_index])
    ours = loss.loss(0)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(gradient(ours, model.W1), gradient(expected, model.W1))
    torch.testing.assert_close(loss.val_logits(), z[problem.val_index])


@pytest.mark.parametrize("method", ["gcn", "mlp", "appnp", "grand"])
def test_the_first_layer_alone_can_be_decayed(checked: Draw, method: str) -> None:
    """As Kipf's GCN does, where the authors of a method do so or nothing is known."""
    _, network, _ = objective(checked(n=90), method, decay="first")
    names = {id(p): name.rpartition(".")[2] for name, p in network.named_parameters()}
    assert {names[id(p)] for p in network.first_layer()} == {"W1", "b1"}
