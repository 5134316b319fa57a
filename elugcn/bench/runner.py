"""Which suites there are, and how one is run and written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from elugcn import compiled
from elugcn.bench import fit, graph, scale, step
from elugcn.bench.base import Settings, Suite
from elugcn.bench.names import ALL
from elugcn.bench.records import COLUMNS, Outcome
from elugcn.errors import InputError
from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page

SUITES: dict[str, Suite] = {
    module.SUITE.name: module.SUITE for module in (step, fit, graph, scale)
}


def get_suites(name: str) -> list[Suite]:
    """The suite of that name, or all of them."""
    if name == ALL:
        return list(SUITES.values())
    if name not in SUITES:
        known = ", ".join((*SUITES, ALL))
        raise InputError(f"unknown suite {name!r}; there are {known}")
    return [SUITES[name]]


def run_suite(
    suite: Suite, settings: Settings, folder: Path, command: str
) -> tuple[Outcome, list[Path]]:
    """Measure a suite and write its page; the numbers and the files."""
    before = load_average()
    outcome = suite.measure(settings)
    page = make_page(suite, settings, outcome, command, (before, load_average()))
    return outcome, page.save(folder)


def make_page(
    suite: Suite,
    settings: Settings,
    outcome: Outcome,
    command: str,
    load: tuple[float | None, float | None],
) -> Page:
    """The page of a suite, not yet written."""
    # A page belongs to an experiment; a suite is one without runs in a store.
    heading = Experiment(suite.name, suite.title, suite.question, _no_runs, _no_page)
    page = Page(heading, Scope(settings.quick, 1), command, notes=list(outcome.notes))
    page.text(_circumstances(load))
    suite.write(outcome, page)
    page.csv(suite.name, COLUMNS, (record.row() for record in outcome.records))
    return page


def load_average() -> float | None:
    """Of the last minute, where the system tells."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _circumstances(load: tuple[float | None, float | None]) -> str:
    text = f"One thread on a machine of {os.cpu_count()} cores"
    before, after = load
    if before is not None and after is not None:
        text += (
            f"; its load average was {before:.1f} before and {after:.1f} after, "
            "this command's own share of about 1 included"
        )
    loops = "with" if compiled.available() else "without"
    return f"{text}; {loops} the compiled loops."


def _no_runs(scope: Scope) -> list[Planned]:
    return []


def _no_page(finished: list[Finished], page: Any) -> None:
    """Written by the suite."""
