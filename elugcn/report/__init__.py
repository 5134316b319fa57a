"""The HTML report of a run: one file that needs no network.

Names and ids come from the user's data, which may come from anyone. They reach the page
through autoescaped templates only, and a content security policy allows no script but
the page's own.
"""

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter

from elugcn import __version__
from elugcn.api import Fitted, load
from elugcn.api.runs import CONFIG, ENVIRONMENT, METRICS, REPORT
from elugcn.atomic import atomic_file
from elugcn.errors import InputError
from elugcn.insight import counted, elu_text, format_percent, left_out_text
from elugcn.methods.metrics import TITLES
from elugcn.report import figures
from elugcn.report.content import Content, collect
from elugcn.report.verdict import accuracy_percent, verdict

__all__ = ["write_report"]


def write_report(
    run_dir: Path,
    *,
    fitted: Fitted | None = None,
    out: Path | None = None,
    notes: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Write the report of a run, whole or not at all. Nothing is trained.

    ``fitted`` is the run's model, with the graph if that is at hand; None loads it.
    Without the graph, sections that need it are left out. ``out`` is the file to write,
    by default ``report.html`` in the run directory; ``notes`` are shown besides those
    of the run. Returned are ``n_nodes``, ``table_nodes`` (how many are listed) and
    ``sections`` (their anchors).
    """
    content = collect(fitted or load(run_dir), *_records(run_dir), notes)
    page = _page(content)
    with atomic_file(out or run_dir / REPORT) as file:
        file.write(page)
    return {
        "n_nodes": content.n_nodes,
        "table_nodes": len(content.rows),
        "sections": list(_sections(content)),
    }


def _page(content: Content) -> str:
    environment = Environment(
        loader=PackageLoader("elugcn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = format_percent
    environment.filters["accuracy"] = accuracy_percent
    environment.filters["counted"] = counted
    environment.filters["number"] = _number
    style, script = (
        resources.files("elugcn.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    page = environment.get_template("page.html.j2").render(
        content=content,
        verdict=verdict(content),
        sections=_sections(content),
        drawn=_figures(content),
        members=_members(content),
        version=__version__,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(digest).decode("ascii"),
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _sections(content: Content) -> dict[str, str]:
    """Anchor and heading of each section that this run can fill, in order."""
    present = {
        "accuracy": ("Accuracy", content.evaluation),
        "members": ("Members", content.members),
        "labels": ("What the labels do", content.statuses),
        "classes": ("Classes", content.evaluation),
        "calibration": ("Calibration", content.evaluation),
        "graph": ("The ELU graph", content.heat),
        "suggestions": ("Next nodes to label", content.suggestions),
        "training": ("Training", len(content.history) > 1),
        "nodes": ("Nodes", True),
        "columns": ("Columns of the table", content.columns),
        "run": ("How it was run", True),
    }
    return {anchor: title for anchor, (title, found) in present.items() if found}


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _members(content: Content) -> dict[str, str]:
    """The sentences about the members."""
    if content.members is None:
        return {}
    return {
        "elu": elu_text(content.members, content.metric, content.n_judged),
        "left_out": left_out_text(content.members),
        "score": f"{content.members.judged} {TITLES[content.metric]}",
    }


def _figures(content: Content) -> dict[str, list[tuple[str, Markup]]]:
    """Caption and drawing of the figures of each section."""
    drawn: dict[str, list[tuple[str, Markup]]] = {"training": [], "graph": []}
    if content.evaluation is not None:
        figure = figures.calibration_figure(content.evaluation.calibration.bins)
        alt = "Calibration curve: accuracy over confidence"
        drawn["calibration"] = [("", figures.svg(figure, "calibration", alt))]
    score = "val_accuracy" if content.metric == "accuracy" else "val_score"
    for title, columns in (
        ("Loss", {"val_loss": "validation", "loss": "training"}),
        (f"Validation {TITLES[content.metric]}", {score: "validation"}),
    ):
        curve = figures.history_figure(content.history, columns, content.best_epoch)
        if curve is not None:
            image = figures.svg(curve, title.split()[-1], f"{title} over the epochs")
            drawn["training"].append((title, image))
    if content.heat is not None:
        for title, means in content.heat.means.items():
            figure = figures.heat_figure(means, content.heat.block_class, content.names)
            image = figures.svg(figure, title.split()[0], f"{title}: means of blocks")
            drawn["graph"].append((title, image))
    return drawn


def _records(run_dir: Path) -> tuple[dict[str, Any], str, str]:
    """The metrics of a run, and the texts of its configuration and environment."""
    path = run_dir / METRICS
    try:
        metrics = TypeAdapter(dict[str, Any]).validate_json(path.read_bytes())
        config = (path := run_dir / CONFIG).read_text(encoding="utf-8")
        environment = (path := run_dir / ENVIRONMENT).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InputError(
            f"{path}: cannot be read; expected a run directory of `elugcn train`"
        ) from None
    return metrics, config, environment
