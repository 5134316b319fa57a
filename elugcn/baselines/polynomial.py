"""Polynomials of a sparse matrix with learned coefficients: Z = Σ_m c_m Bᵐ H.

GPR-GNN and PC-Conv have this form; they differ in B and in what the coefficients are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.engine import CSR


def polynomial(operator: CSR, h: Tensor, coefficients: Tensor) -> Tensor:
    """Σ_m c_m Bᵐ H for B n×n and H n×k, with gradients to H and to c, shape (M+1,).

    M products of O(nnz(B)·k), and as many for the gradient; M matrices n×k are kept.
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
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        # Horner's scheme for Σ_m c_m (Bᵀ)ᵐ G; the gradient of c_m is ⟨Bᵐ H, G⟩.
        grad_h = grad * ctx.factors[-1]
        for factor in reversed(ctx.factors[:-1]):
            grad_h = (ctx.operator.T @ grad_h).add_(grad, alpha=factor)
        flat = grad.reshape(-1)
        grad_c = torch.stack([p.reshape(-1) @ flat for p in ctx.saved_tensors])
        return grad_h, grad_c, None
