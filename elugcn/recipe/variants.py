"""The method ``auto``: several variants of ELU-GCN and the plain GCN, in a mean.

No single setting of ELU-GCN wins everywhere. The configuration lists variants, which
are trained in turn and judged on validation. The plain GCN of stage 0 takes part, η is
chosen again once the weights are trained, and the answer is a mean of the members that
validation finds good.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
import torch.nn.functional as F
from pydantic import model_validator
from torch import Tensor
from torch_geometric.data import Data

from elugcn.elu.method import as_result
from elugcn.elu.options import ELUConfig
from elugcn.elu.sparsify import check_mode
from elugcn.elu.stages import Pretrained, TwoViewFit, fit_rounds, pretrain
from elugcn.elu.utilization import definition_one
from elugcn.errors import InputError
from elugcn.methods.contract import FitContext, FitResult, Method, Model
from elugcn.methods.network import below
from elugcn.methods.options import MethodConfig, make_config
from elugcn.methods.problem import GraphTraits, Problem
from elugcn.methods.registry import get_method

# Variants of the method that each win somewhere. The first also trains on the ELU
# nodes' pseudo-labels, under random propagation: it is the strongest one where edges
# join alike nodes and labels are few. The second is the paper's objective.
DEFAULT_VARIANTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "random propagation",
        "order": 8,
        "drop_node": 0.5,
        "dropout": 0.5,
        "draws": 2,
        "lambda_cons": 1.0,
        "lambda_con": 0.0,
        "warmup": 100,
        "eta": 0.0,
        "pseudo_weight": 0.5,
        "rounds": 2,
    },
    {"name": "two views", "eta": 0.3, "lambda_con": 0.3},
)
# Multiplications of the first layer's propagation per epoch above which a default
# variant is left out: with 1e9 an epoch takes seconds.
AFFORDABLE = 1e9
# Members with less weight than this are not worth keeping.
MIN_MEMBER_WEIGHT = 0.01
# What a variant cannot set: label propagation and the MLP are shared by all of them.
SHARED_OPTIONS = {"variants", "keep_gcn", "ensemble"} | {
    name for name in ELUConfig.model_fields if name.startswith(("lpa_", "mlp_"))
}


class AutoConfig(ELUConfig):
    """The options of every variant, and what is done with all of them."""

    keep_gcn: bool = True  # the plain GCN of stage 0 takes part
    ensemble: bool = True  # the answer is a mean of the good members; else the best
    # Options of each variant that differ from those outside, with a ``name``. Empty:
    # one variant with the options outside.
    variants: tuple[Mapping[str, Any], ...] = DEFAULT_VARIANTS

    @model_validator(mode="after")
    def _check_variants(self) -> Self:
        names = [name for name, _ in self.members()]
        if self.variants and len({*names, "gcn"}) <= len(names):
            got = ", ".join(names)
            raise ValueError(f"variants need names of their own, not 'gcn'; got {got}")
        return self

    @property
    def uses_mlp(self) -> bool:
        """Whether any variant needs the pre-trained MLP."""
        return any(member.uses_mlp for _, member in self.members())

    def members(self) -> list[tuple[str, ELUConfig]]:
        """The name and the options of each variant."""
        own = {k: getattr(self, k) for k in ELUConfig.model_fields}
        if not self.variants:
            return [("two-view", ELUConfig.model_validate(own))]
        members: list[tuple[str, ELUConfig]] = []
        for variant in self.variants:
            options = dict(variant)
            name = str(options.pop("name", f"variant {len(members) + 1}"))
            for key in SHARED_OPTIONS & options.keys():
                raise InputError(
                    f"{key} is shared by the variants of auto: set it outside"
                )
            if self.direction == "apart" and options.get("order", self.order):
                # A propagation of several steps needs a square matrix.
                options.setdefault("direction", "both")
            config = make_config(ELUConfig, own | options, "the variants of auto")
            members.append((name, config))
        return members

    def networks(self, entries: int) -> Sequence[MethodConfig]:
        """The plain GCN, and the members that a graph of this size can afford."""
        return [self.gcn(), *(member for _, member in self.affordable(entries)[0])]

    @classmethod
    def merged(
        cls, values: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """An option that is set holds for every variant, unless variants are given."""
        merged = super().merged(values, options)
        variants = values.get("variants", DEFAULT_VARIANTS)
        # What is not a list of mappings is refused when the options are checked.
        if options and "variants" not in options and isinstance(variants, list | tuple):
            merged["variants"] = [
                {key: value for key, value in one.items() if key not in options}
                if isinstance(one, Mapping)
                else one
                for one in variants
            ]
        return merged

    def affordable(self, entries: int) -> tuple[list[tuple[str, ELUConfig]], list[str]]:
        """The members to train on a graph of this size, and the names left out.

        Only the default variants are thinned; those that a user lists are all trained.
        """
        members = self.members()
        if self.variants != DEFAULT_VARIANTS:
            return members, []
        cost = [entries * m.order * m.draws * m.hidden_channels for _, m in members]
        # The cheapest is always trained.
        most = max(AFFORDABLE, min(cost))
        kept = [m for m, c in zip(members, cost, strict=True) if c <= most]
        return kept, [name for name, _ in members if name not in dict(kept)]


class Auto(Method[AutoConfig]):
    """The adaptive default."""

    name = "auto"
    summary = "the adaptive default: variants of ELU-GCN and a GCN, in a mean"
    Config = AutoConfig

    def fit(
        self, problem: Problem, config: AutoConfig, context: FitContext
    ) -> FitResult:
        """Train every member; validation weighs them."""
        members, left_out = config.affordable(problem.adj.nnz)
        for _, member in members:
            check_mode(problem.num_nodes, member.graph_mode, member.topk, member.keep)
        pretrained = pretrain(problem, config, context)
        fits: list[TwoViewFit] = []
        for i, (name, member) in enumerate(members):
            seen = problem.seen_with(member)
            fits += fit_rounds(seen, name, member, context, pretrained, 2 + i)
        if config.keep_gcn:
            fits.append(_gcn_member(problem, pretrained, fits[0]))
        result = as_result(choose(fits, problem, config.ensemble), fits, pretrained)
        if config.keep_gcn:
            # Definition 1 is about the plain GCN if that is kept.
            result.label_utilization = fits[-1].label_utilization
        if left_out:
            result.metadata["left_out"] = left_out
        return result

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Blend:
        """Rebuild a saved mean of models."""
        models = [
            get_method(one["method"]).restore(one, below(f"{i}.", tensors))
            for i, one in enumerate(description["members"])
        ]
        return Blend(models, [float(w) for w in description["weights"]])

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """The random propagation of the first variant; the backbone as for the GCN."""
        first = dict(DEFAULT_VARIANTS[0])
        for option, values in {
            "order": [2, 4, 8],
            "dropout": [0.3, 0.5, 0.7],
            "input_dropout": [0.2, 0.5],
            "sharpening": [0.3, 0.5],
            "pseudo_weight": [0.0, 0.3, 0.6],
            "hidden_channels": [32, 64],
        }.items():
            first[option] = trial.suggest_categorical(f"variants.0.{option}", values)
        return {"variants": (first, *DEFAULT_VARIANTS[1:])}

    def starting_points(self, traits: GraphTraits) -> list[dict[str, Any]]:
        """The defaults, and a nearer propagation."""
        nearer = {"order": 2, "sharpening": 0.3, "input_dropout": 0.2}
        first, *others = DEFAULT_VARIANTS
        return [{}, {"variants": ({**first, **nearer}, *others)}]


def _gcn_member(
    problem: Problem, pretrained: Pretrained, first: TwoViewFit
) -> TwoViewFit:
    """The plain GCN as a member; the graph is that of the first variant."""
    trained = pretrained.models["gcn"]
    gcn = replace(
        trained,
        label_utilization=definition_one(pretrained.lpa, trained.logits),
        graph=first.graph,
        graph_mode=first.graph_mode,
    )
    accuracy = problem.val_score(gcn.logits)
    return TwoViewFit(**vars(gcn), name="gcn", val_accuracy=accuracy)


def choose(fits: Sequence[TwoViewFit], problem: Problem, ensemble: bool) -> TwoViewFit:
    """The member that validation prefers, or a mean; ties go to the first.

    With ``ensemble`` the answer is the mean of the members' probabilities, weighted by
    exp(−(Δ/s)²). Δ is how far a member's accuracy is below the best one's, p, and
    s = √(p(1−p)/m) is the standard error of p on m validation nodes. Clearly weaker
    members and diverged ones get no weight.
    """
    fits = [fit for fit in fits if not fit.diverged] or fits
    m = problem.val_index.numel()
    if not m:
        return fits[0]  # nothing can be compared
    best = max(fits, key=lambda fit: fit.val_accuracy)
    weights = {
        id(fit): member_weight(best.val_accuracy, fit.val_accuracy, m) for fit in fits
    }
    others = [
        fit for fit in fits if fit is not best and weights[id(fit)] >= MIN_MEMBER_WEIGHT
    ]
    if not ensemble or not others:
        return best
    group = [best, *sorted(others, key=lambda fit: -weights[id(fit)])]
    shares = [weights[id(fit)] for fit in group]
    logits = mean_logits([fit.logits for fit in group], shares)
    return replace(
        best,
        name=" + ".join(fit.name for fit in group),
        val_accuracy=problem.val_score(logits),
        logits=logits,
        model=Blend([fit.model for fit in group if fit.model is not None], shares),
    )


def member_weight(best: float, accuracy: float, m: int) -> float:
    """Weight of a member beside the best; both accuracies are of m nodes."""
    if accuracy == best:
        return 1.0
    variance = best * (1 - best) / m
    return math.exp(-((best - accuracy) ** 2) / variance) if variance > 0 else 0.0


def mean_logits(logits: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Log of the weighted mean of the members' probabilities, n×c."""
    total = sum(weights)
    shifted = [
        F.log_softmax(z, dim=1) + math.log(w / total)
        for z, w in zip(logits, weights, strict=True)
    ]
    return torch.logsumexp(torch.stack(shifted), dim=0)


@dataclass
class Blend(Model):
    """Several trained models whose probabilities are averaged."""

    members: list[Model]
    weights: list[float]  # they need not sum to 1

    def logits(self, data: Data) -> Tensor:
        """Log-probabilities n×c of a graph with the same features."""
        return mean_logits([m.logits(data) for m in self.members], self.weights)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of every member, under its number."""
        return {
            f"{i}.{name}": tensor
            for i, member in enumerate(self.members)
            for name, tensor in member.tensors().items()
        }

    def description(self) -> dict[str, Any]:
        """The description of every member."""
        members = [member.description() for member in self.members]
        return {"method": Auto.name, "members": members, "weights": self.weights}
