"""ELU-GCN: classify the nodes of a graph from few labels, and see what labels do."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elugcn.data.datasets import load_dataset
    from elugcn.elu.closed_form import learn_elu_graph
    from elugcn.errors import InputError, MissingExtraError
    from elugcn.estimator import ELUGCNClassifier, NodeClassifier
    from elugcn.insight import label_utilization

__version__ = "0.2.0"

__all__ = [
    "ELUGCNClassifier",
    "InputError",
    "MissingExtraError",
    "NodeClassifier",
    "__version__",
    "label_utilization",
    "learn_elu_graph",
    "load_dataset",
]

# Imported when they are asked for: `elugcn --version` does not need PyTorch.
_DEFINED_IN = {
    "ELUGCNClassifier": "elugcn.estimator",
    "InputError": "elugcn.errors",
    "MissingExtraError": "elugcn.errors",
    "NodeClassifier": "elugcn.estimator",
    "label_utilization": "elugcn.insight",
    "learn_elu_graph": "elugcn.elu.closed_form",
    "load_dataset": "elugcn.data.datasets",
}


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_DEFINED_IN[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_DEFINED_IN})
