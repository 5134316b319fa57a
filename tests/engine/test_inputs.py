"""What networks compute on: low-rank products, views, and the rows that some nodes need."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.engine import (
    CSR,
    GraphInputs,
    LowRank,
    MeanPropagation,
    normalized_adjacency,
    propagate_linear,
    relu_dropout_linear_,
    spmm,
)
from elugcn.models.flexible_gcn import FlexibleGCN
from tests.engine.conftest import drawn, inputs, sparse

N = 60
# A path with a few chords: two steps from four nodes do not reach everything.
EDGES = torch.cat(
    [
        torch.stack([torch.arange(N - 3), torch.arange(1, N - 2)]),
        torch.tensor([[3, 40, 12], [9, 31, 50]]),
    ],
    dim=1,
)
UNDIRECTED = torch.cat([EDGES, EDGES.flip(0)], dim=1)
NODES = torch.tensor([18, 3, 59, 17])  # in this order; 59 has no neighbours
BACKBONES = {
    "plain": {},
    "three layers": {"num_layers": 3},
    "batch norm, residual": {"norm": "batch", "residual": True},
    "l2 norm, three residual layers": {"norm": "l2", "num_layers": 3, "residual": True},
    "last": {"jump": "last"},
    "cat": {"jump": "cat", "num_layers": 3},
    "max, residual": {"jump": "max", "residual": True},
    "directions": {"directions": 2},
    "directions, residual, cat": {"directions": 2, "residual": True, "jump": "cat"},
    "first only": {"first_only": True},
    "first only, residual": {"first_only": True, "residual": True},
}


def test_low_rank() -> None:
    low = LowRank(drawn(7, 2), drawn(5, 2))
    z = drawn(5, 3)
    assert low.shape == (7, 5)
    torch.testing.assert_close(low @ z, low.to_dense() @ z)
    torch.testing.assert_close(low.T.to_dense(), low.to_dense().T)
    assert torch.equal(low.to("cpu").left, low.left)


def network(**options: object) -> FlexibleGCN:
    """Biases and norms that matter, in evaluation mode."""
    torch.manual_seed(0)
    model = FlexibleGCN(12, 6, 3, **options)  # type: ignore[arg-type]
    with torch.no_grad():
        for tensor in [*model.biases, *model.norms.parameters()]:
            tensor.normal_()
    return model.eval()


def adjacency(options: dict[str, object]) -> CSR | MeanPropagation:
    adj = normalized_adjacency(UNDIRECTED, N)
    if options.get("first_only"):
        return MeanPropagation(adj, 4)
    if options.get("directions") == 2:
        into, out_of = (
            normalized_adjacency(e, N).to_dense() for e in (EDGES, EDGES.flip(0))
        )
        return CSR.from_tensor(torch.cat([into, out_of], dim=1))
    return adj


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("elu", ["none", "factors", "explicit"])
@pytest.mark.parametrize("x_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("whole_x", [True, False], ids=["whole", "part"])
@torch.no_grad()
def test_restricted_inputs_give_what_the_whole_graph_gives(
    name: str, elu: str, x_sparse: bool, whole_x: bool
) -> None:
    options = BACKBONES[name]
    model = network(**options)
    base = inputs(N, 12, x_sparse, elu)
    g = GraphInputs(base.x, adjacency(options), base.elu_graph)
    few = g.restrict(NODES, model.num_layers, model.keeps_own, whole_x)
    assert few.num_nodes == len(NODES)
    views, some = model.views(g), model.views(few)
    assert len(some) == len(views) == 1 + (elu != "none")
    for part, whole in zip(some, views, strict=True):
        torch.testing.assert_close(part, whole[NODES], rtol=1e-4, atol=1e-5)
    if whole_x:
        assert few.x is g.x  # training goes on from its product


def test_restricted_inputs_read_only_what_is_near() -> None:
    g = GraphInputs(sparse(N, 12, 0.3), normalized_adjacency(UNDIRECTED, N))
    few = g.restrict(NODES, 2)
    one, two = set(NODES.tolist()), set()
    linked = [tuple(e) for e in UNDIRECTED.T.tolist()]
    one |= {a for a, b in linked if b in one}
    two = one | {a for a, b in linked if b in one}
    assert few.x.shape == (len(two), 12)
    shapes = [(len(one), len(two)), (len(NODES), len(one))]
    assert [few.layer(i).shape for i in (0, 1)] == shapes


def test_restricted_inputs_may_be_trained_on() -> None:
    g = inputs(40, 9)
    nodes = torch.tensor([5, 1, 30])
    w1, w2 = drawn(9, 4).requires_grad_(), drawn(4, 2).requires_grad_()

    def outputs(g: GraphInputs) -> Tensor:
        z = propagate_linear(g, w1, 0.0)
        z = relu_dropout_linear_(z, torch.zeros(4), w2, 0.0)
        return torch.cat(list(spmm(g.layer(1), z, torch.zeros(2))), dim=1)

    some, whole = outputs(g.restrict(nodes, 2)), outputs(g)[nodes]
    torch.testing.assert_close(some, whole)
    one = torch.autograd.grad(F.mse_loss(some, torch.ones_like(some)), (w1, w2))
    two = torch.autograd.grad(F.mse_loss(whole, torch.ones_like(whole)), (w1, w2))
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b)
