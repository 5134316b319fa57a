"""GCN: two graph convolutions (Kipf and Welling, ICLR 2017).

    Z = Â σ(Â X W₁) W₂

with dropout before both weights and biases: the two-view GCN without the ELU graph. Two
things differ from the paper: weights decay in all layers unless ``decay="first"``, and
validation accuracy selects the epoch. The options of a modern backbone (depth, norms,
residuals, jumping knowledge, direction of edges) are off by default. An epoch costs
O(nnz(X)·h + nnz(Â)·h).
"""

from __future__ import annotations

from elugcn.baselines.common import Baseline
from elugcn.methods.backbone import GCNConfig, build_gcn


class GCN(Baseline[GCNConfig]):
    """Graph convolutional network."""

    name = "gcn"
    summary = "two graph convolutions"
    Config = GCNConfig
    Network = staticmethod(build_gcn)
