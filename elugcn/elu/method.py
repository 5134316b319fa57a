"""The methods ``elu-gcn`` and ``elu-graph``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from elugcn.elu.options import ELUConfig, PaperConfig
from elugcn.elu.sparsify import check_mode
from elugcn.elu.stages import (
    Pretrained,
    TwoViewFit,
    TwoViewTraining,
    build_network,
    expand_labels,
    fit_rounds,
    gcn_prediction,
    graph_in_use,
    learn_graph,
    pretrain,
)
from elugcn.elu.trained_model import TwoViewModel
from elugcn.elu.utilization import definition_one
from elugcn.methods.contract import (
    AtOnce,
    FitContext,
    FitResult,
    Known,
    Method,
    Model,
    Training,
)
from elugcn.methods.network import NetworkMethod, below
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.methods.registry import get_method


class ELUGCN(NetworkMethod[PaperConfig]):
    """The method of the paper."""

    name = "elu-gcn"
    summary = "the paper's method: two views, Â and the learned ELU graph"
    Config = PaperConfig

    def fit(
        self, problem: Problem, config: PaperConfig, context: FitContext
    ) -> FitResult:
        """Stages 0 to 2; the rounds of self-training, if there are several."""
        check_mode(problem.num_nodes, config.graph_mode, config.topk, config.keep)
        pretrained = pretrain(problem, config, context)
        fits = fit_rounds(problem, "two-view", config, context, pretrained)
        best = max(fits, key=lambda fit: (not fit.diverged, fit.val_accuracy))
        return as_result(best, fits, pretrained)

    def start(
        self,
        problem: Problem,
        config: PaperConfig,
        context: FitContext,
        known: Known | None = None,
        *,
        stage: int = 2,
        title: str | None = None,
    ) -> Training:
        """Begin stage 2, where ``known`` takes the place of stage 0."""
        title = title or self.name
        if known is None:
            return AtOnce(lambda: self.fit(problem, config, context), title)
        H = known.fitted.logits
        utilization = definition_one(known.lpa, H)
        with context.clock("graph"):
            labels = expand_labels(problem, utilization, config)
            graph = learn_graph(H, labels, known.lpa, config)
        source = known.fitted.model
        return TwoViewTraining(
            problem, title, config, context, graph, utilization, source, stage
        )

    def build(self, config: PaperConfig, shapes: Shapes) -> nn.Module:
        """The GCN of stage 2."""
        return build_network(config, shapes)

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Model:
        """Rebuild a saved model; without an ELU view it is a plain network."""
        network = super().restore(description, tensors)
        if "source" not in description:
            return network
        source = description["source"]
        given = get_method(source["method"]).restore(source, below("source.", tensors))
        return TwoViewModel(
            **vars(network),
            source=given,
            eta=float(description["eta"]),
            mean=float(description["mean"]),
            row_sum=tensors["summary.row_sum"],
            hidden=tensors["summary.hidden"],
        )

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Backbone, η, τ and λ."""
        values: dict[str, list[Any]] = {
            "hidden_channels": [8, 32, 64, 256],
            "dropout": [0.5, 0.6, 0.8],
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [0.0, 5e-4, 2e-3, 5e-3],
            "eta": [0.1, 0.3, 0.5],
            "tau": [0.2, 0.8],
            "lambda_con": [0.1, 0.3, 1.0],
        }
        if traits.directed:
            values["direction"] = ["out", "both"]
        if traits.sparse_features:
            values["feature_norm"] = ["row", "none"]
            values["input_dropout"] = [0.0, 0.5]
        return {k: trial.suggest_categorical(k, v) for k, v in values.items()}

    def starting_points(self, traits: GraphTraits) -> list[dict[str, Any]]:
        """Settings close to the authors', for citation and for web graphs."""
        few = {"hidden_channels": 8, "lambda_con": 1.0, "lr": 0.015, "select": "loss"}
        web = {"hidden_channels": 256, "lambda_con": 0.1, "lr": 0.005, "tau": 0.8}
        return [
            {"hidden_channels": 32, "lambda_con": 0.3, "eta": 0.1},
            few | {"eta": 0.1},
            web | {"eta": 0.3, "weight_decay": 0.0},
        ]


class ELUGraphOnly(Method[ELUConfig]):
    """Stages 0 and 1: the ELU graph, and the plain GCN's output."""

    name = "elu-graph"
    summary = "the ELU graph alone; not a classifier"
    Config = ELUConfig

    def fit(
        self, problem: Problem, config: ELUConfig, context: FitContext
    ) -> FitResult:
        """Learn the graph; logits and model are those of the plain GCN."""
        check_mode(problem.num_nodes, config.graph_mode, config.topk, config.keep)
        pretrained = pretrain(problem, config, context)
        prediction = gcn_prediction(problem, config, pretrained)
        utilization = definition_one(pretrained.lpa, prediction)
        with context.clock("graph"):
            labels = expand_labels(problem, utilization, config)
            H = pretrained.models[config.h_source].logits
            graph = learn_graph(H, labels, pretrained.lpa, config)
            used = graph_in_use(graph, config)
        return replace(
            pretrained.models["gcn"],
            label_utilization=utilization,
            graph=used,
            graph_mode=used.mode,
            baselines=baselines(pretrained),
            metadata={},
        )


def as_result(
    chosen: TwoViewFit, fits: list[TwoViewFit], pretrained: Pretrained
) -> FitResult:
    """The chosen fit, with a record of all of them."""
    record: dict[str, Any] = {
        "chosen": chosen.name,
        "eta": chosen.eta,
        **chosen.metadata,
        "candidates": {fit.name: fit.val_accuracy for fit in fits},
        "etas": {fit.name: fit.eta for fit in fits},
    }
    if diverged := [fit.name for fit in fits if fit.diverged]:
        record["diverged"] = diverged
    return replace(chosen, metadata=record, baselines=baselines(pretrained))


def baselines(pretrained: Pretrained) -> dict[str, Tensor]:
    """What the models of stage 0 predict; classes for label propagation."""
    logits = {name: model.logits for name, model in pretrained.models.items()}
    return logits | {"lpa": definition_one(pretrained.lpa, logits["gcn"]).lpa}
