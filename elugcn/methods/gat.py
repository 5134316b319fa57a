"""GAT: the graph decides who is a neighbour, attention how much each one counts.

Veličković et al., "Graph Attention Networks", ICLR 2018; the equations are in
``elugcn.nn.gat``. The defaults are the paper's for Cora and Citeseer (it used eight
output heads and a decay of 1e-3 for Pubmed), with three differences: the paper drops
the projected features of a layer as well, this network, as PyG's layer, does not; and
training ends after 1000 epochs at the latest, where the paper had no practical limit,
or where (accuracy, then loss) has not improved on validation for ``patience`` epochs,
where the paper waited for either of them.
An epoch costs O(nnz(X)·k·h + E·k·h) time and O(E·k) memory for E edges and k heads of
width h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, fit_model
from elugcn.nn.gat import GAT


@dataclass(frozen=True, kw_only=True)
class GATConfig(NetworkConfig):
    """Heads and their dropout; ``hidden_channels`` is the width of one head."""

    hidden_channels: int = 8
    heads: int = 8
    out_heads: int = 1
    dropout: float = 0.6
    attention_dropout: float = 0.6
    lr: float = 0.005
    epochs: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "heads", "out_heads")
        check_probability(self, "attention_dropout")


class GATPredictor(NetworkPredictor):
    """A trained GAT with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"GAT": GAT}


def fit_gat(problem: Problem, config: GATConfig, run: Run) -> Prediction:
    """Train a GAT with cross-entropy on the training nodes."""
    return fit_model(
        problem,
        config,
        run,
        GAT,
        GATPredictor,
        heads=config.heads,
        out_heads=config.out_heads,
        attention_dropout=config.attention_dropout,
    )
