"""What the labels do on Cora, in one picture: `python docs/picture.py`.

Left: test accuracy of label propagation, a GCN and ELU-GCN, mean and standard deviation
over five seeds. Right: the ELU, NELU and unreachable nodes of Definition 1, with the
GCN's test accuracy on each. Takes about two minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elugcn import load_dataset
from elugcn.api import fit
from elugcn.data.validation import check_data
from elugcn.report.figures import BLUE, GREY, INK, ORANGE, STYLE

SEEDS = range(5)
# As the authors' public code trains: 2,000 epochs, of which the one with the lowest
# validation loss is kept; S* not scaled; contrast on squared distances.
OPTIONS: dict[str, Any] = {
    "feature_norm": "row",
    "hidden_channels": 32,
    "epochs": 2000,
    "patience": 2000,
    "select": "loss",
    "scaling": "none",
    "contrast": "distance",
}


def measure(seed: int) -> dict[str, float]:
    """Accuracies of one fit, and the share of each kind of node."""
    data = check_data(load_dataset("cora"))
    fitted = fit(data, "elu-gcn", OPTIONS, seed=seed, with_baselines=True)
    y, test = fitted.data.y, fitted.data.test_mask
    use = fitted.result.label_utilization
    assert use is not None
    out = {"ELU-GCN": fitted.accuracy(test) or 0.0}
    for name, title in (("gcn", "GCN"), ("lpa", "label propagation")):
        out[title] = float((fitted.baselines[name] == y)[test].double().mean())
    for name in ("elu", "nelu", "unreachable"):
        kind = getattr(use, name)
        out[f"{name} share"] = float(kind.double().mean())
        out[f"{name} accuracy"] = float((use.gcn == y)[test & kind].double().mean())
    return out


def draw(runs: list[dict[str, float]]) -> Figure:
    """Both halves of the picture, from one record per seed."""
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    spread = {key: float(np.std([run[key] for run in runs])) for key in runs[0]}
    figure = Figure(figsize=(8.3, 3.1), facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    _accuracies(left, mean, spread)
    _kinds(right, mean)
    return figure


def _accuracies(axis: Axes, mean: dict[str, float], spread: dict[str, float]) -> None:
    rows = []
    for name, colour in (
        ("ELU-GCN", BLUE),
        ("GCN", GREY),
        ("label\npropagation", GREY),
    ):
        key = name.replace("\n", " ")
        said = f"{100 * mean[key]:.1f}%"
        if spread[key] > 0:
            said += f" ± {100 * spread[key]:.1f}"
        rows.append((name, mean[key], 1.0, said, colour))
    _bars(axis, "Test accuracy on Cora", rows, gap=0.5)


def _kinds(axis: Axes, mean: dict[str, float]) -> None:
    """Bars as long as the accuracy and as high as the share of nodes."""
    rows = []
    for name, title, colour in (
        ("elu", "ELU: labels and\nGCN agree", BLUE),
        ("nelu", "NELU: they disagree", ORANGE),
        ("unreachable", "no label in 3 steps", GREY),
    ):
        share, right = mean[f"{name} share"], mean[f"{name} accuracy"]
        title = f"{title}\n{100 * share:.0f}% of nodes"
        rows.append((title, right, share, f"{100 * right:.0f}%", colour))
    _bars(axis, "Accuracy of the GCN on", rows, gap=0.03)


def _bars(axis: Axes, title: str, rows: list[Any], gap: float) -> None:
    """Bars from top to bottom, each (name, length, height, text, colour)."""
    top, middles = 0.0, []
    for _, length, height, said, colour in rows:
        middle = top + height / 2
        axis.barh(middle, length, height, color=colour)
        axis.text(
            length - 0.02, middle, said, ha="right", va="center", color="white",
            weight="bold", size=11,
        )  # fmt: skip
        middles.append(middle)
        top += height + gap
    axis.set_title(title, loc="left", color=INK, weight="bold", size=11)
    axis.set_yticks(middles, [row[0] for row in rows], color=INK, size=10)
    axis.set(xlim=(0, 1), ylim=(top - gap, 0), xticks=[])
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)


def main() -> None:
    """Draw ``docs/picture.svg``, or the file named on the command line."""
    default = Path(__file__).with_suffix(".svg")
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    # Letters as outlines look the same everywhere.
    style = STYLE | {"svg.fonttype": "path", "svg.hashsalt": "elugcn"}
    with rc_context(style):
        runs = [measure(seed) for seed in SEEDS]
        draw(runs).savefig(out, dpi=100, metadata={"Date": None})
    for key in runs[0]:
        print(key, " ".join(f"{run[key]:.3f}" for run in runs))


if __name__ == "__main__":
    main()
