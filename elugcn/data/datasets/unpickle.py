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
_ADMITTED: dict[str, Any] = {
    "__builtin__.list": list,
    "collections.defaultdict": defaultdict,
    "numpy.dtype": np.dtype,
    "numpy.ndarray": np.ndarray,
    "numpy.core.multiarray._reconstruct": np.empty(0).__reduce__()[0],
    "scipy.sparse.csr.csr_matrix": _SparseState,
}


# The one in C sets aside as many gigabytes as a few bytes of a hostile file ask for.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (asked := f"{module}.{name}") in _ADMITTED:
            return _ADMITTED[asked]
        raise pickle.UnpicklingError(f"it asks for {asked}, which is refused")


def load_pickle(path: Path) -> Any:
    """The numpy array, scipy matrix or dictionary in a Planetoid file."""
    # A damaged pickle fails in whichever way its bytes happen to spell out.
    with reading(path, "not a Planetoid pickle"), path.open("rb") as file:
        # Python 2 wrote byte strings; latin1 maps each byte to one character, from
        # which numpy restores the contents of arrays.
        loaded = _Unpickler(file, encoding="latin1").load()
        return loaded.to_csr() if isinstance(loaded, _SparseState) else loaded
