"""Polynomials of a sparse matrix, with coefficients that can be learned.

    Z = Σ_{m=0..M} c_m Bᵐ H

APPNP, GPR-GNN and PC-Conv are of this form and differ in B and in where c is from.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.core.sparse import CSR


def polynomial(operator: CSR, h: Tensor, coefficients: Tensor) -> Tensor:
    """Σ_m c_m Bᵐ H with gradients to H and to c.

    Args:
        operator: B, n×n.
        h: H, n×k.
        coefficients: c, shape (M+1,).

    Returns:
        n×k.

    Cost:
        M products of O(nnz(B)·k), as many again for the gradient of H, which is
        Σ_m c_m (Bᵀ)ᵐ G. The gradient of c_m is ⟨Bᵐ H, G⟩, for which the M powers of
        n×k are kept.
    """
    out: Tensor = _Polynomial.apply(  # type: ignore[no-untyped-call]
        h, coefficients, operator
    )
    return out


class _Polynomial(torch.autograd.Function):
    """All products as one function: a third of the records of one for each."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, coefficients: Tensor, operator: CSR) -> Tensor:
        power = h.detach()
        factors = coefficients.tolist()
        powers = [power]
        out: Tensor = power * factors[0]
        for factor in factors[1:]:
            power = operator @ power
            powers.append(power)
            out.add_(power, alpha=factor)
        if any(ctx.needs_input_grad):
            ctx.operator, ctx.factors = operator, factors
            ctx.save_for_backward(*powers)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        grad_h = grad_c = None
        if ctx.needs_input_grad[0]:
            turned = ctx.operator.T
            # Horner's scheme: nothing but the sum is kept.
            grad_h = grad * ctx.factors[-1]
            for factor in reversed(ctx.factors[:-1]):
                grad_h = (turned @ grad_h).add_(grad, alpha=factor)
        if ctx.needs_input_grad[1]:
            flat = grad.reshape(-1)
            powers = ctx.saved_tensors
            grad_c = torch.stack([torch.dot(p.reshape(-1), flat) for p in powers])
        return grad_h, grad_c, None
