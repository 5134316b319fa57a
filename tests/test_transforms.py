"""The ELU graph under anybody's model."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose, ToUndirected

from elugcn import InputError, learn_elu_graph
from elugcn.api import fit
from elugcn.elu.label_propagation import propagate_labels
from elugcn.elu.utilization import definition_one
from elugcn.engine import normalized_adjacency
from elugcn.methods.registry import GRAPH_ONLY
from elugcn.transforms import AddELUGraph

Draw = Callable[..., Data]
# All that decides the graph, so that it can be learned a second time by hand.
OPTIONS: dict[str, Any] = {
    "epochs": 6,
    "lpa_steps": 20,
    "lpa_alpha": 0.9,
    "gcn_prediction": "trained",
    "h_source": "gcn",
    "h_output": "probabilities",
    "expand_labels": True,
    "form": "transposed",
    "init": "lpa",
    "k": 3,
    "beta": 1.0,
    "damping": 0.0,
    "normalization": "l2",
    "scaling": "row",
}


@pytest.fixture(scope="module")
def data(sbm: Draw) -> Data:
    return sbm(0)


@pytest.fixture(scope="module")
def added(data: Data) -> Data:
    return AddELUGraph(topk=7, random_state=3, **OPTIONS)(data)


def dense(data: Data) -> torch.Tensor:
    """Entry [target, source], as a convolution reads edges."""
    out = torch.zeros(150, 150)
    source, target = data.elu_edge_index
    out[target, source] = data.elu_edge_weight
    return out


def test_edges_are_those_of_learn_elu_graph(data: Data, added: Data) -> None:
    assert "elu_edge_index" not in data
    assert torch.equal(added.edge_index, data.edge_index)
    gcn = fit(data, GRAPH_ONLY, OPTIONS, seed=3).result.logits
    labels = torch.where(data.train_mask, data.y, -1)
    adj = normalized_adjacency(data.edge_index, 150)
    lpa = propagate_labels(adj, labels, 3, 20, 0.9)
    use = definition_one(lpa, gcn)
    expanded = torch.where((labels < 0) & use.elu, use.gcn, labels)
    expected = learn_elu_graph(
        torch.softmax(gcn, dim=1), expanded, lpa=lpa, k=3, beta=1.0, form="transposed",
        init="lpa", normalization="l2", scaling="row", mode="topk", topk=7,
    ).to_dense()  # fmt: skip
    torch.testing.assert_close(dense(added), expected)
    assert torch.bincount(added.elu_edge_index[1]).max() == 7
    assert not torch.allclose(expected, expected.T)


def test_it_works_under_a_convolution(added: Data) -> None:
    torch.manual_seed(0)
    layer = GCNConv(8, 4, normalize=False, add_self_loops=False, bias=False)
    out = layer(added.x, added.elu_edge_index, added.elu_edge_weight)
    expected = dense(added) @ layer.lin(added.x)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    out.sum().backward()
    assert torch.isfinite(layer.lin.weight.grad).all()


def test_it_composes_and_makes_features(data: Data) -> None:
    transform = Compose([ToUndirected(), AddELUGraph(topk=2, epochs=2)])
    assert transform(data).elu_edge_weight.numel() <= 300
    assert repr(AddELUGraph(topk=2)) == "AddELUGraph(topk=2)"
    bare = data.clone()
    del bare.x
    assert "elu_edge_index" in AddELUGraph(features="degree", epochs=2)(bare)
    with pytest.raises(InputError, match=r"data\.x is missing"):
        AddELUGraph(epochs=2)(bare)


def test_held_out_labels_do_not_matter(data: Data, added: Data) -> None:
    spoiled = data.clone()
    spoiled.y = torch.where(data.test_mask, (data.y + 1) % 3, data.y)
    other = AddELUGraph(topk=7, random_state=3, **OPTIONS)(spoiled)
    assert torch.equal(other.elu_edge_weight, added.elu_edge_weight)
