"""NodeFormer against its equations, written out for all pairs of nodes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.core.wider import wider_graphs
from elugcn.nn.nodeformer import NodeFormer, NodeFormerLayer

N = 25


@pytest.fixture
def graph() -> tuple[Tensor, CSR]:
    edges = torch.randint(0, N, (2, 60))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    return torch.randn(N, 6), normalized_adjacency(edges, N)


def make(**options: object) -> NodeFormer:
    """Weights away from their first values: biases start at zero."""
    model = NodeFormer(6, 8, 3, **({"heads": 2, "draws": 4} | options))  # type: ignore[arg-type]
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return model.eval()


def dense_layer(
    layer: NodeFormerLayer, z: Tensor, graphs: list[CSR]
) -> tuple[Tensor, Tensor]:
    """Every pair is scored: what a layer gives, and log a for all heads."""
    n, h = z.shape
    q, k, v = layer.qkv(z).view(n, 3, layer.heads, h).unbind(dim=1)
    seen, logs = [], []
    for head in range(layer.heads):

        def phi(x: Tensor) -> Tensor:
            x = x / layer.tau**0.5 / h**0.25
            return x @ layer.projection.T - x.pow(2).sum(dim=1, keepdim=True) / 2

        to, of = phi(q[:, head]), phi(k[:, head])
        query = (to - to.amax(dim=1, keepdim=True)).exp() + 1e-6
        key = (of - of.max()).exp() + 1e-6
        a = query @ key.T
        a = a / a.sum(dim=1, keepdim=True)
        out = a @ v[:, head]
        for i, adj in enumerate(graphs):
            out = out + torch.sigmoid(layer.bias[i, head]) * adj.to_dense() @ v[:, head]
        seen.append(out)
        logs.append(a.log())
    joined: Tensor = layer.out(torch.cat(seen, dim=1))
    return joined, torch.stack(logs)


@pytest.mark.parametrize("rb_order", [0, 1, 2])
@pytest.mark.parametrize("jump", [False, True])
def test_equations(graph: tuple[Tensor, CSR], rb_order: int, jump: bool) -> None:
    x, adj = graph
    model = make(rb_order=rb_order, jump=jump)
    graphs = wider_graphs(adj, rb_order)
    z = F.elu(model.norms[0](x @ model.weight + model.bias))
    kept, likelihood = [z], 0.0
    there = adj.to_dense() != 0
    for layer, norm in zip(model.layers, model.norms[1:], strict=True):
        assert isinstance(layer, NodeFormerLayer)
        seen, log = dense_layer(layer, z, graphs)
        z = norm(seen + z)
        kept.append(z)
        weighted = log / there.sum(dim=1)[:, None]
        likelihood += float(weighted.detach()[:, there].mean()) / 2
    expected = model.head(torch.cat(kept, dim=1) if jump else z)
    torch.testing.assert_close(model(x, adj), expected, rtol=1e-4, atol=1e-4)
    nodes = torch.tensor([3, 0, 17])
    logits, value = model.with_links(x, adj, nodes)
    torch.testing.assert_close(logits, expected[nodes], rtol=1e-4, atol=1e-4)
    assert float(value) == pytest.approx(likelihood, rel=1e-4)


def test_evaluation_has_no_noise_and_training_has(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    model = make()
    assert torch.equal(model(x, adj), model(x, adj))
    model.train()
    assert not torch.equal(model(x, adj), model(x, adj))


@torch.no_grad()
def test_dropout_is_after_the_first_map_and_every_layer(
    graph: tuple[Tensor, CSR],
) -> None:
    """Layers that say nothing leave the residual, which has no noise but dropout."""
    x, adj = graph
    model = make(dropout=0.4, jump=True).train()
    for layer in model.layers:
        assert isinstance(layer, NodeFormerLayer)
        torch.nn.init.zeros_(layer.out.weight)
        torch.nn.init.zeros_(layer.out.bias)
    torch.manual_seed(1)
    out = model(x, adj)
    torch.manual_seed(1)
    z = F.elu(model.norms[0](x @ model.weight + model.bias))
    kept = [z * keep_mask((N, 8), 0.4, z)]
    for norm in model.norms[1:]:
        kept.append(norm(kept[-1]) * keep_mask((N, 8), 0.4, z))
    expected = model.head(torch.cat(kept, dim=1))
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


def test_draws_are_its_own(graph: tuple[Tensor, CSR]) -> None:
    """The global generator is neither read nor reset, and a seed tells all."""
    x, adj = graph
    model = make()
    before = torch.get_rng_state()
    model(x, adj)
    model.train()(x, adj)
    model.with_links(x, adj, torch.arange(3))
    assert torch.equal(torch.get_rng_state(), before)

    def drawn(seed: int, disturb: int) -> Tensor:
        torch.manual_seed(7)
        one = NodeFormer(6, 8, 3, seed=seed)
        torch.manual_seed(disturb)
        out: Tensor = one.train()(x, adj)
        return out

    assert torch.equal(drawn(1, 2), drawn(1, 3))
    assert not torch.equal(drawn(1, 2), drawn(2, 2))


def test_one_draw_of_much_noise_is_one_node() -> None:
    """A small τ draws edges: what is gathered is one node's value, for all who ask."""
    model = make(tau=1e-3, draws=1, rb_order=0, num_layers=1, heads=1)
    layer = model.layers[0]
    assert isinstance(layer, NodeFormerLayer)
    torch.nn.init.zeros_(layer.qkv.weight[:16])  # queries and keys say nothing
    torch.nn.init.zeros_(layer.qkv.bias[:16])
    z = torch.randn(N, 8)
    with torch.no_grad():
        out, _ = layer(z, [], torch.Generator().manual_seed(1))
        values = layer.out(layer.qkv(z)[:, 16:])
    torch.testing.assert_close(out, out[:1].expand(N, -1), rtol=1e-3, atol=1e-3)
    assert float((values - out[0]).abs().amax(dim=1).min()) < 1e-3


def test_a_sample_of_the_links_stands_for_all(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    whole, part = make(num_layers=1), make(num_layers=1, links=40)
    part.load_state_dict(whole.state_dict())
    nodes = torch.arange(2)
    with torch.no_grad():
        expected = whole.with_links(x, adj, nodes)[1]
        drawn = [part.with_links(x, adj, nodes)[1] for _ in range(400)]
    values = torch.stack(drawn)
    error = values.std() / len(values) ** 0.5
    assert float(error) > 0
    assert float((values.mean() - expected).abs()) < 4 * float(error)


def test_sparse_features_give_what_dense_ones_do(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    x = x * (torch.rand_like(x) < 0.3)
    model = make()
    torch.testing.assert_close(model(CSR.from_tensor(x), adj), model(x, adj))


def test_every_weight_learns(graph: tuple[Tensor, CSR]) -> None:
    x, adj = graph
    model = make(rb_order=2).train()
    logits, likelihood = model.with_links(x, adj, torch.arange(9))
    (logits.logsumexp(dim=1).sum() - likelihood).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None
        assert bool(torch.isfinite(p.grad).all())
        assert bool((p.grad != 0).any()), name
    first = {id(p) for p in model.first_layer()}
    assert {k for k, p in model.named_parameters() if id(p) in first} == {
        "weight",
        "bias",
    }


def test_without_storage_no_size_is_believed() -> None:
    with torch.device("meta"):
        model = NodeFormer(6, 10**6, 3, features=10**7)
    assert model.layers[0].projection.is_meta
