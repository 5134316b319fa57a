"""Labels as class numbers: encoded from users' labels, or checked."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elugcn.errors import InputError

Array = NDArray[Any]


def encode_labels(y: Any, n: int) -> tuple[Tensor, Array]:
    """Class numbers [n], -1 where unknown, and the sorted classes in the user's dtype.

    Labels are integers, strings or booleans; -1, None, NaN and "" are unknown.
    """
    labels = _as_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        shape = list(labels.shape)
        raise InputError(f"y has shape {shape}: expected one label per node, [{n}]")
    if len(labels) != n:
        raise InputError(f"y has {len(labels):,} labels but X has {n:,} rows")
    kind = labels.dtype.kind
    if kind == "U":
        # numpy writes a NaN among strings as "nan".
        known = (labels != "") & (labels != "nan")
    elif kind in "iufb":
        known = (labels == labels) & ((labels != -1) | (kind == "b"))
    else:
        known = np.array([not _is_unknown(label) for label in labels], dtype=bool)
        labels = labels.astype(object)
    found = _plain(labels[known]) if labels.dtype == object else labels[known]
    classes, codes = np.unique(found, return_inverse=True)
    if classes.dtype.kind == "f":
        wrong = classes[~np.isfinite(classes) | (classes != np.floor(classes))]
        if len(wrong):
            expected = "expected classes, not continuous numbers"
            raise InputError(f"y holds {wrong[0]}: {expected}")
    encoded = torch.full((n,), -1)
    encoded[torch.from_numpy(known)] = torch.from_numpy(codes)
    return encoded, classes


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
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels.tolist()]
    kinds = {type(label) for label in plain}
    if len(kinds) > 1 or not kinds <= {int, str, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(f"y holds labels of type {names}: expected all int or all str")
    return np.array(plain)


def check_labels(y: Any, n: int, notes: list[str], *, required: bool) -> Tensor:
    """Class numbers from ``data.y`` as a new int64 tensor [n], -1 where unknown."""
    if y is None and not required:
        return torch.full((n,), -1)
    wanted = f"one class number per node, int64 [{n}], -1 where unknown"
    if y is not None:
        try:
            y = torch.as_tensor(y)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"data.y is not numeric: expected {wanted}") from error
        if y.shape == (n, 1):
            notes.append("y was squeezed from shape [n, 1]")
        elif y.dim() == 2 and len(y) == n:
            wanted += "; for one-hot rows use data.y.argmax(1)"
    numbers = check_tensor("data.y", y, "real", (n,), wanted)
    if numbers.is_floating_point():
        numbers = numbers.nan_to_num(nan=-1, posinf=torch.inf, neginf=-torch.inf)
    right = torch.isfinite(numbers) & (numbers == numbers.floor()) & (numbers >= -1)
    if not right.all():
        at = int((~right).nonzero()[0])
        value = numbers[at].item()
        raise InputError(f"data.y is {value} at node {at}: expected {wanted}")
    return numbers.long().clone()  # the user's own may change later


def check_tensor(
    name: str, value: Any, kind: str, shape: tuple[int, ...], wanted: str
) -> Tensor:
    """The tensor on the CPU, or an error that says what is wanted.

    ``kind`` is "bool", "integer" or "real". [n, 1] is accepted for [n], and of other
    shapes only the first size counts.
    """
    if value is None:
        raise InputError(f"{name} is missing: expected {wanted}")
    if not isinstance(value, Tensor):
        raise InputError(f"{name} is a {type(value).__name__}: expected {wanted}")
    dtype = value.dtype
    whole = not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)
    fits = {"bool": dtype == torch.bool, "integer": whole, "real": not dtype.is_complex}
    if not fits[kind]:
        raise InputError(f"{name} has dtype {value.dtype}: expected {wanted}")
    tensor = value.detach().cpu()
    if len(shape) == 1 and tensor.shape == (*shape, 1):
        tensor = tensor[:, 0]
    if tensor.dim() != len(shape) or tensor.size(0) != shape[0]:
        raise InputError(f"{name} has shape {list(tensor.shape)}: expected {wanted}")
    return tensor
