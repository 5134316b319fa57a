"""A GCN beside one hop over learned shortcuts to distant nodes (BAGCN, reconstructed).

    P = σ(X W_p), R = σ(X W_r)                 a node as the one who asks, who is asked
    s_uv = [p_u; 1]ᵀ U [r_v; 1]                the biaffine score
    B_u· = softmax of s_u· over the k best v   that are not u and not next to u

    Z₁ = Â σ(Â X W₀ + b₀) W₁ + b₁              the local view
    Z₂ = B σ(X W₀' + b₀') W₁' + b₁'            the distant view
    Z  = Z₁ + β Z₂

Which v are the best is found without gradients, over all pairs in blocks of rows; the
scores of the n·k pairs that are kept are computed again with gradients. What u alone
adds to its scores cancels in the softmax and is not learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import Weighted, pair_products, row_softmax
from elugcn.core.random import dropout
from elugcn.core.similarity import blocked_topk_similarity
from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features, drop_matmul


class Biaffine(nn.Module):
    """s_uv = [p_u; 1]ᵀ U [r_v; 1] for p and r of width m; U is (m+1)×(m+1)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels + 1, channels + 1))
        nn.init.xavier_uniform_(self.weight)

    def factors(self, p: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        """n×(m+1) each, whose inner products are the scores; O(n·m²)."""
        return _with_one(p) @ self.weight, _with_one(r)

    def forward(self, p: Tensor, r: Tensor, pairs: CSR) -> Tensor:
        """The score of each stored entry of ``pairs``, O(n·m² + nnz·m)."""
        return pair_products(pairs, *self.factors(p, r))


@dataclass(frozen=True)
class Both:
    """What the two views give: fused logits, each view's own, and hidden states."""

    logits: Tensor
    local: Tensor
    distant: Tensor
    hidden_local: Tensor
    hidden_distant: Tensor


class BAGCN(nn.Module):
    """The local view, the shortcuts, and the distant view over them.

    Args:
        in_channels: d.
        hidden_channels: Width h of both views.
        out_channels: c.
        dropout: Probability, on hidden states and on roles.
        input_dropout: Of X, where it differs from ``dropout``.
        roles: m, width of P and R.
        k: Shortcuts of a node.
        beta: Weight β of the distant view.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        roles: int = 64,
        k: int = 10,
        beta: float = 0.5,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.k = k
        self.beta = beta
        # W_p, W_r, W₀ and W₀' side by side: X is multiplied once.
        self.widths = [roles, roles, hidden_channels, hidden_channels]
        self.weight = nn.Parameter(torch.empty(in_channels, sum(self.widths)))
        self.bias = nn.Parameter(torch.zeros(sum(self.widths)))
        with torch.no_grad():
            for part in torch.split(self.weight, self.widths, dim=1):
                nn.init.xavier_uniform_(part)
        self.biaffine = Biaffine(roles)
        self.local = nn.Linear(hidden_channels, out_channels)
        self.distant = nn.Linear(hidden_channels, out_channels)
        for head in (self.local, self.distant):
            nn.init.xavier_uniform_(head.weight)
            nn.init.zeros_(head.bias)

    @torch.no_grad()
    def shortcuts(self, x: Features, adj: CSR) -> CSR:
        """The k best nodes of each node beyond its neighbours, as a pattern n×n.

        Neighbours are the stored entries of Â. A node with fewer than k others has
        fewer shortcuts. O(nnz(X)·m + n²·m) time, O(n·k) memory.
        """
        role = 2 * self.widths[0]
        asks, asked = F.relu(x @ self.weight[:, :role] + self.bias[:role]).chunk(2, 1)
        left, right = self.biaffine.factors(asks, asked)
        index, score = blocked_topk_similarity(left, right, self.k, adj)
        there = score > -torch.inf
        crow = F.pad(there.sum(dim=1).cumsum(0), (1, 0)).int()
        column = index[there].int()
        return CSR(crow, column, torch.ones_like(score[there]), len(left))

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Fused logits n×c, with shortcuts that are found for this graph."""
        return self.views(x, adj, self.shortcuts(x, adj)).logits

    def views(self, x: Features, adj: CSR, pairs: CSR) -> Both:
        """Both views for given shortcuts: O((nnz(X) + n·k)·(m + h) + nnz(Â)·h)."""
        z = drop_matmul(x, self.weight, self.input_dropout, self.training)
        asks, asked, near, far = torch.split(z, self.widths, dim=1)
        bias = torch.split(self.bias, self.widths)
        p = self._drop(F.relu(asks + bias[0]))
        r = self._drop(F.relu(asked + bias[1]))
        share = row_softmax(pairs, self.biaffine(p, r, pairs))
        hidden = F.relu(adj @ near + bias[2])
        seen = Weighted(pairs, share) @ self._drop(F.relu(far + bias[3]))
        local = adj @ F.linear(self._drop(hidden), self.local.weight) + self.local.bias
        distant = self.distant(seen)
        return Both(local + self.beta * distant, local, distant, hidden, seen)

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return [self.weight, self.bias]

    def _drop(self, z: Tensor) -> Tensor:
        return dropout(z, self.dropout, self.training)


def _with_one(z: Tensor) -> Tensor:
    return torch.cat([z, z.new_ones(z.size(0), 1)], dim=1)
