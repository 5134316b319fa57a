"""Read the pickles of the Planetoid datasets without letting them run anything.

A pickle is a program: ``pickle.load`` of a stranger's file runs what the file says.
The Planetoid files (written by Python 2) need six names. Those are admitted, every
other one is refused before it is looked up. Sparse matrices are rebuilt from their
three arrays through scipy's checks.
"""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from elugcn.data.datasets.files import reading
from elugcn.errors import InputError


class _SparseState:
    """Stands in for scipy's class while unpickling; holds its arrays."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = dict(state)

    def to_csr(self) -> csr_matrix:
        """The matrix; ValueError or KeyError if the arrays do not make one."""
        state = self.state
        arrays = (state["data"], state["indices"], state["indptr"])
        matrix = csr_matrix(arrays, shape=state["_shape"])
        matrix.check_format(full_check=True)
        return matrix


# Two of the names have moved since. numpy's helper is taken from an array.
_ADMITTED: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): _SparseState,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, path: Path) -> None:
        # Python 2 wrote byte strings; latin1 maps each byte to one character, from
        # which numpy restores the contents of arrays.
        super().__init__(file, encoding="latin1")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise InputError(
                f"{self.path}: refused, the pickle asks for {module}.{name}, which a "
                "Planetoid file does not need"
            ) from None


def load_pickle(path: Path) -> Any:
    """The numpy array, scipy matrix or dictionary in a Planetoid file.

    Raises:
        InputError: The file asks for a name that is not admitted, or is damaged.
    """
    # A damaged pickle fails in whichever way its bytes happen to spell out.
    with reading(path, "not a complete pickle"), path.open("rb") as file:
        loaded = _Unpickler(file, path).load()
        return loaded.to_csr() if isinstance(loaded, _SparseState) else loaded
