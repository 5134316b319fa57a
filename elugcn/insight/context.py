"""A fitted model as diagnosis, explanation and suggestions read it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted, class_names
from elugcn.elu.influence import hop_distance
from elugcn.elu.label_propagation import Coupled, label_operator, propagate_labels
from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.elu.utilization import LabelUtilization, definition_one
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.methods.problem import Problem

CPU = torch.device("cpu")


class DiagnosisContext:
    """What the fit left, on the CPU. Nothing is trained again.

    What has to be derived (Â, distances to labels) is derived when it is first read and
    shared by everything that gets this context.

    Args:
        fitted: From ``fit``, or ``fitted_`` of a classifier.
    """

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted

    @classmethod
    def of(cls, fitted: Fitted | DiagnosisContext) -> DiagnosisContext:
        """The context of a fitted model; a context is its own."""
        return fitted if isinstance(fitted, DiagnosisContext) else cls(fitted)

    @property
    def data(self) -> Data:
        """The graph."""
        return self.fitted.data

    @cached_property
    def names(self) -> list[str]:
        """Name of each class."""
        return class_names(self.fitted)

    @cached_property
    def ids(self) -> list[str]:
        """What the user calls each node."""
        ids = getattr(self.data, "node_ids", None)
        return [str(i) for i in (ids or range(int(self.data.num_nodes)))]

    @cached_property
    def problem(self) -> Problem:
        """Scaled features and Â, as the method saw them."""
        if not self.has_graph:
            raise InputError(
                "a saved model does not contain its graph; fit the model again to "
                "diagnose or explain it"
            )
        return Problem.of(self.data, self.fitted.config, CPU)

    @property
    def has_graph(self) -> bool:
        """Whether features and edges are at hand. A saved model has neither."""
        data = self.data
        return data.get("x") is not None and data.get("edge_index") is not None

    @cached_property
    def operator(self) -> CSR | Coupled:
        """What labels travel by, n×n."""
        kind = self._option("lpa_graph", "edges")
        return label_operator(self.problem.label_adj, kind)

    @property
    def steps(self) -> int:
        """Steps of label propagation."""
        return int(self._option("lpa_steps", 50))

    @property
    def alpha(self) -> float:
        """Share of the neighbours in each step of label propagation."""
        return float(self._option("lpa_alpha", 0.9))

    @cached_property
    def use(self) -> LabelUtilization:
        """Definition 1, from the fit; other methods take the part of the GCN."""
        kept = self._kept
        if kept is None:
            return definition_one(self.lpa, self.fitted.result.logits)
        return kept

    @cached_property
    def lpa(self) -> Tensor:
        """Label distribution of every node, zero rows where no label reaches, n×c."""
        kept = self._kept
        if kept is not None and kept.lpa_proba is not None:
            return kept.lpa_proba
        problem = self.problem
        labels, c = problem.train_labels, problem.num_classes
        return propagate_labels(self.operator, labels, c, self.steps, self.alpha)

    @cached_property
    def proba(self) -> Tensor:
        """Class probabilities of the GCN of Definition 1, n×c."""
        kept = self._kept
        if kept is not None and kept.gcn_proba is not None:
            return kept.gcn_proba
        return self.fitted.proba

    @cached_property
    def graph(self) -> ELUGraph | None:
        """The ELU graph; None for a method that learns none."""
        graph = self.fitted.result.graph
        return None if graph is None else graph.to(CPU)

    @cached_property
    def distance(self) -> Tensor:
        """Edges to the nearest training label, −1 where no path leads to one, (n,)."""
        return hop_distance(self.problem.label_adj, self.data.train_mask)

    @cached_property
    def _kept(self) -> LabelUtilization | None:
        use = self.fitted.result.label_utilization
        if use is None:
            return None
        proba = (None if p is None else p.cpu() for p in (use.lpa_proba, use.gcn_proba))
        return LabelUtilization(use.lpa.cpu(), use.gcn.cpu(), use.status.cpu(), *proba)

    def _option(self, name: str, default: Any) -> Any:
        return getattr(self.fitted.config, name, default)
