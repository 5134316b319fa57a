"""GAT against PyG's layers and against attention written out densely."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from elugcn.config import resolve_config
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.gat import GATConfig, GATPredictor
from elugcn.nn.gat import GAT


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    return fit_graph(graph, "gat", resolve_config("gat", options=options), seed=seed)


def adjacency(data: Data) -> CSR:
    return normalized_adjacency(data.edge_index, data.num_nodes)


def dense_attention(z: Tensor, conv: GATConv, linked: Tensor) -> Tensor:
    """One layer from its equations: every pair is scored, non-neighbours are struck."""
    heads = []
    for k in range(conv.heads):
        zk = z.view(len(z), conv.heads, -1)[:, k]
        to, of = zk @ conv.att_dst[0, k], zk @ conv.att_src[0, k]
        e = F.leaky_relu(to[:, None] + of[None, :], 0.2)
        heads.append(e.masked_fill(~linked, -torch.inf).softmax(dim=1) @ zk)
    out = torch.cat(heads, dim=1) if conv.concat else torch.stack(heads).mean(dim=0)
    biased: Tensor = out + conv.bias
    return biased


def randomize(model: GAT) -> GAT:
    """Biases too: they start at zero."""
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


@pytest.mark.parametrize(("heads", "out_heads"), [(1, 1), (4, 1), (2, 3)])
def test_layers_are_pygs_with_copied_weights(heads: int, out_heads: int) -> None:
    torch.manual_seed(heads)
    data = draw(n=60).data
    model = randomize(GAT(16, 5, 3, heads, out_heads))
    first = GATConv(16, 5, heads)
    second = GATConv(5 * heads, 3, out_heads, concat=False)
    state = model.first.state_dict() | {"lin.weight": model.weight.T}
    first.load_state_dict(state)
    second.load_state_dict(model.second.state_dict())
    expected = second(F.elu(first(data.x, data.edge_index)), data.edge_index)
    torch.testing.assert_close(model(data.x, adjacency(data)), expected)


@pytest.mark.parametrize("loops", [True, False])
def test_equations(loops: bool) -> None:
    torch.manual_seed(1)
    data = draw(n=60).data
    model = randomize(GAT(16, 4, 3, 2, 2))
    adj = normalized_adjacency(data.edge_index, 60, self_loops=loops)
    linked = adj.to_dense() != 0
    assert bool(linked.diagonal().all()) == loops
    h = F.elu(dense_attention(data.x @ model.weight, model.first, linked))
    expected = dense_attention(model.second.lin(h), model.second, linked)
    torch.testing.assert_close(model(data.x, adj), expected)


def test_directed_edges_carry_from_source_to_target() -> None:
    torch.manual_seed(2)
    model = randomize(GAT(2, 3, 2, 2, 1))
    adj = normalized_adjacency(torch.tensor([[0], [1]]), 3)
    x = torch.rand(3, 2)
    other = x.clone()
    other[0] += 1.0
    changed = (model(x, adj) != model(other, adj)).any(dim=1)
    assert changed.tolist() == [True, True, False]


def test_sparse_features_give_what_dense_ones_do() -> None:
    torch.manual_seed(3)
    data = draw(n=60).data
    x = data.x * (torch.rand_like(data.x) < 0.2)
    model = randomize(GAT(16, 4, 3))
    adj = adjacency(data)
    torch.testing.assert_close(model(CSR.from_tensor(x), adj), model(x, adj))


def test_dropout_is_on_inputs_and_on_attention() -> None:
    data = draw(n=60).data
    adj = adjacency(data)

    def spread(**p: float) -> bool:
        torch.manual_seed(4)
        options = {"dropout": 0.0, "attention_dropout": 0.0} | p
        model = GAT(16, 4, 3, **options).train()  # type: ignore[arg-type]
        return bool((model(data.x, adj) != model(data.x, adj)).any())

    assert not spread()
    assert spread(dropout=0.5)
    assert spread(attention_dropout=0.5)


def test_it_learns() -> None:
    graph = draw()
    right = fit(graph, epochs=60).accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.8  # a third is the majority


def test_the_same_seed_gives_the_same_logits() -> None:
    graph = draw()
    one, two = (fit(graph, 5, epochs=5).prediction.logits for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, fit(graph, 6, epochs=5).prediction.logits)


def test_predictor_repeats_its_graph_and_survives_saving() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=5, heads=3, out_heads=2)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, GATPredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = GATPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


def test_only_the_first_layer_can_be_decayed() -> None:
    model = GAT(4, 3, 2, 2, 1)
    first = {id(p) for p in model.first_layer()}
    rest = [k for k, p in model.named_parameters() if id(p) not in first]
    assert rest
    assert all(k.startswith("second.") for k in rest)


@pytest.mark.parametrize(
    "wrong", [{"heads": 0}, {"out_heads": 0}, {"attention_dropout": 1.0}]
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GATConfig(**wrong)
