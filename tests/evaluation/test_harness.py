"""Real processes: workers that end in every way, harnesses that are killed."""

import json
import multiprocessing
import os
import random
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from elugcn.errors import InputError
from elugcn.evaluation.claims import Claim
from elugcn.evaluation.harness import run_jobs
from elugcn.evaluation.jobs import Job, make_jobs
from elugcn.evaluation.monitor import TerminalMonitor
from elugcn.evaluation.store import Store
from tests.evaluation.conftest import record_of

Jobs = Callable[..., list[Job]]
Worker = Callable[..., list[str]]

# The harness as a process of its own; forked, as torch takes seconds to load.
fork = multiprocessing.get_context("fork")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def names(store: Store) -> list[str]:
    return sorted(p.name for p in store.folder.glob("*/*/*"))


def test_runs_once(store: Store, jobs: Jobs, worker: Worker, log: Path) -> None:
    todo = jobs(3)
    outcomes = run_jobs(todo, store, command=worker())
    assert [outcomes.done[j]["test_accuracy"] for j in todo] == [0.0, 0.01, 0.02]
    assert outcomes.done[todo[0]]["process_seconds"] > 0
    again = run_jobs(jobs(3), store, command=["false"])
    assert [r["test_accuracy"] for r in again.done.values()] == [0.0, 0.01, 0.02]
    assert len(log.read_text().splitlines()) == 3
    assert names(store) == [f"{i}-{i}-{todo[0].config_hash}.json" for i in range(3)]


def test_the_claim_of_a_finished_run_goes(
    store: Store, jobs: Jobs, worker: Worker
) -> None:
    todo = jobs(1)
    run_jobs(todo, store, command=worker())
    lock = store.path(todo[0]).with_suffix(".lock")
    owner = {"pid": 4194305, "host": socket.gethostname()}
    lock.write_text(json.dumps(owner))
    run_jobs(todo, store, command=["false"])
    assert names(store) == [store.path(todo[0]).name]


def test_what_another_finished_just_before_the_claim_is_not_done_again(
    tmp_path: Path, jobs: Jobs, worker: Worker, log: Path
) -> None:
    class Overtaken(Store):
        def claim(self, job: Job) -> Claim | None:
            claim = super().claim(job)
            self.add(job, record_of(job, test=0.75))
            return claim

    store = Overtaken(tmp_path / "store")
    [job] = todo = jobs(1)
    outcomes = run_jobs(todo, store, command=worker())
    assert outcomes.done[job]["test_accuracy"] == 0.75
    assert log.read_text() == ""
    assert names(store) == [store.path(job).name]  # the claim was given back


def test_a_terminal_shows_how_far_it_is(
    store: Store,
    jobs: Jobs,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    run_jobs(jobs(1), store, command=worker())
    run_jobs(jobs(3), store, command=worker(0.3), monitor=TerminalMonitor())
    out, err = capsys.readouterr()
    assert out == ""
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err)
    assert "lpa on karate, split 2, seed 2" in plain
    assert "3/3" in plain
    assert "0:00 left" in plain


def test_several_workers(store: Store, jobs: Jobs, worker: Worker, log: Path) -> None:
    start = time.monotonic()
    run_jobs(jobs(6), store, command=worker(1.0), workers=6)
    assert time.monotonic() - start < 5
    assert len(set(log.read_text().splitlines())) == 6


def test_another_value_is_another_run(
    store: Store, jobs: Jobs, worker: Worker, log: Path
) -> None:
    run_jobs(jobs(2), store, command=worker())
    before = {p: p.read_bytes() for p in store.folder.glob("*/*/*.json")}
    run_jobs(jobs(2, lpa_alpha=0.5), store, command=worker())
    after = {p: p.read_bytes() for p in store.folder.glob("*/*/*.json")}
    assert len(before) == 2
    assert len(after) == 4
    assert all(after[p] == text for p, text in before.items())
    assert len(log.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("crash", "killed by SIGKILL, perhaps for want of memory"),
        ("raise", "ValueError: no luck"),
    ],
)
def test_a_failure_is_kept_and_tried_again(
    mode: str, says: str, store: Store, jobs: Jobs, worker: Worker
) -> None:
    todo = jobs(2)
    outcomes = run_jobs(todo, store, command=worker(mode=mode))
    assert outcomes.done == {}
    assert [outcomes.failed[j]["error"] for j in todo] == [says, says]
    assert all(n.endswith(".failed.json") for n in names(store))
    assert len(names(store)) == 2
    outcomes = run_jobs(todo, store, command=worker())
    assert len(outcomes.done) == 2
    assert outcomes.failed == {}
    assert not any("failed" in n for n in names(store))


def test_a_worker_that_says_nothing(store: Store, jobs: Jobs) -> None:
    outcomes = run_jobs(jobs(1), store, command=["true"])
    (record,) = outcomes.failed.values()
    assert record["error"] == "ended with exit code 0 and no record"


def test_a_damaged_record_stops_all(store: Store, jobs: Jobs, worker: Worker) -> None:
    todo = jobs(3)
    run_jobs(todo, store, command=worker())
    store.path(todo[1]).write_text(store.path(todo[1]).read_text()[:50])
    with pytest.raises(InputError, match=store.path(todo[1]).name):
        run_jobs(todo, store, command=worker())


def test_what_is_wrong_with_the_data_is_said_at_once(
    store: Store, worker: Worker
) -> None:
    todo = make_jobs(["lpa"], ["sbm"], 2, data_options={"sbm": {"n": 3}})
    with pytest.raises(InputError, match="sbm option n must be at least 15"):
        run_jobs(todo, store, command=worker())


def harness(todo: Sequence[Job], store: Store, command: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    run_jobs(todo, store, command=command, workers=2)
    os._exit(0)


def test_two_processes_share_a_store(
    store: Store, jobs: Jobs, worker: Worker, log: Path
) -> None:
    todo = jobs(12)
    crew = [
        fork.Process(target=harness, args=(todo, store, worker(0.1))) for _ in range(3)
    ]
    for process in crew:
        process.start()
    for process in crew:
        process.join(60)
        assert process.exitcode == 0
    lines = log.read_text().splitlines()
    assert Counter(lines) == {f"lpa karate {i} {i}": 1 for i in range(12)}
    assert len(names(store)) == 12


def test_killed_at_any_moment(
    store: Store, jobs: Jobs, worker: Worker, log: Path
) -> None:
    """Kill the harness again and again; what was finished stays as it was."""
    todo = jobs(24)
    rng = random.Random(0)
    kept: dict[Path, bytes] = {}
    kills = 0
    for i in range(60):
        process = fork.Process(target=harness, args=(todo, store, worker(0.05)))
        process.start()
        # Longer and longer: on a busy machine a run takes a while to start.
        process.join(rng.uniform(0.1, 0.6) * (1 + i / 10))
        if process.exitcode is None:
            kills += 1
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        now = {p: p.read_bytes() for p in store.folder.glob("*/*/[0-9]*.json")}
        assert all(now[p] == text for p, text in kept.items())
        kept = now
        if process.exitcode == 0:
            break
    assert kills >= 2
    outcomes = run_jobs(todo, store, command=["false"])
    assert len(outcomes.done) == 24
    assert outcomes.failed == {}
    # A run may be done twice only if its harness died before it was kept.
    counts = Counter(log.read_text().splitlines())
    assert len(counts) == 24
    assert sum(counts.values()) <= 24 + 2 * kills


def test_a_run_that_goes_on_says_so(
    store: Store, jobs: Jobs, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or another process would take it for dead."""
    beats: list[Claim] = []
    monkeypatch.setattr(Claim, "beat", lambda claim: beats.append(claim))
    run_jobs(jobs(1), store, command=worker(0.3))
    assert beats
