"""``elugcn predict``: the predictions of a saved run, for its graph or another."""

import sys
from pathlib import Path

import typer

from elugcn.api import load, predict_other, write_predictions
from elugcn.api.runs import PREDICTIONS
from elugcn.atomic import atomic_file, check_file
from elugcn.cli.common import percent
from elugcn.cli.loading import check_options, read_graph, refuse_input
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
        schema = getattr(fitted.data, "table_schema", None)
        if graph.nodes is not None and schema is None:
            raise InputError(
                f"{graph.nodes}: this run was trained on a dataset, not on tables; "
                "name another dataset with --dataset"
            )
        data = read_graph(graph, schema)
        fitted = predict_other(fitted, data, features=graph.features)
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
