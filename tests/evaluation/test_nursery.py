"""Runs forked from a process that has loaded everything."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from elugcn.evaluation import nursery as module
from elugcn.evaluation.jobs import make_jobs
from elugcn.evaluation.nursery import Nursery, discard, nursery

pytestmark = pytest.mark.skipif(not module.AVAILABLE, reason="forks on Linux only")


@pytest.fixture(scope="module")
def kept() -> Nursery:
    return nursery(1)


def task(**options: object) -> dict[str, object]:
    [job] = make_jobs(["gcn"], ["karate"], 1, options={"gcn": {"epochs": 2} | options})
    return {"job": job.plain(), "data_dir": None, "n_threads": 1, "device": "cpu"}


def ended(nursery: Nursery, number: int, seconds: float = 60) -> int:
    until = time.monotonic() + seconds
    while (code := nursery.code(number)) is None:
        assert time.monotonic() < until, "the run did not end"
        time.sleep(0.02)
    return code


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_runs_write_their_records(kept: Nursery, tmp_path: Path) -> None:
    numbers = [
        kept.start(task(), str(tmp_path / f"{i}.out"), str(tmp_path / f"{i}.err"))
        for i in range(3)
    ]
    assert [ended(kept, n) for n in numbers] == [0, 0, 0]
    records = [json.loads((tmp_path / f"{i}.out").read_text()) for i in range(3)]
    # The same run three times: forks do not share a random state that moves on.
    assert len({r["test_accuracy"] for r in records}) == 1
    assert records[0]["threads"] == 1


def test_bad_input_is_told(kept: Nursery, tmp_path: Path) -> None:
    wrong = task()
    wrong["job"] = dict(wrong["job"], dataset="nowhere")  # type: ignore[call-overload]
    number = kept.start(wrong, str(tmp_path / "out"), str(tmp_path / "err"))
    assert ended(kept, number) == 2
    assert "nowhere" in (tmp_path / "err").read_text()


def test_libraries_are_told_how_many_threads() -> None:
    own = Nursery(3)
    try:
        told = Path(f"/proc/{own.pid}/environ").read_bytes().split(b"\0")
    finally:
        own.kill()
    assert {b"OMP_NUM_THREADS=3", b"MKL_NUM_THREADS=3"} <= set(told)


def test_it_is_killed_even_while_it_loads(tmp_path: Path) -> None:
    own = Nursery(1)
    number = own.start(task(), str(tmp_path / "a"), str(tmp_path / "b"))
    start = time.monotonic()
    own.kill()
    assert time.monotonic() - start < 2
    assert own.code(number) == -signal.SIGKILL
    assert not own.alive
    own.kill()  # again is no error


def test_a_dead_nursery_is_replaced() -> None:
    first = nursery(1)
    first.kill()
    second = nursery(1)
    assert second is not first
    assert second is nursery(1)
    discard(1)
    assert not second.alive
    discard(1)  # nothing to end is no error


def test_nothing_is_left_when_the_nursery_goes(tmp_path: Path) -> None:
    own = Nursery(1)
    long = own.start(
        task(epochs=100_000, patience=100_000), str(tmp_path / "a"), str(tmp_path / "b")
    )
    children: list[int] = []
    until = time.monotonic() + 60
    place = Path(f"/proc/{own.pid}/task/{own.pid}/children")
    while not children and time.monotonic() < until:
        children = [int(p) for p in place.read_text().split()]
        time.sleep(0.02)
    assert children
    assert own.code(long) is None
    os.kill(own.pid, signal.SIGKILL)
    while any(map(alive, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, children))
    assert ended(own, long) == -signal.SIGKILL
    assert not own.alive
