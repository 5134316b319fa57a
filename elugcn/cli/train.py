"""``elugcn train``: fit a method and write a run directory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from elugcn.atomic import check_writable
from elugcn.cli import dry_run as dry
from elugcn.cli.common import (
    DEFAULT_METHOD,
    configure,
    console,
    fit_loaded,
    load_graph,
    percent,
    print_json,
    settle,
)
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.errors import InputError
from elugcn.methods.registry import METHODS, get_method
from elugcn.report.page.baselines import baselines
from elugcn.runs import REPORT, default_out, metrics_of, write_run


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    method: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(METHODS)}; {DEFAULT_METHOD} if omitted."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory, new; else runs/<dataset>-<method>-…"),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help=f"Make the page {REPORT}.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take; train nothing.")
    ] = False,
) -> None:
    """Train on a dataset or on your own two tables and save everything.

    With no option: the embedded digits graph, which needs no network.
    """
    settings = settle(graph, fit, method)
    name, seed = settings.method, settings.seed
    if name not in METHODS:
        get_method(name)  # says which there are
        raise InputError(f"{name} is no classifier: see elugcn graph")
    if out is not None:
        check_writable(out)
    loaded = load_graph(settings.graph, seed)
    config = configure(loaded.preset, name, fit)
    check_writable(out or default_out(loaded.name, name, seed))
    if dry_run:
        result = dry.plan(loaded, name, config)
        print_json(result) if fit.json_ else dry.show(result)
        return
    fitted = fit_loaded(loaded, name, config, seed, fit)
    target = out or default_out(loaded.name, name, seed)
    metrics = metrics_of(fitted, loaded.name, loaded.split, target)
    with _keeping_the_run():
        metrics["baselines"] = baselines(fitted, train=report)

    def page(folder: Path) -> None:
        with _keeping_the_run():
            # It draws with matplotlib: a wrong option need not wait for that.
            from elugcn.report.page.html import write_page

            write_page(folder, fitted, folder / REPORT)

    graph_options = loaded.plain_options()
    write_run(fitted, metrics, target, graph_options, page if report else None)
    if fit.json_:
        print_json(metrics)
    elif not fit.quiet:
        _summary(metrics)


@contextmanager
def _keeping_the_run() -> Iterator[None]:
    """A page that can't be made must not cost the model that was trained."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"the report is not complete ({reason})", stacklevel=2)


def _summary(metrics: dict[str, Any]) -> None:
    screen = console()
    details = metrics["details"]
    size = (
        f"{metrics['n_nodes']:,} nodes, {metrics['n_edges']:,} edges, "
        f"{metrics['n_classes']} classes"
    )
    name = escape(metrics["dataset"])
    screen.print(f"[bold]{metrics['method']}[/bold] on {name}: {size}")
    for note in metrics["notes"]:
        screen.print(f"  note: {note}", markup=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(style="dim")
    table.add_column()
    for part in ("train", "val", "test"):
        part_name = {"val": "validation"}.get(part, part)
        table.add_row(f"{part_name} accuracy", percent(metrics[f"{part}_accuracy"]))
    if metrics["elu_fraction"] is not None:
        # Not below zero, where the two others make up all but for rounding.
        nelu = max(0.0, 1 - metrics["elu_fraction"] - metrics["unreachable_fraction"])
        table.add_row(
            "labels used",
            f"{percent(metrics['elu_fraction'])} of the nodes (ELU), "
            f"not used {percent(nelu)} (NELU), "
            f"no label reaches {percent(metrics['unreachable_fraction'])}",
        )
    if "candidates" in details:
        judged = ", ".join(
            f"{name} {percent(value)}" for name, value in details["candidates"].items()
        )
        table.add_row("on validation", escape(judged))
        if details.get("left_out"):
            names = escape(", ".join(details["left_out"]))
            table.add_row("left out", f"{names}: too slow on a graph of this size")
        if details.get("diverged"):
            names = escape(", ".join(details["diverged"]))
            table.add_row("diverged", f"{names}: not used; a smaller lr may help")
        table.add_row("chosen", escape(_chosen(details)))
    took = f"{metrics['seconds']['total']:.1f} s"
    where = f"{metrics['device']}, {metrics['threads']} thread(s)"
    table.add_row("time", f"{took} on {where}")
    table.add_row("results", f"[bold]{escape(metrics['out'])}[/bold]")
    page = Path(metrics["out"]) / REPORT
    if page.exists():
        table.add_row("report", f"[bold]{escape(str(page))}[/bold]")
    screen.print(table)


def _chosen(details: dict[str, Any]) -> str:
    """What is returned, with the share η of the ELU view where it has one."""
    names = str(details["chosen"]).split(" + ")
    etas = details["etas"]
    shown = [f"{n} (η = {etas[n]:g})" if etas.get(n) else n for n in names]
    return " + ".join(shown)
