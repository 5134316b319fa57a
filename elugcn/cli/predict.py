"""``elugcn predict``: the predictions of a saved run, for its graph or another."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from elugcn.api import Fitted, load, predict_other, write_predictions
from elugcn.api.runs import PREDICTIONS
from elugcn.atomic import atomic_file, check_file
from elugcn.cli.common import console, percent, print_json
from elugcn.cli.loading import (
    check_options,
    read_dataset,
    read_tables,
    refuse_graph_options,
    refuse_input,
)
from elugcn.cli.options import RUN_HELP, GraphOptions, OutputOptions, grouped
from elugcn.errors import InputError

_OTHER_FORMATS = (".parquet", ".json", ".xlsx", ".xls", ".tsv", ".gz", ".npz", ".npy")


@grouped
def run(
    graph: GraphOptions,
    output: OutputOptions,
    run_directory: Path = typer.Argument(..., metavar="RUN", help=RUN_HELP),
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
    if not other:
        reason = "requires another graph: --nodes and --edges, or --dataset"
        refuse_graph_options(graph, reason)
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
    n_nodes = int(fitted.data.num_nodes)
    if output.json_:
        summary = {"run": str(run_directory), "n_nodes": n_nodes, "accuracy": score}
        print_json(summary | {"out": str(out)})
    elif not output.quiet:
        right = "" if score is None else f", {percent(score)} of the labels right"
        text = f"{out}: {n_nodes:,} nodes predicted{right}"
        console().print(text, markup=False, soft_wrap=True)


def _predict_other(fitted: Fitted, options: GraphOptions) -> Fitted:
    """The predictions of a fitted model for the graph that the options name."""
    if options.dataset is not None:
        data = read_dataset(options)
    else:
        schema = getattr(fitted.data, "table_schema", None)
        if schema is None:
            raise InputError(
                f"{options.nodes}: this run was trained on a dataset, not on tables; "
                "name another dataset with --dataset"
            )
        data = read_tables(options, schema=schema)
    return predict_other(fitted, data, features=options.features)
