"""NodeFormer: attention among all nodes, which has to find the given edges likely.

Wu et al., "NodeFormer: A Scalable Graph Structure Learning Transformer for Node
Classification", NeurIPS 2022; the equations are in ``elugcn.nn.nodeformer``.

    L = CE − λ · mean over layers, heads and edges of (1/d_u) log a_uv

The defaults are the authors' for Cora, but for the number of epochs (1000 without early
stopping) and for ``rb_order``: theirs is 3 on Cora and Citeseer and 2 on Pubmed, which
on dense graphs would join almost every pair of nodes; 1 works everywhere.

Differences: random features and noise come from a generator of their own and are drawn
anew in every step, where the public code resets the global one; the features of
evaluation are drawn once and stored; the largest noise of a draw is taken away before
exp, which could overflow, and keys with less than 1e-10 of its weight are left out of
the draw; exponents are shifted by their own maximum, not by a bound of it; where there
are more than ``links`` edges, the likelihood is that of a uniform sample of so many, in
every step another. An epoch costs O(nnz(X)·h + L·(n·H·S·M·h + E·h)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network, widths
from elugcn.nn.nodeformer import NodeFormer


@dataclass(frozen=True, kw_only=True)
class NodeFormerConfig(NetworkConfig):
    """Attention, its random features, and what the given edges have to say."""

    hidden_channels: int = 32
    dropout: float = 0.0
    num_layers: int = 2
    heads: int = 4
    features: int = 30  # M, of the kernel
    draws: int = 10  # S, of Gumbel noise
    tau: float = 0.25
    rb_order: int = 1  # graphs of the given edges: 1 hop, 2 hops, 4 hops, …
    lambda_link: float = 1.0
    links: int = 2**15  # edges whose likelihood is looked at in a step, at most
    jump: bool = False
    epochs: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "num_layers", "heads", "features", "draws", "links")
        check_least(self, 0, "rb_order", "lambda_link")
        if not self.tau > 0:
            raise InputError(f"tau must be positive; got {self.tau}")


class NodeFormerPredictor(NetworkPredictor):
    """A trained NodeFormer with its random features and the scaling of X."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"NodeFormer": NodeFormer}


def fit_nodeformer(problem: Problem, config: NodeFormerConfig, run: Run) -> Prediction:
    """Train with cross-entropy on training nodes and the likelihood of the edges."""
    facts = widths(problem, config) | {
        "num_layers": config.num_layers,
        "heads": config.heads,
        "features": config.features,
        "rb_order": config.rb_order,
        "tau": config.tau,
        "draws": config.draws,
        "links": config.links,
        "jump": config.jump,
        "seed": run.seed,
    }
    nodes = problem.train_index
    target = problem.y[nodes]
    run.reseed()
    with run.clock("train"):
        model = NodeFormer(**facts).to(run.device)

        def loss(epoch: int) -> Tensor:
            logits, likelihood = model.with_links(problem.x, problem.adj, nodes)
            value = F.cross_entropy(logits, target)
            return value - config.lambda_link * likelihood

        trained = train_network(
            problem,
            config,
            run,
            model,
            "NodeFormer",
            loss=loss,
        )
    predictor = NodeFormerPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
