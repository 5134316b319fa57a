"""What stage 2 minimises: the published terms in one pass, and one by one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.operators import LowRankGraph
from elugcn.core.utilization import LabelUtilization
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.methods.base import Problem, make_problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_objective import Objective
from elugcn.methods.neural import build


@pytest.fixture(scope="module")
def problem() -> Problem:
    data = check_data(load_dataset("karate")).data
    return make_problem(data, ELUGCNConfig(), torch.device("cpu"))


def objective(problem: Problem, pseudo: bool, **options: object) -> Objective:
    """With weights, sets of nodes and a graph that depend on nothing."""
    torch.manual_seed(0)
    config = ELUGCNConfig(variants=(), eta=0.3, lambda_con=0.4, **options)  # type: ignore[arg-type]
    n, c = problem.y.numel(), problem.num_classes
    lpa, gcn = torch.arange(n) % c, (torch.arange(n) // 2) % c
    utilization = LabelUtilization(lpa, gcn, (lpa == gcn).long())
    weights = torch.rand(n) * ~problem.train_mask if pseudo else None
    graph = LowRankGraph(torch.rand(n, c), torch.rand(n, c) / n)
    model, _ = build(problem, config, torch.device("cpu"))
    return Objective(problem, config, model, graph, utilization, weights)  # type: ignore[arg-type]


def gradients(one: Objective, epoch: int) -> tuple[Tensor, list[Tensor | None]]:
    assert one.head is not None
    torch.manual_seed(1)  # of dropout
    one.model.train()
    value = one.loss(epoch)
    parameters = [*one.model.parameters(), *one.head.parameters()]
    for p in parameters:
        p.grad = None
    value.backward()
    return value.detach(), [p.grad for p in parameters]


@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "batch"}, {"residual": True}, {"warmup": 4}, {"entropy_weight": 0.0}],
    ids=str,
)
def test_one_pass_is_the_sum_of_the_terms(
    problem: Problem, pseudo: bool, options: dict[str, object]
) -> None:
    one = objective(problem, pseudo, **options)
    assert one.terms is not None
    value, grads = gradients(one, epoch=2)
    one.terms = None
    truth, wanted = gradients(one, epoch=2)
    torch.testing.assert_close(value, truth)
    torch.testing.assert_close(grads, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"draws": 2}, {"contrast": "distance"}], ids=str)
def test_other_objectives_go_term_by_term(
    problem: Problem, options: dict[str, object]
) -> None:
    assert objective(problem, False, **options).terms is None


def written_out(one: Objective, views: list[Tensor], share: float) -> Tensor:
    """Eq. 12 with several draws, and GRAND's eq. 5 and 6, as printed."""
    c, elu, last = one.config, one.elu, views[-1]
    probs = [F.softmax((1 - c.eta) * z + c.eta * last, dim=1) for z in views[:-1]]
    index, target = one.train_index, one.target
    ce = sum(-p[index, target].log().mean() for p in probs) / len(probs)
    entropy = sum(-(p * p.log()).sum(dim=1).mean() for p in probs) / len(probs)
    a, b = (F.normalize(F.elu(one.head.linear(z)), dim=1) for z in (views[0], last))
    if c.contrast == "distance":
        d = (a - b).square().sum(dim=1)
        pos, neg = (torch.exp(d[s].mean() / c.tau) for s in (elu, one.nelu))
    else:
        d = (a * b).sum(dim=1)
        pos, neg = (torch.exp(d[s] / c.tau).mean() for s in (elu, one.nelu))
    contrast = -torch.log(pos / (pos + neg))
    total = ce + share * c.lambda_con * (
        c.contrast_weight * contrast + c.entropy_weight * entropy
    )
    if len(probs) > 1:
        mean = sum(probs) / len(probs)
        sharp = mean ** (1 / c.sharpening)
        sharp = sharp / sharp.sum(dim=1, keepdim=True)
        agree = sum((sharp - p).square().sum(dim=1).mean() for p in probs) / len(probs)
        total = total + share * c.lambda_cons * agree
    return total


@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("contrast", ["similarity", "distance"])
@pytest.mark.parametrize(("epoch", "share"), [(0, 0.0), (1, 0.25), (4, 1.0), (9, 1.0)])
def test_the_objective_written_out(
    problem: Problem, draws: int, contrast: str, epoch: int, share: float
) -> None:
    one = objective(
        problem,
        False,
        draws=draws,
        contrast=contrast,
        warmup=4,
        contrast_weight=0.5,
        entropy_weight=0.25,
        lambda_cons=0.7,
    )
    one.model.train()
    p = one.problem
    with torch.no_grad():
        torch.manual_seed(1)
        views = one.model(p.x, p.adj, one.graph, draws)
        expected = written_out(one, views, share)
    torch.manual_seed(1)
    torch.testing.assert_close(one.loss(epoch).detach(), expected)
