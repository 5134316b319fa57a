"""Every kind of ELU graph against its dense twin."""

import numpy as np
import pytest
import torch
from torch import Tensor

from elugcn.elu.low_rank_graph import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.elu.sparsify import quantile
from elugcn.engine import CSR
from elugcn.errors import InputError

N, C = 17, 3


def factors() -> tuple[Tensor, Tensor]:
    """Two factors; rows 4, 5 and 11 of S are the same one, row 8 is zero."""
    generator = torch.Generator().manual_seed(7)
    left = torch.randn(N, C, generator=generator)
    left[[5, 11]] = left[4].clone()
    left[8] = 0
    return left, torch.randn(N, C, generator=generator)


def largest_of_rows(s: Tensor, k: int) -> Tensor:
    """The k largest |entries| of each row, by sorting each row."""
    out = torch.zeros_like(s)
    for i, row in enumerate(s):
        for j in sorted(range(len(row)), key=lambda j: -abs(float(row[j])))[:k]:
            out[i, j] = row[j]
    return out


Both = tuple[ELUGraph, Tensor]


@pytest.fixture(params=["implicit", "topk", "paper"])
def both(request: pytest.FixtureRequest) -> Both:
    """A graph of each kind, and its dense twin."""
    left, right = factors()
    s = left @ right.T
    if request.param == "topk":
        s = largest_of_rows(s, 6)
    if request.param == "paper":
        # The threshold, of rank ⌈0.6·289⌉ = 174, is kept too, with all its ties.
        s = torch.where(s.abs() >= s.abs().reshape(-1).sort().values[173], s, 0.0)
    return LowRankGraph(left, right).in_mode(request.param, 6, 0.4), s


@pytest.mark.parametrize("transposed", [False, True])
def test_products_and_gradients(both: Both, transposed: bool) -> None:
    z = torch.randn(N, 4, requires_grad=True)
    weight = torch.randn(N, 4)
    graph, twin = both[0].to(torch.device("cpu")), both[1]
    mode = both[0].mode
    assert graph.mode == mode
    assert graph.shape == (N, N)
    if transposed:
        graph, twin = graph.T, twin.T
    torch.testing.assert_close(graph.to_dense(), twin)
    torch.testing.assert_close(graph.operator.to_dense(), twin)
    torch.testing.assert_close(graph @ z, twin @ z)
    (graph @ z * weight).sum().backward()
    torch.testing.assert_close(z.grad, twin.T @ weight)
    name, rank = type(graph).__name__, graph.rank
    assert repr(graph) == f"{name}(n={N}, rank≤{rank}, mode='{mode}')"
    assert rank == (C if mode == "implicit" else N)


@pytest.mark.parametrize(
    ("index", "wanted"),
    [(3, [3]), (-1, [N - 1]), ([4, 0, 4], [4, 0, 4]), ([], []),
     (torch.tensor([16, 8]), [16, 8]), (torch.tensor(2), [2]),
     (torch.arange(N) == 3, [3])],
)  # fmt: skip
def test_rows(both: Both, index: int | list[int] | Tensor, wanted: list[int]) -> None:
    rows = both[0].rows(index)
    assert rows.shape == (len(wanted), N)
    torch.testing.assert_close(rows, both[1][wanted])


@pytest.mark.parametrize("index", [N, -N - 1, [0, N], torch.arange(3) > 0])
def test_rows_out_of_range(both: Both, index: int | list[int] | Tensor) -> None:
    message = "rows must be indices from 0 to 16 or a mask of 17 entries; got"
    with pytest.raises(InputError, match=message):
        both[0].rows(index)


@pytest.mark.parametrize("k", [1, 4, N, N + 5])
def test_topk(both: Both, k: int) -> None:
    top = both[0].topk(k)
    assert isinstance(top, ExplicitGraph)
    assert top.mode == "topk"
    torch.testing.assert_close(top.to_dense(), largest_of_rows(both[1], k))


def test_to_sparse(both: Both) -> None:
    graph, twin = both
    by_row = graph.to_sparse(k=2)
    assert isinstance(by_row, CSR)
    torch.testing.assert_close(by_row.to_dense(), largest_of_rows(twin, 2))
    everything = graph.to_sparse(keep=None)
    torch.testing.assert_close(everything.to_dense(), twin)
    some = graph.to_sparse(keep=0.05).to_dense()
    least = quantile(graph, 0.95)
    torch.testing.assert_close(
        some, torch.where(graph.to_dense().abs() >= least, twin, 0.0)
    )


def test_numpy_and_other_precisions(both: Both) -> None:
    z = np.random.default_rng(0).normal(size=(N, 2))
    expected = both[1] @ torch.from_numpy(z).float()
    torch.testing.assert_close(both[0] @ z, expected)
    torch.testing.assert_close(both[0] @ torch.from_numpy(z), expected)


# --- scaling ---------------------------------------------------------------------------


def test_row_scaling_of_positive_rows_is_an_average() -> None:
    left, right = torch.rand(N, C) + 0.1, torch.rand(N, C)
    graph = LowRankGraph(left, right).scaled("row")
    s = left @ right.T
    torch.testing.assert_close(graph.to_dense(), s / s.sum(dim=1, keepdim=True))


def test_row_scaling_of_rows_without_a_positive_sum() -> None:
    graph = LowRankGraph(*factors())
    s = graph.to_dense()
    total = s.sum(dim=1)
    mean = total.abs().mean()
    scaled = graph.scaled("row").to_dense()
    positive = total > 0.1 * mean
    assert bool(positive.any())
    assert bool((~positive).any())
    torch.testing.assert_close(scaled[positive], s[positive] / total[positive, None])
    # Others are divided by a floor: finite, sign kept, and a zero row stays zero.
    torch.testing.assert_close(scaled[~positive], s[~positive] / (0.1 * mean))
    assert torch.equal(scaled[8], torch.zeros(N))


def test_graphs_that_no_scaling_changes() -> None:
    zero = LowRankGraph(torch.zeros(N, C), torch.randn(N, C))
    assert torch.equal(zero.scaled("row").to_dense(), torch.zeros(N, N))
    graph = LowRankGraph(*factors())
    assert torch.equal(graph.scaled("none").to_dense(), graph.to_dense())


# --- the rest -----------------------------------------------------------------------------


def test_distinct_rows() -> None:
    # Mostly distinct rows are left alone: gathering them back would not pay.
    left, right = factors()
    graph = LowRankGraph(left, right)
    assert graph.distinct() == (graph, None)
    graph = LowRankGraph(left[[0, 1, 1, 0, 1, 0, 2, 2]], right[:8])
    distinct, group = graph.distinct()
    assert group is not None
    assert distinct.shape == (3, 8)
    torch.testing.assert_close(distinct.to_dense()[group], graph.to_dense())
