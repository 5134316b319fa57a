"""The two-view GCN against the same model written with PyG and plain torch."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

from elugcn.core.direction import directed_adjacency
from elugcn.core.elu_graph import in_mode
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR, features, normalized_adjacency
from elugcn.nn import GCN, ProjectionHead
from elugcn.nn.activation import activated_product
from elugcn.nn.propagate import both_views

pytestmark = pytest.mark.usefixtures("either_way")

N, D, HID, C = 24, 10, 6, 3
EDGES = to_undirected(
    torch.randint(0, N - 2, (2, 40), generator=torch.Generator().manual_seed(1)),
    num_nodes=N,
)
EDGES = EDGES[:, EDGES[0] != EDGES[1]]  # nodes 22 and 23 are isolated


def sparse_x() -> Tensor:
    x = torch.rand(N, D, generator=torch.Generator().manual_seed(2))
    return torch.where(x > 0.8, x, 0.0)


def elu_graph() -> LowRankGraph:
    generator = torch.Generator().manual_seed(3)
    return LowRankGraph(
        torch.randn(N, C, generator=generator), torch.randn(N, C, generator=generator)
    )


def made(**options: object) -> GCN:
    """A model in evaluation mode with biases that matter."""
    model = GCN(D, HID, C, **options)
    with torch.no_grad():
        for bias in model.biases:
            bias.normal_()
    return model.eval()


def conv(model: GCN, layer: int, loops: bool = True) -> GCNConv:
    """PyG's layer with the weights of one of the model's."""
    weight, bias = model.weights[layer], model.biases[layer]
    out = GCNConv(*weight.shape, add_self_loops=loops)
    with torch.no_grad():
        out.lin.weight.copy_(weight.T)
        out.bias.copy_(bias)
    return out


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_original_view_is_the_gcn_of_pyg(sparse: bool, loops: bool) -> None:
    model, x = made(), sparse_x()
    adj = normalized_adjacency(EDGES, N, self_loops=loops)
    inputs = features(x) if sparse else x
    assert isinstance(inputs, CSR) == sparse
    views = model(inputs, adj)
    hidden = conv(model, 0, loops)(x, EDGES).relu()
    assert len(views) == 1
    close(views[0], conv(model, 1, loops)(hidden, EDGES))


def test_three_layers_are_those_of_pyg() -> None:
    model, x = made(num_layers=3), sparse_x()
    assert [tuple(w.shape) for w in model.weights] == [(D, HID), (HID, HID), (HID, C)]
    h = x
    for layer in range(3):
        h = conv(model, layer)(h.relu() if layer else h, EDGES)
    close(model(x, normalized_adjacency(EDGES, N))[0], h)


@pytest.mark.parametrize("num_layers", [2, 3])
@pytest.mark.parametrize("mode", ["implicit", "topk", "paper"])
def test_elu_view_has_s_in_the_first_layer_and_a_after_it(
    num_layers: int, mode: str
) -> None:
    model, x, graph = made(num_layers=num_layers), sparse_x(), elu_graph()
    operator = in_mode(graph, mode, topk=5, keep=0.2)
    assert operator.mode == mode
    original, elu = model(x, normalized_adjacency(EDGES, N), operator)
    s = operator.to_dense()
    close(original, model(x, normalized_adjacency(EDGES, N))[0])
    h = s @ (x @ model.weights[0]) + model.biases[0]
    for layer in range(1, num_layers):
        h = conv(model, layer)(h.relu(), EDGES)
    close(elu, h)


def test_two_view_gradients_are_those_of_the_dense_model() -> None:
    model, x, graph = made(), sparse_x(), elu_graph()
    adj = normalized_adjacency(EDGES, N)
    weight = torch.randn(2, N, C)
    views = model(features(x), adj, graph)
    (weight[0] * views[0] + weight[1] * views[1]).sum().backward()

    twin = copy.deepcopy(model)
    twin.zero_grad()
    a, s = adj.to_dense(), graph.to_dense()
    (w1, w2), (b1, b2) = twin.weights, twin.biases
    first = a @ (a @ (x @ w1) + b1).relu() @ w2 + b2
    second = a @ (s @ (x @ w1) + b1).relu() @ w2 + b2
    (weight[0] * first + weight[1] * second).sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        close(ours.grad, theirs.grad)


@pytest.mark.parametrize("order", [1, 3])
def test_mixed_order(order: int) -> None:
    model, x, graph = made(order=order), sparse_x(), elu_graph()
    adj = normalized_adjacency(EDGES, N)
    a = adj.to_dense()
    powers = [torch.linalg.matrix_power(a, k) for k in range(order + 1)]
    mixed = sum(powers[1:], powers[0]) / (order + 1)
    (w1, w2), (b1, b2) = model.weights, model.biases
    original, elu = model(x, adj, graph)
    # Later layers do not propagate at all, in either view.
    close(original, (mixed @ x @ w1 + b1).relu() @ w2 + b2)
    close(elu, (graph.to_dense() @ x @ w1 + b1).relu() @ w2 + b2)


@pytest.mark.parametrize("norm", ["none", "layer", "batch", "l2"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("jump", ["none", "last", "cat", "max"])
def test_norm_residual_and_jump(
    norm: str, residual: bool, training: bool, jump: str
) -> None:
    model = made(num_layers=3, norm=norm, residual=residual, dropout=0.0, jump=jump)
    for layer in model.norms:
        for p in layer.parameters():
            nn.init.normal_(p)
        if norm == "batch":
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
    model.train(training)
    x, adj = sparse_x(), normalized_adjacency(EDGES, N)
    a = adj.to_dense()

    def normed(i: int, h: Tensor) -> Tensor:
        layer = model.norms[i]
        if norm in ("none", "l2"):
            return h
        if norm == "layer":
            mean, var = h.mean(1, keepdim=True), h.var(1, keepdim=True, correction=0)
        elif training:
            mean, var = h.mean(0), h.var(0, correction=0)
        else:
            mean, var = layer.running_mean.clone(), layer.running_var.clone()
        return (h - mean) / (var + 1e-5).sqrt() * layer.weight + layer.bias

    def layer_of(i: int, h: Tensor) -> Tensor:
        width = model.biases[i].numel()
        out = a @ h @ model.weights[i][:, :width] + model.biases[i]
        return out + h @ model.weights[i][:, width:] if residual else out

    h, kept = x, []
    for i in range(3 if jump != "none" else 2):
        h = normed(i, layer_of(i, h)).relu()
        if norm == "l2":
            h = h / h.norm(dim=1, keepdim=True).clamp(min=1e-12)
        kept.append(h)
    if jump == "none":
        expected = layer_of(2, h)
    else:
        joined = {"last": h, "cat": torch.cat(kept, 1)}
        joined["max"] = torch.maximum(torch.maximum(*kept[:2]), kept[2])
        assert model.head is not None
        expected = joined[jump] @ model.head.weight.T + model.head.bias
    close(model(x, adj)[0], expected)


@pytest.mark.parametrize("residual", [False, True])
def test_directions_apart_have_weights_of_their_own(residual: bool) -> None:
    edges = EDGES[:, ::3]  # no longer symmetric
    model = made(directions=2, residual=residual)
    x, graph = sparse_x(), elu_graph()
    adj = directed_adjacency(edges, N, direction="apart")
    assert adj.shape == (N, 2 * N)
    into = normalized_adjacency(edges, N).to_dense()
    out_of = normalized_adjacency(edges.flip(0), N).to_dense()
    original, elu = model(features(x), adj, graph)

    def propagated(i: int, h: Tensor) -> Tensor:
        parts = (h @ model.weights[i]).split(model.biases[i].numel(), dim=1)
        out = into @ parts[0] + out_of @ parts[1] + model.biases[i]
        return out + parts[2] if residual else out

    close(original, propagated(1, propagated(0, x).relu()))
    parts = (x @ model.weights[0]).split(HID, dim=1)
    first = graph.to_dense() @ (parts[0] + parts[1]) + model.biases[0]
    close(model.source(x), parts[0] + parts[1])
    close(elu, propagated(1, (first + parts[2] if residual else first).relu()))


@pytest.mark.parametrize(
    "options", [{"order": 3}, {"residual": True}, {"norm": "layer", "num_layers": 3}]
)
def test_large_products_are_not_put_side_by_side(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, adj = features(sparse_x()), normalized_adjacency(EDGES, N)
    model = made(**options, dropout=0.4).train()

    def step() -> list[Tensor]:
        torch.manual_seed(7)
        outputs = model(x, adj, elu_graph(), draws=2)
        weighted = sum((i + 1) * z.square().sum() for i, z in enumerate(outputs))
        gradients = torch.autograd.grad(weighted, list(model.parameters()))
        return [*outputs, *gradients]

    together = step()
    assert not torch.equal(together[0], together[1])  # draws, not copies
    monkeypatch.setattr("elugcn.nn.parts._SIDE_BY_SIDE", 0)
    monkeypatch.setattr(torch, "cat", only_rows(torch.cat))
    for a, b in zip(step(), together, strict=True):
        close(a, b)


def only_rows(cat: Any) -> Any:
    """torch.cat that refuses to put matrices side by side."""

    def checked(tensors: list[Tensor], dim: int = 0) -> Tensor:
        assert dim == 0
        out: Tensor = cat(tensors, dim=dim)
        return out

    return checked


# --- randomness ---------------------------------------------------------------------------


def positive(**options: object) -> GCN:
    """Non-negative weights and no biases: ReLU does nothing, so the model is linear."""
    model = GCN(D, HID, C, **options)
    with torch.no_grad():
        for weight in model.weights:
            weight.abs_()
    return model


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "options", [{"dropout": 0.4}, {"dropout": 0.0, "drop_node": 0.4}]
)
def test_random_draws_have_the_output_without_as_their_mean(
    sparse: bool, options: dict[str, float]
) -> None:
    model, adj = positive(**options), normalized_adjacency(EDGES, N)
    x = features(sparse_x()) if sparse else sparse_x()
    with torch.no_grad():
        expected = model.eval()(x, adj)[0]
        draws = torch.stack(model.train()(x, adj, draws=3000))
    assert draws.std(dim=0).max() > 0.05
    error = (draws.mean(dim=0) - expected) / (draws.std(dim=0) / 3000**0.5 + 1e-9)
    # In standard errors: 72 entries, so 5 is far outside chance.
    assert float(error.abs().max()) < 5


def test_drop_node_drops_whole_rows_and_scales_the_rest() -> None:
    model = positive(dropout=0.0, drop_node=0.25)
    adj = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), N)  # Â = I
    x = torch.rand(N, D) + 0.1
    expected = model.eval()(x, adj)[0]
    out = torch.cat(model.train()(x, adj, draws=50))
    factor = out / expected.repeat(50, 1)
    dropped = factor[:, 0] == 0
    assert torch.equal(factor[dropped], torch.zeros_like(factor[dropped]))
    torch.testing.assert_close(
        factor[~dropped], torch.full_like(factor[~dropped], 4 / 3)
    )
    assert 0.19 < dropped.float().mean() < 0.31


def test_dropout_is_applied_before_both_layers() -> None:
    # Â = I and one hidden unit: whole rows vanish only through the second dropout.
    model = GCN(1, 1, 1, dropout=0.5).train()
    with torch.no_grad():
        model.weights[0].fill_(1)
        model.weights[1].fill_(1)
    adj = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 2000)
    with torch.no_grad():
        out = model(torch.ones(2000, 1), adj)[0]
    # Kept with 1/4, and scaled by 2 twice.
    assert set(out.unique().tolist()) == {0.0, 4.0}
    assert 0.2 < (out == 4).float().mean() < 0.3


def test_draws() -> None:
    model, x, adj, graph = (
        made(dropout=0.5),
        sparse_x(),
        normalized_adjacency(EDGES, N),
        elu_graph(),
    )
    model.train()
    views = model(x, adj, graph, draws=3)
    assert len(views) == 4
    for i in range(3):
        for j in range(i):
            assert not torch.equal(views[i], views[j])
    model.eval()
    views = model(x, adj, graph, draws=3)
    assert len(views) == 2
    assert torch.equal(views[0], model(x, adj, graph)[0])


def test_draws_without_randomness_are_all_the_original_view() -> None:
    model, x, adj, graph = (
        made(dropout=0.0),
        sparse_x(),
        normalized_adjacency(EDGES, N),
        elu_graph(),
    )
    expected = model(x, adj, graph)
    views = model.train()(x, adj, graph, draws=3)
    for view in views[:3]:
        close(view, expected[0])
    close(views[3], expected[1])


def test_elu_view_shares_the_mask_of_the_first_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # X W₁ is computed once: with S = Â the two views have the same first layer.
    model, x, adj = (
        made(dropout=0.5, drop_node=0.3),
        sparse_x(),
        normalized_adjacency(EDGES, N),
    )
    model.train()
    seen: list[Tensor] = []

    def watched(views: list[Tensor], *rest: Any) -> Tensor:
        seen.extend(z.clone() for z in views)
        return activated_product(views, *rest)

    monkeypatch.setattr("elugcn.nn.gcn.activated_product", watched)
    model(x, adj, adj, draws=2)
    first, second, elu = seen
    close(first, elu)
    assert not torch.allclose(first, second)


def test_same_seed_same_bits() -> None:
    outputs = []
    for _ in range(2):
        torch.manual_seed(5)
        model = GCN(D, HID, C, drop_node=0.2).train()
        views = model(
            features(sparse_x()), normalized_adjacency(EDGES, N), elu_graph(), 2
        )
        outputs.append(torch.cat(views))
    assert torch.equal(*outputs)


def test_parameters_start_as_glorot_and_zero() -> None:
    model = GCN(200, 300, C)
    bound = (6 / 500) ** 0.5
    assert model.weights[0].abs().max() <= bound
    assert model.weights[0].abs().max() > 0.99 * bound
    assert all(torch.equal(b, torch.zeros_like(b)) for b in model.biases)


def test_first_layer() -> None:
    model = GCN(D, HID, C)
    first = model.first_layer()
    assert first[0] is model.weights[0]
    assert first[1] is model.biases[0]
    assert len(first) == 2


def test_permuting_nodes_permutes_both_views() -> None:
    model, x, graph = made(num_layers=3, norm="layer"), sparse_x(), elu_graph()
    order = torch.randperm(N)
    moved = LowRankGraph(graph.left[order], graph.right[order])
    plain = model(x, normalized_adjacency(EDGES, N), graph)
    again = model(x[order], normalized_adjacency(torch.argsort(order)[EDGES], N), moved)
    for a, b in zip(plain, again, strict=True):
        close(b, a[order])


# --- projection head ------------------------------------------------------------------------


def test_projection_head() -> None:
    head = ProjectionHead(C)
    h = torch.randn(N, C)
    p = head(h)
    z = h @ head.linear.weight.T + head.linear.bias
    z = torch.where(z > 0, z, z.exp() - 1)
    torch.testing.assert_close(p, z / z.square().sum(dim=1, keepdim=True).sqrt())
    torch.testing.assert_close(p.norm(dim=1), torch.ones(N))
    assert F.cosine_similarity(p, z).min() > 0.999


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_the_shared_product_follows_the_weights(sparse: bool, fused: bool) -> None:
    """Validation and training use one product, and never one of older weights."""
    x = features(sparse_x()) if sparse else sparse_x()
    adj, target = normalized_adjacency(EDGES, N), torch.arange(N) % C
    torch.manual_seed(0)
    model = GCN(D, HID, C, dropout=0.0)
    twin = copy.deepcopy(model)
    ours = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    theirs = torch.optim.Adam(twin.parameters(), lr=0.1)
    a, dense = adj.to_dense(), sparse_x()
    for _ in range(4):
        (w1, w2), (b1, b2) = twin.weights, twin.biases
        expected = a @ (a @ (dense @ w1) + b1).relu() @ w2 + b2
        theirs.zero_grad()
        F.cross_entropy(expected, target).backward()
        theirs.step()
        got = model.train()(x, adj, draws=2)
        close(got[0], expected)
        close(got[1], expected)
        ours.zero_grad()
        F.cross_entropy(got[0], target).backward()
        ours.step()
        with torch.no_grad():
            (w1, w2), (b1, b2) = twin.weights, twin.biases
            after = a @ (a @ (dense @ w1) + b1).relu() @ w2 + b2
            close(model.eval()(x, adj)[0], after)
    model.load_state_dict(GCN(D, HID, C, dropout=0.0).state_dict())
    close(model(x, adj)[0], model.eval()(sparse_x(), adj)[0])


@pytest.mark.parametrize("symmetric", [True, False])
def test_both_views_at_once(symmetric: bool) -> None:
    edges = EDGES if symmetric else EDGES[:, ::2]
    adj, graph = normalized_adjacency(edges, N), elu_graph()
    assert adj.symmetric == symmetric
    z = torch.randn(N, HID, requires_grad=True)
    first, factors = both_views(adj, graph, z)
    second = factors.dense()
    (first.sin().sum() + second.cos().sum()).backward()
    twin = z.detach().clone().requires_grad_()
    one, two = adj.to_dense() @ twin, graph.left @ graph.right.T @ twin
    (one.sin().sum() + two.cos().sum()).backward()
    assert twin.grad is not None
    for ours, truth in ((first, one), (second, two), (z.grad, twin.grad)):
        close(ours, truth)
