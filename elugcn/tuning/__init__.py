"""Hyper-parameter search on validation, with the same budget for every method."""

from elugcn.tuning.presets import write_preset
from elugcn.tuning.search import Search, Trial, run_search
from elugcn.tuning.searchfile import Budget, SearchFile, read_search
from elugcn.tuning.space import Space, make_space
from elugcn.tuning.tune import tune

__all__ = [
    "Budget",
    "Search",
    "SearchFile",
    "Space",
    "Trial",
    "make_space",
    "read_search",
    "run_search",
    "tune",
    "write_preset",
]
