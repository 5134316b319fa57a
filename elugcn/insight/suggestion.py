"""Active learning: the unlabelled nodes whose labels would help most.

A linear GCN that is trained on a label at node j changes its output at node i by
⟨z_i, z_j⟩ with Z = ÂʰX. This is how far the label carries, over edges and features.
A set S of labelled nodes covers the graph by

    F(S) = Σ_i w_i · max_{j∈S} k_ij,    k_ij = max(cos(z_i, z_j), 0)².

The weight w_i is the node's need: from ½ where label propagation and the GCN are
certain and agree, to 1 where they are torn between classes (most NELU nodes) or no
label reaches. F is monotone and submodular: always taking the largest gain is within
1 − 1/e of the best choice, and of two similar nodes only the first gains much. A node
whose likely class has many labels has to add more than one whose class has few.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.elu.utilization import Utilization
from elugcn.engine import CSR, Features
from elugcn.errors import InputError
from elugcn.insight.context import DiagnosisContext

# Larger graphs are sampled: 2,000 candidates × 10,000 nodes to cover take 80 MB.
MAX_CANDIDATES, MAX_TARGETS = 2_000, 10_000
HOPS = 2  # h; chosen, like the square, on random graphs outside the benchmarks
MAX_COLUMNS = 256  # more features are projected onto their leading directions
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
    random = torch.Generator().manual_seed(seed)
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


def smoothed_directions(adj: CSR, x: Features) -> Tensor:
    """Unit rows in the direction of ÂʰX, n×min(d, 256); zero rows stay zero.

    If X is wide, it is replaced by U Σ of its leading singular vectors.
    """
    width = min(MAX_COLUMNS, x.shape[0])
    if x.shape[1] <= width:
        z = x.to_dense() if isinstance(x, CSR) else x.float()
    else:
        from sklearn.utils.extmath import randomized_svd  # takes a second to import

        matrix = x.to_scipy() if isinstance(x, CSR) else x.numpy(force=True)
        u, s, _ = randomized_svd(matrix, width, n_iter=2, random_state=0)
        z = torch.from_numpy(np.ascontiguousarray((u * s).astype(np.float32)))
    for _ in range(HOPS):
        z = adj @ z
    return F.normalize(z, dim=1)


def similarity(rows: Tensor, columns: Tensor) -> Tensor:
    """k_ij of unit rows with unit columns, m×t in [0, 1]."""
    return (rows @ columns.T).clamp(0.0, 1.0) ** 2


def greedy_cover(
    kernel: Tensor,  # k of each candidate with each node to cover, m×t
    weight: Tensor,  # w of each node to cover, (t,)
    covered: Tensor,  # max k over the nodes that are labelled already, (t,)
    count: int,  # at most m
    factor: Callable[[list[int]], Tensor],  # of each gain, given the rows picked, (m,)
) -> tuple[list[int], list[float]]:
    """Pick rows one by one, each time the one that adds the most to F.

    Gains only shrink as more rows are picked, so old gains are upper bounds and few
    rows are evaluated again: O(m·t) for the first pick, far less for the next. Rows are
    returned in the order they were picked, with the gain of each without its factor.
    """
    bound = _gains(kernel, weight, covered)
    fresh = torch.zeros(len(kernel), dtype=torch.long)
    picked: list[int] = []
    gains: list[float] = []
    while len(picked) < count:
        scale = factor(picked)
        best = int((bound * scale).argmax())
        while int(fresh[best]) < len(picked):
            bound[best] = float(_gains(kernel[best : best + 1], weight, covered))
            fresh[best] = len(picked)
            best = int((bound * scale).argmax())
        picked.append(best)
        gains.append(float(bound[best]))
        covered = torch.maximum(covered, kernel[best])
        bound[best] = -torch.inf
    return picked, gains


def _gains(kernel: Tensor, weight: Tensor, covered: Tensor) -> Tensor:
    """What each row would add, (m,); blocks of rows bound the memory."""
    blocks = torch.split(kernel, 256)
    return torch.cat([(b - covered).clamp(min=0.0) @ weight for b in blocks])


def covered_by(targets: Tensor, labelled: Tensor) -> Tensor:
    """Similarity of each target to the nearest label, in blocks of labels, (t,)."""
    best = torch.zeros(len(targets))
    for block in torch.split(labelled, 256):
        best = torch.maximum(best, similarity(targets, block).max(dim=1).values)
    return best


def _candidates(
    classes: Tensor,
    z: Tensor,
    needed: Tensor,
    nodes: Tensor,
    most: int,
    random: torch.Generator,
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


def _sample(nodes: Tensor, most: int, random: torch.Generator) -> Tensor:
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
        reason = f"label propagation and the {context.model} disagree"
    elif first - second < _CLOSE:
        reason = "two classes are almost equally likely"
    node, name, confidence = context.ids[at], context.names[gcn], float(proba[gcn])
    return Suggestion(node, at, gain, name, confidence, kind.name.lower(), reason)
