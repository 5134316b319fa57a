"""A flat map of the nodes whose axes need no legend.

Every class has a corner of a regular polygon and a node lies at Σ_k p_k·corner_k: at a
corner if the model is certain, between two corners if it hesitates between two classes,
in the middle if it knows little. Neighbouring corners are classes that the model
confuses. Certain nodes would all lie on one point, so each corner is fanned out into a
disc with its most certain node in the centre.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# 2π/φ²: successive points of a sunflower never line up.
_GOLDEN = math.pi * (3.0 - math.sqrt(5.0))
# Radius of the largest disc as a share of the distance between two corners.
_FILL = 0.42


def node_map(proba: Tensor, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    """Positions of nodes and corners, n×2 and c×2; O(n·c + n log n + c³).

    Args:
        proba: Class probabilities, n×c.
        spread: Radius of the discs as a share of what fits; 0 for no discs.
    """
    c = proba.size(1)
    corners = class_corners(proba)
    confidence, predicted = proba.max(dim=1)
    rank = _rank_within(predicted, confidence)
    count = torch.bincount(predicted, minlength=c).clamp(min=1)
    side = 2.0 * math.sin(math.pi / c) if c > 1 else 1.0
    # Discs of equal density: their area is the number of nodes.
    radius = spread * _FILL * side * (count / count.max()).sqrt()
    certainty = (confidence - 1.0 / c) / max(1.0 - 1.0 / c, 1e-9)
    # Uncertain nodes stay where their probabilities put them.
    out = radius[predicted] * (rank / count[predicted]).sqrt() * (0.3 + 0.7 * certainty)
    angle = rank * _GOLDEN
    offset = torch.stack([out * angle.cos(), out * angle.sin()], dim=1)
    return proba.double() @ corners + offset, corners


def class_corners(proba: Tensor) -> Tensor:
    """Corners on the unit circle, c×2, confused classes beside each other.

    The order is that of the angle in the plane of the two slowest eigenvectors of the
    confusion graph, C = PᵀP with its diagonal scaled to 1.
    """
    c = proba.size(1)
    angle = torch.arange(c, dtype=torch.float64) * (2.0 * math.pi / max(c, 1))
    # The first corner is at the top; two classes lie side by side.
    turn = math.pi if c == 2 else math.pi / 2
    ring = torch.stack([(turn - angle).cos(), (turn - angle).sin()], dim=1)
    if c < 4:  # every order of three corners is the same triangle
        return ring
    p = proba.double()
    shared = p.T @ p
    scale = shared.diagonal().clamp(min=1e-12).sqrt()
    confusion = (shared / torch.outer(scale, scale)).fill_diagonal_(0.0)
    degree = confusion.sum(dim=1).clamp(min=1e-12).sqrt()
    laplacian = torch.eye(c).double() - confusion / torch.outer(degree, degree)
    vectors = torch.linalg.eigh(laplacian).eigenvectors
    order = torch.argsort(torch.atan2(vectors[:, 2], vectors[:, 1])).tolist()
    # Eigenvectors have no sign of their own: start at class 0, its nearer side first.
    start = order.index(0)
    order = order[start:] + order[:start]
    if order[1] > order[-1]:
        order = [order[0], *reversed(order[1:])]
    corners = torch.empty_like(ring)
    corners[torch.tensor(order)] = ring
    return corners


def _rank_within(group: Tensor, score: Tensor) -> Tensor:
    """Rank of each node in its group, highest score first, from 0, in float64."""
    by_score = torch.argsort(score, descending=True, stable=True)
    order = by_score[torch.argsort(group[by_score], stable=True)]
    size = torch.bincount(group)
    start = size.cumsum(0) - size
    rank = torch.empty(group.numel(), dtype=torch.float64)
    rank[order] = (torch.arange(group.numel()) - start[group[order]]).double()
    return rank
