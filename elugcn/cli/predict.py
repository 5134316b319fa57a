"""``elugcn predict``: the predictions of a saved run, for its graph or another."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from elugcn.api import Fitted, load, predict_other, write_predictions
from elugcn.api.runs import PREDICTIONS
from elugcn.atomic import atomic_file, check_file
from elugcn.cli.common import percent
from elugcn.cli.loading import check_options, read_dataset, read_tables, refuse_input
from elugcn.cli.options import RUN, GraphOptions, OutputOptions, flag_of, grouped
from elugcn.errors import InputError

_OTHER_FORMATS = (".parquet", ".json", ".xlsx", ".xls", ".tsv", ".gz", ".npz", ".npy")


@grouped
def run(
    graph: GraphOptions,
    output: OutputOptions,
    run_directory: Path = RUN,
    out: Path | None = typer.Option(None, help="CSV file. Default: stdout."),
) -> None:
    """Predict with a saved run: for its own graph or for another one.

    Name another graph with --nodes and --edges, or with --dataset. It needs the same
    feature columns. The model is not trained again.
    """
    if output.json_ and out is None:
        raise InputError("--json requires --out FILE for the predictions themselves")
    check_options(graph)
    other = graph.nodes is not None or graph.dataset is not None
    for name in () if other else graph.given():
        needed = "another graph: --nodes and --edges, or --dataset"
        raise InputError(f"{flag_of(name)} requires {needed}")
    if out is not None:
        check_file(out)
        refuse_input(out, graph, run_directory, PREDICTIONS)
        if out.suffix.lower() in _OTHER_FORMATS:
            raise InputError(f"--out {out}: predictions are CSV; use the suffix .csv")
    fitted = load(run_directory)
    if other:
        fitted = _predict_other(fitted, graph)
    if out is None:
        write_predictions(fitted, sys.stdout)
        return
    with atomic_file(out) as file:
        write_predictions(fitted, file)
    score = fitted.accuracy(fitted.data.y >= 0) if other else None
    n = int(fitted.data.num_nodes)
    result = {"run": str(run_directory), "n_nodes": n, "accuracy": score}
    right = "" if score is None else f", {percent(score)} of the labels right"
    output.show(result | {"out": str(out)}, f"{out}: {n:,} nodes predicted{right}")


def _predict_other(fitted: Fitted, options: GraphOptions) -> Fitted:
    """The predictions of a fitted model for the graph that the options name."""
    schema = getattr(fitted.data, "table_schema", None)
    if options.dataset is not None:
        data = read_dataset(options)
    elif schema is not None:
        data = read_tables(options, schema)
    else:
        raise InputError(
            f"{options.nodes}: this run was trained on a dataset, not on tables; "
            "name another dataset with --dataset"
        )
    return predict_other(fitted, data, features=options.features)
