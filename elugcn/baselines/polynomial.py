"""An MLP filtered by a polynomial with learned coefficients: Z = Σ_m c_m Bᵐ MLP(X).

GPR-GNN and PC-Conv have this form; they differ in B and in what the coefficients are.
An epoch costs O(nnz(X)·h + M·E·c) for E edges.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

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

    M products of O(nnz(B)·k), and as many for the gradient.
    """
    first, *others = coefficients.unbind()
    out = first * h
    for coefficient in others:
        h = operator @ h
        out = torch.addcmul(out, coefficient, h)
    return out
