"""The social networks: friendships of American colleges."""

from __future__ import annotations

from elugcn.experiments.base import Experiment, Planned, Scope
from elugcn.experiments.planning import datasets_of, method_rows, plan_rows
from elugcn.experiments.table1 import QUICK_METHODS, methods, write

# The last one's file is the user's to bring.
DATASETS = ("caltech36", "northeastern19", "hamilton46", "tulane29", "uf21")
QUICK_DATASETS = ("caltech36", "hamilton46")


def plan(scope: Scope) -> list[Planned]:
    """Each method, as tuned for each college."""
    datasets = datasets_of(scope, DATASETS, QUICK_DATASETS)
    rows = method_rows(scope, methods(), QUICK_METHODS)
    return [run for dataset in datasets for run in plan_rows(rows, dataset, scope)]


EXPERIMENT = Experiment(
    "social",
    "Social networks",
    "How accurate is each method on the Facebook friendships of colleges (the paper's "
    "table of social networks)?",
    plan,
    write,
)
