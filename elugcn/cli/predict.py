"""``elugcn predict``: the predictions of a saved run, for its graph or another."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from elugcn.atomic import check_file, whole_file
from elugcn.cli.common import (
    check_options,
    console,
    percent,
    print_json,
    read_dataset,
    read_tables,
    refuse_input,
    refuse_run,
)
from elugcn.cli.options import GraphOptions, grouped
from elugcn.data.checks import check_data
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.methods.base import Prediction
from elugcn.runs import PREDICTIONS, class_names, write_predictions
from elugcn.storage import load_fitted

# Files of these kinds would not be what their names say.
_OTHER_KINDS = {".parquet", ".json", ".xlsx", ".xls", ".tsv", ".gz", ".npz", ".npy"}


@grouped
def run(
    run_directory: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory of `elugcn train`.")
    ],
    graph: GraphOptions,
    out: Annotated[
        Path | None, typer.Option(help="CSV to write; else standard output.")
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No summary.")] = False,
) -> None:
    """Predict with a saved run: its own graph, or --nodes/--edges of another.

    Another graph needs the same feature columns; the model is not trained again.
    """
    if json_ and out is None:
        raise InputError("--json needs --out FILE for the predictions themselves")
    check_options(graph)
    named = (graph.nodes, graph.edges, graph.dataset)
    elsewhere = any(given is not None for given in named)
    if not elsewhere:
        _refuse_options(graph)
    if out is not None:
        check_file(out)
        refuse_input(out, graph)
        refuse_run(out, run_directory, PREDICTIONS)
        if out.suffix.lower() in _OTHER_KINDS:
            raise InputError(f"--out {out}: predictions are CSV, so name it .csv")
    fitted = load_fitted(run_directory)
    if elsewhere:
        fitted = apply_elsewhere(fitted, graph)
    if out is None:
        write_predictions(fitted, sys.stdout)
        return
    with whole_file(out) as file:
        write_predictions(fitted, file)
    score = fitted.accuracy(fitted.data.y >= 0) if elsewhere else None
    summary = {
        "run": str(run_directory),
        "n_nodes": int(fitted.data.num_nodes),
        "accuracy": score,
        "out": str(out),
    }
    if json_:
        print_json(summary)
    elif not quiet:
        right = "" if score is None else f", {percent(score)} of those labelled right"
        said = f"{summary['n_nodes']:,} nodes predicted{right}: {out}"
        console().print(said, markup=False)


def _refuse_options(options: GraphOptions) -> None:
    """Refuse what says how to read another graph where there is none."""
    for field in dataclasses.fields(GraphOptions):
        if getattr(options, field.name) != field.default and field.name != "data_dir":
            name = f"--{field.name.replace('_', '-')}"
            raise InputError(
                f"{name} goes with another graph: --nodes and --edges, or --dataset"
            )


def apply_elsewhere(fitted: Fitted, options: GraphOptions) -> Fitted:
    """The fitted model's predictions for another graph."""
    predictor = fitted.prediction.predictor
    if predictor is None:
        raise InputError(
            f"a {fitted.method} run can't predict for another graph: it has no weights"
        )
    schema = getattr(fitted.data, "table_schema", None)
    if options.dataset is not None:
        if options.nodes is not None or options.edges is not None:
            raise InputError("give --dataset, or --nodes and --edges, not both")
        data = read_dataset(options.dataset, options)
    elif options.nodes is None or options.edges is None:
        missing = "--nodes" if options.nodes is None else "--edges"
        raise InputError(f"another graph needs both tables; {missing} is missing")
    elif schema is None:
        raise InputError(
            "this run was trained on a dataset, not on tables: name another with "
            "--dataset"
        )
    else:
        data = read_tables(options, schema=schema)
    # Tables carry in their schema how features were made; datasets do not.
    features = None if schema is not None else fitted.facts.get("features")
    features = options.features or features
    checked = check_data(data, features=features, require_labels=False).data
    expected = getattr(fitted.data, "saved_num_features", checked.x.size(1))
    if checked.x.size(1) != expected:
        raise InputError(
            f"the run was trained with {expected} features; this graph has "
            f"{checked.x.size(1)}"
        )
    names = class_names(fitted)
    if list(checked.class_names) != names:
        # Other classes: the labels there say nothing about these predictions.
        checked.y = checked.y.new_full(checked.y.shape, -1)
    checked.class_names = names
    prediction = Prediction(logits=predictor.logits(checked).cpu())
    if not bool(prediction.logits.isfinite().all()):
        raise InputError(
            "the predictions are not finite numbers: are this graph's features on the "
            "scale of those trained on?"
        )
    return dataclasses.replace(fitted, data=checked, prediction=prediction)
