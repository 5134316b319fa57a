"""Definition 1 on examples whose answer is known."""

import pytest
import torch

from elugcn.elu.utilization import definition_one

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


def test_by_hand() -> None:
    u = definition_one(LPA, GCN)
    assert u.lpa.tolist() == [0, 2, -1, 1, -1]
    assert u.gcn.tolist() == [0, 1, 1, 1, 0]
    assert u.status.tolist() == [1, 0, -1, 1, -1]
    assert u.elu.tolist() == [True, False, False, True, False]
    assert u.nelu.tolist() == [False, True, False, False, False]
    assert u.unreachable.tolist() == [False, False, True, False, True]
    assert u.elu_fraction == u.unreachable_fraction == pytest.approx(2 / 5)
    assert u.names() == ["elu", "nelu", "unreachable", "elu", "unreachable"]
    assert repr(u) == "LabelUtilization(elu=2, nelu=1, unreachable=2)"
    assert u.lpa_proba is LPA
    assert u.gcn_proba is not None
    torch.testing.assert_close(u.gcn_proba, GCN.softmax(dim=1))
    assert definition_one(LPA, GCN, logits=False).gcn_proba is GCN


def test_classes_instead_of_scores() -> None:
    expected = definition_one(LPA, GCN)
    lpa, gcn = expected.lpa.clone(), expected.gcn.clone()
    u = definition_one(lpa, gcn)
    assert torch.equal(u.status, expected.status)
    assert torch.equal(lpa, expected.lpa)  # not changed
    assert u.lpa_proba is u.gcn_proba is None


def test_a_zero_row_is_never_class_zero() -> None:
    # The GCN says class 0 with certainty: argmax of a zero row would agree with it.
    u = definition_one(torch.zeros(3, 2), torch.tensor([[9.0, 0.0]] * 3))
    assert u.lpa.tolist() == [-1] * 3
    assert not bool(u.elu.any())
    assert bool(u.unreachable.all())
