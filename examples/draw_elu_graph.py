"""Draw the picture of the README: what the labels do, and the graph that is learned.

    python examples/draw_elu_graph.py cora docs/images/elu-graph.png

The heatmaps show the mean weight from class to class, rows scaled to sum to one; the
ELU graph's follow from its two factors, no n×n matrix is built.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from elugcn import load_dataset
from elugcn.config import resolve_config
from elugcn.core.sparse import normalized_adjacency
from elugcn.data.checks import check_data
from elugcn.fitting import fit_graph

INK, ELU, NELU, REST = "#22303c", "#2a7f9e", "#d9822b", "#9aa5ae"


def class_blocks(onehot: torch.Tensor, product: torch.Tensor) -> np.ndarray:
    """Weight from class to class, rows sum to one; S* has a few negative entries."""
    blocks = (onehot.T @ product).clamp(min=0)
    return (blocks / blocks.sum(dim=1, keepdim=True)).numpy()


def bars(axis: Axes, rows: list[tuple[str, str, float, float]]) -> None:
    """One bar a kind of node: how often the GCN is right there."""
    for place, (name, color, share, right) in enumerate(reversed(rows)):
        axis.barh(place, right, color=color, height=0.5)
        axis.text(right - 0.02, place, f"{right:.0%}", color="white", ha="right",
                  va="center", weight="bold")  # fmt: skip
        axis.text(0, place + 0.32, f"{name}: {share:.0%} of the nodes")
    axis.set(title="A plain GCN is right on", xlim=(0, 1), yticks=[])
    axis.set_ylim(-0.45, len(rows) - 0.3)
    axis.xaxis.set_major_formatter(PercentFormatter(1))
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def main(name: str, path: str) -> None:
    graph = check_data(load_dataset(name))
    config = resolve_config("elu-graph", name)
    fitted = fit_graph(graph, "elu-graph", config)
    data, use = graph.data, fitted.prediction.utilization
    onehot = torch.nn.functional.one_hot(data.y.clamp(min=0)).float()
    adjacency = normalized_adjacency(
        data.edge_index, data.num_nodes, self_loops=False, norm="row"
    )
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK})
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.3), width_ratios=[1.15, 1, 1])
    rows = []
    for label, color, mask in (
        ("ELU", ELU, use.elu),
        ("NELU", NELU, use.nelu),
        ("no label reaches", REST, use.unreachable),
    ):
        chosen = mask & data.test_mask
        if chosen.any():
            right = float((use.gcn == data.y)[chosen].float().mean())
            rows.append((label, color, float(mask.float().mean()), right))
    bars(axes[0], rows)
    pictures = (
        ("The graph as given", class_blocks(onehot, adjacency @ onehot)),
        ("The ELU graph", class_blocks(onehot, fitted.prediction.graph @ onehot)),
    )
    for axis, (title, blocks) in zip(axes[1:], pictures, strict=True):
        inside = np.trace(blocks) / len(blocks)
        axis.imshow(blocks, cmap="viridis", vmin=0, vmax=1)
        ticks = range(len(blocks))
        axis.set(title=title, xticks=ticks, yticks=ticks, ylabel="class")
        axis.set_xlabel(f"{inside:.0%} of the weight stays inside a class")
        axis.tick_params(length=0)
    figure.tight_layout(w_pad=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(*(sys.argv[1:] if len(sys.argv) == 3 else ("digits", "elu-graph.png")))
