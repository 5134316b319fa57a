"""NodeFormer against its equations, written out for all pairs of nodes."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.nodeformer import (
    NodeFormerConfig,
    NodeFormerLayer,
    NodeFormerNetwork,
    wider_graphs,
)
from elugcn.data.validation import check_data
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.errors import InputError
from elugcn.methods.problem import Problem, Shapes
from tests.baselines.helpers import CPU, Draw, fit

N = 25


@pytest.fixture
def inputs() -> GraphInputs:
    torch.manual_seed(0)
    edges = torch.randint(0, N, (2, 60))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    return GraphInputs(torch.randn(N, 6), normalized_adjacency(edges, N))


def make(**options: Any) -> NodeFormerNetwork:
    """Weights away from their first values: biases start at zero."""
    small = {"hidden_channels": 8, "heads": 2, "draws": 4}
    model = NodeFormerNetwork(NodeFormerConfig(**(small | options)), Shapes(6, 3))
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return model.eval()


def dense_layer(
    layer: NodeFormerLayer, z: Tensor, graphs: list[CSR]
) -> tuple[Tensor, Tensor]:
    """Every pair is scored: what a layer gives, and log a for all heads."""
    n, h = z.shape
    heads, tau = layer.config.heads, layer.config.tau
    q, k, v = layer.qkv(z).view(n, 3, heads, h).unbind(dim=1)
    gathered, logs = [], []
    for head in range(heads):

        def exponent(x: Tensor) -> Tensor:
            x = x / tau**0.5 / h**0.25
            return x @ layer.projection.T - x.pow(2).sum(dim=1, keepdim=True) / 2

        to, of = exponent(q[:, head]), exponent(k[:, head])
        query = (to - to.amax(dim=1, keepdim=True)).exp() + 1e-6
        a = query @ ((of - of.max()).exp() + 1e-6).T
        a = a / a.sum(dim=1, keepdim=True)
        out = a @ v[:, head]
        for i, adj in enumerate(graphs):
            out = out + torch.sigmoid(layer.bias[i, head]) * adj.to_dense() @ v[:, head]
        gathered.append(out)
        logs.append(a.log())
    joined: Tensor = layer.out(torch.cat(gathered, dim=1))
    return joined, torch.stack(logs)


@pytest.mark.parametrize("rb_order", [0, 1, 2])
@pytest.mark.parametrize("jump", [False, True])
def test_equations(inputs: GraphInputs, rb_order: int, jump: bool) -> None:
    model, adj = make(rb_order=rb_order, jump=jump), inputs.adj
    assert isinstance(adj, CSR)
    z = F.elu(model.norms[0](inputs.x @ model.weight + model.bias))
    kept, likelihood = [z], 0.0
    there = adj.to_dense() != 0
    for layer, norm in zip(model.layers, list(model.norms)[1:], strict=True):
        assert isinstance(layer, NodeFormerLayer)
        gathered, log = dense_layer(layer, z, wider_graphs(adj, rb_order))
        z = norm(gathered + z)
        kept.append(z)
        weighted = log / there.sum(dim=1)[:, None]
        likelihood += float(weighted.detach()[:, there].mean()) / 2
    expected = model.head(torch.cat(kept, dim=1) if jump else z)
    torch.testing.assert_close(model(inputs), expected, rtol=1e-4, atol=1e-4)
    nodes = torch.tensor([3, 0, 17])
    logits, value = model.attend(inputs, adj, nodes)
    torch.testing.assert_close(logits, expected[nodes], rtol=1e-4, atol=1e-4)
    assert float(value) == pytest.approx(likelihood, rel=1e-4)


@torch.no_grad()
def test_dropout_is_in_every_layer(inputs: GraphInputs) -> None:
    """Layers that say nothing leave the residual, which has no noise but dropout."""
    for p in (0.0, 0.4):
        model = make(dropout=p).train()
        for layer in model.layers:
            assert isinstance(layer, NodeFormerLayer)
            torch.nn.init.zeros_(layer.out.weight)
        assert torch.equal(model(inputs), model(inputs)) == (p == 0.0)


def test_one_draw_of_much_noise_is_one_node() -> None:
    """A small τ draws edges: all nodes gather the value of one node."""
    torch.manual_seed(1)
    model = make(tau=1e-3, draws=1, rb_order=0, num_layers=1, heads=1)
    layer = model.layers[0]
    assert isinstance(layer, NodeFormerLayer)
    torch.nn.init.zeros_(layer.qkv.weight[:16])  # queries and keys say nothing
    torch.nn.init.zeros_(layer.qkv.bias[:16])
    z = torch.randn(N, 8)
    with torch.no_grad():
        out, _ = layer.train()(z, [])
        values = layer.out(layer.qkv(z)[:, 16:])
    torch.testing.assert_close(out, out[:1].expand(N, -1), rtol=1e-3, atol=1e-3)
    assert float((values - out[0]).abs().amax(dim=1).min()) < 1e-3


def test_a_sample_of_the_links_stands_for_all(inputs: GraphInputs) -> None:
    whole, part = make(num_layers=1), make(num_layers=1, links=40)
    part.load_state_dict(whole.state_dict())
    nodes, adj = torch.arange(2), inputs.adj
    assert isinstance(adj, CSR)
    with torch.no_grad():
        expected = whole.attend(inputs, adj, nodes)[1]
        drawn = torch.stack([part.attend(inputs, adj, nodes)[1] for _ in range(400)])
    error = float(drawn.std()) / len(drawn) ** 0.5
    assert error > 0
    assert float((drawn.mean() - expected).abs()) < 4 * error


def test_every_weight_learns(inputs: GraphInputs) -> None:
    model = make(rb_order=2).train()
    assert isinstance(inputs.adj, CSR)
    logits, likelihood = model.attend(inputs, inputs.adj, torch.arange(9))
    (logits.logsumexp(dim=1).sum() - likelihood).backward()  # type: ignore[no-untyped-call]
    for name, p in model.named_parameters():
        assert p.grad is not None
        assert bool(torch.isfinite(p.grad).all())
        assert bool((p.grad != 0).any()), name


def test_the_links_are_likelier_if_that_is_asked_for(checked: Draw) -> None:
    graph = checked(n_features=16)
    problem = Problem.of(graph.data, NodeFormerConfig(), CPU)

    def likelihood(weight: float) -> float:
        options = {"draws": 3, "epochs": 15, "lambda_link": weight}
        model: Any = fit(graph, "nodeformer", **options).model
        value = model.network.attend(problem.inputs, problem.adj)[1]
        return float(value.detach())

    assert likelihood(20.0) > likelihood(0.0) + 0.01


def test_without_storage_no_size_is_believed() -> None:
    config = NodeFormerConfig(hidden_channels=10**6, random_features=10**7)
    with torch.device("meta"):
        model = NodeFormerNetwork(config, Shapes(6, 3))
    assert model.layers[0].projection.is_meta


# --- wider graphs ------------------------------------------------------------------


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("n", [30, 600])
def test_each_graph_is_the_pattern_of_the_last_squared(loops: bool, n: int) -> None:
    torch.manual_seed(n)
    edges = torch.randint(0, n, (2, n + n // 2))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)  # with directions
    adj = normalized_adjacency(edges, n, self_loops=loops)
    assert wider_graphs(adj, 0) == []
    first, second, third = wider_graphs(adj, 3)
    assert first is adj
    for last, graph in ((first, second), (second, third)):
        one = (last.to_dense() != 0).float()
        expected = ((one @ one) > 0).float()
        into, out_of = expected.sum(dim=1), expected.sum(dim=0)
        scale = torch.outer(into.clamp(min=1).rsqrt(), out_of.clamp(min=1).rsqrt())
        torch.testing.assert_close(graph.to_dense(), expected * scale)


def test_a_graph_that_would_be_too_large_is_refused(checked: Draw) -> None:
    """A star of 4097 nodes: squared it has 4097² entries, more than 2²⁴."""
    data = checked(n=60).data.clone()
    leaves = torch.arange(1, 4097)
    star = torch.stack([torch.zeros_like(leaves), leaves])
    part = torch.arange(4097) % 3
    data.x, data.y = torch.randn(4097, 4), torch.arange(4097) % 2
    data.edge_index = torch.cat([star, star.flip(0)], dim=1)
    data.train_mask, data.val_mask, data.test_mask = (part == i for i in range(3))
    refusal = r"^rb_order=2: .* more than 16,777,216 .*; use rb_order=1$"
    with pytest.raises(InputError, match=refusal):
        fit(check_data(data), "nodeformer", epochs=1, rb_order=2)
