"""What the labels do in a graph: diagnosis, explanations, nodes worth labelling."""

from elugcn.insight.context import DiagnosisContext
from elugcn.insight.definition import label_utilization
from elugcn.insight.diagnosis import diagnose
from elugcn.insight.explanation import check_node, explain
from elugcn.insight.findings import counted, findings, format_percent, recall_text
from elugcn.insight.members import (
    Members,
    elu_text,
    left_out_text,
    measured_text,
    members_text,
)
from elugcn.insight.suggestion import Suggestion, suggest_labels

__all__ = [
    "DiagnosisContext",
    "Members",
    "Suggestion",
    "check_node",
    "counted",
    "diagnose",
    "elu_text",
    "explain",
    "findings",
    "format_percent",
    "label_utilization",
    "left_out_text",
    "measured_text",
    "members_text",
    "recall_text",
    "suggest_labels",
]
