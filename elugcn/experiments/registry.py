"""Which experiments there are, in the order of ``all``.

Each is a file of this folder with an ``EXPERIMENT``. They are imported when they are
asked for: they draw, and loading what draws would slow every command down.
"""

from __future__ import annotations

from importlib import import_module

from elugcn.errors import InputError
from elugcn.experiments.base import Experiment

ALL = "all"
NAMES = (
    "table1",
    "social",
    "draws",
    "runtime",
    "ablation",
    "utilization",
    "nelu",
    "heatmap",
    "theory",
    "sensitivity",
    "fewlabels",
    "labelling",
)


def get_experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in NAMES:
        known = ", ".join([*NAMES, ALL])
        raise InputError(f"unknown experiment {name!r}; there are {known}")
    experiment: Experiment = import_module(f"{__package__}.{name}").EXPERIMENT
    return experiment


def get_experiments(name: str) -> list[Experiment]:
    """The experiment of that name, or each of them for ``all``."""
    return [get_experiment(one) for one in (NAMES if name == ALL else [name])]
