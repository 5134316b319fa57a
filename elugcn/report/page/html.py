"""The page as text: templates, one style, one script, and a policy that allows no more.

Ids and labels come from strangers' files. They reach the page through autoescaped
templates and through one block of JSON, which the script writes as text only.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from elugcn import __version__
from elugcn.atomic import whole_file
from elugcn.fitting import Fitted
from elugcn.report.page.charts import (
    block_chart,
    class_mark,
    history_lines,
    line_chart,
    reliability_chart,
)
from elugcn.report.page.content import Content, collect
from elugcn.report.page.nodes import SPLITS, embedded
from elugcn.report.page.verdict import percent, verdict
from elugcn.report.style import COLOURS, GREY, colour_of

_SCRIPTS = ("page.js", "map.js", "table.js")
_TITLES = {"gcn": "GCN", "mlp": "MLP", "lpa": "label propagation"}


def write_page(
    folder: Path, fitted: Fitted, target: Path, notes: tuple[str, ...] = ()
) -> Content:
    """Write the page of a run, whole or not at all; returns what it says.

    Args:
        folder: The run directory.
        fitted: Its model, with the graph if it is at hand.
        target: The file to write.
        notes: What the page is to say besides the notes of the run.
    """
    content = collect(folder, fitted, notes)
    text = render(content)
    with whole_file(target) as file:
        file.write(text)
    return content


def render(content: Content) -> str:
    """The page as one HTML document."""
    environment = Environment(
        loader=PackageLoader("elugcn.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "mark": class_mark, "soft": _soft}
    style = _asset("page.css") + _colours(content)
    script = "".join(_asset(name) for name in _SCRIPTS)
    page = environment.get_template("page.html.j2").render(
        content=content,
        verdict=verdict(content),
        charts=_charts(content),
        sections=sections(content),
        titles=_TITLES,
        version=__version__,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(embedded(_data(content))),
    )
    # Half of a surrogate pair is no text and can't be written.
    return page.encode("utf-8", "replace").decode("utf-8")


def sections(content: Content) -> dict[str, str]:
    """Anchor and heading of each section that this run can fill, in order."""
    labels = "What the labels do" if content.statuses else "Class by class"
    present = {
        "accuracy": ("Accuracy", content.scores),
        "labels": (labels, content.classes),
        "graph": ("The learned graph", content.blocks),
        "map": ("Map of the nodes", True),
        "trust": ("Can the probabilities be trusted?", content.reliability),
        "training": ("Training", _curves(content)),
        "suggestions": ("Next labels to buy", content.suggestions),
        "nodes": ("Nodes", True),
        "settings": ("Settings", True),
    }
    return {anchor: title for anchor, (title, found) in present.items() if found}


def _charts(content: Content) -> dict[str, Any]:
    out: dict[str, Any] = {"blocks": [], "reliability": None}
    if content.blocks is not None:
        of_class = content.blocks.block_class
        out["blocks"] = [(m, block_chart(m, of_class)) for m in content.blocks.maps]
    if content.reliability is not None:
        out["reliability"] = reliability_chart(content.reliability)
    out["curves"] = _curves(content)
    return out


def _curves(content: Content) -> list[tuple[str, list[Any], Markup]]:
    """Title, curves and drawing of each training chart."""
    wanted = {
        "Loss": {"loss": ("training", "s5"), "val_loss": ("validation", "s0")},
        "Accuracy": {"val_accuracy": ("validation", "s0")},
    }
    out = []
    for title, columns in wanted.items():
        lines = history_lines(content.history, columns)
        if lines:
            share = title == "Accuracy"
            said = f"{title} over epochs"
            chart = line_chart(lines, said, share, content.best_epoch)
            out.append((title, lines, chart))
    return out


def _data(content: Content) -> dict[str, Any]:
    nodes = content.nodes
    return {
        "classes": content.class_names,
        "splits": list(SPLITS),
        "columns": nodes.columns,
        "table": nodes.table,
        "map": nodes.mapped,
        "corners": nodes.corners,
        "low": nodes.low,
        "total": nodes.total,
        "file": f"{content.dataset}-{content.method}-nodes.csv",
    }


def _colours(content: Content) -> str:
    """The colours of the figures as CSS variables, and those of the methods."""
    fixed = {f"c{i}": colour for i, colour in enumerate(COLOURS)} | {"cgrey": GREY}
    root = "".join(f"--{name}:{value};" for name, value in fixed.items())
    rules = [f":root{{{root}}}"]
    for place, score in enumerate(content.scores):
        rules.append(f".m{place}{{fill:{colour_of(score.method)}}}")
    return "\n".join(rules)


def _soft(name: str) -> Markup:
    """A name that may be broken after its joints, where a phone has no room."""
    text = escape(name)
    for joint in "_-./":
        text = text.replace(joint, joint + Markup("<wbr>"))
    return text


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
