"""How the package writes JSON and tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from elugcn.atomic import make_readable
from elugcn.errors import InputError


def json_safe(value: Any) -> Any:
    """Values as JSON has them: NaN and infinity become null, arrays become lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_safe(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(v) for v in value]
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return json_safe(value.tolist())
    if isinstance(value, BaseModel):
        return json_safe(value.model_dump(mode="json"))
    return str(value) if isinstance(value, Path) else value


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write one JSON object."""
    text = json.dumps(json_safe(content), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a ``.safetensors`` file with the usual rights."""
    # safetensors refuses tensors that share memory or are not contiguous.
    own = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    try:
        save_file(own, path)
    except SafetensorError as error:  # a full disk
        raise InputError(f"{path.name}: can't be written ({error})") from None
    make_readable(path)
