"""Definition 1: which nodes make use of the labels that reach them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch
import torch.nn.functional as F
from torch import Tensor


class Utilization(IntEnum):
    """What the labels do for a node."""

    UNREACHABLE = -1  # no label reaches it, so there is nothing to agree with
    NELU = 0  # label propagation and the GCN disagree
    ELU = 1  # they agree: the label information is used


@dataclass(frozen=True)
class LabelUtilization:
    """Definition 1 for every node."""

    lpa: Tensor  # class by label propagation, −1 where no label reaches, (n,)
    gcn: Tensor  # class by the GCN, (n,)
    status: Tensor  # a Utilization value per node, (n,)
    lpa_proba: Tensor | None = None  # what gave lpa, n×c, if it is known
    gcn_proba: Tensor | None = None  # what gave gcn, n×c, if it is known

    @property
    def elu(self) -> Tensor:
        """Mask of the nodes on which label propagation and the GCN agree."""
        return self.status == Utilization.ELU

    @property
    def nelu(self) -> Tensor:
        """Mask of the nodes on which they disagree."""
        return self.status == Utilization.NELU

    @property
    def unreachable(self) -> Tensor:
        """Mask of the nodes that no label reaches."""
        return self.status == Utilization.UNREACHABLE

    @property
    def elu_fraction(self) -> float:
        """Share of ELU nodes among all nodes."""
        return float(self.elu.float().mean())

    @property
    def unreachable_fraction(self) -> float:
        """Share of nodes that no label reaches."""
        return float(self.unreachable.float().mean())

    def names(self) -> list[str]:
        """``"elu"``, ``"nelu"`` or ``"unreachable"`` per node."""
        words = {int(u): u.name.lower() for u in Utilization}
        return [words[s] for s in self.status.tolist()]

    def __repr__(self) -> str:
        names = self.names()
        counts = [
            f"{word}={names.count(word)}" for word in ("elu", "nelu", "unreachable")
        ]
        return f"LabelUtilization({', '.join(counts)})"


def definition_one(
    lpa: Tensor, gcn: Tensor, *, logits: bool = True
) -> LabelUtilization:
    """V_ELU = {v : LPA(v) = GCN(v)} (eq. 2), for any two predictions.

    Each is n×c or holds classes, (n,). Where no label reaches, ``lpa`` has a zero row
    or −1. ``logits``: whether an n×c ``gcn`` holds logits rather than probabilities.
    """
    lpa_class, gcn_class = _classes(lpa), _classes(gcn)
    status = torch.where(lpa_class == gcn_class, Utilization.ELU, Utilization.NELU)
    status[lpa_class < 0] = Utilization.UNREACHABLE
    lpa_proba = lpa if lpa.dim() == 2 else None
    gcn_proba = gcn if gcn.dim() == 2 else None
    if gcn_proba is not None and logits:
        gcn_proba = F.softmax(gcn_proba, dim=1)
    return LabelUtilization(
        lpa_class, gcn_class, status.to(torch.int8), lpa_proba, gcn_proba
    )


def _classes(prediction: Tensor) -> Tensor:
    """The class of each row; −1 for a zero row, which argmax would call class 0."""
    if prediction.dim() == 1:
        return prediction.long()
    best = prediction.argmax(dim=1)
    best[(prediction == 0).all(dim=1)] = -1
    return best
