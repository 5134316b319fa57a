"""What the baselines share: an option, Â, and what is derived from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from elugcn.engine import CSR, GraphInputs
from elugcn.methods.options import NetworkConfig, Probability


class InputDropoutConfig(NetworkConfig):
    """A network that may drop entries of X with a probability of their own.

    Attributes:
        input_dropout: Dropout of X; None: as ``dropout``.
    """

    input_dropout: Probability | None = None

    @property
    def first_dropout(self) -> float:
        """Dropout of X."""
        return self.dropout if self.input_dropout is None else self.input_dropout


def adjacency(inputs: GraphInputs) -> CSR:
    """Â as a matrix: these methods read its entries, or all its powers."""
    assert isinstance(inputs.adj, CSR)
    return inputs.adj


Derived = TypeVar("Derived")


class PerGraph(Generic[Derived]):
    """A function of Â that keeps its value until it is called for another graph."""

    def __init__(self, derive: Callable[[CSR], Derived]) -> None:
        self._derive = derive
        self._last: tuple[CSR, Derived] | None = None

    def __call__(self, inputs: GraphInputs) -> Derived:
        """The value for the Â of these inputs."""
        adj = adjacency(inputs)
        if self._last is None or self._last[0] is not adj:
            self._last = adj, self._derive(adj)
        return self._last[1]
