"""What an epoch of the two-view model can't do without: its products, run bare.

Training: Z = X W₁; Â Z and S* Z; their 2n rows times W₂; Â on both views; the
projection head on both. Backward: the two factors of each, but for X. Validation: the
training products again, without the head.

Once by the kernels of PyTorch that training uses, once by its operators, plainly. The
compiled loops multiply by W₂ and by the projection head, too, in one pass with the
rest; the floor has PyTorch's products there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from elugcn.bench.base import HIDDEN
from elugcn.core.dense import add_transposed_product, dense_product
from elugcn.core.operators import LowRankGraph
from elugcn.core.products import multiply, narrow_product, transposed_product
from elugcn.core.sparse import CSR
from elugcn.methods.base import Problem
from elugcn.nn import GCN
from elugcn.nn.field import Field, field_of

Run = Callable[[], None]
Product = Callable[[Tensor], Tensor]


class Kernels(NamedTuple):
    """Products from the left with X, Xᵀ, Â and Âᵀ, and with a W of few columns."""

    x: Product
    x_t: Product
    a: Product
    a_t: Product
    narrow: Callable[[Tensor, Tensor], Tensor]


def bare_products(problem: Problem) -> Run:
    """The floor: the products by the kernels of the training step.

    Validation is of what the validation nodes depend on, as it is in training.
    """
    n, c = problem.num_nodes, problem.num_classes
    x, a = problem.x, problem.adj
    a_t = a.T
    kernels = Kernels(
        x=lambda w: product(x, w),
        x_t=lambda z: transposed(x, z),
        a=lambda z: product(a, z),
        a_t=lambda z: product(a_t, z),
        narrow=narrow_product,
    )
    nodes = problem.val_mask.nonzero().squeeze(1)
    graph = LowRankGraph(torch.rand(n, c), torch.rand(n, c))
    field = field_of(GCN(x.shape[1], HIDDEN, c), x, a, graph, nodes)
    return _epoch(problem, kernels, None if field is None else products_of(field, c))


def plain_products(problem: Problem) -> Run:
    """The same by PyTorch's ``@``: CSR with kept transposes, nothing else tuned.

    Validation is a forward pass of all nodes.
    """
    x, x_t = _plain(problem.x), _plain(problem.x.T)
    a, a_t = _plain(problem.adj), _plain(problem.adj.T)
    kernels = Kernels(
        x=lambda w: x @ w,
        x_t=lambda z: x_t @ z,
        a=lambda z: a @ z,
        a_t=lambda z: a_t @ z,
        narrow=torch.mm,
    )
    return _epoch(problem, kernels)


def _epoch(problem: Problem, by: Kernels, validation: Run | None = None) -> Run:
    """The products of an epoch, on arrays that are there already."""
    n, c, h = problem.num_nodes, problem.num_classes, HIDDEN
    w1, w2, head = torch.rand(problem.x.shape[1], h), torch.rand(h, c), torch.rand(c, c)
    left, right = torch.rand(n, c), torch.rand(n, c)
    hidden, logits = torch.rand(2 * n, h), torch.rand(2 * n, c)
    beside, wide = torch.rand(n, 2 * c), torch.rand(n, h)

    def forward() -> None:
        by.x(w1)
        by.a(wide)
        left @ (right.T @ wide)
        by.narrow(hidden, w2)
        by.a(beside)

    validate = validation or forward

    def run() -> None:
        forward()
        logits @ head
        logits @ head.T
        logits.T @ logits
        by.a_t(beside)
        logits @ w2.T
        logits.T @ hidden
        by.a_t(wide)
        right @ (left.T @ wide)
        by.x_t(wide)
        validate()

    return torch.no_grad()(run)


def products_of(field: Field, num_classes: int) -> Run:
    """The forward products of both views for the nodes of a field."""
    first, second = (layer.operator for layer in field.layers)
    elu_graph, h, c = field.elu_graph, HIDDEN, num_classes
    assert isinstance(second, CSR)
    assert elu_graph is not None
    w1, w2 = torch.rand(field.x.shape[1], h), torch.rand(h, c)
    read, near = torch.rand(field.x.shape[0], h), torch.rand(2 * second.n_cols, h)
    beside = torch.rand(second.n_cols, 2 * c)

    def run() -> None:
        product(field.x, w1)
        if isinstance(first, CSR):  # else X has been propagated before
            product(first, read)
        elu_graph @ (read if field.elu_x is None else field.elu_x @ w1)
        narrow_product(near, w2)
        product(second, beside)

    return run


def product(a: CSR | Tensor, z: Tensor) -> Tensor:
    """A Z by the kernel that training uses, without its records for gradients."""
    if isinstance(a, CSR):
        return multiply(a.crow, a.col, a.value, a.n_cols, z)
    return dense_product(a, z)


def transposed(x: CSR | Tensor, z: Tensor) -> Tensor:
    """Xᵀ Z as the backward pass computes it."""
    if isinstance(x, CSR):
        return transposed_product(x, x.value, z)
    return add_transposed_product(z.new_zeros(z.size(1), x.size(1)), x, z)


def _plain(a: CSR | Tensor) -> Tensor:
    """A matrix as PyTorch has it."""
    if isinstance(a, CSR):
        return torch.sparse_csr_tensor(
            a.crow, a.col, a.value, size=a.shape, check_invariants=False
        )
    return a
