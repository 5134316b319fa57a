"""The next labels to buy: the unlabelled nodes whose labels would help most.

What a label is worth: how many nodes it would tell something new. A label carries to
the nodes that look alike after smoothing (``core/coverage``); there it is news as far
as no label of today carries that far; and each node counts by its need, from a half
where all is clear to one where label propagation and the GCN are torn between classes
(most NELU nodes) or no label reaches. Nodes are chosen one by one, each for what it
adds to the labels there are and to those chosen before it, and a node that is likely
of a class with many labels has to add more than one of a class with few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.coverage import greedy_cover, similarity, smoothed_directions
from elugcn.core.utilization import Utilization
from elugcn.diagnosis.fitted import Reading
from elugcn.errors import InputError
from elugcn.fitting import Fitted

# Bounds on what is held at once: 2,000 candidates × 10,000 nodes to cover is 80 MB.
CANDIDATES, TARGETS = 2_000, 10_000
HOPS, POWER = 2, 2.0  # of the kernel: both chosen on draws no result is made of
_CONTESTED = 0.2  # margin between the two best classes below which they contest
_REASONS = {
    "unreachable": "no label reaches it",
    "nelu": "labels and GCN disagree",
    "contested": "two classes contest it",
    "covers": "speaks for its region",
}


@dataclass(frozen=True)
class Suggestion:
    """A node worth a label.

    Attributes:
        node: The user's id of it.
        index: Its number.
        gain: How many nodes it would tell something new, each weighed by its need.
        gcn: What the GCN thinks it is.
        confidence: How sure the GCN is, a probability.
        utilization: ``elu``, ``nelu`` or ``unreachable``.
        reason: Why it is asked for, in words.
    """

    node: str
    index: int
    gain: float
    gcn: str
    confidence: float
    utilization: str
    reason: str

    def plain(self) -> dict[str, Any]:
        """The suggestion as JSON holds it."""
        return asdict(self)


def suggest_labels(
    fitted: Fitted | Reading,
    count: int = 20,
    pool: Tensor | None = None,
    *,
    seed: int = 0,
) -> list[Suggestion]:
    """The nodes whose labels would help most, in the order to ask for them.

    O(h·nnz·256) for the smoothed features and O(2,000·10,000) for the choice: larger
    graphs are represented by that many candidates and nodes to cover.

    Args:
        fitted: From ``fit_graph``, or ``fitted_`` of a classifier; or its reading.
        count: How many.
        pool: Mask of the nodes that may be asked for, (n,); None: ``default_pool``.
        seed: Of the nodes that represent a larger graph.

    Returns:
        ``count`` suggestions, fewer only if the pool is smaller.
    """
    if count < 1:
        raise InputError(f"suggest must be at least 1; got {count}")
    reading = fitted if isinstance(fitted, Reading) else Reading.of(fitted)
    data, n = reading.data, reading.problem.num_nodes
    chosen = default_pool(data) if pool is None else pool.cpu()
    if chosen.dtype != torch.bool or chosen.shape != (n,):
        raise InputError(f"pool must be a mask of {n} booleans")
    chosen = chosen & ~data.train_mask
    if not bool(chosen.any()):
        raise InputError("suggest: no node without a label is left to choose from")
    generator = torch.Generator().manual_seed(seed)
    doubt = need(reading)
    z = smoothed_directions(reading.problem.spread, reading.problem.x, HOPS)
    targets = _sample(torch.arange(n), TARGETS, generator)
    candidates = _candidates(
        reading, z, doubt, chosen, max(count, CANDIDATES), generator
    )
    kernel = similarity(z[candidates], z[targets], POWER)
    labelled = data.train_mask.nonzero().squeeze(1)
    covered = _covered(z[targets], z[labelled])
    # Of those in the sample each stands for n/t nodes.
    weight = doubt[targets] * (n / targets.numel())
    number = min(count, candidates.numel())
    favour = _favour(reading, candidates)
    picked, gains = greedy_cover(kernel, weight, covered, number, favour)
    return [
        _describe(reading, int(candidates[i]), gain)
        for i, gain in zip(picked, gains, strict=True)
    ]


def default_pool(data: Data) -> Tensor:
    """Mask of the nodes whose label is not known yet.

    Where every label is known, as in a published dataset, the nodes that neither train
    nor validate nor test; where there are none of those, the test nodes.
    """
    free: Tensor = ~data.train_mask & ~data.val_mask
    chosen: Tensor
    for chosen in (free & (data.y < 0), free & ~data.test_mask):
        if bool(chosen.any()):
            return chosen
    return free


def need(reading: Reading) -> Tensor:
    """How much a node needs a label, (n,) in [½, 1].

    The entropy of what label propagation and the GCN say together, their mean, as a
    share of the largest there can be: they disagree on NELU nodes, so that it is high
    there. A node that no label reaches has the full need.
    """
    both = _both(reading)
    most = torch.tensor(float(both.size(1))).log()
    doubt = torch.special.entr(both).sum(dim=1) / most
    return torch.where(reading.use.unreachable, 1.0, 0.5 + 0.5 * doubt.clamp(0.0, 1.0))


def _both(reading: Reading) -> Tensor:
    """What label propagation and the GCN say together; the GCN where labels do not."""
    return torch.where(
        reading.use.unreachable.unsqueeze(1),
        reading.proba,
        (reading.proba + reading.lpa) / 2,
    )


def _favour(reading: Reading, candidates: Tensor) -> Callable[[list[int]], Tensor]:
    """A factor for each candidate, lower the more labels its likely class has.

    1/√(1 + m_c/m̄), with m_c the labels of class c, there or chosen, and m̄ their mean.
    """
    data, c = reading.data, reading.problem.num_classes
    there = torch.bincount(data.y[data.train_mask], minlength=c).float()
    likely = _both(reading).argmax(dim=1)[candidates]

    def factor(picked: list[int]) -> Tensor:
        count = there + torch.bincount(likely[picked], minlength=c)
        return torch.rsqrt(1 + count / count.mean())[likely]

    return factor


def _candidates(
    reading: Reading,
    z: Tensor,
    weight: Tensor,
    pool: Tensor,
    most: int,
    generator: torch.Generator,
) -> Tensor:
    """The pool, or those of it that are worth a closer look.

    A class gets places by its need. Half of them go to the nodes nearest to all of the
    class, by ⟨z_j, Σ_i w_i z_i⟩, which costs O(n) for all; the others are drawn, so
    that no region is left out.
    """
    nodes = pool.nonzero().squeeze(1)
    if nodes.numel() <= most:
        return nodes
    classes = reading.use.gcn
    taken = []
    for c in torch.unique(classes[nodes]).tolist():
        members = nodes[classes[nodes] == c]
        of_class = weight * (classes == c)
        places = int(most * float(of_class.sum() / weight.sum())) + 1
        score = z[members] @ (z.T @ of_class)
        order = torch.argsort(score, descending=True, stable=True)
        half = (places + 1) // 2
        rest = members[order[half:]]
        taken += [members[order[:half]], _sample(rest, places - half, generator)]
    found = torch.cat(taken)
    if found.numel() < most:  # a class has more places than members in the pool
        rest = nodes[~torch.isin(nodes, found)]
        found = torch.cat([found, _sample(rest, most - found.numel(), generator)])
    return found.sort().values


def _sample(nodes: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """All nodes, or so many of them drawn at random, ascending."""
    if nodes.numel() <= most:
        return nodes
    drawn = torch.randperm(nodes.numel(), generator=generator)[:most]
    return nodes[drawn].sort().values


def _covered(targets: Tensor, labelled: Tensor) -> Tensor:
    """The nearest label of each target, blocks of labels at a time."""
    best = torch.zeros(len(targets))
    for block in torch.split(labelled, 256):
        best = torch.maximum(best, similarity(targets, block, POWER).max(dim=1).values)
    return best


def _describe(reading: Reading, at: int, gain: float) -> Suggestion:
    use, proba = reading.use, reading.proba[at]
    best = proba.topk(min(2, proba.numel())).values
    status = Utilization(int(use.status[at])).name.lower()
    why = status
    if status == "elu":
        why = "contested" if float(best[0] - best[-1]) < _CONTESTED else "covers"
    gcn = int(use.gcn[at])
    return Suggestion(
        node=reading.ids[at],
        index=at,
        gain=gain,
        gcn=reading.names[gcn],
        confidence=float(proba[gcn]),
        utilization=status,
        reason=_REASONS[why],
    )
