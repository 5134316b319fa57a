"""What a suite is, what it is told, and the member of ELU-GCN that all of them time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from elugcn.bench.measure import Stopwatch
from elugcn.bench.records import Outcome
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.methods.base import Run
from elugcn.methods.elu_config import DEFAULT_VARIANTS, ELUGCNConfig

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

# Everyone's hidden width: GAT has eight heads of eight.
HIDDEN = 64
MEMBER = "two views"


def _nothing(what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Settings:
    """What the user asked for; None: what the suite has of its own.

    Attributes:
        quick: The small version.
        datasets: Names of graphs.
        data_dir: Where their files are.
        repeats: How often each measurement is taken.
        epochs: Of a whole fit.
        say: Told what is being measured.
    """

    quick: bool = False
    datasets: tuple[str, ...] | None = None
    data_dir: Path | None = None
    repeats: int | None = None
    epochs: int | None = None
    say: Callable[[str], None] = _nothing


@dataclass(frozen=True)
class Suite:
    """One question about speed or memory.

    Attributes:
        name: What the command line calls it.
        title: Heading of its page.
        question: What it shows, in a sentence or two.
        measure: Does the work.
        write: Adds tables and figures to the page.
        datasets: The graphs it is about; none if it draws its own.
        quick_datasets: Those of the small version.
    """

    name: str
    title: str
    question: str
    measure: Callable[[Settings], Outcome]
    write: Callable[[Outcome, Page], None]
    datasets: tuple[str, ...] = ()
    quick_datasets: tuple[str, ...] = ()

    def chosen(self, settings: Settings) -> tuple[str, ...]:
        """The graphs of this run."""
        if not self.datasets:
            return ()
        own = self.quick_datasets if settings.quick else self.datasets
        return settings.datasets or own


def two_views(epochs: int, **options: Any) -> ELUGCNConfig:
    """The paper's two-view objective as ``elu-gcn`` has it, for exactly ``epochs``.

    The member of the default with both views and the contrastive loss, alone, without
    early stopping.
    """
    (own,) = [v for v in DEFAULT_VARIANTS if v["name"] == MEMBER]
    values: dict[str, Any] = {
        "variants": (own,),
        "hidden_channels": HIDDEN,
        "epochs": epochs,
        "patience": epochs,
        "keep_gcn": False,
    }
    return replace(ELUGCNConfig(), **values | options)


class TimedRun(Run):
    """A run whose stages are clocked in processor time, as everything here is."""

    @contextmanager
    def clock(self, stage: str) -> Iterator[None]:
        """Add the time of the block to ``seconds[stage]``."""
        watch = Stopwatch()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + watch.read()[0]


def load(name: str, data_dir: Path | None = None, **options: Any) -> Data:
    """A checked graph."""
    return check_data(load_dataset(name, 0, data_dir, **options)).data
