"""DeepWalk as a matrix: node embeddings from where random walks go.

DeepWalk with window T and one negative sample factorises, implicitly,

    log⁺( vol(G)/T · Σ_{r=1..T} (D⁻¹A)ʳ D⁻¹ ),    log⁺(x) = log max(x, 1)

(Qiu et al., "Network Embedding as Matrix Factorization", WSDM 2018). As in their method
for large windows, walks are replaced by the ``rank`` largest eigenpairs λ, u of D^-½ A
D^-½. The eigenvalue 1, one per connected component, is treated apart: its part is
vol(G)/vol(C) between nodes of a component C, exactly, and the eigenvalue solver meets
no repeated eigenvalue. Entries are computed from the factors in blocks of rows, and the
largest singular vectors are found by products alone: nothing n×n is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import aslinearoperator, eigsh
from torch import Tensor

from elugcn.engine import CSR

Array = np.ndarray[Any, Any]
# Entries of the matrix in memory at once.
BLOCK = 2**20
# Columns beyond those asked for, and products, in the search for singular vectors.
OVERSAMPLING = 8
PRODUCTS = 3
# Largest size at which all eigenpairs are computed.
DENSE = 256


@dataclass(frozen=True)
class WalkMatrix:
    """The DeepWalk matrix as an operator: rows are computed when they are needed."""

    left: Tensor  # n×k
    right: Tensor  # n×k; left · rightᵀ is the matrix before log⁺, without ``base``
    component: Tensor  # connected component of each node, (n,)
    base: Tensor  # what each node has in common with its component, (n,)

    @classmethod
    def of(cls, graph: CSR, window: int, rank: int = 128) -> WalkMatrix:
        """The matrix of a symmetric pattern without diagonal, about O(E·rank)."""
        a = sp.csr_array(graph.to_scipy())
        a.data = np.ones(a.nnz)
        degree = np.asarray(a.sum(axis=1)).reshape(-1)
        count, component = connected_components(a, directed=False)
        volume = np.bincount(component, weights=degree, minlength=count)
        root = np.zeros_like(degree)
        np.power(degree, -0.5, out=root, where=degree > 0)
        scaled = sp.csr_array(sp.diags_array(root) @ a @ sp.diags_array(root))
        # The eigenvectors of the eigenvalue 1: √d on a component, of length 1.
        length = np.sqrt(np.where(volume > 0, volume, 1.0))
        top = np.sqrt(degree) / length[component]
        own = sp.csr_array((top, (np.arange(len(top)), component)))
        value, vector = _eigenpairs(scaled, own, rank)
        mean = np.mean([value**r for r in range(1, window + 1)], axis=0)
        whole = volume.sum()
        base = whole * np.where(volume > 0, 1.0 / length**2, 0.0)[component]
        right = root[:, None] * vector
        return cls(
            torch.from_numpy((right * (whole * mean)).astype(np.float32)),
            torch.from_numpy(right.astype(np.float32)),
            torch.from_numpy(component.astype(np.int64)),
            torch.from_numpy(base.astype(np.float32)),
        )

    def rows(self, start: int, stop: int) -> Tensor:
        """Dense rows of the matrix, O((stop − start)·n·k)."""
        block = self.left[start:stop] @ self.right.T
        same = self.component[start:stop, None] == self.component
        block.add_(self.base[start:stop, None] * same)
        return block.clamp_(min=1.0).log_()

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with an n×h matrix, O(n²·(k + h))."""
        n = self.left.size(0)
        size = max(1, BLOCK // max(1, n))
        parts = [self.rows(i, min(n, i + size)) @ z for i in range(0, n, size)]
        return torch.cat(parts)


def netmf_embedding(graph: CSR, dim: int, window: int, rank: int = 128) -> Tensor:
    """U Σ^½ of the ``dim`` largest singular values, n×dim, zero columns beyond n.

    The matrix M is symmetric, so its singular values are the sizes of its eigenvalues:
    those of QᵀMQ for a Q that spans what M stretches most. The graph is a symmetric
    pattern without diagonal. O(n²·(rank + dim)) time, O(n·(rank + dim)) memory.
    """
    n = graph.shape[0]
    matrix = WalkMatrix.of(graph, window, rank)
    q = torch.randn(n, min(n, dim + OVERSAMPLING))
    for _ in range(PRODUCTS):
        q = torch.linalg.qr(matrix @ q).Q
    small = q.T @ (matrix @ q)
    value, vector = torch.linalg.eigh((small + small.T) / 2)
    best = value.abs().argsort(descending=True)[:dim]
    found = (q @ vector[:, best]) * value[best].abs().sqrt()
    return torch.nn.functional.pad(found, (0, dim - found.size(1)))


def _eigenpairs(scaled: Any, own: Any, rank: int) -> tuple[Array, Array]:
    """The largest eigenpairs of the matrix without its eigenvalue 1."""
    n = scaled.shape[0]
    if n <= max(DENSE, rank + 1):
        value, vector = np.linalg.eigh(scaled.toarray() - (own @ own.T).toarray())
        return value[-rank:], vector[:, -rank:]
    if not scaled.nnz:
        return np.zeros(rank), np.eye(n, rank)  # without edges any vectors will do
    whole, part, turned = (aslinearoperator(m) for m in (scaled, own, own.T))
    # The solver would draw another start in every run.
    start = np.random.default_rng(0).standard_normal(n)
    value, vector = eigsh(whole - part @ turned, k=rank, which="LA", v0=start, tol=1e-3)
    return value, vector
