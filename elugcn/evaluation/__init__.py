"""Methods side by side: jobs, their store, statistics and tables."""

from elugcn.evaluation.aggregate import Cell, Comparison, Published, aggregate, compare
from elugcn.evaluation.harness import Outcomes, run_jobs, stored_outcomes
from elugcn.evaluation.jobs import Job, make_jobs
from elugcn.evaluation.statistics import paired_difference, summarize
from elugcn.evaluation.store import Store
from elugcn.evaluation.tables import FORMATS, render, terminal

__all__ = [
    "FORMATS",
    "Cell",
    "Comparison",
    "Job",
    "Outcomes",
    "Published",
    "Store",
    "aggregate",
    "compare",
    "make_jobs",
    "paired_difference",
    "render",
    "run_jobs",
    "stored_outcomes",
    "summarize",
    "terminal",
]
