"""What the labels do for the nodes of each kind and of each class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from elugcn.core.utilization import Utilization
from elugcn.fitting import Fitted
from elugcn.report.page.scores import Judged

KINDS = {u: "unreachable" if u < 0 else u.name for u in reversed(Utilization)}


@dataclass(frozen=True)
class StatusRow:
    """Nodes of one kind (ELU, NELU, unreachable) and who is right on them.

    Shares are of all nodes, accuracies of the judged ones; None where there are none.
    """

    status: str
    nodes: int
    share: float
    judged: int
    model: float | None
    gcn: float | None
    lpa: float | None


@dataclass(frozen=True)
class ClassRow:
    """A predicted class: its nodes, what labels do for them, how often it is right.

    ``shares`` are of ELU, NELU and unreachable nodes; None without Definition 1, and
    where no node is predicted to have the class.
    """

    name: str
    index: int
    labels: int
    nodes: int
    shares: tuple[float, ...] | None
    right: float | None
    judged: int


def status_rows(fitted: Fitted, judged: Judged | None) -> list[StatusRow]:
    """Definition 1 over all nodes; [] for methods that do not compute it."""
    use, y = fitted.prediction.utilization, fitted.data.y
    if use is None:
        return []
    predicted = fitted.prediction.logits.argmax(dim=1)
    status = use.status.cpu()
    out = []
    for kind, name in KINDS.items():
        chosen = status == kind
        tested = chosen & (judged.mask if judged else False)
        out.append(
            StatusRow(
                status=name,
                nodes=int(chosen.sum()),
                share=float(chosen.double().mean()),
                judged=int(tested.sum()),
                model=_share(predicted == y, tested),
                gcn=_share(use.gcn.cpu() == y, tested),
                lpa=_share(use.lpa.cpu() == y, tested),
            )
        )
    return out


def class_rows(
    fitted: Fitted, judged: Judged | None, names: list[str]
) -> list[ClassRow]:
    """One row for each class; O(n) for each."""
    data, use = fitted.data, fitted.prediction.utilization
    predicted = fitted.prediction.logits.argmax(dim=1)
    out = []
    for c, name in enumerate(names):
        chosen = predicted == c
        nodes = int(chosen.sum())
        shares: tuple[float, ...] | None = None
        if use is not None and nodes:
            status = use.status.cpu()[chosen]
            shares = tuple(float((status == kind).double().mean()) for kind in KINDS)
        tested = chosen & (judged.mask if judged else False)
        out.append(
            ClassRow(
                name=name,
                index=c,
                labels=int((data.train_mask & (data.y == c)).sum()),
                nodes=nodes,
                shares=shares,
                right=_share(data.y == c, tested),
                judged=int(tested.sum()),
            )
        )
    return out


def _share(condition: Tensor, among: Tensor) -> float | None:
    chosen = condition[among]
    return float(chosen.double().mean()) if chosen.numel() else None
