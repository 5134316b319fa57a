"""Facebook100: friendships within American colleges in 2005.

Traud, Mucha and Porter, "Social structure of Facebook networks" (2012), files of
github.com/sisaman/pyg-datasets. The class is the student/faculty flag, column 0 of
``local_info``. The other six columns (gender, major, second major, dormitory, year,
high school) are the features. To know:

- 0 means missing, in every column: such a node has class -1 and is in no mask, or has
  no 1 among the columns of that feature.
- Flags run from 1 to 6, but Caltech36 has only 1, 2, 5 and 6. Classes are the flags
  that occur, in order; ``class_names`` keeps the flags.
- A flag may occur on a single node, so a random split may train without it.
- Northeastern19 counts one friendship as 2: the values of A are ignored.
- UF21 has no known public copy to check against, so it is never downloaded.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.sparse import coo_matrix
from torch_geometric.data import Data

from elugcn.data.datasets.assemble import dataset, undirected
from elugcn.data.datasets.files import reading
from elugcn.data.features import set_ones
from elugcn.data.splits import random_split
from elugcn.errors import InputError

_N_COLUMNS = 7

Ints = NDArray[np.int64]


def load_facebook(path: Path, split: int) -> Data:
    """One college, with a 60/20/20 split of the nodes with a known class."""
    with reading(path, "not a Facebook100 .mat file"):
        content = loadmat(str(path), variable_names=["A", "local_info"])
        adjacency = coo_matrix(content["A"])
        info = np.asarray(content["local_info"]).astype(np.int64)
    n = info.shape[0]
    if info.shape != (n, _N_COLUMNS) or adjacency.shape != (n, n):
        raise InputError(
            f"{path}: expected an n×n matrix A and an n×{_N_COLUMNS} local_info"
        )
    y, flags = _codes(info[:, 0])
    edges = undirected(*adjacency.nonzero(), n)
    masks = random_split(y, 0.6, 0.2, split)
    return dataset(_one_hot(info[:, 1:]), edges, y, masks, flags)


def _codes(column: Ints) -> tuple[Ints, Ints]:
    """Rank of each value among those that occur, -1 for 0 = missing; those values."""
    values = np.unique(column[column > 0])
    codes = np.where(column > 0, np.searchsorted(values, column), -1)
    return codes.astype(np.int64), values


def _one_hot(columns: Ints) -> NDArray[np.float32]:
    """One column per value that occurs, feature after feature; 0 = missing has none."""
    coded = [_codes(column) for column in columns.T]
    x = np.zeros((len(columns), sum(values.size for _, values in coded)), np.float32)
    start = 0
    for codes, values in coded:
        set_ones(x, start, codes)
        start += values.size
    return x
