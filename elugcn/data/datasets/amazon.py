"""Computers and Photo: Amazon products that are bought together.

Shchur et al., "Pitfalls of Graph Neural Network Evaluation" (2018), files of
github.com/shchur/gnn-benchmark. To know:

- The files hold more nodes (13,752 and 7,650) than the studies use, which take the
  largest connected component: 13,381 and 7,487 nodes.
- Edges are stored in one direction or both, with self-loops.
- There is no public split; by custom 20 nodes per class train and 30 validate.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from elugcn.data.datasets.assemble import dataset, undirected
from elugcn.data.datasets.files import reading
from elugcn.data.splits import per_class_split

N_TRAIN, N_VAL = 20, 30  # per class


def load_amazon(path: Path, split: int) -> Data:
    """The largest component, with a split drawn with seed ``split``."""
    with (
        reading(path, "expected adj_*, attr_*, labels"),
        np.load(path, allow_pickle=False) as archive,
    ):
        adjacency = _matrix(archive, "adj")
        features = _matrix(archive, "attr")
        labels = archive["labels"].astype(np.int64)
        names = archive["class_names"]
    _, component = connected_components(adjacency, directed=False)
    keep = np.flatnonzero(component == np.bincount(component).argmax())
    row, col = adjacency[keep][:, keep].nonzero()
    x, y = features[keep].toarray().astype(np.float32), labels[keep]
    masks = per_class_split(y, N_TRAIN, N_VAL, split, names)
    return dataset(x, undirected(row, col, keep.size), y, masks, names)


def _matrix(archive: Any, prefix: str) -> csr_matrix:
    arrays = (archive[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    return csr_matrix(tuple(arrays), shape=tuple(archive[f"{prefix}_shape"]))
