"""GAT against PyG's layers and against attention written out densely."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.methods.gat import GATConfig
from elugcn.nn.gat import GAT, Attention


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def adjacency(data: Data) -> CSR:
    return normalized_adjacency(data.edge_index, data.num_nodes)


def dense_attention(z: Tensor, conv: Attention, linked: Tensor) -> Tensor:
    """One layer from its equations: every pair is scored, non-neighbours are struck."""
    heads = []
    for k in range(conv.heads):
        zk = z.view(len(z), conv.heads, -1)[:, k]
        to, of = zk @ conv.att_dst[0, k], zk @ conv.att_src[0, k]
        e = F.leaky_relu(to[:, None] + of[None, :], 0.2)
        heads.append(e.masked_fill(~linked, -torch.inf).softmax(dim=1) @ zk)
    out = torch.cat(heads, dim=1) if conv.concat else torch.stack(heads).mean(dim=0)
    biased: Tensor = out + conv.bias
    return biased


def randomize(model: GAT) -> GAT:
    """Biases too: they start at zero."""
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


@pytest.mark.parametrize(("heads", "out_heads"), [(1, 1), (4, 1), (2, 3)])
def test_layers_are_pygs_with_copied_weights(heads: int, out_heads: int) -> None:
    torch.manual_seed(heads)
    data = draw(n=60).data
    model = randomize(GAT(16, 5, 3, heads, out_heads))
    first = GATConv(16, 5, heads)
    second = GATConv(5 * heads, 3, out_heads, concat=False)
    state = model.first.state_dict() | {"lin.weight": model.weight.T}
    first.load_state_dict(state)
    second.load_state_dict(model.second.state_dict())
    expected = second(F.elu(first(data.x, data.edge_index)), data.edge_index)
    torch.testing.assert_close(model(data.x, adjacency(data)), expected)


def small_graph(loops: bool) -> tuple[Tensor, CSR, Tensor]:
    """Directed, 40 nodes of which the last five have no edges; some have x = 0."""
    edges = torch.randint(0, 35, (2, 150))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    adj = normalized_adjacency(edges, 40, self_loops=loops)
    x = torch.randn(40, 6)
    x[::7] = 0.0
    return x, adj, edges


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(
    ("heads", "concat"), [(1, True), (3, True), (1, False), (4, False)]
)
def test_a_layer_has_the_values_and_gradients_of_pygs(
    heads: int, concat: bool, loops: bool
) -> None:
    torch.manual_seed(heads)
    x, adj, edges = small_graph(loops)
    ours = Attention(6, 5, heads, concat, dropout=0.0)
    theirs = GATConv(6, 5, heads, concat, add_self_loops=loops)
    torch.nn.init.normal_(theirs.bias)
    ours.load_state_dict(theirs.state_dict())
    one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
    a, b = ours(one, adj), theirs(two, edges)
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    if not loops:
        assert torch.equal(a[35:], ours.bias.expand(5, -1))
    weight = torch.randn_like(a)
    (a * weight).sum().backward()
    (b * weight).sum().backward()
    torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-5)
    expected = dict(theirs.named_parameters())
    assert {k for k, _ in ours.named_parameters()} == set(expected)
    for name, p in ours.named_parameters():
        torch.testing.assert_close(p.grad, expected[name].grad, rtol=1e-4, atol=1e-4)


def test_first_values_are_drawn_as_pygs() -> None:
    """Uniform within the same limits; a sample of thousands nearly touches them."""
    torch.manual_seed(0)
    ours, theirs = Attention(30, 40, 50, True, 0.0), GATConv(30, 40, 50)
    expected = theirs.state_dict()
    assert ours.state_dict().keys() == expected.keys()
    for name, value in ours.state_dict().items():
        assert value.shape == expected[name].shape
        limit = float(expected[name].abs().max())
        assert float(value.abs().max()) == pytest.approx(limit, rel=0.01)
        assert float(value.std()) == pytest.approx(limit / 3**0.5, rel=0.05)


def test_heads_in_parts_give_what_all_at_once_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    x, adj, _ = small_graph(loops=True)
    for concat in (True, False):
        layer = Attention(6, 4, 5, concat, 0.0)
        whole = layer(x, adj)
        with monkeypatch.context() as m:
            m.setattr("elugcn.nn.gat.BLOCK", 2 * adj.nnz + 1)
            torch.testing.assert_close(layer(x, adj), whole)
            m.setattr("elugcn.nn.gat.BLOCK", 1)
            torch.testing.assert_close(layer(x, adj), whole)


def test_attention_dropout_keeps_the_mean() -> None:
    torch.manual_seed(0)
    x, adj, _ = small_graph(loops=True)
    layer = Attention(6, 2, 2, True, 0.5)
    exact = layer.eval()(x, adj)
    layer.train()
    with torch.no_grad():
        drawn = torch.stack([layer(x, adj) for _ in range(1000)])
    error = drawn.std(dim=0) / len(drawn) ** 0.5
    assert float(error.median()) > 0
    assert bool(((drawn.mean(dim=0) - exact).abs() < 5 * error + 1e-5).all())
    # The mask is drawn anew for every head: equal heads part.
    twin = Attention(None, 3, 2, True, 0.5)
    with torch.no_grad():
        twin.att_src.zero_()
        twin.att_dst.zero_()
    one, two = twin(x[:, :3].repeat(1, 2), adj).chunk(2, dim=1)
    assert not torch.equal(one, two)
    one, two = twin.eval()(x[:, :3].repeat(1, 2), adj).chunk(2, dim=1)
    assert torch.equal(one, two)


@pytest.mark.parametrize("loops", [True, False])
def test_equations(loops: bool) -> None:
    torch.manual_seed(1)
    data = draw(n=60).data
    model = randomize(GAT(16, 4, 3, 2, 2))
    adj = normalized_adjacency(data.edge_index, 60, self_loops=loops)
    linked = adj.to_dense() != 0
    assert bool(linked.diagonal().all()) == loops
    h = F.elu(dense_attention(data.x @ model.weight, model.first, linked))
    expected = dense_attention(model.second.lin(h), model.second, linked)
    torch.testing.assert_close(model(data.x, adj), expected)


def test_directed_edges_carry_from_source_to_target() -> None:
    torch.manual_seed(2)
    model = randomize(GAT(2, 3, 2, 2, 1))
    adj = normalized_adjacency(torch.tensor([[0], [1]]), 3)
    x = torch.rand(3, 2)
    other = x.clone()
    other[0] += 1.0
    changed = (model(x, adj) != model(other, adj)).any(dim=1)
    assert changed.tolist() == [True, True, False]


def test_sparse_features_give_what_dense_ones_do() -> None:
    torch.manual_seed(3)
    data = draw(n=60).data
    x = data.x * (torch.rand_like(data.x) < 0.2)
    model = randomize(GAT(16, 4, 3))
    adj = adjacency(data)
    torch.testing.assert_close(model(CSR.from_tensor(x), adj), model(x, adj))


def test_dropout_is_on_inputs_and_on_attention() -> None:
    data = draw(n=60).data
    adj = adjacency(data)

    def spread(**p: float) -> bool:
        torch.manual_seed(4)
        options = {"dropout": 0.0, "attention_dropout": 0.0} | p
        model = GAT(16, 4, 3, **options).train()  # type: ignore[arg-type]
        return bool((model(data.x, adj) != model(data.x, adj)).any())

    assert not spread()
    assert spread(dropout=0.5)
    assert spread(attention_dropout=0.5)


def test_only_the_first_layer_can_be_decayed() -> None:
    model = GAT(4, 3, 2, 2, 1)
    first = {id(p) for p in model.first_layer()}
    rest = [k for k, p in model.named_parameters() if id(p) not in first]
    assert rest
    assert all(k.startswith("second.") for k in rest)


@pytest.mark.parametrize(
    "wrong", [{"heads": 0}, {"out_heads": 0}, {"attention_dropout": 1.0}]
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GATConfig(**wrong)
