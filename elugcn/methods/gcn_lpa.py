"""GCN-LPA: a GCN on edge weights that also have to propagate the labels well.

Wang and Leskovec, "Unifying Graph Convolutional Neural Networks and Label Propagation",
2020; the equations are in ``elugcn.nn.gcn_lpa``. The loss is

    CE(H⁽ᴸ⁾) + λ CE(Pᴷ Y)        both on the training nodes, Y their labels

As in the authors' code, the shares in Pᴷ Y are the logits of the second term
(``lpa_loss=share`` takes them as probabilities), training rows are not put back between
steps, and a label comes back to its own node by the self-loop. All weights are decayed,
those of edges too.

The authors' settings (five layers and λ = 10 for Cora, learning rates up to 0.2) are
for 60 % of the nodes labelled; the defaults, for 20 labels a class, are those of our
GCN with λ = 1. They keep the last epoch of the best validation accuracy; here, as for
every method, it is the one of the lowest loss among them. An epoch costs
O(nnz(X)·h + E·(L·h + K·c)) for E edges, each of which is a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.elu_graph import check_choice
from elugcn.core.propagation import one_hot_rows
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network, widths
from elugcn.nn.gcn_lpa import GCNLPA, label_loss, spread


@dataclass(frozen=True, kw_only=True)
class GCNLPAConfig(NetworkConfig):
    """Layers, and the steps, weight λ and form of the label propagation loss."""

    num_layers: int = 2
    lpa_steps: int = 5
    lambda_lpa: float = 1.0
    lpa_loss: str = "softmax"  # softmax | share
    input_dropout: float | None = None  # None: as dropout

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("lpa_loss", self.lpa_loss, ("softmax", "share"))
        check_least(self, 1, "num_layers", "lpa_steps")
        check_least(self, 0, "lambda_lpa")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")


class GCNLPAPredictor(NetworkPredictor):
    """A trained GCN-LPA with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"GCNLPA": GCNLPA}


def gcn_lpa_loss(model: GCNLPA, problem: Problem, config: GCNLPAConfig) -> Tensor:
    """The objective, from the labels of training nodes alone."""
    nodes = problem.train_index
    target = problem.y[nodes]
    edges = model.edges(problem.adj)
    loss = F.cross_entropy(model.convolve(problem.x, edges)[nodes], target)
    if config.lambda_lpa:
        known = one_hot_rows(problem.train_labels, problem.num_classes)
        q = spread(edges, known, config.lpa_steps)
        loss = loss + config.lambda_lpa * label_loss(q, nodes, target, config.lpa_loss)
    return loss


def fit_gcn_lpa(problem: Problem, config: GCNLPAConfig, run: Run) -> Prediction:
    """Train the GCN and the weights of the edges together."""
    facts = widths(problem, config) | {
        "input_dropout": config.input_dropout,
        "num_layers": config.num_layers,
        "num_nodes": problem.num_nodes,
        "num_entries": problem.adj.nnz,
    }
    run.reseed()
    with run.clock("train"):
        model = GCNLPA(**facts).to(run.device)
        model.learn_on(problem.adj)
        trained = train_network(
            problem,
            config,
            run,
            model,
            "GCN-LPA",
            loss=lambda epoch: gcn_lpa_loss(model, problem, config),
        )
    predictor = GCNLPAPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
