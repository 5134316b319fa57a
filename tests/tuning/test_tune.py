"""Whole searches with real processes: killed, shared, failing, repeated."""

import csv
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from elugcn.config import as_plain, resolve_config
from elugcn.errors import InputError
from elugcn.evaluation.jobs import make_jobs
from elugcn.evaluation.store import Store
from elugcn.tuning import Search, read_search, tune
from elugcn.tuning.progress import TerminalTuneMonitor, headline, seconds_left
from elugcn.tuning.runner import Runner, evaluation_of
from elugcn.tuning.tune import in_order
from tests.tuning.conftest import SPACE, value_of

Worker = Callable[..., list[str]]
Go = Callable[..., list[Search]]
# Forked, as torch takes seconds to load.
fork = multiprocessing.get_context("fork")


@pytest.fixture
def go(tmp_path: Path, worker: Worker) -> Go:
    """A search of ``SPACE`` in a directory of its own, by the fake worker."""
    space = tmp_path / "space.yaml"

    def run(
        name: str = "a",
        methods: tuple[str, ...] = ("gcn",),
        text: str = SPACE,
        workers: int = 2,
        command: list[str] | None = None,
        **options: Any,
    ) -> list[Search]:
        space.write_text(text)
        file = read_search(space)
        budget = file.budget
        store = Store(tmp_path / name / "store")
        runner = Runner(store, budget.runs, budget.first, workers=workers,
                        command=command or worker())  # fmt: skip
        out = tmp_path / name / "out"
        return tune(methods, ["karate"], file, budget, runner, out, **options)

    return run


def rows(folder: Path, seconds: bool = False) -> list[dict[str, str]]:
    """The trials that a search has written, as a rule without their time."""
    with (folder / "out/karate-gcn.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    return [{k: v for k, v in r.items() if seconds or k != "seconds"} for r in found]


def stored(folder: Path) -> dict[str, bytes]:
    paths = folder.glob("store/*/*/[0-9]*.json")
    return {p.name: p.read_bytes() for p in paths if "failed" not in p.name}


def test_what_a_search_leaves(go: Go, tmp_path: Path) -> None:
    (search,) = go()
    found = rows(tmp_path / "a")
    assert list(found[0]) == ["trial", "val_accuracy", "std", "hidden_channels",
                              "dropout", "lr", "best", "error"]  # fmt: skip
    assert [r["trial"] for r in found] == [str(i) for i in range(1, 10)]
    assert [r["dropout"] for r in found[:2]] == ["0.8", "0.5"]
    for row in found:
        one, two = (value_of(float(row["dropout"]), seed) for seed in (100, 101))
        assert float(row["val_accuracy"]) == pytest.approx((one + two) / 2)
        # Two numbers that differ by 0.01 have a spread of 0.01 / √2.
        assert float(row["std"]) == pytest.approx(0.0070711, abs=1e-6)
    values = [float(r["val_accuracy"]) for r in found]
    marked = [i for i, r in enumerate(found) if r["best"]]
    assert marked == [values.index(max(values))]
    assert search.best is search.trials[marked[0]]
    # The file is a configuration that means the same whatever the presets say.
    path = tmp_path / "a/out/karate-gcn.yaml"
    assert as_plain(resolve_config("gcn", "cora", path)) == search.best.config
    assert list(yaml.safe_load(path.read_text()))[:3] == [
        "lr", "hidden_channels", "dropout",
    ]  # fmt: skip
    head = path.read_text().splitlines()[:4]
    assert head[0].startswith(f"# Trial {marked[0] + 1} of 9 of gcn on karate: ")
    assert (
        "--trials 9 --runs 2 --first 100 --search-seed 0 --space space.yaml" in head[2]
    )
    assert "elugcn 1, torch 2, optuna " in head[3]
    assert head[3].endswith("last run 2026-01-02")
    assert float(rows(tmp_path / "a", seconds=True)[0]["seconds"]) > 0


def test_runs_are_of_the_seeds_asked_for(go: Go, log: Path) -> None:
    go(text=SPACE.replace("trials: 9", "trials: 1"))
    assert sorted(log.read_text().splitlines()) == [
        "gcn karate 100 100", "gcn karate 101 101",
    ]  # fmt: skip


def test_nothing_is_done_twice(go: Go, tmp_path: Path) -> None:
    go("a")
    files = {p: p.read_bytes() for p in (tmp_path / "a").rglob("*") if p.is_file()}
    go("a", command=["false"])
    assert {p: p.read_bytes() for p in files} == files
    assert sum(p.is_file() for p in (tmp_path / "a").rglob("*")) == len(files)


def test_the_number_of_workers_does_not_matter(go: Go, tmp_path: Path) -> None:
    text = SPACE.replace("trials: 9", "trials: 4")
    go("a", workers=1, text=text)
    go("b", workers=2, text=text)
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


def test_killed_and_taken_up_again(go: Go, worker: Worker, tmp_path: Path) -> None:
    """Killed in the middle, again and again, it comes to the same end."""
    slow = worker(0.1)
    go("whole")
    for runs_done in (1, 6, 11):
        child = fork.Process(target=go, args=("cut",), kwargs={"command": slow})
        child.start()
        assert child.pid is not None
        end = time.monotonic() + 60
        while len(stored(tmp_path / "cut")) < runs_done:
            assert child.is_alive()
            assert time.monotonic() < end
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        before = stored(tmp_path / "cut")
        assert len(before) < 16
    (search,) = go("cut")
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
    after = stored(tmp_path / "cut")
    assert {name: after[name] for name in before} == before
    assert sorted(after) == sorted(stored(tmp_path / "whole"))
    # One file a run, and no trial was tried twice here.
    assert len(after) == 2 * len({json.dumps(t.config) for t in search.trials})
    read = [yaml.safe_load((tmp_path / n / "out/karate-gcn.yaml").read_text())
            for n in ("cut", "whole")]  # fmt: skip
    assert read[0] == read[1]


def test_the_test_nodes_play_no_part(go: Go, worker: Worker, tmp_path: Path) -> None:
    text = SPACE.replace("trials: 9", "trials: 6")
    go("a", text=text, command=worker(test=0.123456))
    go("b", text=text, command=worker(test=0.987654))
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    for path in (tmp_path / "a/out").iterdir():
        assert "test" not in path.read_text()
        assert "0.123456" not in path.read_text()


FAILING = SPACE.replace("start: [{}", "start: [{weight_decay: 13}, {}")


def test_failed_runs(go: Go, log: Path, tmp_path: Path) -> None:
    (search,) = go(text=FAILING)
    found = rows(tmp_path / "a")
    assert len(found) == 9
    assert (found[0]["val_accuracy"], found[0]["std"]) == ("", "")
    assert found[0]["error"] == "ValueError: no luck"
    assert [r["error"] for r in found[1:]] == [""] * 8
    assert search.trials[0].value == 0.0
    assert search.best is not None
    assert search.best.number > 1
    # What fails by itself would fail again: it is kept, and not retried.
    ran = len(log.read_text().splitlines())
    go(text=FAILING)
    assert len(log.read_text().splitlines()) == ran
    assert rows(tmp_path / "a") == found


def test_killed_runs_are_tried_again(go: Go, log: Path) -> None:
    text = FAILING.replace("13", "9").replace("trials: 9", "trials: 1")
    for times in (1, 2):
        (search,) = go(text=text)
        assert "killed by SIGKILL" in str(search.trials[0].evaluation.error)
        assert search.best is None
        assert len(log.read_text().splitlines()) == 2 * times


def test_no_best_no_file(go: Go, tmp_path: Path) -> None:
    go(text=SPACE.replace("trials: 9", "trials: 1"))
    path = tmp_path / "a/out/karate-gcn.yaml"
    assert path.exists()
    go(text=FAILING.replace("trials: 9", "trials: 1"), write=True, presets=tmp_path)
    assert not path.exists()
    assert not (tmp_path / "karate.yaml").exists()


BOTH = """
  mlp:
    like: gcn
    values: {dropout: [0.2, 0.4], hidden_channels: [1, 2]}
"""


def test_presets_and_who_comes_after_whom(go: Go, tmp_path: Path) -> None:
    """The MLP begins at the GCN's new values, though it was named first."""
    folder = tmp_path / "presets"
    folder.mkdir()
    text = (SPACE + BOTH).replace("trials: 9", "trials: 4")
    options = {"text": text, "presets": folder, "write": True}
    gcn, mlp = go(methods=("mlp", "gcn"), **options)
    assert (gcn.space.method, mlp.space.method) == ("gcn", "mlp")
    for search in (gcn, mlp):
        assert search.best is not None
        got = resolve_config(search.space.method, "karate", presets=folder)
        assert as_plain(got) == search.best.config
    tuned = gcn.best.config  # type: ignore[union-attr]
    assert mlp.trials[0].config["lr"] == tuned["lr"]
    assert mlp.trials[0].config["epochs"] == tuned["epochs"] == 3
    written = (folder / "karate.yaml").read_text()
    note = "gcn:  # best of 4 on validation; --runs 2 --first 100 --search-seed 0\n"
    assert note in written
    # With the values written, the same command finds all it needs in the store.
    again = go(methods=("mlp", "gcn"), command=["false"], **options)
    assert [s.best for s in again] == [gcn.best, mlp.best]
    assert (folder / "karate.yaml").read_text() == written


def test_a_run_without_validation_nodes_is_a_failure() -> None:
    jobs = make_jobs(["lpa"], ["karate"], 2)
    record = {"val_accuracy": None, "process_seconds": 2.5}
    got = evaluation_of(jobs, dict.fromkeys(jobs, record), {})
    assert (got.accuracies, got.seconds) == ((), 5.0)
    assert "no validation nodes" in str(got.error)
    # One reason is given once, though both runs failed.
    reasons = {job: {"error": "no luck"} for job in jobs}
    failed = evaluation_of(jobs, {}, reasons)
    assert failed.error == "no luck"


def test_order() -> None:
    def like(method: str) -> list[str]:
        return {"a": ["b", "x"], "b": ["c"]}.get(method, [])

    assert in_order(["a", "x", "b", "c"], like) == ["c", "b", "x", "a"]
    assert in_order(["a", "c"], like) == ["a", "c"]
    with pytest.raises(InputError, match="in a circle: a → b → a"):
        in_order(["a", "b"], lambda method: {"a": ["b"], "b": ["a"]}[method])


def test_time_left() -> None:
    plan = {("gcn", "cora"): 4, ("mlp", "cora"): 2}
    assert seconds_left(plan, {}) is None
    assert seconds_left(plan, {("gcn", "cora"): []}) is None
    assert seconds_left(plan, {("gcn", "cora"): [1.0, 3.0]}) == 2 * 2 + 2 * 2
    spent = {("gcn", "cora"): [1.0] * 4, ("mlp", "cora"): [5.0]}
    assert seconds_left(plan, spent) == 5.0


def test_a_terminal_shows_how_far_it_is(
    go: Go,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "150"}.items():
        monkeypatch.setenv(name, value)
    text = SPACE.replace("trials: 9", "trials: 3")
    (search,) = go(text=text, command=worker(0.3), monitor=TerminalTuneMonitor())
    out, err = capsys.readouterr()
    assert out == ""
    assert "gcn on karate, trial 1 of 3, seed 100 and 101" in err
    # Dropout 0.8, then 0.5: 0.505 and 0.805.
    assert "gcn on karate, trial 2 of 3, best 50.5 %" in err
    assert "gcn on karate, trial 3 of 3, best 80.5 %" in err
    assert " left" in err
    assert headline(Search(search.space, 3)) == "gcn on karate, trial 1 of 3"
