"""Methods side by side: runs, their store, statistics and tables."""

from elugcn.evaluation.cells import Cell, Comparison, summarize_outcomes
from elugcn.evaluation.harness import Outcomes, run_jobs
from elugcn.evaluation.jobs import Job, make_jobs
from elugcn.evaluation.statistics import paired_difference, summarize
from elugcn.evaluation.store import Store
from elugcn.evaluation.tables import render

__all__ = [
    "Cell",
    "Comparison",
    "Job",
    "Outcomes",
    "Store",
    "make_jobs",
    "paired_difference",
    "render",
    "run_jobs",
    "summarize",
    "summarize_outcomes",
]
