"""ELU-GCN: classify the nodes of a graph from few labels, and see what labels do."""

import os

# Arrays of a large graph in huge pages, where the system grants them: a product with Â
# of a million nodes takes a third of the time. PyTorch asks once, at its first array.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.1.0"

from elugcn.core.elu_graph import learn_elu_graph
from elugcn.data.datasets import load_dataset
from elugcn.diagnosis import label_utilization
from elugcn.errors import InputError, MissingExtraError
from elugcn.estimator import ELUGCNClassifier

__all__ = [
    "ELUGCNClassifier",
    "InputError",
    "MissingExtraError",
    "__version__",
    "label_utilization",
    "learn_elu_graph",
    "load_dataset",
]
