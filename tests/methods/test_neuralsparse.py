"""NeuralSparse: what a node keeps, when it draws, and the network behind it."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.neuralsparse import (
    NeuralSparse,
    NeuralSparseConfig,
    NeuralSparsePredictor,
    gumbel,
)
from elugcn.nn.weighted import Edges


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("neuralsparse", options=options)
    return fit_graph(graph, "neuralsparse", config, seed=seed)


def adjacency(data: Data) -> CSR:
    return normalized_adjacency(data.edge_index, data.num_nodes)


def network(k: int, dropout: float = 0.0) -> NeuralSparse:
    return NeuralSparse(16, 8, 3, dropout, k, scorer_channels=4)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("k", [1, 3, 100])
def test_a_node_keeps_k_edges_or_all_it_has(k: int, training: bool) -> None:
    torch.manual_seed(k)
    data = draw(n=80).data
    # The first ten nodes receive little, one of them nothing.
    some = (data.edge_index[1] > 10) | (torch.rand(data.num_edges) < 0.1)
    index = data.edge_index[:, some & (data.edge_index[1] != 4)]
    edges = Edges.of(normalized_adjacency(index, 80))
    kept, weight = network(k).train(training).sparsify(data.x, edges)
    degree = torch.bincount(index[1], minlength=80)
    assert {0, 1, 2} <= set(degree.tolist())
    assert int(degree.max()) > 3
    count = kept.pattern.crow.diff()
    assert count.tolist() == degree.clamp(max=k).tolist()
    # Only edges that are there, and no self-loops.
    there = set(zip(*index.flip(0).tolist(), strict=True))
    chosen = list(
        zip(kept.pattern.row.tolist(), kept.pattern.col.tolist(), strict=True)
    )
    assert set(chosen) <= there
    assert len(set(chosen)) == len(chosen)
    # The weights of a node sum to the number of its edges.
    total = torch.zeros(80).index_add(0, kept.pattern.row, weight.detach())
    torch.testing.assert_close(total, count.float())


def test_evaluation_keeps_the_best_and_training_draws() -> None:
    torch.manual_seed(0)
    data = draw(n=80).data
    edges = Edges.of(adjacency(data))
    model = network(3).eval()
    kept, _ = model.sparsify(data.x, edges)
    scores = model.scorer(data.x, edges.pattern).detach()
    dense = torch.full((80, 80), -torch.inf)
    dense[edges.pattern.row, edges.pattern.col.long()] = scores
    at = kept.pattern
    for i in range(80):
        mine = dense[i, at.col[at.crow[i] : at.crow[i + 1]].long()]
        # Their scores: some are equal, where no hidden unit is awake.
        best = dense[i].topk(len(mine)).values
        torch.testing.assert_close(mine.sort(descending=True).values, best)
    again, _ = model.sparsify(data.x, edges)
    assert torch.equal(again.pattern.col, kept.pattern.col)
    assert torch.equal(model(data.x, adjacency(data)), model(data.x, adjacency(data)))
    drawn = {tuple(model.train().sparsify(data.x, edges)[0].pattern.col.tolist())}
    drawn |= {tuple(model.sparsify(data.x, edges)[0].pattern.col.tolist())}
    assert len(drawn) == 2


def test_draws_are_in_proportion_to_the_softmax() -> None:
    """k = 1: a neighbour is drawn with probability π. The same star 4000 times."""
    torch.manual_seed(0)
    stars = 4000
    star = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    edges = (star[:, None] + 5 * torch.arange(stars)[:, None]).flatten(1)
    model = NeuralSparse(5, 4, 2, 0.0, 1, 4).train()
    for p in model.scorer.parameters():
        torch.nn.init.uniform_(p)
    at, x = Edges.of_index(edges, 5 * stars), torch.eye(5).repeat(stars, 1)
    pi = model.scorer(x, at.pattern).detach()[:4].softmax(dim=0)
    assert float(pi.max()) - 0.09 > float(pi.min()) > 0.1
    drawn = model.sparsify(x, at)[0].pattern.col.long()
    assert len(drawn) == stars
    share = torch.bincount(drawn % 5, minlength=5)[1:] / stars
    error = (pi * (1 - pi) / stars).sqrt()
    assert bool(((share - pi).abs() < 4 * error).all())


def test_weights_of_a_draw_are_the_softmax_of_noisy_scores() -> None:
    """Noise chooses the edges and weighs them too; all pairs, for given noise."""
    torch.manual_seed(0)
    data = draw(n=80).data
    edges = Edges.of(adjacency(data))
    model = network(3).train()
    model.temperature.fill_(0.5)
    at = edges.pattern
    torch.manual_seed(5)
    noise = gumbel(torch.empty(at.nnz))
    torch.manual_seed(5)
    kept, weight = model.sparsify(data.x, edges)
    dense = torch.full((80, 80), -torch.inf)
    dense[at.row, at.col.long()] = model.scorer(data.x, at).detach() + noise
    expected = torch.zeros(80, 80)
    for i, count in enumerate(at.crow.diff().clamp(max=3).tolist()):
        best = dense[i].topk(count)
        expected[i, best.indices] = count * (best.values / 0.5).softmax(dim=0)
    ours = torch.zeros(80, 80)
    ours[kept.pattern.row, kept.pattern.col.long()] = weight.detach()
    torch.testing.assert_close(ours, expected)


def test_gumbel_noise_has_its_mean_and_variance() -> None:
    torch.manual_seed(0)
    g = gumbel(torch.empty(200_000))
    assert float(g.mean()) == pytest.approx(0.57722, abs=0.02)  # Euler's constant
    assert float(g.var()) == pytest.approx(torch.pi**2 / 6, rel=0.02)
    # P(g ≤ 0) = exp(−1)
    assert float((g <= 0).float().mean()) == pytest.approx(0.36788, abs=0.01)


def test_colder_draws_come_closer_to_one_edge() -> None:
    data = draw(n=80).data
    edges = Edges.of(adjacency(data))
    model = network(100).train()

    def largest(tau: float) -> Tensor:
        """The largest share of each node, of one and the same draw."""
        torch.manual_seed(7)
        model.temperature.fill_(tau)
        kept, weight = model.sparsify(data.x, edges)
        at = kept.pattern
        share = weight.detach() / at.crow.diff()[at.row]
        return torch.zeros(80).scatter_reduce(0, at.row, share, "amax")

    torch.manual_seed(0)
    steps = [largest(tau) for tau in (5.0, 1.0, 0.2, 0.02, 1e-4)]
    some = steps[0] > 0  # nodes with neighbours
    for warm, cold in pairwise(steps):
        assert bool((cold[some] >= warm[some] - 1e-5).all())
    assert float(steps[0][some].mean()) < 0.5
    assert float(steps[-1][some].min()) > 0.99


def test_temperature_by_hand() -> None:
    config = NeuralSparseConfig(rate=0.01, refresh=50)
    assert config.temperature(0) == config.temperature(49) == 1.0
    assert config.temperature(50) == pytest.approx(0.60653, rel=1e-4)  # exp(−0.5)
    assert config.temperature(99) == config.temperature(50)
    assert config.temperature(10_000) == 0.05


def test_gradients_reach_the_scorer() -> None:
    torch.manual_seed(0)
    data = draw(n=80).data
    model = network(3).train()
    model(data.x, adjacency(data))[:20, 0].sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None
        # An offset common to all scores cancels in the softmax.
        assert bool((p.grad.abs() > 1e-5).any()) == (name != "scorer.offset")


def test_predictor_repeats_its_graph_and_survives_saving() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=8, rate=0.1, refresh=2, k=3)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, NeuralSparsePredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = NeuralSparsePredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))
    assert isinstance(again.model, NeuralSparse)
    epoch = fitted.prediction.facts["best_epoch"]
    config = NeuralSparseConfig(rate=0.1, refresh=2)
    assert float(again.model.temperature) == pytest.approx(config.temperature(epoch))


def test_only_the_first_layer_can_be_decayed() -> None:
    model = network(3)
    first = {id(p) for p in model.first_layer()}
    names = {k for k, p in model.named_parameters() if id(p) in first}
    assert names == {"gcn.weights.0", "gcn.biases.0"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"scorer_channels": 0},
        {"input_dropout": 1.0},
        {"refresh": 0},
        {"rate": -1.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        NeuralSparseConfig(**wrong)
