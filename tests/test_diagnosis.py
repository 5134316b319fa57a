"""Definition 1 for given predictions, and the shares that follow from it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn import InputError, label_utilization
from elugcn.core.utilization import definition_one
from elugcn.diagnosis import diagnose

Draw = Callable[..., Data]


def test_given_predictions_by_hand(path_graph: Data) -> None:
    lpa = [0, 0, 0, 1, -1, 1]
    gcn = [0, 1, 0, 1, 1, 0]
    expected = ["elu", "nelu", "elu", "elu", "unreachable", "nelu"]
    use = label_utilization(path_graph, torch.tensor(gcn), torch.tensor(lpa))
    assert use.names() == expected
    assert use.elu_fraction == 0.5
    assert use.unreachable_fraction == pytest.approx(1 / 6)
    # Scores instead of classes, arrays instead of tensors; a zero row is no class.
    scores = np.eye(2, dtype=np.float32)[gcn]
    shares = np.eye(3, dtype=np.float32)[lpa][:, :2]
    assert shares[4].tolist() == [0, 0]
    assert label_utilization(path_graph, scores, shares).names() == expected


def test_lpa_by_hand(path_graph: Data) -> None:
    """Two steps from both ends of a row of six: the halves meet in the middle."""
    gcn = torch.tensor([0, 0, 0, 1, 1, 1])
    assert label_utilization(path_graph, gcn, lpa_steps=2).names() == ["elu"] * 6
    near = label_utilization(path_graph, gcn, lpa_steps=1)
    assert near.unreachable.tolist() == [False, False, True, True, False, False]
    turned = label_utilization(path_graph, 1 - gcn, lpa_steps=2)
    assert turned.nelu.all()


def test_self_loops_are_the_default(sbm: Draw) -> None:
    data, gcn = sbm(homophily=0.3), torch.zeros(150).long()
    usual = label_utilization(data, gcn, lpa_steps=3).lpa
    with_loops, without = (
        label_utilization(data, gcn, lpa_steps=3, self_loops=loops).lpa
        for loops in (True, False)
    )
    assert torch.equal(usual, with_loops)
    assert not torch.equal(usual, without)


def test_a_gcn_is_trained_if_none_is_given(sbm: Draw) -> None:
    data = sbm()
    use = label_utilization(data, random_state=2)
    again = label_utilization(data, random_state=2)
    assert torch.equal(use.gcn, again.gcn)
    right = (use.gcn == data.y)[data.test_mask].float().mean()
    assert right > 0.6


def test_permuting_the_nodes_permutes_the_result(sbm: Draw) -> None:
    data = sbm()
    gcn = torch.arange(150) % 3
    order = torch.randperm(150, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order)
    place[order] = torch.arange(150)
    shuffled = Data(
        x=data.x[order],
        y=data.y[order],
        edge_index=place[data.edge_index],
        **{m: data[m][order] for m in ("train_mask", "val_mask", "test_mask")},
    )
    here = label_utilization(data, gcn)
    there = label_utilization(shuffled, gcn[order])
    assert torch.equal(there.lpa, here.lpa[order])
    assert torch.equal(there.status, here.status[order])


@pytest.mark.parametrize(
    "wrong", [torch.zeros(5), torch.zeros(5, 2), torch.zeros(6, 2, 2), torch.tensor(1)]
)
def test_wrong_sizes_are_refused(wrong: torch.Tensor, path_graph: Data) -> None:
    right = torch.zeros(6).long()
    with pytest.raises(InputError, match=r"gcn must have one row per node \(6\)"):
        label_utilization(path_graph, wrong, right)
    with pytest.raises(InputError, match=r"lpa must have one row per node \(6\)"):
        label_utilization(path_graph, right, wrong)


def test_two_predictions_need_nothing_else_of_a_graph() -> None:
    bare = Data(num_nodes=4)
    use = label_utilization(bare, gcn=[0, 1, 1, 2], lpa=[0, 0, -1, 2])
    assert use.names() == ["elu", "nelu", "unreachable", "elu"]
    named = label_utilization(
        bare, gcn=np.array(["b", "a", "a", "c"]), lpa=["b", "c", "a", "c"]
    )
    assert named.names() == ["elu", "nelu", "elu", "elu"]
    assert (named.gcn.tolist(), named.lpa.tolist()) == ([1, 0, 0, 2], [1, 2, 0, 2])
    with pytest.raises(InputError, match="gcn must be classes from 0 on, or -1; got"):
        label_utilization(bare, gcn=[-5, 0, 0, 0], lpa=[0, 0, 0, 0])


def test_names_of_classes_are_those_of_the_graph(path_graph: Data) -> None:
    named = path_graph.clone()
    named.class_names = ["cat", "dog"]
    here = label_utilization(path_graph, [0, 0, 0, 1, 1, 1], lpa_steps=2)
    there = label_utilization(named, ["cat"] * 3 + ["dog"] * 3, lpa_steps=2)
    assert torch.equal(here.status, there.status)
    with pytest.raises(InputError, match=r"gcn must be scores.*got 'cow'"):
        label_utilization(named, ["cow"] * 6, lpa_steps=2)


def test_a_graph_without_features(path_graph: Data) -> None:
    del path_graph.x
    with pytest.raises(InputError, match='choose features="identity"'):
        label_utilization(path_graph, [0] * 6)
    use = label_utilization(path_graph, [0, 0, 0, 1, 1, 1], features="identity")
    assert use.gcn.tolist() == [0, 0, 0, 1, 1, 1]


def test_shares_by_hand() -> None:
    data = Data(
        y=torch.tensor([1, 0, 1, 1, -1, 1]),
        train_mask=torch.tensor([1, 0, 0, 0, 0, 0], dtype=torch.bool),
    )
    use = definition_one(
        torch.tensor([0, 0, 0, 1, 1, -1]), torch.tensor([0, 0, 1, 0, 1, 1])
    )
    said = diagnose(use, data, ["a", "b", "c"])
    overall = said["overall"]
    assert [overall[s]["nodes"] for s in ("elu", "nelu", "unreachable")] == [3, 2, 1]
    # Of the ELU nodes one trains (and is wrong) and one has no label: node 1 is judged.
    assert overall["elu"]["gcn_accuracy"] == overall["elu"]["lpa_accuracy"] == 1.0
    assert overall["nelu"]["gcn_accuracy"] == 0.5
    assert overall["nelu"]["lpa_accuracy"] == 0.5
    assert overall["unreachable"]["gcn_accuracy"] == 1.0
    assert overall["unreachable"]["lpa_accuracy"] == 0.0
    a, b, c = said["classes"]
    assert (a["name"], a["labels"], a["nodes"]) == ("a", 0, 3)
    assert (a["elu"], a["nelu"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (b["labels"], b["nodes"]) == (1, 3)
    assert b["unreachable"] == pytest.approx(1 / 3)
    assert (c["nodes"], c["elu"]) == (0, None)
    (note,) = said["notes"]
    assert note.startswith("no training label reaches 1 nodes")
