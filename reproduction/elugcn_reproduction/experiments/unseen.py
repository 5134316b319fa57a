"""The default out of the box, against methods that were tuned for each graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any

from elugcn.data.datasets import dataset_info
from elugcn.evaluation import Job, make_jobs, paired_difference, summarize
from elugcn.evaluation.jobs import differing, pairs
from elugcn.evaluation.statistics import Difference, Pair
from elugcn.evaluation.tables import (
    escape_markdown,
    interval_text,
    markdown_table,
    plus_minus,
    shown_name,
)
from elugcn.methods.registry import METHOD_NAMES
from elugcn.tuning import read_trials, tune
from elugcn_reproduction.experiments.accuracy import SOCIAL_DATASETS, TABLE1_DATASETS
from elugcn_reproduction.experiments.base import (
    QUICK_EPOCHS,
    Experiment,
    Finished,
    Planned,
    Row,
    Scope,
    capped,
    datasets_of,
    only_methods,
)
from elugcn_reproduction.figures import Panel, draw_dots
from elugcn_reproduction.page import Page
from elugcn_reproduction.published import read_rows

GRAPHS = ("polblogs", "acm", "dblp", "amherst41_gender", "minesweeper", "actor",
          "twitch_de", "blogcatalog", "uai")  # fmt: skip
TABLES = (*TABLE1_DATASETS, *(name for name in SOCIAL_DATASETS if name != "uf21"))
OURS = (Row("auto", "auto"), Row("auto, quick", "auto", {"effort": "quick"}))
PEERS = ("gcn", "mlp", "appnp", "linear", "grand")
SPLITS = 5  # of GRAPHS
TRIALS, QUICK_TRIALS, TRIAL_RUNS = 10, 3, 2
SEARCH: Mapping[str, Any] = {"search_seed": 0, "runs": TRIAL_RUNS, "first": 0}
OLD = "default of 0.1, tuned"
COLUMNS = ("dataset", "row", "runs", "mean", "std", "validation", "seconds",
           "best_peer", "ahead", "ahead_low", "ahead_high", "options")  # fmt: skip


@dataclass(frozen=True)
class Runs:
    """The runs of a row on a graph, by split and seed; accuracies are fractions."""

    validation: dict[Pair, float]
    test: dict[Pair, float]
    seconds: float  # mean of a fit
    options: dict[str, Any] | None = None  # that a search chose; None: stored results


@dataclass(frozen=True)
class Verdict:
    """A row of ours beside the best peer on a graph."""

    dataset: str
    best: str  # the peer with the highest mean validation accuracy
    ahead: Difference  # ours minus the best, on the same splits and seeds


def plan(scope: Scope) -> list[Planned]:
    """Ours with its defaults; the peers with the options that the search found.

    On the graphs of the tables the peers are the tuned methods, where they are stored.
    """
    planned = []
    for dataset in datasets_of(scope, (*GRAPHS, *TABLES), ("digits",)):
        tables = dataset in TABLES
        seeds = scope.seeds if tables else min(scope.seeds, SPLITS)
        found = [
            Planned(row.name, job)
            for row in only_methods(scope, OURS)
            for job in jobs_of(row, dataset, seeds)
        ]
        found += stored(scope, dataset) if tables else searched(scope, dataset, seeds)
        if scope.quick:
            found = [replace(p, job=capped(p.job, QUICK_EPOCHS)) for p in found]
        planned += found
    return planned


def jobs_of(row: Row, dataset: str, seeds: int) -> list[Job]:
    """The runs of a row, without the tuned options of the dataset."""
    options = differing(row.method, row.options)
    found = pairs(dataset_info(dataset), seeds, None)
    return [Job(row.method, dataset, *pair, options) for pair in found]


def stored(scope: Scope, dataset: str) -> Iterator[Planned]:
    """The runs of the tables that the store has, of every method as it is tuned."""
    for row in only_methods(scope, [Row(m, m) for m in METHOD_NAMES if m != "auto"]):
        for job in make_jobs([row.method], [dataset], scope.seeds):
            if scope.store is not None and scope.store.result(job) is not None:
                yield Planned(row.name, job)


def searched(scope: Scope, dataset: str, seeds: int) -> Iterator[Planned]:
    """The peers with the best options of their finished searches."""
    for row in only_methods(scope, [Row(name, name) for name in PEERS]):
        options = best_options(scope, row.method, dataset)
        if options is not None:
            for job in jobs_of(replace(row, options=options), dataset, seeds):
                yield Planned(row.name, job)


def best_options(scope: Scope, method: str, dataset: str) -> dict[str, Any] | None:
    """What a search found; None: it is not finished."""
    if scope.store is None:
        return None
    about = {"method": method, "dataset": dataset, **SEARCH}
    rows = read_trials(scope.store.folder)
    trials = {row["number"]: row for row in rows if about.items() <= row.items()}
    numbers = range(1, trials_of(scope) + 1)
    done = [trials[number] for number in numbers if number in trials]
    judged = [row for row in done if row["val_accuracy"] is not None]
    if len(done) < len(numbers) or not judged:
        return None
    best: dict[str, Any] = max(judged, key=lambda row: row["val_accuracy"])["options"]
    return best


def trials_of(scope: Scope) -> int:
    """Options that a search tries."""
    return QUICK_TRIALS if scope.quick else TRIALS


def search(scope: Scope, **execution: Any) -> None:
    """Do the searches that are not finished."""
    assert scope.store is not None
    names = datasets_of(scope, GRAPHS, ("digits",))
    rows = only_methods(scope, [Row(name, name) for name in PEERS])
    for row, dataset in product(rows, names):
        if dataset in TABLES or best_options(scope, row.method, dataset) is not None:
            continue
        tune(
            [row.method],
            [dataset],
            scope.store.folder,
            trials=trials_of(scope),
            runs=TRIAL_RUNS,
            first=SEARCH["first"],
            seed=SEARCH["search_seed"],
            **execution,
        )
    scope.store.refresh()


def write(finished: list[Finished], page: Page) -> None:
    """Regret first, then the accuracies behind it, then the options."""
    graphs = collect(finished)
    page.text(
        "`auto` has no option of its own for any graph; `auto, quick` is the same with "
        "`effort=quick`. Test accuracy in percent, mean ± standard deviation. The best "
        "peer has the highest mean validation accuracy on the runs that are shown. "
        "Regret is its mean test accuracy minus ours on the same splits and seeds. "
        "Clearly ahead or behind: the 95 % confidence interval of the paired "
        "differences excludes 0."
    )
    verdicts = {row.name: judge(row.name, graphs) for row in OURS}
    _write_summary(page, verdicts)
    shown = (*verdicts, *PEERS)
    panels = [
        Panel(d, {n: summarize(r.test.values()) for n, r in rows.items() if n in shown})
        for d, rows in graphs.items()
    ]
    page.figure(
        draw_dots(panels, shown, columns=4),
        "Test accuracy of auto and of the peers, mean and standard deviation, by graph",
    )
    unseen = {d: rows for d, rows in graphs.items() if d not in TABLES}
    if unseen:
        page.text("## Graphs outside of the tables")
        page.text(
            f"{SPLITS} splits with one seed each: the published splits, or 20 training "
            "and 30 validation nodes per class (at most a third of the class each), or "
            "50 % and 25 % of the nodes where there are two classes. Every peer was "
            f"tuned for each graph: {TRIALS} trials, beginning with the method's "
            "defaults and the settings of its authors, each judged by the mean "
            f"validation accuracy of {TRIAL_RUNS} runs (splits 0 and 1)."
        )
        page.table(
            ("graph", *shown),
            [
                (d, *(_accuracy(rows.get(n)) for n in shown))
                for d, rows in unseen.items()
            ],
        )
        _write_verdicts(page, unseen, verdicts)
        for dataset, rows in unseen.items():
            if missing := [name for name in PEERS if name not in rows]:
                page.note(f"no finished search on {dataset}: {', '.join(missing)}")
    tables = {d: rows for d, rows in graphs.items() if d in TABLES}
    if tables:
        page.text("## Graphs of the tables")
        page.text(
            "The runs of [table 1](table1.md) and of [the social networks](social.md): "
            "ten seeds or splits. Peers are all methods with the options that were "
            f"tuned for each graph; `{OLD}` is what version 0.1 had as its default, "
            "with options chosen per graph."
        )
        _write_verdicts(page, tables, verdicts)
    if chosen := [
        (d, shown_name(name), ", ".join(f"{k}={v}" for k, v in runs.options.items()))
        for d, rows in unseen.items()
        for name, runs in rows.items()
        if runs.options is not None
    ]:
        page.text("## What the searches chose")
        page.text("Options that differ from the defaults of the method.")
        page.table(("graph", "method", "options"), chosen)
    page.csv(COLUMNS, _csv_rows(graphs, verdicts))


def collect(finished: Sequence[Finished]) -> dict[str, dict[str, Runs]]:
    """The runs by graph and row, with those of 0.1's default."""
    by_row: dict[str, dict[str, list[Finished]]] = {}
    for f in finished:
        rows = by_row.setdefault(f.planned.job.dataset, {})
        rows.setdefault(f.planned.row, []).append(f)
    graphs = {d: {n: _runs(of) for n, of in rows.items()} for d, rows in by_row.items()}
    for dataset, old in old_default().items():
        if dataset in graphs:
            graphs[dataset][OLD] = old
    return graphs


def _runs(finished: Sequence[Finished]) -> Runs:
    """The runs of one row on one graph."""
    job = finished[0].planned.job
    ours = {row.name for row in OURS}
    tuned = job.dataset not in TABLES and finished[0].planned.row not in ours
    records = {(f.planned.job.split, f.planned.job.seed): f.record for f in finished}
    return Runs(
        {pair: float(r["val_accuracy"]) for pair, r in records.items()},
        {pair: float(r["test_accuracy"]) for pair, r in records.items()},
        fmean(float(r["seconds"]["total"]) for r in records.values()),
        job.options if tuned else None,
    )


def old_default() -> dict[str, Runs]:
    """The default of version 0.1 with options per dataset, as its tables had it."""
    by_dataset: dict[str, list[dict[str, str]]] = {}
    for row in read_rows("default_0_1.csv"):
        by_dataset.setdefault(row["dataset"], []).append(row)
    return {
        dataset: Runs(
            {(int(r["split"]), int(r["seed"])): float(r["validation"]) for r in rows},
            {(int(r["split"]), int(r["seed"])): float(r["test"]) for r in rows},
            fmean(float(r["seconds"]) for r in rows),
        )
        for dataset, rows in by_dataset.items()
    }


def judge(ours: str, graphs: Mapping[str, Mapping[str, Runs]]) -> list[Verdict]:
    """A row of ours beside the best peer of every graph that has both.

    A peer must have every run of ours: its mean is over the same splits and seeds.
    """
    own_names = {row.name for row in OURS}
    verdicts = []
    for dataset, rows in graphs.items():
        if ours not in rows:
            continue
        own = rows[ours].test
        validation = {
            name: fmean(runs.validation[pair] for pair in own)
            for name, runs in rows.items()
            if name not in own_names and own.keys() <= runs.test.keys()
        }
        if not validation:
            continue
        best = max(validation, key=lambda name: validation[name])
        ahead = paired_difference(own, rows[best].test)
        if ahead is not None:
            verdicts.append(Verdict(dataset, best, ahead))
    return verdicts


def _write_summary(page: Page, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    """Mean and worst regret of each row of ours."""
    header = ("", "graphs", "mean regret", "worst regret", "clearly ahead",
              "clearly behind")  # fmt: skip
    lines = []
    for name, found in verdicts.items():
        for what, those in {
            "": found,
            " on the graphs below": [v for v in found if v.dataset not in TABLES],
            " on those of the tables": [v for v in found if v.dataset in TABLES],
        }.items():
            if not those:
                continue
            worst = min(those, key=lambda v: v.ahead.mean)
            lines.append((
                f"`{name}`{what}",
                str(len(those)),
                f"{-fmean(v.ahead.mean for v in those):.2f}",
                f"{-worst.ahead.mean:.2f} ({escape_markdown(worst.dataset)})",
                str(sum(v.ahead.low > 0 for v in those)),
                str(sum(v.ahead.high < 0 for v in those)),
            ))  # fmt: skip
    page.main(markdown_table(header, lines))


def _write_verdicts(
    page: Page,
    graphs: Mapping[str, Mapping[str, Runs]],
    verdicts: Mapping[str, Sequence[Verdict]],
) -> None:
    """Ours, the best peer and the differences; then what a fit takes."""
    header = ["graph", "runs", *verdicts, "best by validation", "its accuracy"]
    header += [f"{name} is ahead by" for name in verdicts]
    lines, seconds = [], []
    for dataset, rows in graphs.items():
        found = {
            name: v for name, of in verdicts.items() for v in of if v.dataset == dataset
        }
        if not found:
            continue
        best = next(iter(found.values())).best
        ahead = [interval_text(found[n].ahead) if n in found else "–" for n in verdicts]
        lines.append((
            dataset,
            next(iter(found.values())).ahead.pairs,
            *(_accuracy(rows.get(name)) for name in verdicts),
            shown_name(best),
            _accuracy(rows[best]),
            *ahead,
        ))  # fmt: skip
        those = [rows.get(name) for name in (*verdicts, best)]
        seconds.append(
            (dataset, *("–" if r is None else f"{r.seconds:.1f}" for r in those))
        )
    page.text("Points ahead of the best peer, with 95 % confidence interval.")
    page.table(header, lines)
    page.text("Mean seconds of a fit. The search of a peer's options is not counted.")
    page.table(("graph", *verdicts, "the best peer"), seconds)


def _csv_rows(
    graphs: Mapping[str, Mapping[str, Runs]],
    verdicts: Mapping[str, Sequence[Verdict]],
) -> Iterator[tuple[Any, ...]]:
    """A line for each row and graph, in percent, points and seconds."""
    judged = {(name, v.dataset): v for name, of in verdicts.items() for v in of}
    for dataset, rows in graphs.items():
        for name, runs in rows.items():
            mean, std, count = summarize(runs.test.values())
            validation = summarize(runs.validation.values()).mean
            options = None if runs.options is None else json.dumps(runs.options)
            v = judged.get((name, dataset))
            ahead = (
                (v.best, v.ahead.mean, v.ahead.low, v.ahead.high) if v else [None] * 4
            )
            yield (
                dataset,
                name,
                count,
                mean,
                std,
                validation,
                runs.seconds,
                *ahead,
                options,
            )


def _accuracy(runs: Runs | None) -> str:
    """Mean and standard deviation for a table."""
    if runs is None:
        return "–"
    mean, std, _ = summarize(runs.test.values())
    return plus_minus(mean, std)


UNSEEN = Experiment(
    "unseen",
    "Out of the box",
    "How far is `auto` out of the box from the best of several methods that were tuned "
    "for each graph (not in the paper)?",
    plan,
    write,
    search=search,
)
