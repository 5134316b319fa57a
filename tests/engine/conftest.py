"""Drawn operands, and both implementations of the operations."""

from collections.abc import Callable
from types import ModuleType

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from elugcn.engine import CSR, GraphInputs, LowRank, Workspace, fast, reference

SEED = 11


@pytest.fixture(params=["reference", "fast"])
def ops(request: pytest.FixtureRequest) -> ModuleType:
    """The operations of one implementation."""
    return {"reference": reference, "fast": fast}[request.param]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def sparse(n: int, m: int, share: float = 0.2, seed: int = 0) -> CSR:
    """Drawn entries; the first row, the last row and the last column have none."""
    matrix = sp.random_array((n, m), density=share, rng=seed).tolil()
    matrix[0] = matrix[n - 1] = 0
    matrix[:, m - 1] = 0
    return CSR.from_scipy(matrix.tocsr())


def inputs(
    n: int = 40, d: int = 9, x_sparse: bool = True, elu: str = "factors", seed: int = 0
) -> GraphInputs:
    x = sparse(n, d, 0.3, seed)
    low = LowRank(drawn(n, 3, seed=seed + 1), drawn(n, 3, seed=seed + 2))
    graph = {"none": None, "factors": low, "explicit": sparse(n, n, 0.1, 7)}[elu]
    return GraphInputs(
        x if x_sparse else x.to_dense(), sparse(n, n, 0.1, seed + 3), graph
    )


def workspace(seed: int = SEED) -> Workspace:
    return Workspace(seed)


def mask_of(shape: tuple[int, ...], p: float) -> Tensor:
    """What the next draw multiplies the entries of a matrix by."""
    mask = reference.dropout(torch.ones(shape), p)
    assert isinstance(mask, Tensor)
    return mask


def assert_same(
    found: Callable[..., Tensor],
    truth: Callable[..., Tensor],
    leaves: list[Tensor],
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> None:
    """Values and gradients of two functions, in workspaces with the same bits."""
    results = []
    for function in (found, truth):
        own = [x.detach().clone().requires_grad_() for x in leaves]
        with workspace():
            out = function(*own)
            weight = drawn(*out.shape, seed=99).to(out.dtype)
            grads = torch.autograd.grad(
                (out * weight).sum(), own, allow_unused=True, materialize_grads=True
            )
        results.append([out.detach(), *grads])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol)
