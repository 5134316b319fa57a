"""Facebook100: friendships within American colleges in 2005.

Traud, Mucha and Porter, "Social structure of Facebook networks" (2012), files of
github.com/sisaman/pyg-datasets. The class is the student/faculty flag, column 0 of
`local_info`; the other six columns (gender, major, second major, dormitory, year, high
school) are the features. The traps:

- 0 means missing, in every column: such a node has class -1 and is in no mask, or has
  no one among the columns of that feature.
- Flags run from 1 to 6, but Caltech36 has only 1, 2, 5 and 6. Classes are the flags
  that occur, in order; `class_names` keeps the flags.
- A flag may be carried by a single node, so a random split may train without it.
- Northeastern19 counts one friendship as 2: the values of A are ignored.
- UF21 has no known public copy to check against, so it is never downloaded.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat
from scipy.sparse import coo_matrix
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.features import set_ones
from elugcn.data.datasets.files import reading
from elugcn.data.graph import make_data
from elugcn.data.splits import random_split
from elugcn.errors import InputError

_FILES = {
    "caltech36": "Caltech36",
    "hamilton46": "Hamilton46",
    "tulane29": "Tulane29",
    "northeastern19": "Northeastern19",
    "uf21": "UF21",
}
_N_COLUMNS = 7


def facebook_files(name: str) -> tuple[str, ...]:
    """The one file of a dataset, as `folder/file`."""
    return (f"facebook100/{_FILES[name]}.mat",)


def load_facebook(name: str, split: int, find: Callable[[str], Path]) -> Data:
    """Read one college and draw a 60/20/20 split of the nodes with a known class.

    Args:
        name: "caltech36", "hamilton46", "tulane29", "northeastern19" or "uf21".
        split: seed of the draw.
        find: gives the path of a `folder/file`.

    Raises:
        InputError: the file is missing or is not a Facebook100 file.
    """
    path = find(facebook_files(name)[0])
    rows, cols, info = _read(path)
    y, flags = _codes(info[:, 0])
    edge_index, _, _ = clean_edges(rows, cols, None, len(y), directed=False)
    return make_data(
        _one_hot(info[:, 1:]),
        edge_index,
        y,
        masks=random_split(y, 0.6, 0.2, split),
        class_names=[str(flag) for flag in flags],
        directed=False,
    )


def _read(
    path: Path,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Row and column of every entry of A, and `local_info`."""
    with reading(path, "not a Facebook100 .mat file"):
        content = loadmat(str(path), variable_names=["A", "local_info"])
        adjacency = coo_matrix(content["A"])
        info = np.asarray(content["local_info"]).astype(np.int64)
    n = info.shape[0]
    if info.shape != (n, _N_COLUMNS) or adjacency.shape != (n, n):
        raise InputError(
            f"{path}: expected an n×n matrix A and an n×{_N_COLUMNS} local_info"
        )
    rows, cols = adjacency.nonzero()
    return rows.astype(np.int64), cols.astype(np.int64), info


def _codes(
    column: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rank of each value among those that occur, -1 for 0 = missing; those values."""
    values = np.unique(column[column > 0])
    codes = np.where(column > 0, np.searchsorted(values, column), -1)
    return codes.astype(np.int64), values


def _one_hot(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """One column per value that occurs, feature after feature; 0 = missing has none."""
    coded = [_codes(column) for column in columns.T]
    x = np.zeros((len(columns), sum(values.size for _, values in coded)), np.float32)
    start = 0
    for codes, values in coded:
        set_ones(x, start, codes)
        start += values.size
    return x
