"""PCNet: low-pass steps and a heat kernel in one filter.

Li, Pan and Kang, "PC-Conv: Unifying Homophily and Heterophily with Two-fold Filtering",
AAAI 2024:

    P = D^-s (A + I) D^-s,    L = b I − P,    H = MLP(X)
    Z = θ_0 H + Σ_{k=1..K} θ_k (I − L)ᵏ e^{tL} H

(I − L)ᵏ averages neighbours, e^{tL} sharpens differences to them. Their product has a
Poisson-Charlier expansion, which is cut after N terms:

    (I − L)ᵏ e^{tL} = Σ_{m≥0} C_m(k) / m! · (−L)ᵐ

The defaults are the authors' for Cora. As in their code the MLP has no ReLU
(``linear``), and W₁, W₂ and θ have learning rates and decays of their own. The authors
selected settings by test accuracy and take the epoch of the lowest validation loss
(here ``select="loss"``); here validation accuracy selects.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import scipy.sparse as sp
import torch
from pydantic import Field
from torch import Tensor, nn

from elugcn.baselines.common import Baseline, PerGraph, Starts, suggest
from elugcn.baselines.polynomial import FilterConfig, FilteredMLP
from elugcn.engine import CSR, GraphInputs
from elugcn.methods.options import Count, NonNegative, Positive, Probability
from elugcn.methods.problem import GraphTraits, Shapes
from elugcn.training.loop import TrainSettings


class PCNetConfig(FilterConfig):
    """Options of PCNet.

    ``lr`` and ``weight_decay`` are those of W₁.
    """

    order: Count = 6  # K
    terms: Count = 10  # N
    heat: NonNegative = 0.0  # t; 0 leaves out the heat kernel
    shift: float = Field(1.3, ge=1)  # b
    exponent: NonNegative = 0.45  # s; ½ makes P = Â
    scale: float = 2.0  # Initial value of every θ_k
    linear: bool = True  # No ReLU between the two linear maps
    dropout: Probability = 0.35
    input_dropout: Probability | None = 0.25
    propagation_dropout: Probability = 0.9
    lr: Positive = 0.005
    lr_out: Positive = 0.005  # Learning rate of W₂
    lr_theta: Positive = 0.05  # Learning rate of θ
    weight_decay: NonNegative = 2e-3
    weight_decay_out: NonNegative = 5e-3  # Decay of W₂
    weight_decay_theta: NonNegative = 5e-4  # Decay of θ


@cache
def charlier(order: int, terms: int, t: float) -> tuple[tuple[float, ...], ...]:
    """C_m(k)/m! for k = 1 … K and m = 0 … N−1, K rows of N numbers, O(K·N).

    C_0 = 1, C_1(k) = k − t, C_{m+1}(k) = (k − m − t) C_m(k) − m t C_{m−1}(k). The
    recurrence runs on C_m/m!, which stays small where C_m does not.
    """
    rows = []
    for k in range(1, order + 1):
        row = [1.0, k - t]
        for m in range(1, terms - 1):
            row.append(((k - m - t) * row[m] - t * row[m - 1]) / (m + 1))
        rows.append(tuple(row[:terms]))
    return tuple(rows)


def shifted_operator(adj: CSR, shift: float, exponent: float) -> CSR:
    """−L = P − b I, O(nnz).

    P is Â_ij (r_i q_j)^(½−s), with r_i and q_j the numbers of entries in row i and
    column j: the degrees. Edge weights, which the paper does not have, enter as in Â.
    """
    n = adj.shape[0]
    power = 0.5 - exponent
    rows = (adj.crow[1:] - adj.crow[:-1]).double() ** power
    columns = torch.bincount(adj.col.long(), minlength=n).double() ** power
    value = adj.value.double() * rows[adj.row] * columns[adj.col.long()]
    p = CSR(adj.crow, adj.col, value, n).to_scipy()
    matrix = p - shift * sp.eye_array(n, format="csr")
    return CSR.from_scipy(matrix, symmetric=adj.symmetric).to(adj.value.device)


class PCNetNetwork(FilteredMLP):
    """Two linear maps, then a learned mixture of K two-fold filters."""

    def __init__(self, config: PCNetConfig, shapes: Shapes) -> None:
        super().__init__(config, shapes, config.linear)
        self.config = config
        self.theta = nn.Parameter(torch.full((config.order + 1,), config.scale))
        self.operator = PerGraph(
            lambda adj: shifted_operator(adj, config.shift, config.exponent)
        )

    def matrix(self, inputs: GraphInputs) -> CSR:
        """B = −L."""
        return self.operator(inputs)

    def coefficients(self) -> Tensor:
        """Of (−L)ᵐ, shape (N,): the filters are added up before H is filtered."""
        config = self.config
        rows = charlier(config.order, config.terms, config.heat)
        first = (1.0,) + (0.0,) * (config.terms - 1)
        return self.theta @ self.theta.new_tensor([first, *rows])


class PCNet(Baseline[PCNetConfig]):
    """Two-fold filtering with Poisson-Charlier polynomials."""

    name = "pcnet"
    summary = "low-pass steps and a heat kernel"
    Config = PCNetConfig
    Network = PCNetNetwork

    def training(self, config: PCNetConfig) -> TrainSettings:
        """W₂ and θ have learning rates and decays of their own."""
        out = {"lr": config.lr_out, "weight_decay": config.weight_decay_out}
        theta = {"lr": config.lr_theta, "weight_decay": config.weight_decay_theta}
        groups = {"mlp.W2": out, "mlp.b2": out, "theta": theta}
        return replace(config.training(), param_groups=groups)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """The filter, dropout and training."""
        values: dict[str, Any] = {
            "heat": (0.0, 0.2, 0.5, 1.0),
            "shift": (1.0, 1.3, 1.5),
            "scale": (0.5, 1.0, 2.0),
            "dropout": (0.0, 0.35, 0.7),
            "propagation_dropout": (0.0, 0.35, 0.75, 0.9),
            "lr": (0.005, 0.01, 0.05),
            "weight_decay": (5e-5, 5e-4, 2e-3, 5e-3),
        }
        if traits.neighbours_unlike:
            # Few terms: powers grow at hubs.
            values |= {"self_loops": (True, False), "terms": (4, 6, 10)}
            values |= {"heat": (0.0, 1.0, 1.7, 2.0), "shift": (1.0, 1.3, 1.8)}
            values |= {"weight_decay": (0.0, 5e-5, 1e-3)}
        if traits.keeps_features:
            values["input_dropout"] = (0.0, 0.25)
        return suggest(trial, traits, **values)

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings for graphs of this kind, where they have some."""
        if traits.neighbours_unlike:
            return [_SQUIRREL, _CHAMELEON, {}]
        if traits.is_dense:
            kept = [_KEPT_FEATURES] if traits.keeps_features else []
            return [{}, _MANY_EDGES, *kept]
        return [_PUBMED, {}] if traits.is_large else [{}, _CITESEER]


_CITESEER: dict[str, Any] = {
    "order": 4, "heat": 0.2, "shift": 1.5, "scale": 0.5, "lr_out": 0.1,
    "lr_theta": 0.005, "weight_decay_theta": 5e-5, "input_dropout": 0.0,
    "dropout": 0.7, "propagation_dropout": 0.75,
}  # fmt: skip
_PUBMED: dict[str, Any] = {
    "scale": 0.5, "lr": 0.01, "lr_out": 0.1, "lr_theta": 0.005, "weight_decay": 5e-3,
    "weight_decay_theta": 5e-3, "input_dropout": 0.85, "dropout": 0.05,
    "propagation_dropout": 0.35,
}  # fmt: skip
_SQUIRREL: dict[str, Any] = {
    "order": 5, "terms": 4, "heat": 1.7, "shift": 1.8, "scale": 0.5, "lr": 0.1,
    "lr_theta": 0.1, "weight_decay": 5e-5, "weight_decay_out": 5e-5,
    "weight_decay_theta": 5e-6, "input_dropout": 0.85, "dropout": 0.0,
    "propagation_dropout": 0.0,
}  # fmt: skip
_CHAMELEON: dict[str, Any] = {
    "terms": 4, "heat": 2.0, "shift": 1.8, "exponent": 0.35, "scale": 0.5, "lr": 0.1,
    "weight_decay": 1e-3, "weight_decay_out": 1e-3, "input_dropout": 0.8,
    "dropout": 0.9, "propagation_dropout": 0.05,
}  # fmt: skip
# The authors have no settings for the graphs that these two are for.
_MANY_EDGES: dict[str, Any] = {
    "scale": 0.5, "propagation_dropout": 0.35, "weight_decay": 5e-4,
    "weight_decay_out": 5e-4, "lr": 0.01,
}  # fmt: skip
_KEPT_FEATURES: dict[str, Any] = {
    "scale": 0.5, "propagation_dropout": 0.0, "weight_decay": 2e-3, "lr": 0.01,
    "input_dropout": 0.0, "feature_norm": "none",
}  # fmt: skip
