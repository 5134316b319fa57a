"""PTDNet: gates, singular values and the objective against their equations."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.ptdnet import (
    LargestSingularValue,
    PTDNetConfig,
    PTDNetNetwork,
    hard_concrete,
    open_probability,
)
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from tests.baselines.helpers import Draw, gradient, objective

OFF: dict[str, Any] = {"hidden_channels": 5, "scorer_channels": 4, "dropout": 0.0}
GAMMA, ZETA = -0.1, 1.1


# --- gates -------------------------------------------------------------------------


def test_gates_by_hand() -> None:
    alpha = torch.tensor([-5.0, 0.0, 1.0, 5.0])
    expected = [0.0, 0.5, 1.2 / (1 + math.exp(-1.0)) - 0.1, 1.0]
    assert hard_concrete(alpha, None, GAMMA, ZETA).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("tau", [0.5, 2.0])
@pytest.mark.parametrize("alpha", [-2.0, 0.0, 1.5])
def test_the_share_of_open_gates_is_their_probability(alpha: float, tau: float) -> None:
    torch.manual_seed(0)
    scores = torch.full((40_000,), alpha)
    gates = hard_concrete(scores, tau, GAMMA, ZETA)
    expected = open_probability(scores[:1], tau, GAMMA, ZETA)
    assert float((gates > 0).float().mean()) == pytest.approx(float(expected), abs=0.01)
    assert 0.0 <= float(gates.min()) <= float(gates.max()) <= 1.0


def test_the_temperature_falls_to_a_floor() -> None:
    config = PTDNetConfig()
    taus = [config.temperature(epoch) for epoch in (0, 10, 1000)]
    assert taus == pytest.approx([2.0, 2.0 * 0.99**10, 0.05])


# --- singular values ---------------------------------------------------------------


def test_the_largest_singular_value_and_its_gradient() -> None:
    torch.manual_seed(0)
    dense = torch.rand(12, 12) * (torch.rand(12, 12) < 0.6)
    dense += torch.diag(torch.tensor([9.0, 6.0, 4.0] + [0.0] * 9))
    pattern = CSR.from_tensor(dense)
    ours = pattern.value.clone().requires_grad_()
    value = LargestSingularValue()
    for _ in range(20):  # each call starts from the last vectors
        total = value(pattern.with_values(ours))
    theirs = dense.requires_grad_()
    expected = torch.linalg.svdvals(theirs)[0]
    torch.testing.assert_close(total, expected, rtol=1e-4, atol=1e-4)
    (a,) = torch.autograd.grad(total, ours)
    (b,) = torch.autograd.grad(expected, theirs)
    torch.testing.assert_close(
        a, b[pattern.row, pattern.col.long()], rtol=1e-2, atol=1e-3
    )


# --- the network -------------------------------------------------------------------


def inputs(n: int = 25) -> GraphInputs:
    torch.manual_seed(0)
    edges = torch.randint(0, n, (2, 5 * n))
    edges = edges[:, edges[0] != edges[1]].unique(dim=1)
    return GraphInputs(torch.randn(n, 6), normalized_adjacency(edges, n))


def network(**options: Any) -> PTDNetNetwork:
    torch.manual_seed(1)
    model = PTDNetNetwork(PTDNetConfig(**OFF | options), Shapes(6, 3))
    for name, p in model.named_parameters():
        if "bias" in name or "offset" in name:
            torch.nn.init.normal_(p)
    return model


def dense_scores(scorer: Any, h: Tensor) -> Tensor:
    """α of all pairs, n×n."""
    each = F.relu(h @ scorer.weight + scorer.bias) * scorer.head
    receiver, sender = (part.sum(dim=1) for part in each.chunk(2, dim=1))
    scores: Tensor = receiver[:, None] + sender[None] + scorer.offset
    return scores


def dense_logits(model: PTDNetNetwork, g: GraphInputs) -> Tensor:
    """Z without noise: every pair has a gate, those that are not linked are shut."""
    linked = (g.adj.to_dense() != 0).float().fill_diagonal_(0.0)  # type: ignore[union-attr]
    h = g.x
    for i, scorer in enumerate(model.scorers):
        gates = (dense_scores(scorer, h).sigmoid() * 1.2 - 0.1).clamp(0.0, 1.0)
        gated = gates * linked + torch.eye(len(linked))
        root = gated.sum(dim=1).rsqrt()
        z = root[:, None] * gated * root @ (h @ model.gcn.weights[i])
        h = z + model.gcn.biases[i] if i else F.relu(z + model.gcn.biases[i])
    return h


def test_values_and_gradients() -> None:
    g, model = inputs(), network().eval()
    ours, expected = model(g), dense_logits(model, g)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    for p in model.parameters():
        a, b = gradient(ours, p), gradient(expected, p)
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_draws_share_what_no_gate_influences() -> None:
    g = inputs()
    one, two = network(dropout=0.5, input_dropout=0.5).train().draws(g, 1.0, 2)
    assert torch.equal(one.scores[0], two.scores[0])
    assert not torch.equal(one.logits, two.logits)
    model = network().eval()
    assert torch.equal(model.draws(g, None, 2)[1].logits, model(g))


@pytest.mark.parametrize("term", [None, "lambda_edges", "lambda_rank", "lambda_cons"])
def test_loss(checked: Draw, term: str | None) -> None:
    weights = dict.fromkeys(("lambda_edges", "lambda_rank", "lambda_cons"), 0.0)
    options = OFF | weights | ({term: 0.3} if term else {})
    loss, model, _ = objective(checked(n=90), "ptdnet", **options)
    tau = 0.7
    draws = model.draws(loss.inputs, tau, 3)
    z = torch.stack([d.logits for d in draws])
    expected = F.cross_entropy(z.mean(dim=0)[loss.train_index], loss.target)
    if term == "lambda_edges":
        each = [a for d in draws for a in d.scores]
        shift = tau * math.log(-GAMMA / ZETA)
        expected = expected + 0.3 * sum((a - shift).sigmoid().mean() for a in each)
    if term == "lambda_cons":
        expected = expected + 0.15 * (z - z.mean(dim=0)).pow(2).sum() / 90
    if term == "lambda_rank":
        for _ in range(40):
            loss.loss_of(draws, tau)
        for graph in draws[-1].graphs:
            values = torch.linalg.svdvals(graph.matrix.to_dense().detach())
            expected = expected + 0.3 * values[0]
    ours = loss.loss_of(draws, tau)
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4)
    assert bool(model.training)
    assert bool(torch.isfinite(loss.loss(5)))
