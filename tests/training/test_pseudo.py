"""How much each ELU node's pseudo-label weighs."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data

from elugcn.core.sparse import normalized_adjacency
from elugcn.core.utilization import LabelUtilization, definition_one
from elugcn.methods.base import GraphView, Problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_member import Reach, Source, sources
from elugcn.methods.elu_objective import pseudo_label_weights
from elugcn.methods.neural import NetworkPredictor
from elugcn.methods.scaling import FeatureScaler
from elugcn.training.loop import Trained


def problem(train_mask: Tensor, c: int) -> Problem:
    n = train_mask.numel()
    none = torch.empty(2, 0, dtype=torch.long)
    x = torch.ones(n, 1)
    return Problem(
        x=x,
        adj=normalized_adjacency(none, n),
        spread=normalized_adjacency(none, n),
        y=torch.zeros(n, dtype=torch.long),
        train_mask=train_mask,
        val_mask=torch.zeros(n, dtype=torch.bool),
        num_classes=c,
        in_channels=1,
        scaler=FeatureScaler("none"),
        data=Data(x=x),
    )


def config(weight: float) -> ELUGCNConfig:
    return ELUGCNConfig(pseudo_weight=weight)


def test_by_hand() -> None:
    # Node: 0 train; 1, 2 ELU of class 0; 3 ELU of class 1; 4 NELU; 5 unreachable.
    logits = torch.tensor(
        [[9.0, 0.0], [torch.tensor(0.8 / 0.2).log(), 0.0], [torch.tensor(0.6 / 0.4).log(), 0.0],
         [0.0, 2.0], [0.0, 9.0], [9.0, 0.0]]
    )  # fmt: skip
    lpa = torch.tensor([0, 0, 0, 1, 0, -1])
    train = torch.tensor([True, False, False, False, False, False])
    weight = pseudo_label_weights(
        problem(train, 2), config(3.0), definition_one(lpa, logits), logits
    )
    # 1.5 for each class; in class 0 shared as 0.8 : 0.6.
    expected = [0, 1.5 * 0.8 / 1.4, 1.5 * 0.6 / 1.4, 1.5, 0, 0]
    assert weight is not None
    torch.testing.assert_close(weight, torch.tensor(expected))


def drawn(seed: int, n: int, c: int) -> tuple[Problem, LabelUtilization, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, c, generator=generator)
    lpa = torch.randint(-1, c, (n,), generator=generator)
    # About half agree.
    lpa = torch.where(
        torch.rand(n, generator=generator) < 0.5, logits.argmax(dim=1), lpa
    )
    train = torch.rand(n, generator=generator) < 0.2
    return problem(train, c), definition_one(lpa, logits), logits


@given(st.integers(0, 10**6), st.integers(5, 60), st.integers(2, 5), st.floats(0.1, 10))
@settings(max_examples=50, deadline=None)
def test_total_balance_and_zeros(seed: int, n: int, c: int, total: float) -> None:
    case, utilization, logits = drawn(seed, n, c)
    weight = pseudo_label_weights(case, config(total), utilization, logits)
    usable = utilization.elu & ~case.train_mask
    if not bool(usable.any()):
        assert weight is None
        return
    assert weight is not None
    assert float(weight.sum()) == pytest.approx(total, rel=1e-4)
    assert bool((weight[usable] > 0).all())
    assert torch.equal(weight[~usable], torch.zeros(int((~usable).sum())))
    classes = utilization.gcn[usable].unique().tolist()
    for k in classes:
        of_class = float(weight[utilization.gcn == k].sum())
        assert of_class == pytest.approx(total / len(classes), rel=1e-4)
    # Within a class the weight is proportional to the confidence.
    confidence = logits.softmax(dim=1).amax(dim=1)
    for k in classes:
        chosen = usable & (utilization.gcn == k)
        ratio = weight[chosen] / confidence[chosen]
        torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio), rtol=1e-4, atol=0)


def test_none_if_switched_off_or_nothing_is_usable() -> None:
    case, utilization, logits = drawn(0, 30, 3)
    assert pseudo_label_weights(case, config(0.0), utilization, logits) is None
    all_train = replace(case, train_mask=torch.ones(30, dtype=torch.bool))
    assert pseudo_label_weights(all_train, config(1.0), utilization, logits) is None


def test_a_node_without_a_gcn_class_weighs_nothing() -> None:
    scores = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.0, 0.0], [0.7, 0.3]])
    lpa = torch.tensor([0, 1, -1, 0])
    train = torch.tensor([True, False, False, False])
    weight = pseudo_label_weights(
        problem(train, 2), config(1.0), definition_one(lpa, scores), scores
    )
    assert weight is not None
    torch.testing.assert_close(weight, torch.tensor([0.0, 0.5, 0.0, 0.5]))


def test_propagated_predictions_are_shares_not_scores() -> None:
    """Confidence in Â²H is its largest share of a row."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    asked = replace(
        problem(torch.tensor([True, False, False, False]), 2),
        spread=normalized_adjacency(edges, 4, self_loops=False),
    )
    h = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [0.2, 0.8]])
    nothing = NetworkPredictor(nn.Identity(), FeatureScaler("none"), GraphView(), {})
    mlp, gcn = Source(h.log(), nothing), Source(torch.zeros(4, 2), nothing)
    base = Trained(gcn.logits, 0, 1, 1.0, 0.0, 0.0)
    _, predicted = sources(
        asked,
        ELUGCNConfig(gcn_prediction="propagated", h_source="mlp", variants=()),
        Reach(torch.zeros(4, 2), base, gcn, mlp),
    )
    a = asked.spread.to_dense()
    share = a @ a @ h
    assert not share[3].any()  # no neighbours, no self-loop: it is told nothing
    shown = predicted.logits.softmax(dim=1)[:3]
    torch.testing.assert_close(shown, share[:3] / share[:3].sum(dim=1, keepdim=True))
    assert definition_one(torch.zeros(4, 2), predicted.logits).gcn.tolist() == [
        *share[:3].argmax(dim=1).tolist(),
        1,  # what the MLP says of it
    ]
