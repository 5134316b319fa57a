"""GRAND: an MLP on randomly propagated features that must agree with itself.

Feng et al., "Graph Random Neural Networks for Semi-Supervised Learning on Graphs",
NeurIPS 2020. In every epoch S times:

    X̃ = drop nodes: each row of X is zero with probability δ, else divided by 1 − δ
    X̄ = (1/(K+1)) Σ_{k=0..K} Âᵏ X̃,    P⁽ˢ⁾ = softmax MLP(X̄)

    L = (1/S) Σ_s CE(P⁽ˢ⁾, Y) + λ (1/S) Σ_s mean_i ‖p̄'_i − p_i⁽ˢ⁾‖²

p̄ is the mean of the draws and p̄' ∝ p̄^(1/T) its sharpened form, through which no
gradient flows. Prediction drops nothing. The network is our GCN with ``order`` K, whose
layers after the first do not propagate: an MLP behind a mixed-order propagation. It
multiplies by the first weight before it propagates, since h columns cost less than d:
the node mask and the propagation act on rows, the weight on columns, so the result is
the same. Input dropout is the one thing the order changes: the paper drops entries of
X̄, here entries of X are dropped, before the propagation; only the expectation is equal.
With ``sample`` m > 0 the order is the paper's, at the price of a sample: the draws have
to agree on m nodes that are drawn anew in every epoch, and a row of X̄ is made of the
``neighbours`` largest entries of its row of the propagation (``methods/sampled.py``).
Only there ``norm="batch"`` is the authors', of X̄ and of the hidden layer. Elsewhere it
is of the hidden layer alone, and that is not the same thing on Pubmed.

The defaults are the paper's for Cora. It used K = 2, S = 2, T = 0.3, λ = 0.7 for
Citeseer, and K = 5, T = 0.2, a learning rate of 0.2 and batch norm for Pubmed, both
with different dropout of inputs (``input_dropout``) and hidden units. Validation
accuracy selects the epoch, among fewer than the authors' code allows. An epoch costs
O(S·nnz(X)·h + S·K·E·h).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from elugcn.core.elu_graph import check_choice
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import RandomPropagationConfig, check_least
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network, widths
from elugcn.methods.sampled import SampledObjective, sampled_network
from elugcn.nn import GCN
from elugcn.nn.losses import consistency_loss


@dataclass(frozen=True, kw_only=True)
class GRANDConfig(RandomPropagationConfig):
    """Random propagation and the weight of the agreement between draws."""

    order: int = 8
    drop_node: float = 0.5
    draws: int = 4
    lambda_cons: float = 1.0
    hidden_channels: int = 32
    dropout: float = 0.5
    epochs: int = 1000
    patience: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("norm", self.norm, ("none", "layer", "batch"))
        check_least(self, 1, "order")


def grand_loss(
    outputs: list[Tensor], nodes: Tensor, target: Tensor, config: GRANDConfig
) -> Tensor:
    """L for the logits of every draw, O(S·n·c).

    Args:
        outputs: Logits n×c, one matrix a draw.
        nodes: Training nodes.
        target: Their classes.
        config: λ and T.
    """
    terms = [F.cross_entropy(z[nodes], target) for z in outputs]
    total = sum(terms[1:], terms[0]) / len(terms)
    if config.lambda_cons:
        # A single draw is still compared with its own sharpened form.
        consistency = consistency_loss(outputs, config.sharpening)
        total = total + config.lambda_cons * consistency
    return total


def fit_grand(problem: Problem, config: GRANDConfig, run: Run) -> Prediction:
    """Train on random propagations of the features."""
    if config.sample:
        return _fit_sampled(problem, config, run)
    facts = widths(problem, config) | {
        "norm": config.norm,
        "order": config.order,
        "drop_node": config.drop_node,
        "input_dropout": config.input_dropout,
    }
    nodes = problem.train_index
    target = problem.y[nodes]
    run.reseed()
    with run.clock("train"):
        model = GCN(**facts).to(run.device)

        def loss(epoch: int) -> Tensor:
            outputs = model(problem.x, problem.adj, draws=config.draws)
            return grand_loss(outputs, nodes, target, config)

        trained = train_network(
            problem,
            config,
            run,
            model,
            "GRAND",
            loss=loss,
        )
    predictor = NetworkPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)


def _fit_sampled(problem: Problem, config: GRANDConfig, run: Run) -> Prediction:
    """The same on a sample of nodes, whose features are propagated first."""
    run.reseed()
    with run.clock("train"):
        model, facts = sampled_network(problem, config, run.device)
        objective = SampledObjective(problem, config, model)
        trained = objective.train(run, "GRAND")
    predictor = NetworkPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
