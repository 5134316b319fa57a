"""What the labels do in a graph: Definition 1, told in tables and in sentences."""

from elugcn.diagnosis.definition import label_utilization
from elugcn.diagnosis.fitted import diagnose_fitted
from elugcn.diagnosis.shares import diagnose

__all__ = ["diagnose", "diagnose_fitted", "label_utilization"]
