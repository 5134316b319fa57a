"""Labels as class numbers: encoded from what users hold, checked, and named."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.described import one_of_batch
from elugcn.errors import InputError

Array = NDArray[Any]


def encode_labels(y: Any, n: int) -> tuple[Tensor, Array]:
    """Class numbers and classes of labels given in any usual way.

    Args:
        y: Integers, strings or booleans; -1, None, NaN and "" are unknown.
        n: Number of nodes.

    Returns:
        int64 [n] with -1 for unknown, and the sorted classes in the user's dtype.
    """
    given = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
    if hasattr(given, "astype") and not isinstance(given.dtype, np.dtype):
        given = given.astype(object)  # pandas' own kinds: numpy makes 1.0 of 1 and NA
    if isinstance(given, (list, tuple)):
        # np.asarray([1, "a"]) or ["a", None] would turn one kind into another.
        holder = np.empty(len(given), dtype=object)
        for i, label in enumerate(given):
            holder[i] = label
        given = holder
    labels = np.asarray(given)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"y has shape {list(labels.shape)}: expected one label per node, [{n}]"
        )
    if len(labels) != n:
        raise InputError(f"y has {len(labels):,} labels but X has {n:,} rows")
    if labels.dtype.kind == "b":
        known = np.ones(n, dtype=bool)
    elif labels.dtype.kind in "iu":
        known = labels != -1
    elif labels.dtype.kind == "f":
        known = ~np.isnan(labels) & (labels != -1)
    elif labels.dtype.kind == "U":
        # numpy writes a NaN among strings as "nan".
        known = (labels != "") & (labels != "nan")
    else:
        labels = labels.astype(object)
        known = np.array([not _is_unknown(label) for label in labels], dtype=bool)
        # Back from objects to the plain dtype of the labels themselves.
        plain = [
            label.item() if isinstance(label, np.generic) else label
            for label in labels[known].tolist()
        ]
        kinds = {type(label) for label in plain}
        if len(kinds) > 1 or not kinds <= {int, str, float, bool}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(
                f"y holds labels of type {names}: expected all int or all str"
            )
        classes, codes = np.unique(np.array(plain), return_inverse=True)
        return _codes(known, codes, classes)
    classes, codes = np.unique(labels[known], return_inverse=True)
    return _codes(known, codes, classes)


def _is_unknown(label: Any) -> bool:
    if label is None or (isinstance(label, str) and label == ""):
        return True
    if isinstance(label, float) and np.isnan(label):
        return True
    # pandas' NA, recognised without pandas.
    if type(label).__name__ == "NAType":
        return True
    return isinstance(label, (int, float, np.integer)) and label == -1


def _codes(known: Array, codes: Array, classes: Array) -> tuple[Tensor, Array]:
    if classes.dtype.kind == "f":
        wrong = classes[~np.isfinite(classes) | (classes != np.floor(classes))]
        if len(wrong):
            raise InputError(
                f"y holds {wrong[0]}: expected classes, not continuous numbers"
            )
    encoded = np.full(len(known), -1, dtype=np.int64)
    encoded[known] = codes
    return torch.from_numpy(encoded), classes


def check_labels(y: Any, n: int, notes: list[str], *, required: bool) -> Tensor:
    """Class numbers of a PyG graph as int64 [n], -1 where unknown.

    Args:
        y: ``data.y``, whatever it is.
        n: Number of nodes.
        notes: Gets a sentence on what was changed.
        required: Whether at least two classes must have a label.
    """
    wanted = f"expected one class number per node, int64 [{n}], -1 where unknown"
    if y is None and not required:
        return torch.full((n,), -1)
    if y is None:
        raise InputError(f"data.y is missing: {wanted}")
    try:
        y = torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"data.y is not numeric: {wanted}") from error
    return _class_numbers(y, n, notes, required, wanted)


def _class_numbers(
    y: Tensor, n: int, notes: list[str], required: bool, wanted: str
) -> Tensor:
    if y.dim() == 2 and y.shape[1] == 1 and y.shape[0] == n:
        y = y[:, 0]
        notes.append("y was squeezed from shape [n, 1]")
    if y.dim() == 2 and y.shape[0] == n:
        raise InputError(
            f"data.y has shape {list(y.shape)}: {wanted}; for one-hot rows use "
            "data.y.argmax(1)"
        )
    if y.shape != (n,):
        raise InputError(f"data.y has shape {list(y.shape)}: {wanted}")
    if y.is_complex():
        raise InputError(f"data.y has dtype {y.dtype}: {wanted}")
    if y.is_floating_point():
        y = torch.where(torch.isnan(y), torch.full_like(y, -1), y)
        wrong = (~torch.isfinite(y) | (y != y.floor())).nonzero()
        if len(wrong):
            at = int(wrong[0])
            raise InputError(f"data.y is {float(y[at])} at node {at}: {wanted}")
    y = y.long()
    wrong = (y < -1).nonzero()
    if len(wrong):
        at = int(wrong[0])
        raise InputError(f"data.y is {int(y[at])} at node {at}: {wanted}")
    if not required:
        return y
    present = torch.unique(y[y >= 0])
    if not len(present):
        raise InputError("data.y holds no label at all: every entry is -1")
    if len(present) == 1:
        raise InputError(
            f"data.y holds only one class, {int(present[0])}: expected at least two"
        )
    if int(present[-1]) >= max(n, 2):
        raise InputError(
            f"data.y holds class {int(present[-1])} but the graph has {n:,} nodes: "
            "renumber the classes 0..c-1, e.g. y.unique(return_inverse=True)"
        )
    return y


def check_class_names(data: Data, y: Tensor, notes: list[str]) -> list[str]:
    """A name for each class: those of the graph, else the numbers.

    Args:
        data: Graph with or without ``class_names``.
        y: Its checked class numbers.
        notes: Gets a sentence on classes no node has.
    """
    count = max(int(y.max()) + 1, 0)
    names = one_of_batch(data.class_names if "class_names" in data else None)
    if isinstance(names, dict):
        names = [names.get(label, label) for label in range(count)]
    if names is None or not len(names):
        names = [str(label) for label in range(count)]
    if len(names) < count:
        raise InputError(
            f"data.class_names has {len(names)} names but data.y goes up to class "
            f"{count - 1}: expected a name for each class"
        )
    present = set(torch.unique(y[y >= 0]).tolist())
    empty = [str(label) for label in range(len(names)) if label not in present]
    if empty and present:
        notes.append(f"classes without any label: {', '.join(empty)}")
    return [str(name) for name in names]
