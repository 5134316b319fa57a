"""Draw the picture of the README: what the labels do, and the graph that is learned.

    python examples/draw_elu_graph.py cora docs/images/elu-graph.png

The maps show mean entries of blocks of nodes that are ordered by class, red above zero
and blue below; the ELU graph's follow from its two factors, no n×n matrix is built.
Below each: how much of the graph's positive weight joins nodes of one class.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from elugcn import load_dataset
from elugcn.config import resolve_config
from elugcn.core.blocks import (
    class_blocks,
    group_means,
    group_sums,
    inside_share,
    sampled_inside_shares,
)
from elugcn.core.sparse import normalized_adjacency
from elugcn.data.checks import check_data
from elugcn.fitting import fit_graph

INK, ELU, NELU, REST = "#22303c", "#2a7f9e", "#d9822b", "#9aa5ae"


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
    learned = fitted.prediction.graph
    given = normalized_adjacency(data.edge_index, data.num_nodes)
    block, block_class = class_blocks(data.y)
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
        ("The graph as given", given,
         inside_share(group_sums(given, data.y, int(data.y.max()) + 1))),
        ("The ELU graph", learned, sampled_inside_shares(learned, data.y)[0]),
    )  # fmt: skip
    for axis, (title, matrix, inside) in zip(axes[1:], pictures, strict=True):
        means = group_means(matrix, block, len(block_class))
        limit = float(means.abs().quantile(0.98))
        axis.imshow(means, cmap="RdBu_r", vmin=-limit, vmax=limit)
        edges = (block_class.diff().nonzero().squeeze(1) + 0.5).tolist()
        for edge in edges:
            axis.axhline(edge, color=INK, linewidth=0.5)
            axis.axvline(edge, color=INK, linewidth=0.5)
        axis.set(title=title, xticks=[], yticks=[], ylabel="nodes, by class")
        axis.set_xlabel(f"{inside:.0%} of the positive weight\nstays inside a class")
    figure.tight_layout(w_pad=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(*(sys.argv[1:] if len(sys.argv) == 3 else ("digits", "elu-graph.png")))
