"""NeuralSparse against PyG's GCN on edges chosen in a dense matrix."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

from elugcn.baselines import neuralsparse
from elugcn.baselines.neuralsparse import NeuralSparseConfig, NeuralSparseNetwork
from elugcn.engine import GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from tests.baselines.helpers import Draw, fit, gradient, objective

OFF: dict[str, Any] = {"hidden_channels": 5, "scorer_channels": 4, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges are scored a few at a time."""
    monkeypatch.setattr(neuralsparse, "BLOCK", 50)


def inputs(n: int = 30) -> GraphInputs:
    torch.manual_seed(0)
    edges = torch.randint(0, n, (2, 6 * n))
    edges = edges[:, edges[0] != edges[1]].unique(dim=1)
    return GraphInputs(torch.randn(n, 6), normalized_adjacency(edges, n))


def network(**options: Any) -> NeuralSparseNetwork:
    torch.manual_seed(1)
    model = NeuralSparseNetwork(NeuralSparseConfig(**OFF | options), Shapes(6, 3))
    for bias in (model.scorer.bias, *model.gcn.biases):
        torch.nn.init.normal_(bias)
    return model


def dense_weights(model: NeuralSparseNetwork, g: GraphInputs, k: int) -> Tensor:
    """W of evaluation, n×n: softmax of the k largest scores of a row, times k."""
    n, scorer = g.num_nodes, model.scorer
    receiver, sender = scorer.weight.chunk(2, dim=1)
    both = (g.x @ receiver)[:, None] + (g.x @ sender)[None] + scorer.bias
    linked = (g.adj.to_dense() != 0) & ~torch.eye(n, dtype=torch.bool)  # type: ignore[union-attr]
    s = (F.relu(both) @ scorer.head).masked_fill(~linked, -torch.inf)
    place = s.argsort(dim=1, descending=True).argsort(dim=1)
    chosen = linked & (place < k)
    share = (s / model.temperature).masked_fill(~chosen, -torch.inf).softmax(dim=1)
    return share.nan_to_num() * chosen.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("tau", [1.0, 0.2])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_values_and_gradients(k: int, tau: float, loops: bool) -> None:
    g, model = inputs(), network(k=k, self_loops=loops).eval()
    model.temperature.fill_(tau)
    w = dense_weights(model, g, k)
    target, source = w.nonzero(as_tuple=True)
    z, edges = g.x, torch.stack([source, target])
    for i, (weight, bias) in enumerate(
        zip(model.gcn.weights, model.gcn.biases, strict=True)
    ):
        layer = GCNConv(*weight.shape, add_self_loops=loops, bias=False)
        layer.lin.weight = torch.nn.Parameter(weight.detach().T.clone())
        z = layer(F.relu(z) if i else z, edges, w[target, source]) + bias
    ours = model(g)
    torch.testing.assert_close(ours, z, rtol=1e-4, atol=1e-5)
    for p in (model.scorer.weight, model.scorer.head, model.scorer.bias):
        a, b = gradient(ours, p), gradient(z, p)
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_neighbours_are_drawn_in_proportion_to_their_softmax() -> None:
    """One of four; the order of several draws without replacement follows from it."""
    star = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    adj = normalized_adjacency(star, 5)
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    model = network(k=1).train()
    pattern = model.pattern(GraphInputs(x, adj))
    expected = model.scorer(model.scorer.ends(x), pattern.row, pattern.col).softmax(
        dim=0
    )
    with torch.no_grad():
        drawn = torch.cat([model.sparsify(x, pattern)[0].col for _ in range(4000)])
        kept, weight = model.sparsify(x, pattern)
    frequency = torch.bincount(drawn.long(), minlength=5)[1:] / 4000
    torch.testing.assert_close(frequency, expected, rtol=0, atol=0.04)
    assert kept.nnz == 1
    assert float(weight) == pytest.approx(1.0)


def test_a_node_with_few_neighbours_keeps_all() -> None:
    g, model = inputs(), network(k=4).train()
    pattern = model.pattern(g)
    kept, weight = model.sparsify(g.x, pattern)
    before = (pattern.crow[1:] - pattern.crow[:-1]).long()
    after = (kept.crow[1:] - kept.crow[:-1]).long()
    assert torch.equal(after, before.clamp(max=4))
    total = torch.zeros(30).index_add(0, kept.row, weight.detach())
    torch.testing.assert_close(total, after.float())


def test_noise_and_dropout_are_for_training() -> None:
    g = inputs()
    for options in ({}, {"dropout": 0.5}):
        model = network(k=2, **options)
        assert not torch.equal(model.train()(g), model(g))
        assert torch.equal(model.eval()(g), model(g))


def test_the_temperature_falls_in_steps(checked: Draw) -> None:
    config = NeuralSparseConfig(rate=0.01, refresh=50)
    taus = [config.temperature(epoch) for epoch in (0, 49, 50, 120, 10_000)]
    assert taus == pytest.approx([1.0, 1.0, math.exp(-0.5), math.exp(-1.0), 0.05])
    loss, model, _ = objective(checked(n=90), "neuralsparse", rate=0.01, refresh=5)
    loss.loss(7)
    assert float(model.temperature) == pytest.approx(math.exp(-0.05))


def test_the_temperature_is_selected_and_kept(checked: Draw) -> None:
    options = {"rate": 0.05, "refresh": 1, "hidden_channels": 8}
    result = fit(checked(n=90), "neuralsparse", epochs=20, **options)
    assert result.model is not None
    best = math.exp(-0.05 * result.metadata["best_epoch"])
    assert float(result.model.tensors()["network.temperature"]) == pytest.approx(best)
