"""A fitted model as the diagnosis reads it: its graph, its labels, its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.direction import Coupled, label_operator
from elugcn.core.influence import hop_distance
from elugcn.core.operators import ELUGraph
from elugcn.core.propagation import propagate_labels
from elugcn.core.sparse import CSR
from elugcn.core.utilization import LabelUtilization, definition_one
from elugcn.diagnosis.findings import findings
from elugcn.diagnosis.graphs import compare_graphs
from elugcn.diagnosis.shares import by_degree, by_distance, diagnose
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.methods.base import Problem, make_problem
from elugcn.methods.lpa import LPAConfig
from elugcn.runs import class_names


@dataclass(frozen=True)
class Reading:
    """What diagnosis, explanation and suggestion need of a fitted model, on the CPU.

    Attributes:
        problem: X and Â as the method saw them.
        lpa: Label distribution of every node, zero rows where no label reaches, n×c.
        proba: Class probabilities of the fitted model, n×c: of the plain GCN, unless
            a whole ELU-GCN was fitted.
        use: Definition 1.
        graph: The ELU graph; None for a method that learns none.
        names: Of the classes.
        steps: Of label propagation.
        alpha: Share of the neighbours in each step.
        label_graph: What labels travel by: ``edges`` or ``coupled``.
    """

    problem: Problem
    lpa: Tensor
    proba: Tensor
    use: LabelUtilization
    graph: ELUGraph | None
    names: list[str]
    steps: int
    alpha: float
    label_graph: str

    @classmethod
    def of(cls, fitted: Fitted) -> Reading:
        """Label propagation done again, with the options of the fitted method."""
        if fitted.data.x is None:
            raise InputError(
                "a saved model keeps no features of its graph: fit it again to look "
                "into it"
            )
        problem = make_problem(fitted.data, fitted.config, torch.device("cpu"))
        default, config = LPAConfig(), fitted.config
        steps, alpha, way = (
            getattr(config, name, getattr(default, name))
            for name in ("lpa_steps", "lpa_alpha", "lpa_graph")
        )
        lpa = propagate_labels(
            label_operator(problem.spread, way),
            problem.train_labels,
            problem.num_classes,
            steps,
            alpha,
        )
        prediction = fitted.prediction
        use = prediction.utilization
        if use is None:
            use = definition_one(lpa, prediction.logits)
        use = LabelUtilization(use.lpa.cpu(), use.gcn.cpu(), use.status.cpu())
        graph = prediction.graph
        return cls(
            problem=problem,
            lpa=lpa,
            proba=prediction.proba.cpu(),
            use=use,
            graph=None if graph is None else graph.to(torch.device("cpu")),
            names=class_names(fitted),
            steps=steps,
            alpha=alpha,
            label_graph=way,
        )

    @property
    def data(self) -> Data:
        """The graph."""
        return self.problem.data

    @property
    def operator(self) -> CSR | Coupled:
        """What labels travel by."""
        return label_operator(self.problem.spread, self.label_graph)

    @cached_property
    def distance(self) -> Tensor:
        """Edges to the nearest training label, −1 where no path leads to one."""
        return hop_distance(self.problem.spread, self.data.train_mask)

    @cached_property
    def ids(self) -> list[str]:
        """What the user calls each node."""
        ids = getattr(self.data, "node_ids", None)
        n = self.problem.num_nodes
        return [str(i) for i in ids] if ids else [str(i) for i in range(n)]


def diagnose_fitted(fitted: Fitted | Reading) -> dict[str, Any]:
    """All that can be said of what the labels do, as JSON holds it.

    ``overall``, ``classes``, ``degrees``, ``distances``: shares and accuracies of ELU,
    NELU and unreachable nodes. ``confusion``: label propagation against the GCN.
    ``graphs``: homophily and complexity of the original and the ELU graph.
    ``findings``: what to read first, in sentences.

    Args:
        fitted: From ``fit_graph``, or ``fitted_`` of a classifier; or its reading.
    """
    reading = fitted if isinstance(fitted, Reading) else Reading.of(fitted)
    use, data = reading.use, reading.data
    result = diagnose(use, data, reading.names)
    notes = result.pop("notes")
    result |= {
        "degrees": by_degree(use, data),
        "distances": by_distance(use, data, reading.distance),
        "graphs": compare_graphs(reading.problem, reading.graph),
    }
    return result | {"findings": findings(result), "notes": notes}
