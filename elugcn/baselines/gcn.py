"""GCN: two graph convolutions (Kipf and Welling, ICLR 2017).

    Z = Â σ(Â X W₁) W₂

with dropout before both weights and biases: the two-view GCN without the ELU graph. Two
things differ from the paper: weights decay in all layers unless ``decay="first"``, and
validation accuracy selects the epoch. The options of a modern backbone (depth, norms,
residuals, jumping knowledge, direction of edges) are off by default. An epoch costs
O(nnz(X)·h + nnz(Â)·h).
"""

from __future__ import annotations

from typing import Any

from elugcn.baselines.common import Baseline, Starts, suggest
from elugcn.methods.backbone import GCNConfig, build_gcn
from elugcn.methods.problem import GraphTraits


class GCN(Baseline[GCNConfig]):
    """Graph convolutional network."""

    name = "gcn"
    summary = "two graph convolutions"
    Config = GCNConfig
    Network = staticmethod(build_gcn)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Width, dropout and training; the backbone where it is known to matter."""
        values: dict[str, Any] = {
            "hidden_channels": (16, 64, 128),
            "lr": (0.005, 0.01, 0.02),
            "weight_decay": (0.0, 5e-5, 5e-4, 2e-3, 1e-2),
        }
        if traits.keeps_features or traits.many_labels:
            values |= {"input_dropout": (0.0, 0.2, 0.5), "residual": (False, True)}
        known = traits.directed or traits.neighbours_unlike or traits.keeps_features
        if known or traits.many_labels:
            values["norm"] = ("none", "layer", "batch", "l2")
            values["jump"] = ("none", "last", "cat", "max")
            values["num_layers"] = (2, 3, 5) if traits.many_labels else (2, 3)
        if traits.directed:
            values["direction"] = ("out", "apart", "both")
        out = suggest(trial, traits, **values)
        return out | {"dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1)}

    def starting_points(self, traits: GraphTraits) -> Starts:
        """Kipf and Welling's settings, and others where they are known to be better.

        With many labels a deep residual network (Luo et al., "Classic GNNs are Strong
        Baselines", NeurIPS 2024); with directed edges Dir-GNN's settings.
        """
        starts: Starts = [{}, {"hidden_channels": 16, "dropout": 0.5}]
        if traits.many_labels:
            starts.append(
                {"num_layers": 8, "residual": True, "norm": "batch", "dropout": 0.2}
                | {"feature_norm": "none", "weight_decay": 0.0}
            )
        if traits.keeps_features:
            starts += [
                {"dropout": 0.5, "norm": "layer"},
                {"dropout": 0.5, "norm": "batch", "residual": True}
                | {"feature_norm": "none", "input_dropout": 0.0, "weight_decay": 1e-2},
            ]
        if traits.directed:
            starts += [
                {"direction": "out", "num_layers": 3, "jump": "cat", "norm": "l2"}
                | {"dropout": 0.0, "hidden_channels": 128, "weight_decay": 0.0},
                {"direction": "both", "hidden_channels": 128, "dropout": 0.5}
                | {"lr": 0.005, "weight_decay": 0.0},
            ]
        return starts
