"""Active learning: the unlabelled nodes whose labels would help most.

A label carries to the nodes that look alike after smoothing (``coverage.py``). There it
is new information as far as no known label carries that far. Each node counts by its
need: from ½ where label propagation and the GCN are certain and agree, to 1 where they
are torn between classes (most NELU nodes) or no label reaches. Nodes are chosen one by
one. A node whose likely class has many labels has to add more than one whose class has
few.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.elu.utilization import Utilization
from elugcn.errors import InputError
from elugcn.insight.context import DiagnosisContext
from elugcn.insight.coverage import greedy_cover, similarity, smoothed_directions

# Larger graphs are sampled: 2,000 candidates × 10,000 nodes to cover take 80 MB.
MAX_CANDIDATES, MAX_TARGETS = 2_000, 10_000
Random = torch.Generator
_CLOSE = 0.2  # margin between the two most likely classes


@dataclass(frozen=True)
class Suggestion:
    """A node worth labelling."""

    node: str  # the user's id
    index: int
    gain: float  # how many nodes the label would inform, weighted by their need
    gcn: str  # what the GCN predicts
    confidence: float  # the GCN's probability of that class
    utilization: str  # elu, nelu or unreachable
    reason: str  # in words


def suggest_labels(
    fitted: Fitted | DiagnosisContext,
    count: int = 20,
    pool: Tensor | None = None,
    *,
    seed: int = 0,
) -> list[Suggestion]:
    """The nodes whose labels would help most, best first.

    ``pool`` is a mask of the nodes that may be suggested, (n,); None: ``default_pool``.
    Fewer than ``count`` are returned if the pool is smaller. ``seed`` is that of the
    sample that represents a larger graph. O(nnz·256) for the smoothed features and
    O(2,000·10,000) for the choice.
    """
    if count < 1:
        raise InputError(f"count must be at least 1; got {count}")
    context = DiagnosisContext.of(fitted)
    problem, data, n = context.problem, context.data, int(context.data.num_nodes)
    allowed = default_pool(data) if pool is None else pool.cpu()
    if allowed.dtype != torch.bool or allowed.shape != (n,):
        raise InputError(f"pool must be a boolean mask of shape ({n},)")
    nodes = (allowed & ~data.train_mask).nonzero().squeeze(1)
    if not nodes.numel():
        raise InputError("there is no unlabelled node left to suggest")
    random = Random().manual_seed(seed)
    needed, z = need(context), smoothed_directions(problem.label_adj, problem.x)
    targets = _sample(torch.arange(n), MAX_TARGETS, random)
    most, c = max(count, MAX_CANDIDATES), len(context.names)
    candidates = _candidates(context.use.gcn, z, needed, nodes, most, random)
    likely = joint_prediction(context).argmax(dim=1)[candidates]
    known = torch.bincount(data.y[data.train_mask], minlength=c).float()

    def balance(picked: list[int]) -> Tensor:
        """1/√(1 + m_c/m̄), m_c the labels of the likely class, picked ones included."""
        labels = known + torch.bincount(likely[picked], minlength=c)
        return torch.rsqrt(1 + labels / labels.mean())[likely]

    picked, gains = greedy_cover(
        similarity(z[candidates], z[targets]),
        needed[targets] * (n / targets.numel()),  # a sampled node stands for n/t nodes
        covered_by(z[targets], z[data.train_mask]),
        min(count, candidates.numel()),
        balance,
    )
    chosen = zip(candidates[picked].tolist(), gains, strict=True)
    return [_describe(context, at, gain) for at, gain in chosen]


def default_pool(data: Data) -> Tensor:
    """Mask of the nodes whose label is unknown.

    If every label is known, as in a benchmark: the nodes outside all splits, or else
    the test nodes.
    """
    free: Tensor = ~data.train_mask & ~data.val_mask
    pool: Tensor
    for pool in (free & (data.y < 0), free & ~data.test_mask):
        if bool(pool.any()):
            return pool
    return free


def need(context: DiagnosisContext) -> Tensor:
    """How much each node needs a label, (n,) in [½, 1].

    ½ + ½ the normalised entropy of the mean of both predictions; 1 where no label
    reaches.
    """
    both = joint_prediction(context)
    entropy = torch.special.entr(both).sum(dim=1) / math.log(both.size(1))
    doubt = 0.5 + 0.5 * entropy.clamp(0.0, 1.0)
    return torch.where(context.use.unreachable, 1.0, doubt)


def joint_prediction(context: DiagnosisContext) -> Tensor:
    """Mean of label propagation and the GCN, n×c; the GCN's where no label reaches."""
    mean = (context.proba + context.lpa) / 2
    return torch.where(context.use.unreachable.unsqueeze(1), context.proba, mean)


def covered_by(targets: Tensor, labelled: Tensor) -> Tensor:
    """Similarity of each target to the nearest label, in blocks of labels, (t,)."""
    best = torch.zeros(len(targets))
    for block in torch.split(labelled, 256):
        best = torch.maximum(best, similarity(targets, block).max(dim=1).values)
    return best


def _candidates(
    classes: Tensor, z: Tensor, needed: Tensor, nodes: Tensor, most: int, random: Random
) -> Tensor:
    """The nodes of the pool, or about ``most`` of them, ascending.

    Each class gets candidates in proportion to its need. Half of them are the most
    central ones, by ⟨z_j, Σ_i w_i z_i⟩ over the class; the others are drawn, so that no
    region is left out.
    """
    if nodes.numel() <= most:
        return nodes
    taken = []
    for c in torch.unique(classes[nodes]).tolist():
        members = nodes[classes[nodes] == c]
        weight = needed * (classes == c)
        quota = int(most * float(weight.sum() / needed.sum())) + 1
        order = torch.argsort(z[members] @ (z.T @ weight), descending=True, stable=True)
        half = (quota + 1) // 2
        rest = _sample(members[order[half:]], quota - half, random)
        taken += [members[order[:half]], rest]
    found = torch.cat(taken)
    # A class may have fewer members in the pool than its quota.
    rest = nodes[~torch.isin(nodes, found)]
    missing = max(0, most - found.numel())
    return torch.cat([found, _sample(rest, missing, random)]).sort().values


def _sample(nodes: Tensor, most: int, random: Random) -> Tensor:
    """All nodes, or ``most`` of them drawn at random, ascending."""
    if nodes.numel() <= most:
        return nodes
    drawn = torch.randperm(nodes.numel(), generator=random)[:most]
    return nodes[drawn].sort().values


def _describe(context: DiagnosisContext, at: int, gain: float) -> Suggestion:
    proba, gcn = context.proba[at], int(context.use.gcn[at])
    first, second = proba.topk(2).values.tolist()
    kind = Utilization(int(context.use.status[at]))
    reason = "it represents many similar nodes"
    if kind is Utilization.UNREACHABLE:
        reason = "no label reaches it"
    elif kind is Utilization.NELU:
        reason = "label propagation and the GCN disagree"
    elif first - second < _CLOSE:
        reason = "two classes are almost equally likely"
    node, name, confidence = context.ids[at], context.names[gcn], float(proba[gcn])
    return Suggestion(node, at, gain, name, confidence, kind.name.lower(), reason)
