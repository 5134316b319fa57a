"""What the page of a run says, as plain values: everything is decided here.

Made from a run directory and the fitted model in it. The graph itself adds the block
map of the original graph and the simpler models; without it the page leaves them out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.report.page.baselines import ORDER, Scores, baselines
from elugcn.report.page.calibration import Reliability, reliability
from elugcn.report.page.heat import Blocks, blocks_of
from elugcn.report.page.nodes import Nodes, select_nodes
from elugcn.report.page.scores import Judged, Score, judged_nodes, scores
from elugcn.report.page.suggestions import suggestions
from elugcn.report.page.usage import ClassRow, StatusRow, class_rows, status_rows
from elugcn.runs import class_names
from elugcn.suggest import Suggestion

_LONGEST = 200  # characters of a class name
_MOST_CLASSES = 40


@dataclass(frozen=True)
class Content:
    """All sections; a part that the run can't fill is None or empty.

    ``best_epoch`` and ``trained`` say where and of which member the history is.
    """

    dataset: str
    method: str
    nodes_total: int
    edges: int
    labels: int
    judged: Judged | None
    scores: list[Score]
    statuses: list[StatusRow]
    classes: list[ClassRow]
    more_classes: int
    class_names: list[str]
    blocks: Blocks | None
    reliability: Reliability | None
    history: list[dict[str, float]]
    best_epoch: int | None
    trained: str
    nodes: Nodes
    suggestions: list[Suggestion]
    config: str
    environment: list[tuple[str, str]]
    notes: list[str]


def collect(folder: Path, fitted: Fitted, notes: tuple[str, ...] = ()) -> Content:
    """Everything the page shows.

    Args:
        folder: The run directory: its configuration, metrics and environment.
        fitted: Its model, with the graph (``x``, ``edge_index``) if it is at hand.
        notes: What to say besides the notes of the run.
    """
    metrics = read_json(folder / "metrics.json")
    data, facts = fitted.data, fitted.prediction.facts
    names = [_short(str(name)) for name in class_names(fitted)]
    judged = judged_nodes(fitted)
    classes = class_rows(fitted, judged, names)
    kept = sorted(classes, key=lambda row: -row.nodes)[:_MOST_CLASSES]
    curve = None
    if judged is not None:
        curve = reliability(fitted.prediction.proba, data.y, judged.mask)
    # Without validation the last epoch is kept: nobody chose it.
    best = facts.get("best_epoch") if bool(data.val_mask.any()) else None
    return Content(
        dataset=str(metrics.get("dataset", "")),
        method=fitted.method,
        nodes_total=int(data.num_nodes),
        edges=_number(metrics.get("n_edges")),
        labels=int(data.train_mask.sum()),
        judged=judged,
        scores=scores(fitted, judged, baselines(fitted, _recorded(metrics))),
        statuses=status_rows(fitted, judged),
        classes=sorted(kept, key=lambda row: row.index),
        more_classes=len(classes) - len(kept),
        class_names=names,
        blocks=blocks_of(fitted),
        reliability=curve,
        history=fitted.prediction.history,
        best_epoch=best if isinstance(best, int) else None,
        trained=str(facts.get("chosen", fitted.method)).split(" + ")[0],
        nodes=select_nodes(fitted),
        suggestions=suggestions(fitted),
        config=_read(folder / "config.yaml"),
        environment=_flat(read_json(folder / "environment.json")),
        notes=[*_strings(metrics.get("notes")), *notes],
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of the run."""
    text = _read(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a JSON object, as `elugcn train` writes it")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"{path}: can't be read; expected a run directory of `elugcn train`"
        ) from None


def _recorded(metrics: dict[str, Any]) -> Scores:
    """The simpler models' accuracies of ``metrics.json``, as far as they are any."""
    found = metrics.get("baselines")
    if not isinstance(found, dict):
        return {}
    out: Scores = {}
    for name in ORDER:
        one = found.get(name)
        if isinstance(one, dict):
            out[name] = {
                str(k): float(v) for k, v in one.items() if isinstance(v, int | float)
            }
    return out


def _flat(values: dict[str, Any]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            out += _flat(value)
        elif isinstance(value, bool):
            out.append((key, "yes" if value else "no"))
        elif value is not None:
            out.append((key, str(value)))
    return out


def _strings(found: Any) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list) else []


def _number(found: Any) -> int:
    return found if isinstance(found, int) else 0


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
