"""What `auto` tried, which members carry its answer, and what ELU adds to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from elugcn.insight.findings import counted, format_percent
from elugcn.methods.metrics import TITLES

_NAMED = 3  # members in a line
_LEAST_GAIN = 0.005  # of a metric; less is no difference


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_finite)]


class MemberTrial(BaseModel):
    """A member, how it was judged, and its share of the answer."""

    name: str
    method: str
    elu: bool
    score: Number
    loss: Number
    epochs: int
    seconds: float
    weight: float

    @property
    def order(self) -> float:
        """The log-loss, which may be unknown."""
        return math.inf if self.loss is None else self.loss


class ELUShare(BaseModel):
    """The answer with the members that use ELU, and the best one without them."""

    weight: float = 0.0
    score: Number = None
    loss: Number = None
    score_without: Number = None
    loss_without: Number = None


class Members(BaseModel):
    """The record that a fit of `auto` leaves."""

    judged_on: str
    refit: bool
    elu: ELUShare
    left_out: list[str] = []
    trials: list[MemberTrial]

    @classmethod
    def of(cls, details: object) -> Members | None:
        """The record in the details of a run; None if it has none."""
        if not isinstance(details, Mapping) or "trials" not in details:
            return None
        try:
            return cls.model_validate(dict(details))
        except ValidationError:
            return None

    @property
    def chosen(self) -> list[MemberTrial]:
        """Members of the answer, the heaviest first."""
        carrying = [trial for trial in self.trials if trial.weight > 0]
        return sorted(carrying, key=lambda trial: -trial.weight)

    @property
    def longest(self) -> str:
        """The member of the answer that was trained for the most epochs."""
        found = max(self.chosen, key=lambda trial: trial.epochs, default=None)
        return "" if found is None else found.name

    @property
    def is_judged(self) -> bool:
        """Whether there was any node to judge on."""
        return self.elu.score is not None

    @property
    def has_folds(self) -> bool:
        """Whether the members were judged by cross-validation."""
        return self.judged_on.endswith("folds")

    @property
    def judged(self) -> str:
        """What a score on the judged nodes is called."""
        return "cross-validated" if self.has_folds else "validation"


def measured_text(members: Members) -> str:
    """On what the validation score was measured; empty if on validation nodes alone."""
    said = []
    if not members.is_judged:
        return "There are no nodes to validate on: the first member is the answer."
    if members.has_folds:
        said.append(f"Validation is cross-validation: {members.judged_on}.")
    if members.refit:
        first = "" if members.has_folds else "They judged first; then "
        text = f"{first}validation nodes trained the answer, too."
        said.append(text[0].upper() + text[1:])
    return " ".join(said)


def members_text(members: Members) -> str:
    """The heaviest members, how many more there are, and how many were tried."""
    chosen = members.chosen
    parts = [f"{format_percent(one.weight)} {one.name}" for one in chosen[:_NAMED]]
    if more := len(chosen) - len(parts):
        parts.append(f"{more} more")
    tried = len(members.trials)
    return f"Members: {'; '.join(parts)} (of {tried:,} tried)."


def elu_text(members: Members, metric: str, nodes: int) -> str:
    """What the members that use ELU add to the metric of the judged nodes.

    Empty if there was none, or nothing to judge on.
    """
    elu = members.elu
    if not any(trial.elu for trial in members.trials) or elu.score is None:
        return ""
    if not elu.weight:
        return "ELU members add nothing here."
    share = format_percent(elu.weight)
    if elu.score_without is None:
        return f"ELU members carry {share} of the answer."
    title, gain = f"{members.judged} {TITLES[metric]}", elu.score - elu.score_without
    values = f"{format_percent(elu.score, 1)} instead of "
    values += format_percent(elu.score_without, 1)
    if abs(gain) < _LEAST_GAIN:
        return (
            f"ELU members carry {share} of the answer and change {title} by less than "
            f"half a point ({values})."
        )
    points = f"{100 * abs(gain):.1f}"
    points += " point" if points == "1.0" else " points"
    if metric == "accuracy":
        values += f", {round(abs(gain) * nodes):,} of {counted(nodes, 'node')}"
    if gain > 0:
        return f"ELU members add {points} of {title} ({values})."
    return (
        f"ELU members cost {points} of {title} ({values}). They were chosen for a "
        "lower log-loss."
    )


def left_out_text(members: Members) -> str:
    """Members that were not tried, and why; empty if all were."""
    if not members.left_out:
        return ""
    names, more = members.left_out[:_NAMED], len(members.left_out) - _NAMED
    listed = "; ".join(names) + (f"; {more} more" if more > 0 else "")
    return f"Not tried, because they would take too long: {listed}."
