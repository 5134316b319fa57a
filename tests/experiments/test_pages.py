"""The pages of single experiments, their numbers against numpy and scipy."""

import csv
import io
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from elugcn.experiments import (
    ablation,
    draws,
    fewlabels,
    runtime,
    sensitivity,
    social,
    table1,
)
from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page
from tests.experiments.conftest import finish

Scopes = Callable[..., Scope]


def page_of(experiment: Experiment, scope: Scope, runs: list[Finished]) -> Page:
    page = Page(experiment, scope, "command", [one.record for one in runs])
    experiment.write(runs, page)
    return page


def csv_of(page: Page) -> list[dict[str, str]]:
    text = page._files[f"{page.experiment.name}.csv"].decode()
    return list(csv.DictReader(io.StringIO(text)))


def noise(planned: Planned) -> float:
    """A different number for every run, the same each time."""
    key = [ord(c) for c in planned.row + planned.group + planned.job.dataset]
    return float(np.random.default_rng([planned.job.seed, *key]).uniform(0.5, 0.9))


def test_ablation(scope: Scopes) -> None:
    asked = scope("cora", "chameleon", seeds=4)
    runs = finish(ablation.plan(asked), noise)
    page = page_of(ablation.EXPERIMENT, asked, runs)
    rows = {(r["method"], r["dataset"]): r for r in csv_of(page)}
    assert set(rows) == {(r.planned.row, r.planned.job.dataset) for r in runs}
    graph = rows["+ ELU graph", "cora"]
    assert (graph["paper_mean"], graph["paper_std"]) == ("83.49", "0.55")
    assert rows["+ contrastive", "chameleon"]["paper_mean"] == "70.90"
    assert rows["gcn", "cora"]["paper_mean"] == "81.61"
    assert rows["graph topk", "cora"]["paper_mean"] == ""
    for (name, dataset), row in rows.items():
        values = [
            noise(r.planned)
            for r in runs
            if (r.planned.row, r.planned.job.dataset) == (name, dataset)
        ]
        # Rows of the same job have one record, which is that of the last of them.
        same = {r.planned.job for r in runs if r.planned.row == name}
        own = sum(r.planned.row == name for r in runs)
        if sum(r.planned.job in same for r in runs) == own:
            assert float(row["mean"]) == pytest.approx(100 * np.mean(values), abs=1e-4)
        assert row["runs"] == "4"
    text = page.markdown()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## The paper's rows", "## What the paper leaves out", "## Beyond the paper",
    ]  # fmt: skip
    # Differences are to the GCN in every group, whose row only the first shows.
    assert text.count("| gcn |") == 3
    assert text.count("Difference to gcn") == 3


def test_draws_are_compared_with_grand(scope: Scopes) -> None:
    asked = scope("cora", "citeseer", seeds=10)
    runs = finish(draws.plan(asked), noise)
    page = page_of(draws.EXPERIMENT, asked, runs)
    values: dict[tuple[str, str], list[float]] = {}
    for r in runs:
        cell = r.planned.row, r.planned.job.dataset
        values.setdefault(cell, []).append(100 * noise(r.planned))
    for row in csv_of(page):
        mine = values[row["method"], row["dataset"]]
        assert float(row["mean"]) == pytest.approx(np.mean(mine), abs=1e-4)
        # What is published is for other labels.
        assert row["paper_mean"] == ""
    text = page.markdown()
    assert "Difference to grand" in text
    assert "Difference to gcn" not in text
    for dataset in ("cora", "citeseer"):
        ours, theirs = values["elu-gcn", dataset], values["grand", dataset]
        assert f"{np.mean(np.subtract(ours, theirs)):+.2f} [" in text


def test_few_labels(scope: Scopes) -> None:
    asked = scope("cora", seeds=10, methods=("elu-gcn", "gcn"))
    runs = finish(fewlabels.plan(asked), noise)
    page = page_of(fewlabels.EXPERIMENT, asked, runs)
    rows = csv_of(page)
    assert list(rows[0]) == [
        "method", "dataset", "mean", "std", "runs", "paper_mean", "paper_std",
        "seconds", "peak_rss_mb", "labels_per_class",
        "difference", "difference_low", "difference_high", "difference_p",
    ]  # fmt: skip
    assert [(r["method"], r["labels_per_class"]) for r in rows] == [
        (m, str(n)) for n in (1, 2, 3, 5, 10, 20) for m in ("elu-gcn", "gcn")
    ]

    def values(row: str, labels: str) -> list[float]:
        mine = [
            r.planned for r in runs if (r.planned.row, r.planned.group) == (row, labels)
        ]
        return [100 * noise(p) for p in mine]

    for row in rows:
        labels = row["labels_per_class"]
        ours, theirs = values(row["method"], labels), values("gcn", labels)
        assert float(row["mean"]) == pytest.approx(np.mean(ours), abs=1e-4)
        assert float(row["std"]) == pytest.approx(np.std(ours, ddof=1), abs=1e-4)
        assert row["paper_mean"] == ""
        if row["method"] == "gcn":
            assert row["difference"] == row["difference_p"] == ""
            continue
        test = stats.ttest_rel(ours, theirs)
        low, high = test.confidence_interval(0.95)
        assert float(row["difference"]) == pytest.approx(
            np.mean(np.subtract(ours, theirs)), abs=1e-4
        )
        assert float(row["difference_low"]) == pytest.approx(low, abs=1e-3)
        assert float(row["difference_high"]) == pytest.approx(high, abs=1e-3)
        assert float(row["difference_p"]) == pytest.approx(test.pvalue, rel=1e-2)
    ((title, curves),) = fewlabels.curves(fewlabels.comparisons(runs))
    assert title == "cora"
    assert [c.name for c in curves] == ["elu-gcn", "gcn"]
    assert list(curves[0].x) == [1, 2, 3, 5, 10, 20]
    spread = np.std(values("elu-gcn", "3"), ddof=1) / math.sqrt(10)
    assert curves[0].half[2] == pytest.approx(spread)
    assert "## 1 label a class" in page.markdown()
    assert "## 20 labels a class" in page.markdown()


def test_sensitivity(scope: Scopes) -> None:
    asked = scope("cora", seeds=3, quick=True)
    runs = finish(sensitivity.plan(asked), noise)
    # A store that is not complete: two settings are not there, one has a single run.
    absent = {(0.1, 0.1), (1.0, 0.4)}
    kept = []
    for one in runs:
        config = one.planned.job.config
        key = (config["tau"], config["lambda_con"])
        grid = one.planned.group == sensitivity.GRID
        alone = grid and key == (0.4, 0.4) and one.planned.job.seed
        if not (grid and key in absent) and not alone:
            kept.append(one)
    page = page_of(sensitivity.EXPERIMENT, asked, kept)
    rows = csv_of(page)
    assert list(rows[0]) == list(sensitivity.HEADER)
    assert len(rows) == 9 - 2 + 4
    for row in rows:
        if row["sweep"] == "eta":
            name, group = f"eta {float(row['eta']):g}", "eta"
        else:
            name = f"tau {float(row['tau']):g}, lambda {float(row['lambda_con']):g}"
            group = sensitivity.GRID
        mine = [
            100 * noise(r.planned)
            for r in kept
            if (r.planned.row, r.planned.group) == (name, group)
        ]
        assert int(row["runs"]) == len(mine)
        assert float(row["mean"]) == pytest.approx(np.mean(mine), abs=1e-3)
        assert (row["std"] == "") == (len(mine) == 1)
    means = [float(r["mean"]) for r in rows if r["sweep"] == "eta"]
    at = {float(r["mean"]): float(r["eta"]) for r in rows if r["sweep"] == "eta"}
    low, high = min(means), max(means)
    said = (
        f"cora, eta: from {low:.2f} (η = {at[low]:g}) to {high:.2f} (η = {at[high]:g}) "
        "over 4 settings. The original view alone (η = 0) has "
    )
    assert said in page.markdown()


@pytest.mark.parametrize("group", [sensitivity.GRID, sensitivity.ETA])
def test_half_a_sensitivity(scope: Scopes, group: str) -> None:
    asked = scope("cora", seeds=1, quick=True)
    runs = [
        r for r in finish(sensitivity.plan(asked), noise) if r.planned.group == group
    ]
    page = page_of(sensitivity.EXPERIMENT, asked, runs)
    assert {r["sweep"] for r in csv_of(page)} == {group}


def test_runtime(scope: Scopes) -> None:
    asked = scope("karate", seeds=2)
    runs = finish(runtime.plan(asked), noise, seconds={"load": 9.0, "total": 4.0})
    page = page_of(runtime.EXPERIMENT, asked, runs)
    rows = csv_of(page)
    assert [r["method"] for r in rows] == ["gcn", "gat", "elu-gcn", "elu-gcn-paper"]
    assert {r["seconds"] for r in rows} == {"4.000"}
    assert page._files["runtime.png"].startswith(b"\x89PNG")


def test_social_has_the_notes_of_its_numbers(scope: Scopes) -> None:
    asked = scope("caltech36", seeds=2, methods=("elu-gcn", "gcn"))
    page = page_of(social.EXPERIMENT, asked, finish(social.plan(asked), noise))
    assert [r["paper_mean"] for r in csv_of(page)] == ["91.93", "88.47"]
    (note,) = page.notes
    assert note.startswith("caltech36: the paper's Caltech row")
    assert "<!-- main table -->" in page.markdown()


def test_one_run_a_cell(scope: Scopes) -> None:
    asked = scope("karate", seeds=1, methods=("gcn", "lpa"))
    page = page_of(table1.EXPERIMENT, asked, finish(table1.plan(asked), noise))
    assert {r["std"] for r in csv_of(page)} == {""}
    assert "Difference to" not in page.markdown()


def test_few_labels_in_part(scope: Scopes) -> None:
    """A row has no run on a dataset yet; runs of two versions are told once."""
    asked = scope("cora", "citeseer", seeds=2, methods=("gcn", "lpa"), quick=True)
    runs = [
        r
        for r in finish(fewlabels.plan(asked), noise)
        if (r.planned.row, r.planned.job.dataset) != ("lpa", "citeseer")
    ]
    for one in runs:
        one.record["packages"] = {"elugcn": str(one.planned.job.seed), "torch": "2"}
    page = page_of(fewlabels.EXPERIMENT, asked, runs)
    assert page.notes == ["the runs are of elugcn 0 and 1"]
    assert {(r["method"], r["dataset"]) for r in csv_of(page)} == {
        ("gcn", "cora"), ("lpa", "cora"), ("gcn", "citeseer"),
    }  # fmt: skip
    panels = dict(fewlabels.curves(fewlabels.comparisons(runs)))
    assert [c.name for c in panels["citeseer"]] == ["gcn"]
