"""Pages of made-up measurements: what is written can be worked out by hand."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elugcn.experiments.base import Experiment, Finished, Scope
from elugcn.experiments.output import Page
from tests.evaluation.conftest import record_of

Measured = Mapping[str, Sequence[Mapping[str, Any]]]  # of each seed, by dataset


class Written:
    """The files of a page."""

    def __init__(self, folder: Path, name: str) -> None:
        self.text = (folder / f"{name}.md").read_text(encoding="utf-8")
        content = (folder / f"{name}.csv").read_text(encoding="utf-8")
        self.rows = list(csv.DictReader(io.StringIO(content)))
        self.png = (folder / f"{name}.png").read_bytes()
        self.svg = (folder / f"{name}.svg").read_text(encoding="utf-8")

    def numbers(self, row: int) -> dict[str, float]:
        """The cells of a line that hold numbers."""
        out = {}
        for key, value in self.rows[row].items():
            try:
                out[key] = float(value)
            except ValueError:
                assert key in ("dataset", "graph", "nodes") or value == ""
        return out


def write_page(experiment: Experiment, measured: Measured, folder: Path) -> Written:
    """Plan an experiment, pretend its runs measured this, write its page."""
    seeds = max(map(len, measured.values()))
    scope = Scope(quick=False, seeds=seeds, datasets=tuple(measured))
    finished = []
    for planned in experiment.plan(scope):
        runs = measured[planned.job.dataset]
        if planned.job.seed < len(runs):
            record = record_of(planned.job, measured=runs[planned.job.seed])
            finished.append(Finished(planned, record))
    page = Page(experiment, scope, "elugcn reproduce", [f.record for f in finished])
    experiment.write(finished, page)
    page.save(folder)
    return Written(folder, experiment.name)
