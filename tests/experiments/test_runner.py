import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from elugcn.errors import InputError
from elugcn.evaluation import harness
from elugcn.evaluation.store import Store
from elugcn.experiments import runner, table1
from elugcn.experiments.base import Scope
from elugcn.experiments.runner import (
    Circumstances,
    NothingToShowError,
    Report,
    reproduce,
)
from tests.experiments.conftest import fill

Scopes = Callable[..., Scope]


@pytest.fixture
def show(store: Store, tmp_path: Path) -> Callable[..., Report]:
    def run(scope: Scope, **more: bool) -> Report:
        circumstances = Circumstances(store, **more)  # type: ignore[arg-type]
        return reproduce(table1.EXPERIMENT, scope, circumstances, tmp_path / "out", "c")

    return run


def test_a_part_of_the_plan(
    show: Callable[..., Report], store: Store, scope: Scopes, tmp_path: Path
) -> None:
    asked = scope("cora", "karate", seeds=3, methods=("gcn", "lpa", "mlp"))
    plan = table1.plan(asked)
    there = [p for p in plan if p.row != "mlp" and (p.row, p.job.seed) != ("lpa", 2)]
    fill(store, there, lambda p: 0.8 + 0.01 * p.job.seed - 0.1 * (p.row == "lpa"))
    failed = next(p.job for p in plan if p.row == "mlp" and p.job.dataset == "karate")
    store.path(failed).parent.mkdir(parents=True)
    store.add_failure(failed, {"status": "failed", "error": "no luck"})
    before = sorted(store.folder.rglob("*"))
    report = show(asked, run=False)
    assert sorted(store.folder.rglob("*")) == before
    assert (report.planned, report.done) == (18, 10)
    assert report.failed == ["mlp on karate, split 0, seed 0: no luck"]
    assert report.notes == [
        "no run yet, and left out: mlp",
        "fewer runs than planned: lpa on cora 2 of 3; lpa on karate 2 of 3",
        "1 failed, mlp on karate: no luck",
    ]
    page = (tmp_path / "out/table1.md").read_text()
    assert "| gcn | **81.00 ± 1.00** (81.61 ± 0.42) | **81.00 ± 1.00** |" in page
    assert "| lpa | 70.50 ± 0.71 [2 of 3] | 70.50 ± 0.71 [2 of 3] |" in page
    # Paired on the two seeds both have: −10 points each time.
    pairs = "-10.00 [-10.00, -10.00], 2 pairs"
    assert f"| lpa | {pairs} | {pairs} |" in page
    assert "- no run yet, and left out: mlp\n" in page
    with (tmp_path / "out/table1.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == [
        "method", "dataset", "mean", "std", "runs", "paper_mean", "paper_std",
        "seconds", "peak_rss_mb",
    ]  # fmt: skip
    assert rows[1] == [
        "gcn", "cora", "81.0000", "1.0000", "3", "81.61", "0.42", "2.000", "100.0",
    ]  # fmt: skip
    assert [r[:5] for r in rows[3:]] == [
        ["lpa", "cora", "70.5000", "0.7071", "2"],
        ["lpa", "karate", "70.5000", "0.7071", "2"],
    ]


def test_a_page_is_not_cut_down_to_what_is_run_now(
    store: Store, scope: Scopes, tmp_path: Path
) -> None:
    wide = scope("cora", "karate", seeds=2, methods=("gcn", "lpa"))
    narrow = scope("karate", seeds=2, methods=("lpa",))
    circumstances = Circumstances(store, run=False)

    def made(*whole: object) -> tuple[Report, list[str], str]:
        report = reproduce(table1.EXPERIMENT, narrow, circumstances, tmp_path, "narrow",
                           *whole)  # fmt: skip
        with (tmp_path / "table1.csv").open(newline="") as file:
            rows = [",".join(row[:2]) for row in csv.reader(file)][1:]
        return report, rows, (tmp_path / "table1.md").read_text()

    fill(store, table1.plan(narrow), lambda p: 0.7)
    # Nothing else is there: a page of this alone.
    report, rows, page = made((wide, "wide"))
    assert rows == ["lpa,karate"]
    assert "\nnarrow\n" in page
    fill(store, [p for p in table1.plan(wide) if p.row == "gcn"], lambda p: 0.8)
    report, rows, page = made((wide, "wide"))
    assert rows == ["gcn,cora", "gcn,karate", "lpa,karate"]
    assert "\nwide\n" in page
    assert (report.planned, report.done) == (2, 2)
    assert report.notes == ["no run yet on cora: lpa"]
    # A dataset that is not the experiment's own is beside the others.
    _, rows, _ = made((scope("cora", seeds=2, methods=("gcn",)), "wide"))
    assert rows == ["gcn,cora", "lpa,karate"]
    assert made()[1] == ["lpa,karate"]


def test_nothing_to_show(show: Callable[..., Report], scope: Scopes) -> None:
    with pytest.raises(NothingToShowError, match=r"--no-run: .* has no run of table1"):
        show(scope("karate"), run=False)


def test_missing_data_is_left_out(
    show: Callable[..., Report],
    store: Store,
    scope: Scopes,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    asked = scope("karate", "uf21", seeds=1, methods=("lpa",))
    fill(store, table1.plan(scope("karate", seeds=1, methods=("lpa",))), lambda p: 0.5)
    report = show(asked)
    note = "uf21 is left out, its data is not there: facebook100/UF21.mat"
    assert report.notes == [note]
    assert (report.planned, report.done) == (1, 1)
    # The page is for everybody: it names no directory of this computer.
    assert str(Path.home()) not in (tmp_path / "out/table1.md").read_text()
    with pytest.raises(InputError, match=r"no dataset is there; uf21: .*UF21.mat"):
        show(scope("uf21", seeds=1, methods=("lpa",)))


def test_results_need_no_data(
    show: Callable[..., Report], store: Store, scope: Scopes
) -> None:
    asked = scope("uf21", seeds=1, methods=("lpa",))
    fill(store, table1.plan(asked), lambda p: 0.5)
    assert show(asked).notes == []


def test_only_failures(
    show: Callable[..., Report],
    scope: Scopes,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    real = harness.run_jobs
    monkeypatch.setattr(
        runner, "run_jobs", lambda *a, **k: real(*a, **(k | {"command": ["false"]}))
    )
    report = show(scope("karate", seeds=1, methods=("lpa",)))
    assert report.done == 0
    assert len(report.failed) == 1
    assert report.files == []
    assert not (tmp_path / "out").exists()
    assert report.plain()["runs"] == {"planned": 1, "done": 0, "failed": 1}
