"""The ELU graph under anybody's model."""

from collections.abc import Callable

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose, ToUndirected

from elugcn import learn_elu_graph
from elugcn.config import resolve_config
from elugcn.core.propagation import propagate_labels
from elugcn.core.sparse import normalized_adjacency
from elugcn.core.utilization import definition_one
from elugcn.data.checks import check_data
from elugcn.fitting import fit_graph
from elugcn.transforms import AddELUGraph

Draw = Callable[..., Data]
# All that decides the graph, so that it can be learned a second time by hand.
OPTIONS = {
    "variants": (),
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


def test_edges_are_those_of_learn_elu_graph(sbm: Draw) -> None:
    data = sbm()
    added = AddELUGraph(topk=7, random_state=3, **OPTIONS)(data)
    assert "elu_edge_index" not in data
    assert torch.equal(added.edge_index, data.edge_index)

    graph = check_data(data, seed=3)
    config = resolve_config("elu-graph", options=OPTIONS)
    gcn = fit_graph(graph, "elu-graph", config, seed=3).prediction.logits
    labels = torch.where(data.train_mask, data.y, -1)
    adj = normalized_adjacency(data.edge_index, data.num_nodes)
    lpa = propagate_labels(adj, labels, 3, 20, 0.9)
    use = definition_one(lpa, gcn)
    expanded = torch.where((labels < 0) & use.elu, use.gcn, labels)
    expected = learn_elu_graph(
        torch.softmax(gcn, dim=1), expanded, lpa=lpa, k=3, beta=1.0, form="transposed",
        init="lpa", normalization="l2", scaling="row", mode="topk", topk=7,
    ).to_dense()  # fmt: skip

    # The edge goes from source to target and weighs S*[target, source].
    source, target = added.elu_edge_index
    got = torch.zeros(150, 150)
    got[target, source] = added.elu_edge_weight
    torch.testing.assert_close(got, expected)
    assert torch.bincount(target).max() == 7
    assert not torch.allclose(got, got.T)


def test_it_works_under_a_convolution(sbm: Draw) -> None:
    data = AddELUGraph(topk=5, epochs=3)(sbm())
    torch.manual_seed(0)
    layer = GCNConv(8, 4, normalize=False, add_self_loops=False, bias=False)
    out = layer(data.x, data.elu_edge_index, data.elu_edge_weight)
    dense = torch.zeros(150, 150)
    dense[data.elu_edge_index[1], data.elu_edge_index[0]] = data.elu_edge_weight
    torch.testing.assert_close(out, dense @ layer.lin(data.x), rtol=1e-4, atol=1e-5)
    out.sum().backward()
    assert torch.isfinite(layer.lin.weight.grad).all()


def test_it_composes_and_names_itself(sbm: Draw) -> None:
    transform = Compose([ToUndirected(), AddELUGraph(topk=2, epochs=2)])
    assert transform(sbm()).elu_edge_weight.numel() <= 300
    assert repr(AddELUGraph(topk=2)) == "AddELUGraph(topk=2)"


def test_held_out_labels_do_not_matter(sbm: Draw) -> None:
    data = sbm()
    spoilt = data.clone()
    spoilt.y = torch.where(data.test_mask, (data.y + 1) % 3, data.y)
    one, two = (AddELUGraph(topk=4, epochs=3)(d) for d in (data, spoilt))
    assert torch.equal(one.elu_edge_weight, two.elu_edge_weight)
