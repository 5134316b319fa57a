"""GAT against PyG's layers and against attention written out densely."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GATConv

from elugcn.baselines.gat import GAT, Attention, GATConfig, GATNetwork
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes


def network(heads: int = 2, out_heads: int = 1, **options: Any) -> GATNetwork:
    """With random biases, which start at zero."""
    config = GATConfig(hidden_channels=5, heads=heads, out_heads=out_heads, **options)
    built = GAT().build(config, Shapes(6, 3))
    for p in built.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return built.eval()


def small_graph(loops: bool = True) -> tuple[Tensor, CSR, Tensor]:
    """Directed, 40 nodes of which the last five have no edges; some have x = 0."""
    torch.manual_seed(0)
    edges = torch.randint(0, 35, (2, 150))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    x = torch.randn(40, 6)
    x[::7] = 0.0
    return x, normalized_adjacency(edges, 40, self_loops=loops), edges


@pytest.mark.parametrize(("heads", "out_heads"), [(1, 1), (4, 1), (2, 3)])
def test_network_is_pygs_with_copied_weights(heads: int, out_heads: int) -> None:
    x, adj, edges = small_graph()
    ours = network(heads, out_heads)
    first = GATConv(6, 5, heads)
    second = GATConv(5 * heads, 3, out_heads, concat=False)
    first.load_state_dict(ours.first.state_dict() | {"lin.weight": ours.weight.T})
    second.load_state_dict(ours.second.state_dict())
    expected = second(F.elu(first(x, edges)), edges)
    torch.testing.assert_close(ours(GraphInputs(x, adj)), expected)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(("heads", "concat"), [(3, True), (1, False), (4, False)])
def test_layer_has_the_gradients_of_pygs(heads: int, concat: bool, loops: bool) -> None:
    x, adj, edges = small_graph(loops)
    ours = Attention(6, 5, heads, concat, dropout=0.0)
    theirs = GATConv(6, 5, heads, concat, add_self_loops=loops)
    torch.nn.init.normal_(theirs.bias)
    ours.load_state_dict(theirs.state_dict())
    one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
    a, b = ours(one, adj), theirs(two, edges)
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    if not loops:  # nodes without neighbours gather nothing
        assert torch.equal(a[35:], ours.bias.expand(5, -1))
    weight = torch.randn_like(a)
    (a * weight).sum().backward()
    (b * weight).sum().backward()
    torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-5)
    expected = dict(theirs.named_parameters())
    for name, p in ours.named_parameters():
        torch.testing.assert_close(p.grad, expected[name].grad, rtol=1e-4, atol=1e-4)


def test_initial_values_are_drawn_as_pygs() -> None:
    """Uniform within the same limits; a sample of thousands nearly touches them."""
    torch.manual_seed(0)
    ours, theirs = Attention(30, 40, 50, True, 0.0), GATConv(30, 40, 50)
    expected = theirs.state_dict()
    assert ours.state_dict().keys() == expected.keys()
    for name, value in ours.state_dict().items():
        assert value.shape == expected[name].shape
        limit = float(expected[name].abs().max())
        assert float(value.abs().max()) == pytest.approx(limit, rel=0.01)


def test_attention_dropout_keeps_the_mean_and_differs_between_heads() -> None:
    x, adj, _ = small_graph()
    layer = Attention(6, 2, 2, True, 0.5)
    with torch.no_grad():
        exact = layer.eval()(x, adj)
        drawn = torch.stack([layer.train()(x, adj) for _ in range(1000)])
        error = drawn.std(dim=0) / len(drawn) ** 0.5
        assert float(error.median()) > 0
        assert bool(((drawn.mean(dim=0) - exact).abs() < 5 * error + 1e-5).all())
        twin = Attention(None, 3, 2, True, 0.5)
        twin.att_src.zero_()
        twin.att_dst.zero_()
        one, two = twin(x[:, :3].repeat(1, 2), adj).chunk(2, dim=1)
        assert not torch.equal(one, two)
        one, two = twin.eval()(x[:, :3].repeat(1, 2), adj).chunk(2, dim=1)
        assert torch.equal(one, two)


@pytest.mark.parametrize("option", ["dropout", "attention_dropout", None])
def test_dropout_is_on_inputs_and_on_attention(option: str | None) -> None:
    x, adj, _ = small_graph()
    none = {"dropout": 0.0, "attention_dropout": 0.0}
    model = network(**none | ({option: 0.5} if option else {})).train()
    inputs = GraphInputs(x, adj)
    assert torch.equal(model(inputs), model(inputs)) == (option is None)
