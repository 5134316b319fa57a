"""PCNet: low-pass steps and a heat kernel that sharpens, mixed by learned weights.

Li, Pan and Kang, "PC-Conv: Unifying Homophily and Heterophily with Two-fold Filtering",
AAAI 2024; the equations are in ``elugcn.nn.pcnet``. The defaults are the authors' for
Cora. As in their code the two linear maps have no ReLU between them (``linear``), and
each of the three parts, W₁, W₂ and θ, has a learning rate and a decay of its own.

Their settings were chosen by test accuracy, on random splits; here validation chooses.
They take the epoch of the lowest validation loss (here ``select=loss``); here, as for
every method, accuracy chooses first. They add self-loops to every graph; here that is
``self_loops``. Edge weights, which they do not have, enter as in Â. An epoch costs
O(nnz(X)·h + N·E·c) for N terms and E edges, whatever K is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import nn

from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, fit_model
from elugcn.nn.pcnet import PCNet
from elugcn.training.loop import Fit


@dataclass(frozen=True, kw_only=True)
class PCNetConfig(NetworkConfig):
    """The filter; learning rates and decays of W₂ (``_out``) and θ (``_theta``).

    ``order`` is the paper's K, ``terms`` N, ``heat`` t, ``shift`` b, ``exponent`` s and
    ``scale`` the first value of θ. ``lr`` and ``weight_decay`` are those of W₁.
    """

    order: int = 6
    terms: int = 10
    heat: float = 0.0
    shift: float = 1.3
    exponent: float = 0.45
    scale: float = 2.0
    linear: bool = True
    dropout: float = 0.35
    input_dropout: float | None = 0.25  # None: as dropout
    propagation_dropout: float = 0.9
    lr: float = 0.005
    lr_out: float = 0.005
    lr_theta: float = 0.05
    weight_decay: float = 2e-3
    weight_decay_out: float = 5e-3
    weight_decay_theta: float = 5e-4
    epochs: int = 1000
    patience: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "order", "terms")
        check_least(
            self, 0, "heat", "exponent", "weight_decay_out", "weight_decay_theta"
        )
        check_least(self, 1, "shift")
        check_probability(self, "propagation_dropout")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        for option in ("lr_out", "lr_theta"):
            if not getattr(self, option) > 0:
                raise InputError(
                    f"{option} must be positive; got {getattr(self, option)}"
                )
        if self.decay != "all":
            raise InputError(
                "decay must be all: weight_decay_out=0 and weight_decay_theta=0 "
                f"decay the first layer only; got {self.decay!r}"
            )

    def fit(self) -> Fit:
        """W₂ and θ apart from W₁."""
        out = {"lr": self.lr_out, "weight_decay": self.weight_decay_out}
        theta = {"lr": self.lr_theta, "weight_decay": self.weight_decay_theta}
        apart = {"mlp.out.weight": out, "mlp.out.bias": out, "theta": theta}
        return replace(super().fit(), apart=apart)


class PCNetPredictor(NetworkPredictor):
    """A trained PCNet with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"PCNet": PCNet}


def fit_pcnet(problem: Problem, config: PCNetConfig, run: Run) -> Prediction:
    """Train the linear maps and θ together, with cross-entropy on training nodes."""
    return fit_model(
        problem,
        config,
        run,
        PCNet,
        PCNetPredictor,
        input_dropout=config.input_dropout,
        propagation_dropout=config.propagation_dropout,
        order=config.order,
        terms=config.terms,
        heat=config.heat,
        shift=config.shift,
        exponent=config.exponent,
        scale=config.scale,
        linear=config.linear,
    )
