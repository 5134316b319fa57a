"""Computers and Photo: products of Amazon that are bought together.

Shchur et al., "Pitfalls of Graph Neural Network Evaluation" (2018), files of
github.com/shchur/gnn-benchmark. The traps:

- The files hold more nodes (13,752 and 7,650) than the studies use: those take the
  largest connected component, 13,381 and 7,487 nodes.
- Edges are stored in one direction or both, with self-loops.
- There is no public split; by custom 20 nodes of each class train and 30 validate.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.datasets.files import reading
from elugcn.data.graph import make_data
from elugcn.data.splits import per_class_split

N_TRAIN, N_VAL = 20, 30  # per class


def amazon_files(name: str) -> tuple[str, ...]:
    """The one file of a dataset, as `folder/file`."""
    return (f"amazon/amazon_electronics_{name}.npz",)


def load_amazon(name: str, split: int, find: Callable[[str], Path]) -> Data:
    """Read the largest component of one dataset and draw a split.

    Args:
        name: "computers" or "photo".
        split: seed of the draw of training and validation nodes.
        find: gives the checked path of a `folder/file`.

    Raises:
        InputError: the file is missing or damaged.
    """
    path = find(amazon_files(name)[0])
    with (
        reading(path, "expected adj_*, attr_*, labels"),
        np.load(path, allow_pickle=False) as archive,
    ):
        adjacency = _matrix(archive, "adj")
        features = _matrix(archive, "attr")
        labels = archive["labels"].astype(np.int64)
        class_names = [str(label) for label in archive["class_names"]]

    _, component = connected_components(adjacency, directed=False)
    keep = np.flatnonzero(component == np.bincount(component).argmax())
    row, col = adjacency[keep][:, keep].nonzero()
    edge_index, _, _ = clean_edges(row, col, None, keep.size, directed=False)

    y = labels[keep]
    return make_data(
        features[keep].toarray().astype(np.float32),
        edge_index,
        y,
        masks=per_class_split(y, N_TRAIN, N_VAL, split, class_names),
        class_names=class_names,
        directed=False,
    )


def _matrix(archive: "np.lib.npyio.NpzFile", prefix: str) -> csr_matrix:
    arrays = (archive[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    return csr_matrix(tuple(arrays), shape=tuple(archive[f"{prefix}_shape"]))
