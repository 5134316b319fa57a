"""GSR: the graph is refined once, by what self-supervision says of its edges.

Zhao et al., "Self-Supervised Graph Structure Refinement for Graph Neural Networks",
WSDM 2023. Three stages:

1. Two encoders, of the features and of where random walks go, learn which nodes are
   joined (``elugcn.methods.gsr_pretrain``).
2. Nodes are compared by the cosine of their embeddings, mixed with ``feature_weight``:
   ``remove`` of the edges, those least alike, go and ``add`` of their number, the pairs
   most alike, come (``elugcn.core.refine``). This costs O(n²·h) once.
3. A GCN is trained on the refined graph, its first layer from the feature encoder.

The defaults are the authors' for Cora, but for the length of the pre-training (a number
of steps, the same for every graph, where theirs is a number of epochs), a window of 10
for their 11 and 1,024 keys to tell apart for their 16,382. Differences: the
walks' view is a factored DeepWalk matrix (``elugcn.core.netmf``), not DeepWalk by
skip-gram; a step encodes the whole graph without the batch's edges, where the public
code samples neighbourhoods and leaves a copy of every edge of the batch; fresh keys of
random edge ends take the place of a queue of old ones, and the positive is never among
them; embeddings have length 1; the first stage has no self-loops on any graph (the
public code has them on Citeseer). Self-loops in the last stage are as ``self_loops``
says; every edge of the refined graph weighs the same.

For another graph the predictor is the trained GCN on that graph's own edges: refining
belongs to the graph that was pre-trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elugcn.core.netmf import netmf_embedding
from elugcn.core.refine import Refined, joint_embedding, refine, undirected
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.gsr_pretrain import HeldOut, Pretraining, Views, pretrain
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network
from elugcn.nn import GCN


@dataclass(frozen=True, kw_only=True)
class GSRConfig(NetworkConfig):
    """Pre-training, refinement, and the GCN (whose options are the network's)."""

    dropout: float = 0.5
    input_dropout: float | None = None  # None: as dropout
    epochs: int = 1000
    intra: float = 0.75  # weight of the contrast within a view
    pretrain_steps: int = 300
    pretrain_batch: int = 512
    pretrain_lr: float = 1e-3
    momentum: float = 0.999  # of the slow copy: fewer steps want a smaller one
    negatives: int = 1024
    structure_dim: int = 64
    window: int = 10
    feature_weight: float = 0.0  # of the features' cosine; the rest is the walks'
    add: float = 0.25
    remove: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "pretrain_batch", "negatives", "structure_dim", "window")
        check_least(self, 0, "pretrain_steps", "add")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        check_probability(self, "momentum")
        if not self.pretrain_lr > 0:
            raise InputError(f"pretrain_lr must be positive; got {self.pretrain_lr}")
        for name in ("intra", "feature_weight", "remove"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"{name} must be between 0 and 1; got {value}")


def pretrained(
    problem: Problem, config: GSRConfig, run: Run
) -> tuple[Views, list[Tensor]]:
    """The encoders and their embeddings of all nodes, n×h each."""
    graph = undirected(problem.adj.to(torch.device("cpu")))
    generator = torch.Generator().manual_seed(run.seed)
    walks = netmf_embedding(
        graph, config.structure_dim, config.window, generator=generator
    ).to(run.device)
    graph = graph.to(run.device)
    how = Pretraining(
        width=config.hidden_channels,
        steps=config.pretrain_steps,
        batch=config.pretrain_batch,
        negatives=config.negatives,
        intra=config.intra,
        lr=config.pretrain_lr,
        weight_decay=5e-4,
        momentum=config.momentum,
    )
    xs = (problem.x, walks)
    channels = (problem.in_channels, config.structure_dim)
    views = pretrain(xs, channels, graph, how, run.progress)
    with torch.no_grad():
        return views, views.embeddings(xs, HeldOut(graph).whole)


def refined(problem: Problem, config: GSRConfig, views: list[Tensor]) -> Refined:
    """The edges that are left, and the new ones."""
    share = config.feature_weight
    embedding = joint_embedding(views, (share, 1.0 - share))
    return refine(problem.adj, embedding, config.add, config.remove)


def fit_gsr(problem: Problem, config: GSRConfig, run: Run) -> Prediction:
    """Pre-train, refine the graph, train a GCN on it."""
    run.reseed(1)
    with run.clock("pretrain"):
        views, embeddings = pretrained(problem, config, run)
    with run.clock("graph"):
        changed = refined(problem, config, embeddings)
        adj = normalized_adjacency(
            changed.edge_index, problem.num_nodes, self_loops=config.self_loops
        ).to(run.device)
    facts: dict[str, Any] = {
        "in_channels": problem.in_channels,
        "hidden_channels": config.hidden_channels,
        "out_channels": problem.num_classes,
        "dropout": config.dropout,
        "input_dropout": config.input_dropout,
    }
    run.reseed()
    with run.clock("train"):
        model = GCN(**facts).to(run.device)
        _copy_first_layer(views, model)
        trained = train_network(
            problem, config, run, model, "GSR", lambda: _logits(model, problem, adj)
        )
    predictor = NetworkPredictor(model, problem.scaler, config.view, facts)
    prediction = as_prediction(trained, predictor, run)
    prediction.facts |= {
        "pairs_added": changed.added.size(1),
        "pairs_removed": changed.removed.size(1),
    }
    return prediction


def _logits(model: GCN, problem: Problem, adj: CSR) -> Tensor:
    return model(problem.x, adj)[0]  # type: ignore[no-any-return]


@torch.no_grad()
def _copy_first_layer(views: Views, model: GCN) -> None:
    encoder = views.encoders[0]
    assert isinstance(encoder, GCN)
    model.weights[0].copy_(encoder.weights[0])
    model.biases[0].copy_(encoder.biases[0])
