"""A fingerprint of a graph: is it still the one that a model was fitted to?"""

from __future__ import annotations

import hashlib

from torch import Tensor
from torch_geometric.data import Data


def graph_fingerprint(data: Data) -> str:
    """Hexadecimal digest of edges, their weights and X; O(E + n·d), in one pass."""
    digest = hashlib.blake2b(digest_size=16)
    for name in ("edge_index", "edge_weight", "x"):
        value = getattr(data, name, None)
        for part in () if value is None else _parts(value):
            array = part.detach().contiguous().numpy(force=True)
            digest.update(f"{name} {array.dtype} {array.shape};".encode())
            digest.update(array.data)
    return digest.hexdigest()


def _parts(value: Tensor) -> tuple[Tensor, ...]:
    """The arrays that a tensor is stored in."""
    if not value.is_sparse and not value.is_sparse_csr:
        return (value,)
    csr = value.to_sparse_csr()
    return csr.crow_indices(), csr.col_indices(), csr.values()
