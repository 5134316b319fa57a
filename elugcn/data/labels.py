"""Labels as class numbers: encoded from users' labels, or checked."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elugcn.errors import InputError

Array = NDArray[Any]


def encode_labels(y: Any, n: int) -> tuple[Tensor, Array]:
    """Class numbers and classes of labels in any usual form.

    Args:
        y: Integers, strings or booleans; -1, None, NaN and "" are unknown.
        n: Number of nodes.

    Returns:
        int64 [n] with -1 where unknown, and the sorted classes in the user's dtype.
    """
    labels = _as_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"y has shape {list(labels.shape)}: expected one label per node, [{n}]"
        )
    if len(labels) != n:
        raise InputError(f"y has {len(labels):,} labels but X has {n:,} rows")
    kind = labels.dtype.kind
    if kind == "U":
        # numpy writes a NaN among strings as "nan".
        known = (labels != "") & (labels != "nan")
    elif kind in "iufb":
        known = (labels == labels) & ((labels != -1) | (kind == "b"))
    else:
        labels = labels.astype(object)
        known = np.array([not _is_unknown(label) for label in labels], dtype=bool)
    found = labels[known]
    classes, codes = np.unique(
        _plain(found) if found.dtype == object else found, return_inverse=True
    )
    if classes.dtype.kind == "f":
        wrong = classes[~np.isfinite(classes) | (classes != np.floor(classes))]
        if len(wrong):
            raise InputError(
                f"y holds {wrong[0]}: expected classes, not continuous numbers"
            )
    encoded = np.full(n, -1, dtype=np.int64)
    encoded[known] = codes
    return torch.from_numpy(encoded), classes


def _as_array(y: Any) -> Array:
    if isinstance(y, Tensor):
        array: Array = y.numpy(force=True)
        return array
    if hasattr(y, "astype") and not isinstance(y.dtype, np.dtype):
        y = y.astype(object)  # pandas' nullable numbers: numpy makes 1.0 of 1 and NA
    if not isinstance(y, list | tuple):
        return np.asarray(y)
    # np.asarray([1, "a"]) or ["a", None] would turn one type into another.
    holder = np.empty(len(y), dtype=object)
    for i, label in enumerate(y):
        holder[i] = label
    return holder


def _is_unknown(label: Any) -> bool:
    # pandas.NA is recognised without pandas.
    if label is None or type(label).__name__ == "NAType":
        return True
    number = isinstance(label, int | float | np.number)
    return label == "" if not number else bool(label == -1 or label != label)


def _plain(labels: Array) -> Array:
    """Labels in an array of objects, back in the dtype of the labels themselves."""
    plain = [
        label.item() if isinstance(label, np.generic) else label
        for label in labels.tolist()
    ]
    kinds = {type(label) for label in plain}
    if len(kinds) > 1 or not kinds <= {int, str, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(f"y holds labels of type {names}: expected all int or all str")
    return np.array(plain)


def check_labels(y: Any, n: int, notes: list[str], *, required: bool) -> Tensor:
    """Class numbers of a PyG graph as a new int64 tensor [n], -1 where unknown.

    Args:
        y: ``data.y``, whatever it is.
        n: Number of nodes.
        notes: Gets a sentence on what was changed.
        required: Whether missing labels are refused.
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
    if y.shape == (n, 1):
        y = y[:, 0]
        notes.append("y was squeezed from shape [n, 1]")
    if y.shape != (n,):
        one_hot = y.dim() == 2 and y.shape[0] == n
        raise InputError(
            f"data.y has shape {list(y.shape)}: {wanted}"
            + ("; for one-hot rows use data.y.argmax(1)" if one_hot else "")
        )
    if y.is_complex():
        raise InputError(f"data.y has dtype {y.dtype}: {wanted}")
    if y.is_floating_point():
        y = y.nan_to_num(nan=-1, posinf=torch.inf, neginf=-torch.inf)
    wrong = (~torch.isfinite(y) | (y != y.floor()) | (y < -1)).nonzero()
    if len(wrong):
        at = int(wrong[0])
        raise InputError(f"data.y is {y[at].item()} at node {at}: {wanted}")
    numbers: Tensor = y.long().clone()  # the user's own may change later
    return numbers
