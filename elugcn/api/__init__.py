"""Fit, save, load: what the estimator, the command line and the harness share."""

from elugcn.api.config_files import (
    parse_assignments,
    read_config_file,
    resolve_config,
    with_effort,
)
from elugcn.api.files import json_safe
from elugcn.api.fitting import MAX_SEED, Fitted, fit, predict_other
from elugcn.api.graph_files import GRAPH_SUFFIXES, check_graph_path, write_graph
from elugcn.api.memory import estimate_memory
from elugcn.api.runs import (
    class_names,
    default_out,
    metrics_of,
    write_predictions,
    write_run,
)
from elugcn.api.saving import attach_graph, load, save

__all__ = [
    "GRAPH_SUFFIXES",
    "MAX_SEED",
    "Fitted",
    "attach_graph",
    "check_graph_path",
    "class_names",
    "default_out",
    "estimate_memory",
    "fit",
    "json_safe",
    "load",
    "metrics_of",
    "parse_assignments",
    "predict_other",
    "read_config_file",
    "resolve_config",
    "save",
    "with_effort",
    "write_graph",
    "write_predictions",
    "write_run",
]
