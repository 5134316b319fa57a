"""The field of a few nodes gives what the whole graph gives for them."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import to_undirected

from elugcn.core.direction import directed_adjacency
from elugcn.core.elu_graph import in_mode
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR, features, normalized_adjacency
from elugcn.nn import GCN
from elugcn.nn import field as field_module
from elugcn.nn.field import Field, field_of

pytestmark = pytest.mark.usefixtures("either_way")

N, D, HID, C = 60, 12, 6, 3
GENERATOR = torch.Generator().manual_seed(5)
# A path with a few chords: two steps from four nodes do not reach everything.
EDGES = torch.cat(
    [
        torch.stack([torch.arange(N - 3), torch.arange(1, N - 2)]),
        torch.randint(0, N - 2, (2, 6), generator=GENERATOR),
    ],
    dim=1,
)
NODES = torch.tensor([3, 17, 18, 59])  # the last one has no neighbours
BACKBONES: list[dict[str, Any]] = [
    {},
    {"num_layers": 3},
    {"norm": "layer"},
    {"norm": "batch", "residual": True},
    {"norm": "l2", "num_layers": 3, "residual": True},
    {"jump": "last"},
    {"jump": "cat", "num_layers": 3},
    {"jump": "max", "residual": True},
    {"directions": 2},
    {"directions": 2, "residual": True, "jump": "cat", "norm": "layer"},
    {"order": 4},
    {"order": 2, "residual": True},
    {"order": 3, "num_layers": 3, "jump": "cat"},
]


def x(sparse: bool) -> CSR | Tensor:
    dense = torch.rand(N, D, generator=torch.Generator().manual_seed(2))
    return features(torch.where(dense > 0.8, dense, 0.0)) if sparse else dense


def dense_x(sparse: bool) -> Tensor:
    given = x(sparse)
    return given.to_dense() if isinstance(given, CSR) else given


def adjacency(directions: int = 1) -> CSR:
    if directions == 2:
        return directed_adjacency(EDGES, N, None, True, "apart")
    return normalized_adjacency(to_undirected(EDGES, num_nodes=N), N)


def s_star() -> LowRankGraph:
    g = torch.Generator().manual_seed(3)
    return LowRankGraph(torch.randn(N, C, generator=g), torch.randn(N, C, generator=g))


def made(**options: Any) -> GCN:
    """A model whose biases and norms matter, in evaluation mode."""
    torch.manual_seed(0)
    model = GCN(D, HID, C, **options)
    with torch.no_grad():
        for tensor in [*model.biases, *model.norms.parameters()]:
            tensor.normal_()
        for buffer in model.norms.buffers():
            if buffer.dtype == torch.float32:
                buffer.uniform_(0.5, 1.5)
    return model.eval()


@torch.no_grad()
def check(model: GCN, sparse: bool, graph: LowRankGraph | None) -> Field:
    adj = adjacency(model.directions)
    found = field_of(model, x(sparse), adj, graph, NODES)
    assert found is not None
    whole = model(x(sparse), adj, graph)
    some = model.evaluate(found)
    assert len(some) == len(whole) == 1 + (graph is not None)
    for part, full in zip(some, whole, strict=True):
        torch.testing.assert_close(part, full[NODES], rtol=1e-4, atol=1e-5)
    return found


@pytest.mark.parametrize("options", BACKBONES, ids=str)
@pytest.mark.parametrize("second", [False, True], ids=["one view", "two views"])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_equals_the_whole_graph(
    options: dict[str, Any], second: bool, sparse: bool
) -> None:
    check(made(**options), sparse, s_star() if second else None)


@pytest.mark.parametrize("options", [{}, {"order": 4}, {"directions": 2}], ids=str)
def test_without_dropout_on_x_its_product_is_that_of_all_nodes(
    options: dict[str, Any],
) -> None:
    # Training reuses it in the next step, so it must be the same matrix X.
    model = made(input_dropout=0.0, **options)
    found = check(model, True, s_star())
    if not model.order:
        assert found.elu_x is None
        assert found.x.shape[0] == N


def test_reads_only_what_is_near() -> None:
    # So many columns that neighbours have no words in common: Â X would be larger.
    words = torch.rand(N, 2000, generator=torch.Generator().manual_seed(4)) < 0.01
    found = field_of(
        GCN(2000, HID, C), features(words.float()), adjacency(), None, NODES
    )
    assert found is not None
    # By hand: on the path each node has two neighbours; the chords add some.
    edges = to_undirected(EDGES, num_nodes=N)
    one = set(NODES.tolist()) | {
        int(a) for a, b in edges.T.tolist() if b in set(NODES.tolist())
    }
    two = one | {int(a) for a, b in edges.T.tolist() if b in one}
    assert found.x.shape == (len(two), 2000)
    first, second = (layer.operator for layer in found.layers)
    assert isinstance(first, CSR)
    assert isinstance(second, CSR)
    assert first.shape == (len(one), len(two))
    assert second.shape == (len(NODES), len(one))


# Node 0 is joined to all, the others to it alone.
STAR = to_undirected(torch.stack([torch.zeros(N - 1).long(), torch.arange(1, N)]))


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_features_are_propagated_beforehand_where_fewer_come_out(sparse: bool) -> None:
    # Two leaves read the hub, and the hub all leaves: three rows of Â X replace N of X.
    adj, nodes, graph = normalized_adjacency(STAR, N), torch.tensor([4, 9]), s_star()
    model = made(num_layers=2)
    found = field_of(model, x(sparse), adj, graph, nodes)
    assert found is not None
    assert found.x.shape == (3, D)
    whole = model(x(sparse), adj, graph)
    for part, full in zip(model.evaluate(found), whole, strict=True):
        torch.testing.assert_close(part, full[nodes], rtol=1e-4, atol=1e-5)
    truth = (adj.to_dense() @ dense_x(sparse))[[0, 4, 9]]
    ahead = found.x.to_dense() if isinstance(found.x, CSR) else found.x
    torch.testing.assert_close(ahead, truth)


def test_propagated_features_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_module, "HELD", 3 * D - 1)
    adj, nodes = normalized_adjacency(STAR, N), torch.tensor([4, 9])
    found = field_of(made(), x(False), adj, None, nodes)
    assert found is not None
    assert found.x.shape == (N, D)


def test_orders_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_module, "BLOCK", 3)
    assert check(made(order=4), True, None).x.shape == (len(NODES), D)


def test_none_where_it_saves_nothing() -> None:
    adj = adjacency()
    assert field_of(made(), x(True), adj, None, torch.arange(N)) is None
    assert field_of(made(), x(True), adj, None, torch.arange(0)) is None
    explicit = in_mode(s_star(), "topk", 5, 0.1)
    assert field_of(made(), x(True), adj, explicit, NODES) is None
