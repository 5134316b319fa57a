"""Definition 1 on examples whose answer is known."""

import pytest
import torch

from elugcn.elu.utilization import LabelUtilization, Utilization, definition_one

LPA = torch.tensor(
    [
        [1.0, 0.0, 0.0],  # class 0
        [0.2, 0.3, 0.5],  # class 2
        [0.0, 0.0, 0.0],  # unreachable
        [0.1, 0.9, 0.0],  # class 1
        [0.0, 0.0, 0.0],  # unreachable, and the GCN says class 0
    ]
)
GCN = torch.tensor(
    [
        [2.0, -1.0, 0.0],  # class 0: agrees
        [0.0, 4.0, 1.0],  # class 1: disagrees
        [-3.0, -1.0, -2.0],  # class 1
        [-9.0, -1.0, -5.0],  # class 1: agrees
        [5.0, 0.0, 0.0],  # class 0
    ]
)


def by_hand() -> LabelUtilization:
    return definition_one(LPA, GCN)


def test_by_hand() -> None:
    u = by_hand()
    assert u.lpa.tolist() == [0, 2, -1, 1, -1]
    assert u.gcn.tolist() == [0, 1, 1, 1, 0]
    assert u.status.tolist() == [1, 0, -1, 1, -1]
    assert u.elu.tolist() == [True, False, False, True, False]
    assert u.nelu.tolist() == [False, True, False, False, False]
    assert u.unreachable.tolist() == [False, False, True, False, True]
    assert u.elu_fraction == pytest.approx(2 / 5)
    assert u.unreachable_fraction == pytest.approx(2 / 5)
    assert u.names() == ["elu", "nelu", "unreachable", "elu", "unreachable"]
    assert repr(u) == "LabelUtilization(elu=2, nelu=1, unreachable=2)"


def test_a_zero_row_is_never_class_zero() -> None:
    # The GCN says class 0 with certainty: argmax of a zero row would agree with it.
    u = definition_one(torch.zeros(3, 2), torch.tensor([[9.0, 0.0]] * 3))
    assert u.lpa.tolist() == [-1] * 3
    assert not bool(u.elu.any())
    assert bool(u.unreachable.all())


def test_classes_instead_of_scores() -> None:
    u = definition_one(torch.tensor([0, 2, -1, 1, -1]), torch.tensor([0, 1, 1, 1, 0]))
    expected = by_hand()
    assert torch.equal(u.status, expected.status)
    assert torch.equal(u.lpa, expected.lpa)


def test_every_node_has_exactly_one_status() -> None:
    generator = torch.Generator().manual_seed(0)
    lpa = torch.rand(200, 4, generator=generator)
    lpa[::7] = 0
    u = definition_one(lpa, torch.randn(200, 4, generator=generator))
    assert torch.equal(
        u.elu.int() + u.nelu.int() + u.unreachable.int(), torch.ones(200).int()
    )
    expected = u.lpa == u.gcn
    assert torch.equal(u.elu, expected)
    assert set(u.status.unique().tolist()) == {int(s) for s in Utilization}


def test_permuting_nodes_permutes_the_status() -> None:
    order = torch.tensor([3, 1, 4, 0, 2])
    moved = definition_one(LPA[order], GCN[order])
    assert torch.equal(moved.status, by_hand().status[order])


def test_inputs_are_left_alone() -> None:
    lpa, gcn = torch.tensor([-1, 1]), torch.tensor([0, 1])
    u = definition_one(lpa, gcn)
    assert u.status.tolist() == [-1, 1]
    assert lpa.tolist() == [-1, 1]
    assert gcn.tolist() == [0, 1]


def test_the_distributions_are_kept() -> None:
    u = by_hand()
    assert u.lpa_proba is LPA
    assert u.gcn_proba is not None
    torch.testing.assert_close(u.gcn_proba, GCN.softmax(dim=1))
    assert definition_one(LPA, GCN, logits=False).gcn_proba is GCN
    classes = definition_one(u.lpa, u.gcn)
    assert classes.lpa_proba is None
    assert classes.gcn_proba is None
