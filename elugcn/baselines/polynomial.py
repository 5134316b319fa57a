"""An MLP filtered by a polynomial with learned coefficients: Z = Σ_m c_m Bᵐ MLP(X).

GPR-GNN and PC-Conv have this form; they differ in B and in what the coefficients are.
An epoch costs O(nnz(X)·h + M·E·c) for E edges.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elugcn.baselines.common import InputDropoutConfig, adjacency
from elugcn.engine import CSR, GraphInputs, dropout
from elugcn.methods.options import Count, Probability, Steps
from elugcn.methods.problem import Shapes
from elugcn.models.mlp import MLP


class FilterConfig(InputDropoutConfig):
    """Options of a filtered MLP."""

    propagation_dropout: Probability = 0.5  # probability of dropping an entry of H
    dropout: Probability = 0.5
    epochs: Count = 1000
    patience: Steps = 200


class FilteredMLP(nn.Module):
    """An MLP and dropout, then a polynomial of a matrix."""

    def __init__(
        self, config: FilterConfig, shapes: Shapes, linear: bool = False
    ) -> None:
        super().__init__()
        ends = (shapes.in_channels, config.hidden_channels, shapes.out_channels)
        self.mlp = MLP(*ends, config.dropout, config.input_dropout, linear)
        self.propagation_dropout = config.propagation_dropout

    def matrix(self, inputs: GraphInputs) -> CSR:
        """B: Â, unless a subclass says otherwise."""
        return adjacency(inputs)

    def coefficients(self) -> Tensor:
        """c, shape (M+1,)."""
        raise NotImplementedError

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c."""
        p = self.propagation_dropout if self.training else 0.0
        h = dropout(self.mlp(inputs), p)
        return polynomial(self.matrix(inputs), h, self.coefficients())


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
