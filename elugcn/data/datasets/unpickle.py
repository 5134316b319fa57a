"""Read the pickles of the Planetoid datasets without letting them run anything.

A pickle is a program: `pickle.load` of a stranger's file runs what the file says.
The Planetoid files (written by Python 2) need six names, so those six are admitted
and every other one is refused before it is looked up.

Two of the names moved since: `numpy.core.multiarray` and `scipy.sparse.csr` are
deprecated paths, mapped here so that no warning appears now and no import fails
later. Sparse matrices are rebuilt from their three arrays through scipy's checks
instead of being restored attribute by attribute.
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


# numpy's own helper, asked of an array: its module has been renamed once already.
_RECONSTRUCT = np.empty(0).__reduce__()[0]

_ADMITTED: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("scipy.sparse.csr", "csr_matrix"): _SparseState,
}


class _RefusedError(Exception):
    """The pickle asks for a name that is not admitted."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def load_pickle(path: Path) -> Any:
    """The numpy array, scipy matrix or dictionary in a Planetoid file.

    Raises:
        InputError: the file asks for a name that is not admitted, or is damaged.
    """
    # A damaged pickle fails in whichever way its bytes happen to spell out.
    with reading(path, "not a complete pickle"):
        try:
            with path.open("rb") as file:
                # Python 2 wrote byte strings; latin1 maps each byte to one character,
                # which is what numpy needs to restore array contents.
                loaded = _Unpickler(file, encoding="latin1").load()
        except _RefusedError as error:
            raise InputError(
                f"{path}: refused, the pickle asks for {error}, which a Planetoid "
                "file does not need"
            ) from None
        return loaded.to_csr() if isinstance(loaded, _SparseState) else loaded
