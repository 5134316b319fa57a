"""What stage 2 minimises, written out as the paper prints it."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.data.datasets import load_dataset
from elugcn.data.validation import check_data
from elugcn.elu.low_rank_graph import LowRankGraph
from elugcn.elu.objective import (
    TwoViewObjective,
    loss_targets,
    mixed,
    pseudo_label_weights,
)
from elugcn.elu.utilization import definition_one
from elugcn.engine import Workspace
from elugcn.methods.backbone import build_gcn
from elugcn.methods.problem import Problem
from tests.elu.conftest import problem_of


def objective(pseudo: bool = False, **options: Any) -> tuple[TwoViewObjective, Problem]:
    """With weights, sets of nodes and a graph that depend on nothing."""
    torch.manual_seed(0)
    given = {"eta": 0.3, "lambda_con": 0.4} | options
    problem, config = problem_of(check_data(load_dataset("karate")), **given)
    n, c = problem.num_nodes, problem.num_classes
    use = definition_one(torch.arange(n) % c, (torch.arange(n) // 2) % c)
    weights = torch.rand(n) * ~problem.train_mask if pseudo else None
    graph = LowRankGraph(torch.rand(n, c), torch.rand(n, c) / n)
    network = build_gcn(config, problem.shapes).train()
    return TwoViewObjective(network, problem, config, graph, use, weights), problem


def written_out(
    one: TwoViewObjective, problem: Problem, views: list[Tensor], share: float
) -> Tensor:
    """Eq. 13 with several draws, and GRAND's eq. 5 and 6, as printed."""
    config, targets = one.config, one.targets
    both = config.uses_elu_view
    outputs = [mixed([z, views[-1]], config.eta) for z in views[:-1]] if both else views
    probs = [F.softmax(z, dim=1) for z in outputs]
    rows = torch.arange(problem.num_nodes)
    picked = [-(p[rows, targets.target].log() * targets.weight).sum() for p in probs]
    entropy = [-(p * p.log()).sum(dim=1).mean() for p in probs]
    total = sum(picked) / len(probs)
    extra = config.entropy_weight * sum(entropy) / len(probs)
    if one.head is not None:
        a, b = (F.normalize(F.elu(one.head(z)), dim=1) for z in (views[0], views[-1]))
        if config.contrast == "distance":
            d = (a - b).square().sum(dim=1)
            pos, neg = (
                torch.exp(d[s].mean() / config.tau) for s in (targets.elu, targets.nelu)
            )
        else:
            d = (a * b).sum(dim=1)
            pos, neg = (
                torch.exp(d[s] / config.tau).mean() for s in (targets.elu, targets.nelu)
            )
        extra = extra - config.contrast_weight * torch.log(pos / (pos + neg))
    total = total + share * config.lambda_con * extra
    if len(probs) > 1:
        sharp = torch.stack(probs).mean(dim=0) ** (1 / config.sharpening)
        sharp = sharp / sharp.sum(dim=1, keepdim=True)
        agree = sum((sharp - p).square().sum(dim=1).mean() for p in probs) / len(probs)
        total = total + share * config.lambda_cons * agree
    return torch.as_tensor(total)


@pytest.mark.parametrize(("epoch", "share"), [(0, 0.0), (1, 0.25), (9, 1.0)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pseudo": True, "norm": "batch"},
        {"contrast": "distance", "residual": True},
        {"draws": 3, "lambda_cons": 0.7},
        {"draws": 2, "lambda_cons": 0.7, "contrast": "distance", "pseudo": True},
        {"eta": 0.0, "contrast_weight": 0.0, "order": 2, "draws": 2, "drop_node": 0.5},
    ],
    ids=["eq12", "pseudo", "distance", "draws", "distance draws", "one view"],
)
def test_the_objective_written_out(
    options: dict[str, Any], epoch: int, share: float
) -> None:
    given = {"warmup": 4, "contrast_weight": 0.5, "entropy_weight": 0.25}
    one, problem = objective(**(given | options))
    with Workspace(1) as workspace, torch.no_grad():
        workspace.begin_step(epoch)
        views = [
            z.clone() for z in one.gcn.views(one.inputs, one.config.draws).tensors()
        ]
        workspace.begin_step(epoch)
        loss = one.loss(epoch)
    expected = written_out(one, problem, views, share)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)


def test_one_pass_has_the_gradients_of_the_sum() -> None:
    """The fused eq. 13 against autograd of what is printed."""
    one, problem = objective(pseudo=True, dropout=0.0)
    assert one.head is not None
    assert one.extra == (one.head,)  # trained along
    weights = [*one.network.parameters(), *one.head.parameters()]
    with Workspace(1):
        got = torch.autograd.grad(one.loss(3), weights)
    views = one.gcn.views(one.inputs).tensors()
    expected = torch.autograd.grad(written_out(one, problem, views, 1.0), weights)
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-5)


def test_validation_sees_the_output() -> None:
    one, problem = objective()
    one.network.eval()
    with torch.no_grad():
        torch.testing.assert_close(
            one.val_logits(), one.logits()[problem.val_index], rtol=1e-4, atol=1e-5
        )
        original, elu_view = one.gcn.views(one.inputs).tensors()
        torch.testing.assert_close(one.logits(), 0.7 * original + 0.3 * elu_view)


# --- targets -----------------------------------------------------------------------


def test_targets_by_hand(path_graph: Any) -> None:
    problem, _ = problem_of(check_data(path_graph))
    use = definition_one(
        torch.tensor([0, 0, 1, -1, 1, 1]), torch.tensor([0, 0, 0, 1, 1, 1])
    )
    plain = loss_targets(problem, use, None)
    assert plain.weight.tolist() == [0.5, 0, 0, 0, 0, 0.5]
    assert plain.target[[0, 5]].tolist() == [0, 1]
    weighted = replace(problem, class_weight=torch.tensor([1.0, 3.0]))
    weights = loss_targets(weighted, use, None).weight
    assert weights.tolist() == [0.25, 0, 0, 0, 0, 0.75]
    more = loss_targets(problem, use, torch.tensor([0, 0.25, 0, 0, 0.75, 0]))
    assert more.weight.tolist() == [0.5, 0.25, 0, 0, 0.75, 0.5]
    assert more.target.tolist() == [0, 0, 0, 0, 1, 1]
    assert more.elu.tolist() == [True, True, False, False, True, True]
    assert more.nelu.tolist() == [False, False, True, False, False, False]


def test_weights_of_pseudo_labels_by_hand() -> None:
    """Two ELU nodes of class 0, one of class 1; each class has half of the weight."""
    proba = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7], [1, 0]])
    lpa = torch.tensor([0, 0, 1, 0, 0])
    use = definition_one(lpa, proba, logits=False)
    train = torch.tensor([0, 0, 0, 0, 1], dtype=torch.bool)
    weight = pseudo_label_weights(use, train, 3.0)
    assert weight is not None
    # 0.9 : 0.6 within class 0; node 3 is NELU, node 4 is a training node.
    assert weight.tolist() == pytest.approx([0.9, 0.6, 1.5, 0.0, 0.0])
    assert pseudo_label_weights(use, train, 0.0) is None
    assert pseudo_label_weights(use, torch.ones(5, dtype=torch.bool), 3.0) is None


@given(seed=st.integers(0, 10_000), total=st.floats(0.1, 10))
def test_classes_have_equal_weight(seed: int, total: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(40, 3, generator=generator)
    lpa = torch.randint(-1, 3, (40,), generator=generator)
    train = torch.arange(40) < 5
    use = definition_one(lpa, logits)
    weight = pseudo_label_weights(use, train, total)
    usable = use.elu & ~train
    if weight is None:
        assert not usable.any()
        return
    assert torch.equal(weight > 0, usable)
    per_class = torch.zeros(3).index_add_(0, use.gcn, weight)
    present = per_class[per_class > 0]
    torch.testing.assert_close(present, torch.full_like(present, total / len(present)))
