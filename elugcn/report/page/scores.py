"""How accurate the run's model is, beside the simpler ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from elugcn.fitting import Fitted
from elugcn.report.page.baselines import Scores


@dataclass(frozen=True)
class Judged:
    """The labelled nodes that accuracies are counted on."""

    name: str
    mask: Tensor
    nodes: int

    @property
    def margin(self) -> float:
        """Half of a 95 % interval of a share near 1/2 on so many nodes, at most."""
        return 0.98 / math.sqrt(self.nodes)


@dataclass(frozen=True)
class Score:
    """Accuracy of one model.

    ``clear`` tells whether its difference to the run's model is more than chance; None
    where the two can't be compared node by node.
    """

    method: str
    accuracy: float | None
    val_accuracy: float | None
    clear: bool | None = None


def judged_nodes(fitted: Fitted) -> Judged | None:
    """The labelled test nodes; validation where there are none; None without either."""
    data = fitted.data
    for name, mask in (("test", data.test_mask), ("validation", data.val_mask)):
        chosen = mask & (data.y >= 0)
        if bool(chosen.any()):
            return Judged(name, chosen, int(chosen.sum()))
    return None


def scores(fitted: Fitted, judged: Judged | None, others: Scores) -> list[Score]:
    """The run's model first, then the simpler ones; [] if nothing can be judged."""
    if judged is None:
        return []
    val = fitted.accuracy(fitted.data.val_mask)
    out = [Score(fitted.method, fitted.accuracy(judged.mask), val)]
    key = "test_accuracy" if judged.name == "test" else "val_accuracy"
    use = fitted.prediction.utilization
    rivals = {} if use is None else {"gcn": use.gcn.cpu(), "lpa": use.lpa.cpu()}
    for name, found in others.items():
        clear = None
        if name in rivals:
            clear = clearly_differs(fitted, rivals[name], judged.mask)
        out.append(Score(name, found.get(key), found.get("val_accuracy"), clear))
    return out


def clearly_differs(fitted: Fitted, other: Tensor, mask: Tensor) -> bool:
    """Whether two models' accuracies differ by more than chance would (McNemar).

    Of the nodes where exactly one of the two is right, each is a coin toss if they
    are equally good: clear is |b − c| > 2·√(b + c).
    """
    y = fitted.data.y[mask]
    ours = fitted.prediction.logits.argmax(dim=1)[mask] == y
    theirs = other[mask] == y
    b, c = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return abs(b - c) > 2.0 * math.sqrt(b + c)
