"""Plans, runs, pages and the commands around them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elugcn_reproduction.experiments.base import Scope
from elugcn_reproduction.page import Page
from elugcn_reproduction.runner import NothingToShowError, Report, reproduce

from elugcn.cli import main
from elugcn.errors import InputError
from elugcn.evaluation import Outcomes, Store
from tests.evaluation.records import record_of
from tests.reproduction.made import experiment, scope

Show = Callable[..., Report]
TABLE = experiment("table1")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def show(store: Store, tmp_path: Path) -> Show:
    def go(asked: Scope, run: Any = None, one: Any = TABLE, **more: Any) -> Report:
        return reproduce(one, asked, store, run, tmp_path / "out", "c", **more)

    return go


def test_a_part_of_the_plan(show: Show, store: Store, tmp_path: Path) -> None:
    asked = scope("cora", "karate", seeds=3, methods=("gcn", "lpa", "mlp"))
    for p in TABLE.plan(asked):
        if p.row != "mlp" and (p.row, p.job.seed) != ("lpa", 2):
            base = {"gcn": 0.8, "lpa": 0.7}[p.row]
            store.add(record_of(p.job, base + 0.01 * p.job.seed))
        elif p.row == "mlp" and p.job.dataset == "karate" and p.job.seed == 0:
            store.add(record_of(p.job, status="failed", error="no luck"))
    report = show(asked)
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
    assert "elugcn 0.2.0, torch 2" in page


def test_what_is_missing_is_run(show: Show, store: Store) -> None:
    asked = scope("karate", seeds=2, methods=("gcn", "lpa"))
    done = []

    def run(jobs: Any) -> Outcomes:
        done.extend(jobs)
        return Outcomes({job: record_of(job) for job in jobs})

    report = show(asked, run)
    assert (report.planned, report.done, len(done)) == (4, 4, 4)


def test_a_page_is_not_cut_down(show: Show, store: Store, tmp_path: Path) -> None:
    wide = scope("karate", "cora", seeds=1, methods=("gcn", "lpa"))
    for p in TABLE.plan(wide):
        store.add(record_of(p.job))
    narrow = scope("karate", seeds=1, methods=("gcn",))
    report = show(narrow, whole=(wide, "the whole command"))
    assert (report.planned, report.done) == (1, 1)
    page = (tmp_path / "out/table1.md").read_text()
    assert "the whole command" in page
    assert "| lpa |" in page


def test_data_that_is_not_there(show: Show, tmp_path: Path) -> None:
    def run(jobs: Any) -> Outcomes:
        return Outcomes({job: record_of(job) for job in jobs})

    asked = scope("uf21", "karate", seeds=1, methods=("lpa",))
    report = show(asked, run, data_dir=tmp_path)
    assert report.done == 1
    assert report.notes[0].startswith("uf21 is left out, its files are not there: ")
    alone = scope("uf21", seeds=1, methods=("lpa",))
    with pytest.raises(NothingToShowError, match="table1: no dataset is there; uf21: "):
        show(alone, run, data_dir=tmp_path)
    with pytest.raises(NothingToShowError, match="has no run of table1 yet"):
        show(asked)
    with pytest.raises(NothingToShowError, match="heatmap has no run for these"):
        show(scope(methods=("gcn",)), one=experiment("heatmap"))


def test_a_page_by_hand(tmp_path: Path) -> None:
    page = Page("bench", "Title", "Why?", "elugcn x", quick=True)
    page.main("the table")
    page.table(("a_b", "n"), [("x|y", 1)])
    page.csv(("a", "b"), [(None, 0.123456789), (float("nan"), "text")])
    for _ in range(2):
        page.note("said *once*")
    paths = page.save(tmp_path / "new")
    assert [p.name for p in paths] == ["bench.csv", "bench.md"]
    assert paths[0].read_text() == "a,b\n,0.123457\n,text\n"
    text = paths[1].read_text()
    assert "Its numbers are not results." in text
    assert "| a\\_b | n |\n| --- | ---: |\n| x\\|y | 1 |" in text
    assert text.count("said \\*once\\*") == 1
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--out .*file"):
        page.save(tmp_path / "file")


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)

    def go(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        return int(ended.value.code or 0), *capsys.readouterr()

    return go


def test_reproduce(command: Command, tmp_path: Path) -> None:
    words = ["reproduce", "heatmap", "--quick", "--seeds", "1", "--datasets", "karate"]
    code, out, err = command(*words, "--json", "--out", "pages", "--store", "runs")
    assert (code, err) == (0, "")
    (report,) = json.loads(out)["experiments"]
    assert report["runs"] == {"planned": 1, "done": 1, "failed": 0}
    with (tmp_path / "pages/heatmap.csv").open() as file:
        (row,) = csv.DictReader(file)
    # 59 of the club's 78 edges are inside its communities of 13, 12, 4 and 5.
    assert float(row["homophily"]) == pytest.approx(100 * 59 / 78, rel=1e-4)
    pairs = (13**2 + 12**2 + 4**2 + 5**2) / 34**2
    assert float(row["same_class_pairs"]) == pytest.approx(100 * pairs, rel=1e-4)
    assert (
        "elugcn reproduce heatmap --quick --seeds 1 --store runs --out pages --datasets"
        in (tmp_path / "pages/heatmap.md").read_text()
    )
    # Published, the run is still there; the other experiments have nothing to show.
    code, out, err = command(
        "reproduce", "all", "--quick", "--seeds", "1", "--datasets", "karate",
        "--no-run", "--store", "runs", "--out", "pages", "--publish",
    )  # fmt: skip
    assert code == 0
    assert out.startswith("heatmap: 1 of 1 runs, pages/heatmap.md\n")
    assert "elugcn: skipped: --no-run: runs has no run of table1 yet" in err
    assert [p.name for p in (tmp_path / "runs/runs").iterdir()] == ["elu-gcn.parquet"]
    assert not (tmp_path / "runs/runs.jsonl").exists()
    assert not (tmp_path / "runs/trials.parquet").exists()


def test_bench(command: Command, tmp_path: Path) -> None:
    words = ["bench", "step", "--quick", "--datasets", "karate", "--repeats", "1"]
    code, out, err = command(*words, "--json")
    assert (code, err) == (0, "")
    metrics = {number["metric"] for number in json.loads(out)["numbers"]}
    assert {"ratio_sparse_gcn", "overhead", "elu_gcn_ms"} <= metrics
    # A part of a suite does not replace the whole one's page.
    text = (tmp_path / "runs/quick/bench/part/step.md").read_text()
    assert "elugcn bench step --quick --repeats 1 --datasets karate\n" in text


REFUSALS = {
    "nothing named": (["reproduce"], "name an experiment, or all: table1, social, "),
    "experiment": (["reproduce", "table9"], "unknown experiment 'table9'"),
    "dataset": (["reproduce", "table1", "--datasets", "koala"], "unknown dataset"),
    "method": (["reproduce", "table1", "--methods", "nope"], "unknown method 'nope'"),
    "no run": (["reproduce", "draws", "--no-run"], "has no run of draws yet"),
    "suite": (["bench", "speed"], "unknown suite 'speed'; known: step"),
    "suite data": (
        ["bench", "graph", "--datasets", "cora"],
        "--datasets does not go with",
    ),
    "other": (["bench", "versions"], "versions requires --other"),
    "no other": (["bench", "step", "--other", "python"], "--other requires the suite"),
    "bench data": (["bench", "step", "--datasets", "koala"], "unknown dataset"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, command: Command) -> None:
    words, says = REFUSALS[name]
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
