"""A fitted model as diagnosis, explanation and suggestions read it."""

import copy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted, class_names
from elugcn.elu.influence import hop_distance
from elugcn.elu.label_propagation import (
    Coupled,
    LabelGraph,
    label_operator,
    propagate_labels,
)
from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.elu.utilization import LabelUtilization, definition_one
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.methods.problem import Problem

CPU = torch.device("cpu")


class DiagnosisContext:
    """What a fit left, on the CPU. Nothing is trained again.

    What has to be derived is derived when it is first read, and shared.
    """

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted
        about = fitted.result.metadata
        self.data: Data = fitted.data
        if about.get("refit") is True:  # labels of validation nodes were used, too
            self.data = copy.copy(fitted.data)
            self.data.train_mask = fitted.data.train_mask | fitted.data.val_mask
            self.data.val_mask = torch.zeros_like(fitted.data.val_mask)
        # What Definition 1 compares with label propagation.
        self.model = "linear model" if "trials" in about else "GCN"
        self._kept = fitted.result.label_utilization
        config: Any = fitted.config
        self.steps = int(getattr(config, "lpa_steps", 50))
        self.alpha = float(getattr(config, "lpa_alpha", 0.9))
        self.kind: LabelGraph = getattr(config, "lpa_graph", "edges")

    @classmethod
    def of(cls, fitted: "Fitted | DiagnosisContext") -> "DiagnosisContext":
        """The context of a fitted model; a context is its own."""
        return fitted if isinstance(fitted, DiagnosisContext) else cls(fitted)

    @cached_property
    def names(self) -> list[str]:
        """Name of each class."""
        return class_names(self.fitted)

    @cached_property
    def ids(self) -> list[str]:
        """The user's id of each node, or its number."""
        ids = getattr(self.data, "node_ids", None)
        return [str(i) for i in (ids or range(int(self.data.num_nodes)))]

    @property
    def has_graph(self) -> bool:
        """Whether features and edges are available; a saved model has neither."""
        data = self.data
        return data.get("x") is not None and data.get("edge_index") is not None

    @cached_property
    def problem(self) -> Problem:
        """Scaled features and Â, as the method saw them."""
        if not self.has_graph:
            raise InputError(
                "a saved model does not contain its graph; fit the model again to "
                "diagnose or explain it"
            )
        return Problem.of(self.data, self.fitted.config, CPU)

    @cached_property
    def operator(self) -> CSR | Coupled:
        """What labels travel by, n×n."""
        return label_operator(self.problem.label_adj, self.kind)

    @cached_property
    def use(self) -> LabelUtilization:
        """Definition 1, from the fit or from the GCN that was trained beside it.

        Without either, the fitted method takes the part of the GCN.
        """
        if (kept := self._kept) is None:
            gcn = self.fitted.baselines.get("gcn", self.fitted.result.logits)
            return definition_one(self.lpa, gcn)
        return LabelUtilization(kept.lpa.cpu(), kept.gcn.cpu(), kept.status.cpu())

    @cached_property
    def lpa(self) -> Tensor:
        """Label distribution of every node, zero rows where no label reaches, n×c."""
        if self._kept is not None and self._kept.lpa_proba is not None:
            return self._kept.lpa_proba.cpu()
        labels, c = self.problem.train_labels, self.problem.num_classes
        return propagate_labels(self.operator, labels, c, self.steps, self.alpha)

    @cached_property
    def proba(self) -> Tensor:
        """Class probabilities of the model of Definition 1, n×c."""
        if self._kept is not None and self._kept.gcn_proba is not None:
            return self._kept.gcn_proba.cpu()
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
