"""The HTML report of a run: one file that needs no network.

Names and ids come from the user's data, which may come from anyone. They reach the page
through autoescaped templates only, and a content security policy allows no script but
the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from elugcn import __version__
from elugcn.api import Fitted, load
from elugcn.api.runs import CONFIG, ENVIRONMENT, METRICS, REPORT
from elugcn.atomic import atomic_file
from elugcn.elu.utilization import Utilization
from elugcn.errors import InputError
from elugcn.insight import format_percent
from elugcn.report import figures
from elugcn.report.content import Content, collect
from elugcn.report.verdict import accuracy_percent, title_of, verdict

__all__ = ["ReportSummary", "render", "write_report"]


@dataclass(frozen=True)
class ReportSummary:
    """What a written report holds.

    Attributes:
        path: The file.
        n_nodes: Nodes of the graph.
        table_nodes: Nodes in the table.
        map_nodes: Nodes on the map.
        sections: Anchors of its sections, in order.
    """

    path: Path
    n_nodes: int
    table_nodes: int
    map_nodes: int
    sections: list[str]


def write_report(
    run_dir: Path,
    *,
    fitted: Fitted | None = None,
    out: Path | None = None,
    notes: tuple[str, ...] = (),
) -> ReportSummary:
    """Write the report of a run, whole or not at all. Nothing is trained.

    Args:
        run_dir: The run directory.
        fitted: Its model, with the graph if that is at hand; None loads the model.
            Sections that need the graph are left out without it.
        out: The file to write; None for ``report.html`` in the run directory.
        notes: Notes to show besides those of the run.
    """
    metrics, environment = (_read_json(run_dir / n) for n in (METRICS, ENVIRONMENT))
    config = _read(run_dir / CONFIG)
    if fitted is None:
        fitted = load(run_dir)
    content = collect(fitted, metrics, config, environment, notes)
    page = _page(fitted, content)
    target = out or run_dir / REPORT
    with atomic_file(target) as file:
        file.write(page)
    return ReportSummary(
        path=target,
        n_nodes=content.n_nodes,
        table_nodes=len(content.rows),
        map_nodes=figures.map_sample(content.n_nodes).numel(),
        sections=list(_sections(content)),
    )


def render(
    fitted: Fitted,
    metrics: Mapping[str, Any],
    *,
    config: str = "",
    environment: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> str:
    """The report as an HTML document.

    Args:
        fitted: The model, with its graph if that is at hand.
        metrics: As in ``metrics.json``; ``dataset``, ``n_edges``, ``notes`` are read.
        config: Text of ``config.yaml``.
        environment: As in ``environment.json``.
        notes: Notes to show besides those of the metrics.
    """
    return _page(fitted, collect(fitted, metrics, config, environment, notes))


def _page(fitted: Fitted, content: Content) -> str:
    environment = Environment(
        loader=PackageLoader("elugcn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": format_percent,
        "accuracy": accuracy_percent,
        "title_of": title_of,
    }
    script = _asset("page.js")
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    page = environment.get_template("page.html.j2").render(
        content=content,
        verdict=verdict(content),
        sections=_sections(content),
        drawn=_figures(fitted, content),
        map_nodes=figures.map_sample(content.n_nodes).numel(),
        version=__version__,
        style=Markup(_asset("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(digest).decode("ascii"),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _sections(content: Content) -> dict[str, str]:
    """Anchor and heading of each section that this run can fill, in order."""
    present = {
        "accuracy": ("Accuracy", content.scores),
        "classes": ("Classes", content.class_scores),
        "calibration": ("Calibration", content.calibration),
        "labels": ("What the labels do", content.statuses),
        "graph": ("The ELU graph", content.heat),
        "map": ("Map of the nodes", True),
        "suggestions": ("Next nodes to label", content.suggestions),
        "training": ("Training", len(content.history) > 1),
        "nodes": ("Nodes", True),
        "columns": ("Columns of the table", content.columns),
        "run": ("How it was run", True),
    }
    return {anchor: title for anchor, (title, found) in present.items() if found}


def _figures(fitted: Fitted, content: Content) -> dict[str, list[tuple[str, Markup]]]:
    """Caption and drawing of the figures of each section."""
    drawn: dict[str, list[tuple[str, Markup]]] = {"training": [], "graph": []}
    found = content.calibration
    if found is not None:
        figure = figures.calibration_figure(
            found.confidences, found.accuracies, found.counts
        )
        alt = "Calibration curve: accuracy over confidence, " + ", ".join(
            f"{format_percent(a)} right at {format_percent(c)}"
            for c, a in zip(found.confidences, found.accuracies, strict=True)
        )
        drawn["calibration"] = [("", figures.svg(figure, "calibration", alt))]
    for title, columns in (
        ("Loss", {"val_loss": "validation", "loss": "training"}),
        ("Validation accuracy", {"val_accuracy": "validation"}),
    ):
        curve = figures.history_figure(content.history, columns, content.best_epoch)
        if curve is not None:
            image = figures.svg(curve, title.split()[-1], f"{title} over the epochs")
            drawn["training"].append((title, image))
    for title, means, inside in content.heat.graphs if content.heat else ():
        blocks = content.heat.block_class if content.heat else []
        figure = figures.heat_figure(means, blocks, content.names)
        share = format_percent(inside)
        caption = f"{title}: {share} of the weight joins nodes of one class"
        drawn["graph"].append((caption, figures.svg(figure, title.split()[0], caption)))
    drawn["map"] = _maps(fitted, content)
    return drawn


def _maps(fitted: Fitted, content: Content) -> list[tuple[str, Markup]]:
    nodes = figures.map_sample(content.n_nodes)
    proba = fitted.proba[nodes]
    colourings = {
        "By predicted class": (
            proba.argmax(dim=1),
            figures.class_colours(len(content.names)),
        )
    }
    use = fitted.result.label_utilization
    if use is not None:
        # Rare and problematic nodes are drawn last, above the others.
        kinds = {
            int(Utilization.ELU): figures.BLUE,
            int(Utilization.UNREACHABLE): figures.GREY,
            int(Utilization.NELU): figures.RED,
        }
        colourings["By label utilization"] = (use.status.cpu()[nodes].long(), kinds)
    maps = []
    for title, (group, colours) in colourings.items():
        figure = figures.map_figure(proba, group, colours, content.names)
        alt = f"Map of {len(nodes):,} nodes. {title}."
        maps.append((title, figures.svg(figure, title.split()[-1], alt)))
    return maps


def _asset(name: str) -> str:
    return (resources.files("elugcn.report") / name).read_text(encoding="utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"{path}: cannot be read; expected a run directory of `elugcn train`"
        ) from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a JSON object, as `elugcn train` writes it")
    return found
