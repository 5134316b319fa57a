"""The two-view GCN of the paper; without the ELU graph it is Kipf and Welling's GCN.

    H̄ = Â σ(Â X W₁) W₂        the original view
    H̃ = Â σ(S* X W₁) W₂       the ELU view

Both views share their weights. S* replaces Â in the first layer only, because it is
already a high-order graph. σ is ReLU. Dropout precedes both weights, and both layers
have a bias.
"""

from __future__ import annotations

from torch import Tensor

from elugcn.engine import (
    Features,
    GraphInputs,
    Views,
    propagate_linear,
    relu_dropout_linear_,
    spmm,
)
from elugcn.models.mlp import TwoLayers


class TwoViewGCN(TwoLayers):
    """Two graph convolutions with shared weights for one or two views."""

    num_layers = 2

    def views(self, g: GraphInputs, draws: int = 1) -> Views:
        """H̄ for each draw of dropout, then H̃ if ``g`` has an ELU graph; each n×c.

        Cost:
            O(nnz(X)·h + nnz(Â)·(h + v·c)) for v views, and O(n·c·h) for S* in factors.
        """
        p_input, p = (self.input_dropout, self.dropout) if self.training else (0.0, 0.0)
        Z = propagate_linear(g, self.W1, p_input, draws=draws)  # Â X W₁, S* X W₁
        Z = relu_dropout_linear_(Z, self.b1, self.W2, p)  # σ(Z + b₁) W₂
        return spmm(g.layer(1), Z, self.b2)  # Â Z + b₂

    def forward(self, g: GraphInputs) -> Tensor:
        """H̄, n×c."""
        H: Tensor = self.views(g)[0]
        return H

    def first_product(self, x: Features) -> Tensor:
        """X W₁, what S* multiplies: n×h."""
        return x @ self.W1

    def views_given(self, g: GraphInputs, elu_product: Tensor) -> Views:
        """Both views of nodes for which S* X W₁ is known, n×h; in evaluation mode."""
        Z = propagate_linear(g, self.W1, 0.0)
        Z = Views([*Z.tensors(), elu_product])
        Z = relu_dropout_linear_(Z, self.b1, self.W2, 0.0)
        return spmm(g.layer(1), Z, self.b2)
