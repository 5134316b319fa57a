"""ELU-GCN: classify the nodes of a graph from few labels, and see what labels do."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elugcn.core.elu_graph import learn_elu_graph
    from elugcn.data.datasets import load_dataset
    from elugcn.diagnosis import label_utilization
    from elugcn.errors import InputError, MissingExtraError
    from elugcn.estimator import ELUGCNClassifier

# Arrays of a large graph in huge pages, where the system grants them: a product with Â
# of a million nodes takes a third of the time. PyTorch asks once, at its first array.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.1.0"

__all__ = [
    "ELUGCNClassifier",
    "InputError",
    "MissingExtraError",
    "__version__",
    "label_utilization",
    "learn_elu_graph",
    "load_dataset",
]

# Found when they are asked for: `elugcn --version` need not load PyTorch.
_WHERE = {
    "ELUGCNClassifier": "elugcn.estimator",
    "InputError": "elugcn.errors",
    "MissingExtraError": "elugcn.errors",
    "label_utilization": "elugcn.diagnosis",
    "learn_elu_graph": "elugcn.core.elu_graph",
    "load_dataset": "elugcn.data.datasets",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
