"""The experiments, in the order of ``all``.

Each is a module of this folder or shares one; modules are imported when they are asked
for, because they draw.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from elugcn.errors import InputError

if TYPE_CHECKING:
    from elugcn_reproduction.experiments.base import Experiment

ALL = "all"
_MODULES = {
    "table1": "accuracy",
    "social": "accuracy",
    "draws": "accuracy",
    "runtime": "accuracy",
    "ablation": "ablation",
    "utilization": "utilization",
    "nelu": "utilization",
    "heatmap": "heatmap",
    "theory": "theory",
    "sensitivity": "sensitivity",
    "fewlabels": "fewlabels",
    "labelling": "labelling",
    "unseen": "unseen",
    "contribution": "contribution",
}
NAMES = tuple(_MODULES)


def get_experiments(name: str) -> list[Experiment]:
    """The experiment of that name, or each of them for ``all``."""
    if name not in (*NAMES, ALL):
        known = ", ".join([*NAMES, ALL])
        raise InputError(f"unknown experiment {name!r}; known: {known}")
    names = NAMES if name == ALL else [name]
    return [
        getattr(import_module(f"{__name__}.{_MODULES[one]}"), one.upper())
        for one in names
    ]
