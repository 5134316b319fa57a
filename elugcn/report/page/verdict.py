"""Three sentences for somebody who reads nothing else."""

from __future__ import annotations

from elugcn.report.page.content import Content
from elugcn.report.page.usage import ClassRow

_NAMES = {"gcn": "a plain GCN", "mlp": "an MLP", "lpa": "label propagation"}
# Fewer nodes than this say nothing about a class.
_ENOUGH = 10
# Calibration errors that a reader of probabilities notices, and that mislead.
_GOOD, _BAD = 0.04, 0.1


def percent(share: float | None, nodes: int = 1000) -> str:
    """A share for people, with the digits that so many nodes can carry.

    What is close to all or nothing gets a digit more: 99.8 % is not 100 %.
    """
    if share is None:
        return "–"
    if 0.0 < share < 0.0005 or 0.9995 <= share < 1.0:
        return "<0.1\u00a0%" if share < 0.5 else ">99.9\u00a0%"
    close = 0.0 < share < 0.005 or 0.995 <= share < 1.0
    return f"{100 * share:.{1 if nodes >= 500 or close else 0}f}\u00a0%"


def verdict(content: Content) -> list[str]:
    """How good it is, what the labels do, and whether its probabilities can be used."""
    return [_accuracy(content), _labels(content), _trust(content)]


def _accuracy(content: Content) -> str:
    judged = content.judged
    if judged is None:
        return (
            "No labels were kept aside, so nothing here can say how accurate the "
            "predictions are."
        )
    own, *others = content.scores
    m = judged.nodes
    where = f"{m:,} {judged.name} nodes" if m > 1 else f"the one {judged.name} node"
    said = f"{own.method} is right on {percent(own.accuracy, m)} of {where}"
    found = {s.method: s for s in others if s.accuracy is not None}
    gcn = found.pop("gcn", None)
    if gcn is not None and gcn.accuracy is not None and own.accuracy is not None:
        gap = own.accuracy - gcn.accuracy
        plain = f"{_NAMES['gcn']} ({percent(gcn.accuracy, m)})"
        if not gcn.clear:
            said += f", which is no clear difference to {plain}"
        else:
            points = f"{100 * abs(gap):.{1 if m >= 500 else 0}f}"
            many = "point" if points == "1" else "points"
            much = f"{points} {many}" if float(points) else "a hair"
            said += f", {much} {'more' if gap > 0 else 'less'} than {plain}"
    rest = [f"{_NAMES[k]} gets {percent(s.accuracy, m)}" for k, s in found.items()]
    return said + (f"; {' and '.join(rest)}." if rest else ".")


def _labels(content: Content) -> str:
    weakest = _weakest(content.classes)
    weak = ""
    if weakest is not None:
        weak = (
            f"it is weakest where it says “{weakest.name}”, right on "
            f"{percent(weakest.right, weakest.judged)} of {weakest.judged:,} nodes"
        )
    if not content.statuses:
        share = f"{content.labels:,} of {content.nodes_total:,} nodes had a label"
        return f"{share} to learn from{weak and '; ' + weak}."
    elu, nelu, never = content.statuses
    said = f"The labels are put to use on {percent(elu.share, 1)} of the nodes"
    if nelu.nodes:
        said += f"; on {percent(nelu.share, 1)} they are not (NELU)"
        if nelu.judged >= _ENOUGH and elu.judged >= _ENOUGH:
            said += (
                f", and there the model is right on {percent(nelu.model, 1)} instead "
                f"of {percent(elu.model, 1)}"
            )
    if never.nodes:
        few = f"{never.nodes:,} node{'s' if never.nodes > 1 else ''}"
        share = percent(never.share, 1) if never.share >= 0.005 else few
        said += f"; no label reaches {share}"
    return said + "."


def _weakest(classes: list[ClassRow]) -> ClassRow | None:
    told = [row for row in classes if row.right is not None and row.judged >= _ENOUGH]
    return min(told, key=lambda row: row.right or 0.0, default=None)


def _trust(content: Content) -> str:
    found = content.reliability
    if found is None:
        return "Whether its probabilities can be trusted can't be told without labels."
    sure, right = percent(found.confidence, 1), percent(found.accuracy, 1)
    said = f"it is {sure} sure and {right} right"
    gap = found.confidence - found.accuracy
    if found.nodes < 30:
        return f"On so few nodes its probabilities can hardly be judged: {said}."
    if found.error <= _GOOD:
        return f"Its probabilities mean what they say: on average {said}."
    side = "too sure of itself" if gap > 0 else "more often right than it claims"
    if abs(gap) < found.error / 2:
        side = "too sure in places and too modest in others"
    how = (
        "Don't read its probabilities as chances"
        if found.error > _BAD
        else ("Take its probabilities with a grain of salt")
    )
    return f"{how}: the model is {side} (on average {said})."
