"""``elugcn predict``: the predictions of a saved run, for its graph or another."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from elugcn.api import Fitted, load, predict_other, write_predictions
from elugcn.api.runs import PREDICTIONS
from elugcn.atomic import check_file, whole_file
from elugcn.cli.common import (
    check_options,
    console,
    percent,
    print_json,
    read_dataset,
    read_tables,
    refuse_input,
    refuse_run_file,
)
from elugcn.cli.options import GraphOptions, flag_of, grouped
from elugcn.errors import InputError

# Predictions are CSV; these suffixes would promise another format.
_OTHER_FORMATS = {".parquet", ".json", ".xlsx", ".xls", ".tsv", ".gz", ".npz", ".npy"}


@grouped
def run(
    run_directory: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory of `elugcn train`.")
    ],
    graph: GraphOptions,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write. Default: stdout.")
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no summary.")] = False,
) -> None:
    """Predict with a saved run: for its own graph or for another one.

    Name another graph with --nodes and --edges, or with --dataset. It needs the same
    feature columns. The model is not trained again.
    """
    if json_ and out is None:
        raise InputError("--json requires --out FILE for the predictions themselves")
    check_options(graph)
    other = graph.nodes is not None or graph.dataset is not None
    if not other:
        _refuse_options(graph)
    if out is not None:
        check_file(out)
        refuse_input(out, graph)
        refuse_run_file(out, run_directory, PREDICTIONS)
        if out.suffix.lower() in _OTHER_FORMATS:
            raise InputError(f"--out {out}: predictions are CSV; use the suffix .csv")
    fitted = load(run_directory)
    if other:
        fitted = _predict_other(fitted, graph)
    if out is None:
        write_predictions(fitted, sys.stdout)
        return
    with whole_file(out) as file:
        write_predictions(fitted, file)
    score = fitted.accuracy(fitted.data.y >= 0) if other else None
    summary = {
        "run": str(run_directory),
        "n_nodes": int(fitted.data.num_nodes),
        "accuracy": score,
        "out": str(out),
    }
    if json_:
        print_json(summary)
    elif not quiet:
        right = "" if score is None else f", {percent(score)} of the labels right"
        text = f"{out}: {summary['n_nodes']:,} nodes predicted{right}"
        console().print(text, markup=False)


def _refuse_options(options: GraphOptions) -> None:
    """Refuse options about another graph where there is none."""
    for field in fields(GraphOptions):
        if getattr(options, field.name) != field.default and field.name != "data_dir":
            raise InputError(
                f"{flag_of(field.name)} requires another graph: "
                "--nodes and --edges, or --dataset"
            )


def _predict_other(fitted: Fitted, options: GraphOptions) -> Fitted:
    """The predictions of a fitted model for the graph that the options name."""
    if options.dataset is not None:
        data = read_dataset(options.dataset, options)
        return predict_other(fitted, data, features=options.features)
    schema = getattr(fitted.data, "table_schema", None)
    if schema is None:
        raise InputError(
            f"{options.nodes}: this run was trained on a dataset, not on tables; "
            "name another dataset with --dataset"
        )
    data = read_tables(options, schema=schema)
    return predict_other(fitted, data, features=options.features)
