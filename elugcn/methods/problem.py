"""A graph as the methods see it: scaled features, Â, labels and masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.scaling import FeatureScaler
from elugcn.engine import (
    CSR,
    Features,
    GraphInputs,
    MeanPropagation,
    as_features,
    normalized_adjacency,
)
from elugcn.methods.metrics import score
from elugcn.methods.options import MethodConfig


@dataclass(frozen=True)
class GraphView:
    """How edges become Â and what the first layer multiplies by.

    ``in``: a node listens to the nodes that point to it, as in PyG; ``out``: to those
    it points to; ``both``: to both; ``given``: edges as they are stored; ``apart``:
    [Â_in Â_out], n×2n, so that each direction can have weights of its own. ``in``,
    ``out`` and ``apart`` read ``data.links`` where a symmetric graph has them: the
    edges in the direction in which they were published.
    """

    self_loops: bool = True
    direction: str = "given"
    order: int = 0  # K > 0: the first layer multiplies by the mean of Â⁰ … Âᴷ
    norm: str = "sym"  # "sym": D^-½ A D^-½; "row": D⁻¹ A

    @classmethod
    def of(cls, config: MethodConfig) -> GraphView:
        """The view that a configuration asks for."""
        return cls(
            config.self_loops,
            config.direction,
            config.mean_order,
            config.adjacency_norm,
        )

    def adjacency(self, data: Data) -> CSR:
        """Â of a graph, n×n (n×2n for ``apart``), O(E log E)."""
        n, edges = int(data.num_nodes), data.edge_index
        weight = getattr(data, "edge_weight", None)
        links = getattr(data, "links", None)
        if links is not None and self.direction not in ("given", "both"):
            edges, weight = links, None
        if self.direction == "both":
            edges, weight = mirrored(edges, weight, n)
        if self.direction == "out":
            edges = edges.flip(0)
        adj = normalized_adjacency(edges, n, weight, self.self_loops, self.norm)
        if self.direction != "apart":
            return adj
        out = normalized_adjacency(edges.flip(0), n, weight, self.self_loops, self.norm)
        return CSR.from_scipy(sp.hstack([adj.to_scipy(), out.to_scipy()]))

    def inputs(self, data: Data, scaler: FeatureScaler) -> GraphInputs:
        """X, scaled and in its faster layout, and Â, of any graph."""
        x = as_features(scaler(data.x))
        return GraphInputs(x, self.propagation(self.adjacency(data)))

    def propagation(self, adj: CSR) -> CSR | MeanPropagation:
        """What the first layer multiplies by, given Â."""
        return MeanPropagation(adj, self.order) if self.order else adj


def mirrored(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """The edges in both directions, with the larger weight if the two differ."""
    source, target = edge_index.numpy(force=True)
    weight = None if edge_weight is None else edge_weight.numpy(force=True)
    edges, weights, _ = clean_edges(source, target, weight, num_nodes, directed=False)
    return edges, weights


@dataclass(frozen=True)
class Shapes:
    """The sizes that a network is built for."""

    in_channels: int  # d, columns of X
    out_channels: int  # c, number of classes


@dataclass(frozen=True)
class GraphTraits:
    """Facts about a graph that search spaces may depend on."""

    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    sparse_features: bool
    directed: bool
    # Share of the edges between training nodes that join equal classes; NaN: no edges.
    homophily: float
    num_train: int  # labels to learn from
    feature_entries: int = 0  # stored values of X

    @property
    def is_large(self) -> bool:
        """Whether settings of small citation graphs are far from this graph."""
        return self.num_nodes > 10_000

    @property
    def is_dense(self) -> bool:
        """Whether nodes have many neighbours."""
        return self.num_edges > 10 * self.num_nodes

    @property
    def keeps_features(self) -> bool:
        """Whether features may be better left as they are: few ones, many edges.

        Then a single rare column says much; scaling and dropout can cost accuracy.
        """
        return self.sparse_features and self.is_dense

    @property
    def neighbours_unlike(self) -> bool:
        """Whether edges mostly join different classes; False if that is not known."""
        return self.homophily < 0.5

    @property
    def many_labels(self) -> bool:
        """Whether there are labels enough for a deep network."""
        return self.num_train > 100 * self.num_classes


def balanced_weight(y: Tensor, num_classes: int) -> Tensor:
    """Weight m / (c · count) of each class, (c,): every class weighs the same in all.

    ``y`` are the m training labels; classes without a label don't count.
    """
    count = torch.bincount(y, minlength=num_classes)
    return y.numel() / (int((count > 0).sum()) * count.clamp(min=1).float())


@dataclass(frozen=True)
class Problem:
    """A checked graph, ready for a method."""

    inputs: GraphInputs  # X (scaled) and Â, what networks compute on
    label_adj: CSR  # what labels travel by: Â, n×n; both directions for "apart"
    # Class of each node, −1 where unknown. Methods read it at training and validation
    # nodes only.
    y: Tensor
    train_mask: Tensor  # nodes whose labels are known to the method
    val_mask: Tensor  # nodes that select
    num_classes: int
    scaler: FeatureScaler  # how X was scaled
    view: GraphView  # how the edges were read
    data: Data  # the checked graph
    feature_norm: str = "auto"  # the option that X was scaled by
    metric: str = "accuracy"  # what validation selects by
    class_weight: Tensor | None = None  # weight of each class in training, (c,)

    @classmethod
    def of(
        cls,
        data: Data,
        config: MethodConfig,
        device: torch.device,
        metric: str = "accuracy",
        class_weight: Tensor | None = None,
    ) -> Problem:
        """Scale the features and build Â, once, for a checked graph."""
        # Tables are scaled by column when they are encoded; "auto" leaves them.
        scaled = (
            getattr(data, "features_scaled", False) and config.feature_norm == "auto"
        )
        scaler = FeatureScaler.fit(data.x, "none" if scaled else config.feature_norm)
        view = GraphView.of(config)
        adj = label_adj = view.adjacency(data).to(device)
        if view.direction == "apart":
            label_adj = replace(view, direction="both").adjacency(data).to(device)
        names = getattr(data, "class_names", None)
        x = as_features(scaler(data.x)).to(device)
        return cls(
            inputs=GraphInputs(x, view.propagation(adj)),
            label_adj=label_adj,
            y=data.y.to(device),
            train_mask=data.train_mask.to(device),
            val_mask=data.val_mask.to(device),
            num_classes=len(names) if names else int(data.y.max()) + 1,
            scaler=scaler,
            view=view,
            data=data,
            feature_norm=config.feature_norm,
            metric=metric,
            class_weight=None if class_weight is None else class_weight.to(device),
        )

    def seen_with(self, config: MethodConfig) -> Problem:
        """The same graph under another configuration's scaling and direction."""
        view = GraphView.of(config)
        same_adj = replace(view, order=self.view.order) == self.view
        if config.feature_norm != self.feature_norm or not same_adj:
            chosen = self.metric, self.class_weight
            return Problem.of(self.data, config, self.y.device, *chosen)
        if view == self.view:
            return self
        inputs = GraphInputs(self.x, view.propagation(self.adj))
        return replace(self, inputs=inputs, view=view)

    @property
    def x(self) -> Features:
        """X, scaled: a dense matrix or a CSR one."""
        return self.inputs.x

    @property
    def adj(self) -> CSR:
        """Â; n×2n for ``apart``."""
        adj = self.inputs.adj
        return adj.adj if isinstance(adj, MeanPropagation) else adj

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return self.y.numel()

    @property
    def shapes(self) -> Shapes:
        """The sizes that a network for this graph has."""
        return Shapes(int(self.data.x.size(1)), self.num_classes)

    @cached_property
    def train_index(self) -> Tensor:
        """Training nodes."""
        return self.train_mask.nonzero().squeeze(1)

    @cached_property
    def val_index(self) -> Tensor:
        """Validation nodes."""
        return self.val_mask.nonzero().squeeze(1)

    @cached_property
    def train_target(self) -> Tensor:
        """Class of each training node, (m,)."""
        return self.y[self.train_index]

    @cached_property
    def val_target(self) -> Tensor:
        """Class of each validation node."""
        return self.y[self.val_index]

    @cached_property
    def train_weight(self) -> Tensor | None:
        """Weight of each training node, with mean 1; None: all weigh the same."""
        if self.class_weight is None:
            return None
        weight = self.class_weight[self.train_target]
        return weight / weight.mean()

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """CE of the training nodes from their logits, m×c; classes may be weighted."""
        return F.cross_entropy(logits, self.train_target, self.class_weight)

    @property
    def own_score(self) -> Callable[[Tensor, Tensor], float] | None:
        """What the trainer selects by, from logits and classes; None: accuracy."""
        if self.metric == "accuracy":
            return None
        return partial(score, self.metric, num_classes=self.num_classes)

    def val_score(self, logits: Tensor) -> float:
        """The metric of the validation nodes, from all logits; NaN without any."""
        val_logits = logits[self.val_index]
        return score(self.metric, val_logits, self.val_target, self.num_classes)

    @property
    def train_labels(self) -> Tensor:
        """Class of each training node, −1 elsewhere: what a method may learn from."""
        return torch.where(self.train_mask, self.y, -1)

    @cached_property
    def traits(self) -> GraphTraits:
        """Facts that search spaces may depend on."""
        data, x = self.data, self.x
        source, target = data.edge_index
        labels = self.train_labels.cpu()
        known = (labels[source] >= 0) & (labels[target] >= 0) & (source != target)
        return GraphTraits(
            num_nodes=self.num_nodes,
            num_edges=int(data.edge_index.size(1)),
            num_features=int(data.x.size(1)),
            num_classes=self.num_classes,
            sparse_features=isinstance(x, CSR),
            directed=bool(getattr(data, "directed", False))
            or getattr(data, "links", None) is not None,
            homophily=float((labels[source] == labels[target])[known].double().mean()),
            num_train=self.train_index.numel(),
            feature_entries=x.nnz if isinstance(x, CSR) else x.numel(),
        )
