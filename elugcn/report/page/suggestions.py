"""The next nodes worth a label, as the page shows them."""

from __future__ import annotations

from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.suggest import Suggestion, suggest_labels

COUNT = 10
# Their choice holds n×256 numbers: beyond this, only on request (`elugcn diagnose`).
_LARGEST = 200_000


def suggestions(fitted: Fitted, count: int = COUNT) -> list[Suggestion]:
    """The nodes whose labels would help most, best first.

    [] without the graph, on a very large one, and where every node has its label.
    """
    data = fitted.data
    if "x" not in data or "edge_index" not in data or data.num_nodes > _LARGEST:
        return []
    try:
        return suggest_labels(fitted, count)
    except InputError:  # nothing is left to choose from
        return []
