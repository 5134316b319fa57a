"""``elugcn train``: fit a method and write a run directory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.markup import escape
from rich.table import Table

from elugcn.api import default_out, estimate_memory, metrics_of, write_run
from elugcn.api.runs import REPORT
from elugcn.atomic import check_writable
from elugcn.cli.common import (
    LoadedGraph,
    classifier_name,
    complete,
    configure,
    console,
    fit_loaded,
    load_graph,
    percent,
    print_json,
)
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.methods.options import MethodConfig
from elugcn.methods.registry import DEFAULT_METHOD, METHOD_NAMES


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    method: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(METHOD_NAMES)}. Default: {DEFAULT_METHOD}."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New run directory. Default: runs/<dataset>-<method>-…"),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help=f"Write {REPORT}.")
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Estimate the memory and train nothing."),
    ] = False,
) -> None:
    """Train on a dataset or on your own two tables, and save everything.

    Without options it trains on the embedded digits graph, which needs no network.
    """
    settings = complete(graph, fit, method)
    seed, name = settings.seed, classifier_name(settings.method)
    if out is not None:
        check_writable(out)
    loaded = load_graph(settings.graph, seed)
    config = configure(loaded.preset, name, fit)
    target = out or default_out(loaded.name, name, seed)
    check_writable(target)
    if dry_run:
        plan = _plan(loaded, name, config)
        print_json(plan) if fit.json_ else _show_plan(plan)
        return
    fitted = fit_loaded(loaded, name, config, seed, fit, with_baselines=report)
    metrics = metrics_of(fitted, loaded.name, loaded.split, target)

    def write_page(folder: Path) -> None:
        with _report_errors_as_warnings():
            # Importing matplotlib takes a second; a wrong option need not wait for it.
            from elugcn.report import write_report

            write_report(folder, fitted=fitted)

    write_run(
        fitted, metrics, target, loaded.recorded(), write_page if report else None
    )
    if fit.json_:
        print_json(metrics)
    elif not fit.quiet:
        _show(metrics)


@contextmanager
def _report_errors_as_warnings() -> Iterator[None]:
    """A report that fails must not cost the trained model."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"the report was not written ({reason})", stacklevel=2)


def _show(metrics: dict[str, Any]) -> None:
    screen = console()
    details = metrics["details"]
    screen.print(
        f"[bold]{metrics['method']}[/bold] on {escape(metrics['dataset'])}: "
        f"{metrics['n_nodes']:,} nodes, {metrics['n_edges']:,} edges, "
        f"{metrics['n_classes']} classes"
    )
    for note in metrics["notes"]:
        screen.print(f"  note: {note}", markup=False)
    table = _pairs()
    for part in ("train", "val", "test"):
        part_name = "validation" if part == "val" else part
        table.add_row(f"{part_name} accuracy", percent(metrics[f"{part}_accuracy"]))
    if metrics["elu_fraction"] is not None:
        # The three shares sum to 1 except for rounding.
        nelu = max(0.0, 1 - metrics["elu_fraction"] - metrics["unreachable_fraction"])
        table.add_row(
            "labels used",
            f"by {percent(metrics['elu_fraction'])} of the nodes (ELU), "
            f"not by {percent(nelu)} (NELU); "
            f"{percent(metrics['unreachable_fraction'])} are out of reach",
        )
    if "candidates" in details:
        judged = ", ".join(
            f"{name} {percent(value)}" for name, value in details["candidates"].items()
        )
        table.add_row("on validation", escape(judged))
        if details.get("left_out"):
            names = escape(", ".join(details["left_out"]))
            table.add_row("left out", f"{names}: too slow for a graph of this size")
        if details.get("diverged"):
            names = escape(", ".join(details["diverged"]))
            table.add_row("diverged", f"{names}: not used; a smaller lr may help")
        table.add_row("chosen", escape(_chosen(details)))
    took = f"{metrics['seconds']['total']:.1f} s"
    threads = "1 thread" if metrics["threads"] == 1 else f"{metrics['threads']} threads"
    table.add_row("time", f"{took} on {metrics['device']}, {threads}")
    table.add_row("results", f"[bold]{escape(metrics['out'])}[/bold]")
    page = Path(metrics["out"]) / REPORT
    if page.exists():
        table.add_row("report", f"[bold]{escape(str(page))}[/bold]")
    screen.print(table)


def _chosen(details: dict[str, Any]) -> str:
    """The chosen members, with the share η of the ELU view where it is not zero."""
    names = str(details["chosen"]).split(" + ")
    etas = details["etas"]
    return " + ".join(f"{n} (η = {etas[n]:g})" if etas.get(n) else n for n in names)


def _plan(loaded: LoadedGraph, method: str, config: MethodConfig) -> dict[str, Any]:
    """What a fit would train and how much memory it would need."""
    data = loaded.graph.data
    estimate = estimate_memory(data, config)
    return {
        "dataset": loaded.name,
        "method": method,
        "n_nodes": int(data.num_nodes),
        "n_edges": data.edge_index.size(1) // (1 if data.directed else 2),
        "n_features": data.x.size(1),
        "memory_mb": estimate.megabytes(),
        "available_mb": round(psutil.virtual_memory().available / 2**20, 1),
    }


def _show_plan(plan: dict[str, Any]) -> None:
    screen = console()
    memory = dict(plan["memory_mb"])
    total = memory.pop("total")
    name = escape(plan["dataset"])
    screen.print(f"[bold]{plan['method']}[/bold] on {name}: nothing is trained")
    table = _pairs()
    table.add_row(
        "graph",
        f"{plan['n_nodes']:,} nodes, {plan['n_edges']:,} edges, "
        f"{plan['n_features']:,} features",
    )
    table.add_row(
        "peak memory",
        f"about {total:,.0f} MB; {plan['available_mb']:,.0f} MB are available",
    )
    parts = ", ".join(f"{part} {size:,.0f}" for part, size in memory.items())
    table.add_row("of which", parts)
    screen.print(table)
    if total > plan["available_mb"]:
        screen.print("  This does not fit; try fewer hidden_channels.", style="bold")


def _pairs() -> Table:
    """A table of names and values."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(style="dim")
    table.add_column()
    return table
