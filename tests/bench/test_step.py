from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Data

from elugcn.bench import step
from elugcn.bench.base import HIDDEN, Settings, load, two_views
from elugcn.bench.measure import Times
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR
from elugcn.methods.base import Problem, make_problem
from elugcn.nn import GCN
from elugcn.nn.field import field_of


class MultiplyAdds(TorchDispatchMode):
    """Adds up the multiplications of every product that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in ("mm", "addmm"):
            a, b = args[-2:]
            self.total += a.size(0) * a.size(1) * b.size(1)
        elif "embedding_bag" in name:
            self.total += args[1].numel() * args[0].size(1)
        return out


def problem_of(data: Data) -> Problem:
    return make_problem(data, two_views(1), torch.device("cpu"))


def sparse_features(data: Data) -> Data:
    data = data.clone()
    data.x = (torch.rand(data.num_nodes, 40) < 0.05).float()
    return data


def few_validation_nodes(data: Data) -> Data:
    data = sparse_features(data)
    data.val_mask = data.val_mask & (data.val_mask.cumsum(0) <= 2)
    return data


@pytest.mark.parametrize(
    ("change", "expects_field"),
    [(lambda data: data, None), (sparse_features, None), (few_validation_nodes, True)],
)
def test_the_floor_is_the_products_of_an_epoch(
    change: Callable[[Data], Data],
    expects_field: bool | None,
    sbm: Callable[..., Data],
) -> None:
    problem = problem_of(change(sbm()))
    n, c, h = problem.num_nodes, problem.num_classes, HIDDEN
    x, a = problem.x, problem.adj.nnz
    entries = x.nnz if isinstance(x, CSR) else x.numel()
    low_rank = 2 * n * c * h  # S* in factors, times n×h
    forward = entries * h + a * h + low_rank + 2 * n * h * c + a * 2 * c
    head = 2 * n * c * c
    # Backward: Âᵀ twice, S*ᵀ, the two factors of W₂'s and of the head's product, and
    # Xᵀ; X itself has no gradient.
    backward = a * 2 * c + a * h + low_rank + 2 * (2 * n * h * c) + entries * h
    # Validation: the same for what the validation nodes depend on.
    nodes = problem.val_mask.nonzero().squeeze(1)
    near = field_of(
        GCN(x.shape[1], h, c), x, problem.adj,
        LowRankGraph(torch.rand(n, c), torch.rand(n, c)), nodes,
    )  # fmt: skip
    again = forward
    if near is not None:
        one, two = (layer.operator for layer in near.layers)
        assert isinstance(two, CSR)
        read = near.x.nnz if isinstance(near.x, CSR) else near.x.numel()
        source = n if near.elu_x is None else near.elu_x.size(1)
        again = read * h + source * c * h
        if isinstance(one, CSR):  # else X was propagated before
            again += one.nnz * h
        again += two.n_cols * (c * h + 2 * h * c) + two.nnz * 2 * c
        assert again < forward
    if expects_field:
        assert near is not None
    run = step.bare_products(problem)
    with MultiplyAdds() as counted:
        run()
    assert counted.total == forward + again + backward + 3 * head


def test_the_floor_leaves_no_records_for_gradients(sbm: Callable[..., Data]) -> None:
    problem = problem_of(sbm())
    assert torch.is_grad_enabled()
    step.bare_products(problem)()
    out = step.product(problem.adj, torch.ones(problem.num_nodes, 2))
    dense = problem.adj.to_dense().sum(dim=1, keepdim=True).expand(-1, 2)
    torch.testing.assert_close(out, dense)


def test_every_contestant_takes_its_steps() -> None:
    times = step.step_times(load("karate"), repeats=3, warmup=1)
    assert list(times) == [step.OURS, step.GCN, step.GAT, step.FLOOR]
    for one in times.values():
        assert len(one.cpu) == len(one.wall) == 3
        assert min(one.cpu) > 0
    # A part can't take longer than the whole.
    assert times[step.FLOOR].ms < times[step.OURS].ms


def test_ratios_are_ours_over_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {step.OURS: 0.003, step.GCN: 0.012, step.GAT: 0.03, step.FLOOR: 0.002}
    monkeypatch.setattr(
        step, "step_times",
        lambda data, repeats: {k: Times([v] * repeats, [2 * v] * repeats)
                               for k, v in known.items()},
    )  # fmt: skip
    outcome = step.measure(Settings(datasets=("karate", "digits"), repeats=2))
    assert outcome.cases() == [("karate", 34), ("digits", 1797)]
    found = {r.metric: (r.value, r.unit) for r in outcome.records if r.n == 34}
    assert found == {
        "elu_gcn_ms": (pytest.approx(3), "ms"),
        "pyg_gcn_ms": (pytest.approx(12), "ms"),
        "pyg_gat_ms": (pytest.approx(30), "ms"),
        "floor_ms": (pytest.approx(2), "ms"),
        "ratio_gcn": (pytest.approx(0.25), "ratio"),
        "ratio_gat": (pytest.approx(0.1), "ratio"),
        "overhead": (pytest.approx(1.5), "ratio"),
    }
    assert "2.00 times" in outcome.notes[0]


def test_default_and_quick_datasets() -> None:
    five = ("cora", "citeseer", "pubmed", "photo", "computers")
    assert step.SUITE.chosen(Settings()) == five
    assert step.SUITE.chosen(Settings(quick=True)) == ("digits",)
    assert step.SUITE.chosen(Settings(datasets=("sbm",))) == ("sbm",)
