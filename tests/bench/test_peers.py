import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.bench.base import MEMBER, load, two_views
from elugcn.bench.graph import draw
from elugcn.bench.peers import (
    PyGGAT,
    PyGGCN,
    dense_bytes,
    dense_graph,
    fit_dense,
    keep_largest,
    pyg_epochs,
)
from elugcn.core.elu_graph import solve_influence
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparsify import paper_graph
from elugcn.data.checks import check_data
from elugcn.methods.base import Run, make_problem
from elugcn.methods.elu_gcn import fit_elu_gcn


@pytest.fixture
def path(path_graph: Data) -> Data:
    """Six nodes in a row, both directions of every edge."""
    return check_data(path_graph).data


def with_loops(data: Data) -> Tensor:
    a = torch.eye(data.num_nodes)
    a[data.edge_index[1], data.edge_index[0]] = 1.0
    return a


def test_gcn_is_the_dense_formula(path: Data) -> None:
    torch.manual_seed(0)
    model = PyGGCN(6, 2, 5).eval()
    a = with_loops(path)
    d = a.sum(dim=1).rsqrt()
    a = d[:, None] * a * d
    first, second = model.conv1, model.conv2
    h = F.relu(a @ path.x @ first.lin.weight.T + first.bias)
    expected = a @ h @ second.lin.weight.T + second.bias
    torch.testing.assert_close(model(path.x, path.edge_index), expected)


def attention(a: Tensor, z: Tensor, src: Tensor, dst: Tensor) -> Tensor:
    """One head, densely: z n×c, softmax over the neighbours of each row."""
    e = F.leaky_relu((z @ dst)[:, None] + (z @ src)[None, :], 0.2)
    return e.masked_fill(a == 0, -torch.inf).softmax(dim=1) @ z


def test_gat_is_the_dense_formula(path: Data) -> None:
    torch.manual_seed(0)
    model = PyGGAT(6, 2).eval()
    a, one, two = with_loops(path), model.conv1, model.conv2
    z = (path.x @ one.lin.weight.T).view(6, 8, 8)
    heads = [
        attention(a, z[:, i], one.att_src[0, i], one.att_dst[0, i]) for i in range(8)
    ]
    h = F.elu(torch.cat(heads, dim=1) + one.bias)
    z = h @ two.lin.weight.T
    expected = attention(a, z, two.att_src[0, 0], two.att_dst[0, 0]) + two.bias
    torch.testing.assert_close(model(path.x, path.edge_index), expected)


@pytest.mark.parametrize("kind", [PyGGCN, PyGGAT])
def test_an_epoch_trains_and_validates(kind: type[PyGGCN | PyGGAT]) -> None:
    torch.manual_seed(0)
    data = load("karate")
    model = kind(data.x.size(1), int(data.y.max()) + 1)
    epoch = pyg_epochs(model, data)

    def loss() -> float:
        with torch.no_grad():
            out = model.eval()(data.x, data.edge_index)
        return float(F.cross_entropy(out[data.train_mask], data.y[data.train_mask]))

    before = loss()
    accuracies = [epoch() for _ in range(60)]
    assert loss() < 0.8 * before
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(dim=1) == data.y
    assert accuracies[-1] == pytest.approx(float(right[data.val_mask].float().mean()))


def test_dense_graph_solves_equation_8() -> None:
    h, labels, lpa = (t.double() if t.is_floating_point() else t for t in draw(60))
    _, q = solve_influence(h, labels, lpa, 2, 0.5, "paper", "lpa", 0.0, "l2")
    ridge = h @ h.T + 0.5 * torch.eye(60, dtype=torch.float64)
    expected = torch.linalg.solve(ridge, h @ q.T).T
    torch.testing.assert_close(dense_graph(h, q, 0.5), expected)


@pytest.mark.parametrize("keep", [0.1, 0.37, 1.0])
def test_the_largest_are_kept(keep: float) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, 50, 4, generator=generator)
    s = left @ right.T
    kept = keep_largest(s.clone(), keep)
    assert kept.nnz == pytest.approx(keep * 2500, abs=1)
    dense = kept.to_dense()
    torch.testing.assert_close(dense[dense != 0], s[dense != 0], rtol=0, atol=0)
    assert s[dense == 0].abs().max() <= s[dense != 0].abs().min() if keep < 1 else True
    ours = paper_graph(LowRankGraph(left, right), keep).csr.to_dense()
    torch.testing.assert_close(dense, ours)


def test_entries_equal_to_the_threshold_stay() -> None:
    s = torch.tensor([[1.0, -2.0], [2.0, 3.0]])
    assert keep_largest(s, 0.5).to_dense().tolist() == [[0.0, -2.0], [2.0, 3.0]]


def test_dense_bytes_is_about_what_it_takes() -> None:
    # At least S itself and a copy of it.
    assert 2 * 4 * 1000**2 <= dense_bytes(1000) <= 4 * 4 * 1000**2


def test_dense_fit_is_ours_with_the_explicit_graph() -> None:
    """Two ways through different code to the same logits."""
    data = load("karate")
    cpu = torch.device("cpu")
    config = two_views(5, h_source="mlp")
    problem = make_problem(data, config, cpu)
    run = Run()
    dense = fit_dense(problem, config, run)
    explicit = two_views(
        5, h_source="mlp", graph_mode="paper", refit_eta=False, ensemble=False
    )
    ours = fit_elu_gcn(problem, explicit, Run())
    torch.testing.assert_close(dense.logits, ours.logits)
    assert {"utilization", "pretrain", "graph", "train"} <= set(run.seconds)


def test_the_member_is_the_papers_objective() -> None:
    ((name, member),) = two_views(7).members()
    assert name == MEMBER
    assert member.uses_elu_view
    assert member.eta > 0
    assert member.lambda_con * member.contrast_weight > 0
    assert member.entropy_weight > 0
    assert (member.order, member.draws, member.hidden_channels) == (0, 1, 64)
    assert (member.epochs, member.patience) == (7, 7)
