"""``elugcn train``: fit a method and write a run directory."""

import shlex
import warnings
from pathlib import Path
from typing import Any

import psutil
import typer
from rich.console import Console

from elugcn.api import default_out, estimate_memory, metrics_of, write_run
from elugcn.api.runs import PREDICTIONS, REPORT
from elugcn.atomic import check_directory
from elugcn.cli.common import percent
from elugcn.cli.loading import Task, prepare
from elugcn.cli.options import (
    FitOptions,
    GraphOptions,
    grouped,
    with_option_names,
)
from elugcn.insight import (
    Members,
    counted,
    elu_text,
    left_out_text,
    measured_text,
    members_text,
    recall_text,
)
from elugcn.methods.metrics import TITLES, leading
from elugcn.methods.registry import DEFAULT_METHOD, METHOD_NAMES

FEW = 100  # test nodes whose number is said, as it makes the accuracy uncertain


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    method: str | None = typer.Option(
        None, help=f"{', '.join(METHOD_NAMES)}. Default: {DEFAULT_METHOD}."
    ),
    out: Path | None = typer.Option(
        None, help="New run directory. Default: runs/<dataset>-<method>-…"
    ),
    report: bool = typer.Option(True, help=f"Write {REPORT}."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Estimate the memory and train nothing."
    ),
) -> None:
    """Train on a dataset or on your own two tables, and save everything.

    Without options it trains on the embedded digits graph, which needs no network.
    """
    if out is not None:
        check_directory(out)
    task = prepare(graph, fit, method)
    target = out or default_out(task.name, task.method, task.asked.seed)
    check_directory(target)
    if dry_run:
        fit.show(*_plan(task))
        return
    fitted = task.fit(fit, with_baselines=report)
    metrics = metrics_of(fitted, task.name, task.asked.graph.split or 0, target)

    def write_page(folder: Path) -> None:
        try:
            # Importing matplotlib takes a second; a wrong option need not wait for it.
            from elugcn.report import write_report

            write_report(folder, fitted=fitted)
        except Exception as error:  # must not cost the trained model
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            warnings.warn(f"the report was not written ({reason})", stacklevel=2)

    write_run(fitted, metrics, target, task.recorded(), write_page if report else None)
    fit.show(metrics, lambda screen: _show(metrics, screen))


def _plan(task: Task) -> tuple[dict[str, Any], str]:
    """What a fit would train and how much memory it would need."""
    data = task.graph.data
    memory = estimate_memory(data, task.config)
    advice = ""
    if hasattr(task.config, "hidden_channels"):
        advice = " Try fewer hidden_channels."
    elif task.method == DEFAULT_METHOD:
        advice = " Try --effort quick."
    total, available = memory["total"], psutil.virtual_memory().available / 2**20
    plan = {
        "dataset": task.name,
        "method": task.method,
        "n_nodes": int(data.num_nodes),
        "n_edges": data.edge_index.size(1) // (1 if data.directed else 2),
        "n_features": data.x.size(1),
        "memory_mb": {part: round(size, 1) for part, size in memory.items()},
        "available_mb": round(available, 1),
    }
    return plan, (
        f"{task.method} on {task.name}: {plan['n_nodes']:,} nodes, "
        f"{plan['n_edges']:,} edges, {plan['n_features']:,} features\n"
        f"Training would need about {total:,.0f} MB; {available:,.0f} MB are available."
        + (advice if total > available else "")
    )


def _show(metrics: dict[str, Any], screen: Console) -> None:
    """The answer first, then what the labels do, the files, and what to try next."""
    size = f"{metrics['n_nodes']:,} nodes, {counted(metrics['n_edges'], 'edge')}"
    title = f"{metrics['method']} on {metrics['dataset']}: {size}"
    title += f", {metrics['n_classes']} classes"
    screen.print(title, style="bold", markup=False)
    for line in _lines(metrics):
        screen.print(line, markup=False)
    out = Path(metrics["out"])
    files = [name for name in (PREDICTIONS, REPORT) if (out / name).exists()]
    run, has_use = shlex.quote(str(out)), metrics["elu_fraction"] is not None
    advice = f"diagnose --run {run}" if has_use else f"predict {run} --out FILE"
    # Not wrapped, so that they can be copied.
    text = f"Files: {out} ({', '.join(files)}, the model)\nNext:  elugcn {advice}"
    screen.print(text, markup=False, soft_wrap=True)


def _lines(metrics: dict[str, Any]) -> list[str]:
    """The sentences of the summary."""
    lines = []
    for name in leading(metrics["metric"], metrics["uneven_classes"]):
        key = name if f"test_{name}" in metrics else "score"
        parts = (percent(metrics[f"{part}_{key}"]) for part in ("test", "val", "train"))
        tested = metrics["measured_on"]["test"]
        few = f" on {counted(tested, 'node')}" if 0 < tested < FEW else ""
        said = "Test {} {}{few} (validation {}, training {})."
        lines.append(said.format(TITLES[name], *parts, few=few))
    if metrics["uneven_classes"]:
        lines.append(recall_text(metrics["recall"]))
    details = metrics["details"]
    members = Members.of(details)
    if members is not None:
        lines += [
            measured_text(members),
            members_text(members),
            elu_text(members, metrics["metric"], metrics["measured_on"]["val"]),
            left_out_text(members),
        ]
    elu, unreachable = metrics["elu_fraction"], metrics["unreachable_fraction"]
    if elu is not None:
        model = "GCN" if members is None else "linear model"
        # The three shares sum to 1 except for rounding.
        nelu = percent(max(0.0, 1 - elu - unreachable))
        lines.append(
            f"Label propagation and the {model} agree on {percent(elu)} of the nodes "
            f"(ELU) and disagree on {nelu} (NELU)."
            + (f" No label reaches {percent(unreachable)}." if unreachable else "")
        )
    if len(details.get("candidates", ())) > 1:
        lines.append(f"Chosen on validation: {details['chosen']}.")
    diverged = details.get("diverged", ())
    why = "its training diverged; try a smaller lr"
    lines += [f"Not used: {name}, {why}." for name in diverged]
    lines += [f"Note: {with_option_names(note)}." for note in metrics["notes"]]
    seconds, threads = metrics["seconds"]["total"], metrics["threads"]
    where = f"{metrics['device']} with {counted(threads, 'thread')}"
    lines = [line for line in lines if line]
    return [*lines, f"It took {seconds:.1f} s on {where}."]
