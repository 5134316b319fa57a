"""BAGCN (reconstructed): shortcuts to distant nodes by a biaffine score.

Zhang et al., "Building Shortcuts between Distant Nodes with Biaffine Mapping for Graph
Convolutional Networks", ACM TKDD 2024. There is no public code, and this is a
**reconstruction from the abstract**: a shallow GCN, a biaffine map by which a node
depends on distant ones directly, so that one hop suffices, and a contrast of several
views. Numbers of it say nothing certain about the published method. The equations, our
choice, are in ``elugcn.nn.bagcn``;

    L = CE(Z) + ω (CE(Z₁) + CE(Z₂)) + μ InfoNCE(proj H₁, proj H₂)

where H₁ and H₂ are the hidden states of the local and the distant view, the same node
is the positive and up to ``anchors`` random nodes are compared. All pairs are scored
again every ``refresh`` epochs, without gradients, in O(n²·m); an epoch costs
O((nnz(X) + n·k)·(m + h) + E·h). The final logits, as those for any other graph, are
those of shortcuts found with the selected weights; so the epochs that validation
chooses among are those after which the shortcuts are found anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import (
    NetworkPredictor,
    as_prediction,
    train_network,
    widths,
)
from elugcn.nn.bagcn import BAGCN, Both
from elugcn.nn.losses import info_nce
from elugcn.nn.projection import ProjectionHead


@dataclass(frozen=True, kw_only=True)
class BAGCNConfig(NetworkConfig):
    """Shortcuts, the weight of their view, and the contrast between the views."""

    dropout: float = 0.5
    input_dropout: float | None = None  # None: as dropout
    roles: int = 64  # width of what the biaffine score compares
    k: int = 10  # shortcuts of a node
    beta: float = 0.5
    mu: float = 0.5
    omega: float = 0.1
    tau: float = 0.5
    anchors: int = 1024
    refresh: int = 10  # epochs between searches for shortcuts
    epochs: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "roles", "k", "refresh")
        check_least(self, 2, "anchors")
        check_least(self, 0, "beta", "mu", "omega")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        if not self.tau > 0:
            raise InputError(f"tau must be positive; got {self.tau}")


class BAGCNPredictor(NetworkPredictor):
    """A trained BAGCN; finds shortcuts on every graph anew."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"BAGCN": BAGCN}


def bagcn_loss(
    both: Both, head: nn.Module, nodes: Tensor, target: Tensor, config: BAGCNConfig
) -> Tensor:
    """L, O(n·c + anchors²·h).

    Args:
        both: What the views gave.
        head: The projection before the contrast.
        nodes: Training nodes.
        target: Their classes.
        config: The weights of the terms.
    """
    total = F.cross_entropy(both.logits[nodes], target)
    if config.omega:
        apart = F.cross_entropy(both.local[nodes], target)
        apart = apart + F.cross_entropy(both.distant[nodes], target)
        total = total + config.omega * apart
    if config.mu:
        n = both.logits.size(0)
        chosen = torch.randperm(n, device=nodes.device)[: config.anchors]
        a, b = head(both.hidden_local[chosen]), head(both.hidden_distant[chosen])
        total = total + config.mu * info_nce(a, b, config.tau)
    return total


def fit_bagcn(problem: Problem, config: BAGCNConfig, run: Run) -> Prediction:
    """Train both views together, looking for better shortcuts now and then."""
    facts = widths(problem, config) | {
        "input_dropout": config.input_dropout,
        "roles": config.roles,
        "k": config.k,
        "beta": config.beta,
    }
    nodes = problem.train_index
    target = problem.y[nodes]
    run.reseed()
    with run.clock("train"):
        model = BAGCN(**facts).to(run.device)
        head = ProjectionHead(config.hidden_channels).to(run.device)
        pairs = [model.shortcuts(problem.x, problem.adj)]

        def loss(epoch: int) -> Tensor:
            both = model.views(problem.x, problem.adj, pairs[0])
            return bagcn_loss(both, head, nodes, target, config)

        def forward() -> Tensor:
            pairs[0] = model.shortcuts(problem.x, problem.adj)
            return model.views(problem.x, problem.adj, pairs[0]).logits

        trained = train_network(
            problem,
            config,
            run,
            model,
            "BAGCN",
            forward=forward,
            loss=loss,
            extra=head,
            every=config.refresh,
        )
    predictor = BAGCNPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
