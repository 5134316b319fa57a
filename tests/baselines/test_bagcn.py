"""BAGCN as reconstructed, against its equations on dense matrices."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.bagcn import BAGCNNetwork
from elugcn.engine import CSR, GraphInputs
from elugcn.models.losses import info_nce
from tests.baselines.helpers import Draw, objective

OFF: dict[str, Any] = {"dropout": 0.0, "roles": 6, "hidden_channels": 5, "k": 4}


def dense_views(model: BAGCNNetwork, x: Tensor, a: Tensor) -> tuple[Tensor, ...]:
    """Z, Z₁, Z₂, H₁, H₂ from all pairs, shortcuts included."""
    w_p, w_r, w_0, w_far = torch.split(model.weight, model.widths, dim=1)
    b_p, b_r, b_0, b_far = torch.split(model.bias, model.widths)
    one = torch.ones(len(x), 1)
    p = torch.cat([F.relu(x @ w_p + b_p), one], dim=1)
    r = torch.cat([F.relu(x @ w_r + b_r), one], dim=1)
    s = p @ model.biaffine.weight @ r.T
    s = s.masked_fill((a != 0) | torch.eye(len(x), dtype=torch.bool), -torch.inf)
    least = s.topk(model.config.k, dim=1).values[:, -1:]
    b = s.masked_fill(s < least, -torch.inf).softmax(dim=1)
    h1 = F.relu(a @ x @ w_0 + b_0)
    h2 = b @ F.relu(x @ w_far + b_far)
    z1 = a @ h1 @ model.local.weight.T + model.local.bias
    z2 = model.distant(h2)
    return z1 + model.config.beta * z2, z1, z2, h1, h2


def prepared(draw: Draw, **options: Any) -> tuple[Any, Any, Tensor, Tensor]:
    """An objective with biases that are not zero, its network, X and Â."""
    loss, model, problem = objective(draw(n=90), "bagcn", **OFF | options)
    for bias in (model.bias, model.local.bias, model.distant.bias):
        torch.nn.init.normal_(bias)
    loss.pairs = model.shortcuts(problem.inputs)
    return loss, model, problem.inputs.x, problem.adj.to_dense()


def test_equations(checked: Draw) -> None:
    loss, model, x, a = prepared(checked, beta=0.7)
    expected = dense_views(model, x, a)
    for ours, dense in zip(model.views(loss.inputs, loss.pairs), expected, strict=True):
        torch.testing.assert_close(ours, dense, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.eval()(loss.inputs), expected[0])


@pytest.mark.parametrize(("mu", "omega"), [(0.0, 0.0), (0.5, 0.2)])
def test_loss_and_its_gradients(checked: Draw, mu: float, omega: float) -> None:
    loss, model, x, a = prepared(checked, mu=mu, omega=omega)
    z, z1, z2, h1, h2 = dense_views(model, x, a)
    known, target = loss.train_index, loss.target
    ce, ce1, ce2 = (F.cross_entropy(logits[known], target) for logits in (z, z1, z2))
    expected = ce + omega * (ce1 + ce2)
    # All nodes are anchors; their order does not matter.
    expected = expected + mu * info_nce(loss.head(h1), loss.head(h2), 0.5)
    ours = loss.loss(0)
    torch.testing.assert_close(ours, expected)
    weights = list(model.parameters())
    for p, q in zip(
        torch.autograd.grad(ours, weights),
        torch.autograd.grad(expected, weights),
        strict=True,
    ):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)


def test_shortcuts_lead_beyond_the_neighbours(checked: Draw) -> None:
    loss, model, _, a = prepared(checked)
    pairs = loss.pairs
    there = torch.zeros(90, 90, dtype=torch.bool)
    there[pairs.row, pairs.col.long()] = True
    assert torch.equal(there.sum(dim=1), torch.full((90,), 4))
    assert not bool((there & (a != 0)).any())
    assert not bool(there.diagonal().any())
    # A node that is joined to all others has none.
    full = CSR.from_tensor(torch.ones(90, 90))
    few = model.shortcuts(GraphInputs(loss.inputs.x, full))
    assert few.nnz == 0
    logits = model.eval()(GraphInputs(loss.inputs.x, full))
    assert bool(logits.isfinite().all())


def test_validation_looks_for_shortcuts_anew(checked: Draw) -> None:
    loss, model, _, _ = prepared(checked, refresh=7)
    assert loss.validate_every == 7
    before = loss.pairs
    with torch.no_grad():
        model.weight.normal_()
        logits = loss.val_logits()
    assert not torch.equal(loss.pairs.col, before.col)
    torch.testing.assert_close(logits, loss.logits()[loss.val_index])
