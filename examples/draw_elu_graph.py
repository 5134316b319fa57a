"""Draw the picture of the README: what the labels do, and the graph that is learned.

    python examples/draw_elu_graph.py docs/images/elu-graph.png

Both heatmaps show the mean weight between classes, rows scaled to sum to one; the ELU
graph's follows from its factors alone, no n×n matrix is built.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from elugcn import ELUGCNClassifier, load_dataset

INK, ELU, NELU = "#22303c", "#2a7f9e", "#d9822b"


def class_blocks(onehot: torch.Tensor, product: torch.Tensor) -> np.ndarray:
    """Mean |weight| from class to class, rows sum to one."""
    blocks = (onehot.T @ product).abs()
    return (blocks / blocks.sum(dim=1, keepdim=True)).numpy()


def main(path: str) -> None:
    data = load_dataset("digits")
    clf = ELUGCNClassifier(random_state=0).fit(data)
    onehot = torch.nn.functional.one_hot(data.y).float()
    adjacency = torch.sparse_coo_tensor(
        data.edge_index, torch.ones(data.num_edges), (data.num_nodes,) * 2
    )
    use = clf.label_utilization_

    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.edgecolor": INK})
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), width_ratios=[1.15, 1, 1])
    shares, accuracy = [], []
    for mask in (use.elu, use.nelu):
        chosen = mask & data.test_mask
        shares.append(float(mask.float().mean()))
        accuracy.append(float((use.gcn == data.y)[chosen].float().mean()))
    axes[0].barh([1, 0], accuracy, color=[ELU, NELU], height=0.55)
    for row, share, value in zip((1, 0), shares, accuracy, strict=True):
        axes[0].text(value - 0.02, row, f"{value:.0%}", color="white", ha="right",
                     va="center", weight="bold")  # fmt: skip
        name = "ELU" if row else "NELU"
        axes[0].text(0, row + 0.36, f"{name} nodes, {share:.0%} of the graph")
    axes[0].set(title="A plain GCN's test accuracy", xlim=(0, 1), ylim=(-0.5, 1.7))
    axes[0].set_yticks([])
    axes[0].xaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1))
    for side in ("top", "right", "left"):
        axes[0].spines[side].set_visible(False)
    pictures = (
        ("The graph as given", class_blocks(onehot, adjacency @ onehot)),
        ("The ELU graph", class_blocks(onehot, clf.graph_ @ onehot)),
    )
    for axis, (title, blocks) in zip(axes[1:], pictures, strict=True):
        inside = np.trace(blocks) / len(blocks)
        axis.imshow(blocks, cmap="mako" if "mako" in plt.colormaps() else "viridis")
        axis.set(title=title, xticks=range(10), yticks=range(10))
        axis.set_xlabel(f"{inside:.0%} of the weight stays inside a class")
        axis.tick_params(length=0)
    figure.tight_layout(w_pad=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "elu-graph.png")
