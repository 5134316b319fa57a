from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Data

from elugcn.bench import floors
from elugcn.bench.base import HIDDEN, two_views
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
        if name in ("mm", "addmm", "addmm_"):
            a, b = args[-2:]
            entries = a.numel() if a.layout == torch.strided else a.values().numel()
            self.total += entries * b.size(1)
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


def multiplications(problem: Problem) -> tuple[int, int]:
    """Of a training step, and of its forward pass without the projection head."""
    n, c, h = problem.num_nodes, problem.num_classes, HIDDEN
    x, a = problem.x, problem.adj.nnz
    entries = x.nnz if isinstance(x, CSR) else x.numel()
    low_rank = 2 * n * c * h  # S* in factors, times n×h
    forward = entries * h + a * h + low_rank + 2 * n * h * c + a * 2 * c
    head = 2 * n * c * c
    # Backward: Âᵀ twice, S*ᵀ, the two factors of W₂'s and of the head's product, and
    # Xᵀ; X itself has no gradient.
    backward = a * 2 * c + a * h + low_rank + 2 * (2 * n * h * c) + entries * h
    return forward + backward + 3 * head, forward


def counted(run: Callable[[], None]) -> int:
    with MultiplyAdds() as count:
        run()
    return count.total


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
    n, c, h, x = problem.num_nodes, problem.num_classes, HIDDEN, problem.x
    training, forward = multiplications(problem)
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
    assert counted(floors.bare_products(problem)) == training + again


@pytest.mark.parametrize("change", [lambda data: data, few_validation_nodes])
def test_the_plain_floor_validates_all_nodes(
    change: Callable[[Data], Data], sbm: Callable[..., Data]
) -> None:
    problem = problem_of(change(sbm()))
    training, forward = multiplications(problem)
    assert counted(floors.plain_products(problem)) == training + forward


def test_the_floor_leaves_no_records_for_gradients(sbm: Callable[..., Data]) -> None:
    problem = problem_of(sbm())
    assert torch.is_grad_enabled()
    floors.bare_products(problem)()
    out = floors.product(problem.adj, torch.ones(problem.num_nodes, 2))
    dense = problem.adj.to_dense().sum(dim=1, keepdim=True).expand(-1, 2)
    torch.testing.assert_close(out, dense)
