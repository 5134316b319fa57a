"""Low-pass steps and a heat kernel in one filter: PC-Conv (Li et al., AAAI 2024).

    P = D^-s (A + I) D^-s,    L = b I − P
    Z = θ_0 H + Σ_{k=1..K} θ_k (I − L)ᵏ e^{tL} H

(I − L)ᵏ averages neighbours, e^{tL} sharpens differences to them. Their product has a
Poisson-Charlier expansion, which is cut after N terms:

    (I − L)ᵏ e^{tL} = Σ_{m≥0} C_m(k) / m! · (−L)ᵐ

with the Charlier polynomials C_m of parameter t.
"""

from __future__ import annotations

from functools import cache
from weakref import WeakKeyDictionary

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from elugcn.core.polynomial import polynomial
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.front import FrontMLP
from elugcn.nn.layers import Features


@cache
def charlier(order: int, terms: int, t: float) -> tuple[tuple[float, ...], ...]:
    """C_m(k)/m! for k = 1 … K and m = 0 … N−1, K rows of N numbers, O(K·N).

    C_0 = 1, C_1(k) = k − t, C_{m+1}(k) = (k − m − t) C_m(k) − m t C_{m−1}(k). The
    recurrence is run on c_m = C_m/m!, which stays small where C_m does not.
    """
    rows = []
    for k in range(1, order + 1):
        row = [1.0, k - t]
        for m in range(1, terms - 1):
            row.append(((k - m - t) * row[m] - t * row[m - 1]) / (m + 1))
        rows.append(tuple(row[:terms]))
    return tuple(rows)


def shifted_operator(adj: CSR, shift: float, exponent: float) -> CSR:
    """−L = P − b I, O(nnz); built once for a matrix and kept as long as it is.

    The weights of edges are in Â already, divided by the roots of the degrees: P is
    Â_ij (r_i q_j)^(½−s) for the numbers r_i and q_j of entries in row i and column j.
    Where edges have no weights these are the degrees, and P is what it says above.
    """
    kept = _KEPT.setdefault(adj, {})
    key = (shift, exponent)
    if key not in kept:
        n = adj.shape[0]
        into = (adj.crow[1:] - adj.crow[:-1]).double()
        out_of = torch.bincount(adj.col.long(), minlength=n).double()
        power = 0.5 - exponent
        value = adj.value.double() * (into**power)[adj.row]
        value *= (out_of**power)[adj.col.long()]
        p = CSR(adj.crow, adj.col, value, n).to_scipy()
        matrix = p - shift * sp.eye(n, format="csr")
        device = adj.value.device
        kept[key] = CSR.from_scipy(matrix, symmetric=adj.symmetric).to(device)
    return kept[key]


_KEPT: WeakKeyDictionary[CSR, dict[tuple[float, float], CSR]] = WeakKeyDictionary()


class PCNet(nn.Module):
    """Two linear maps, then a learned mixture of K two-fold filters.

    Args:
        in_channels: d.
        hidden_channels: Width of the hidden layer.
        out_channels: c.
        dropout: Probability, of hidden units.
        input_dropout: Of X; None: as ``dropout``.
        propagation_dropout: Of the entries of H.
        order: K.
        terms: N.
        heat: t; 0 leaves the heat kernel out.
        shift: b.
        exponent: s; ½ makes P = Â.
        scale: The first value of every θ_k.
        linear: No ReLU between the two linear maps.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.35,
        input_dropout: float | None = None,
        propagation_dropout: float = 0.9,
        order: int = 6,
        terms: int = 10,
        heat: float = 0.0,
        shift: float = 1.3,
        exponent: float = 0.45,
        scale: float = 2.0,
        linear: bool = True,
    ) -> None:
        super().__init__()
        self.mlp = FrontMLP(
            in_channels, hidden_channels, out_channels, dropout, input_dropout, linear
        )
        self.propagation_dropout = propagation_dropout
        self.order = order
        self.terms = terms
        self.heat = heat
        self.shift = shift
        self.exponent = exponent
        self.theta = nn.Parameter(torch.full((order + 1,), scale))

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·h + N·nnz(Â)·c)."""
        h = dropout(self.mlp(x), self.propagation_dropout, self.training)
        operator = shifted_operator(adj, self.shift, self.exponent)
        return polynomial(operator, h, self.coefficients())

    def coefficients(self) -> Tensor:
        """Of (−L)ᵐ, shape (N,): the filters are summed before H is filtered."""
        rows = charlier(self.order, self.terms, self.heat)
        first = (1.0,) + (0.0,) * (self.terms - 1)
        return self.theta @ self.theta.new_tensor([first, *rows])

    def first_layer(self) -> list[nn.Parameter]:
        """W₁ and its bias."""
        return self.mlp.first_layer()
