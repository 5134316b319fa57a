import json
import math
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from elugcn.errors import InputError
from elugcn.evaluation import claims
from elugcn.evaluation.claims import Claim
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.store import Store
from tests.evaluation.conftest import record_of

Jobs = Callable[..., list[Job]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_round_trip(store: Store, jobs: Jobs) -> None:
    one, two = jobs(2)
    assert store.result(one) is None
    store.check_writable()
    claim = store.claim(one)
    assert claim is not None
    assert store.add(one, record_of(one, 0.25))
    claim.release()
    path = store.folder / "lpa" / "karate" / f"0-0-{one.config_hash}.json"
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]
    assert store.result(one) == record_of(one, 0.25)
    assert store.result(two) is None
    assert [r["seed"] for r in store.records()] == [0]


def test_a_result_is_never_overwritten(store: Store, jobs: Jobs) -> None:
    (job,) = jobs(1)
    store.path(job).parent.mkdir(parents=True)
    assert store.add(job, record_of(job, 0.25))
    assert not store.add(job, record_of(job, 0.75))
    assert store.result(job) == record_of(job, 0.25)
    assert len(list(store.path(job).parent.iterdir())) == 1


def test_a_failure_goes_when_there_is_a_result(store: Store, jobs: Jobs) -> None:
    (job,) = jobs(1)
    store.path(job).parent.mkdir(parents=True)
    store.add_failure(job, {"status": "failed", "error": "a"})
    store.add_failure(job, {"status": "failed", "error": "b"})
    failure = store.failure(job)
    assert failure is not None
    assert failure["error"] == "b"
    assert store.result(job) is None
    assert list(store.records()) == []
    store.add(job, record_of(job))
    assert not store.failed_path(job).exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schema": 1, "meth', "damaged, expected a JSON record"),
        ("", "damaged, expected a JSON record"),
        ("[1]", "damaged, expected a JSON record"),
        ("\x00\xff", "damaged, expected a JSON record"),
        ('{"schema": 2}', "schema is 2; expected 1"),
        ('{"schema": 1}', "damaged, method is missing"),
    ],
)
def test_damage_is_named(text: str, says: str, store: Store, jobs: Jobs) -> None:
    (job,) = jobs(1)
    store.path(job).parent.mkdir(parents=True)
    store.path(job).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        store.result(job)
    assert str(caught.value).startswith(f"{store.path(job)}: {says}")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"test_accuracy": 81.5}, "test_accuracy is 81.5; expected 0 to 1"),
        ({"test_accuracy": "x"}, "test_accuracy is 'x'; expected 0 to 1"),
        ({"seed": 5}, "seed is 5; its name says 0"),
        ({"test_accuracy": True}, "test_accuracy is True; expected 0 to 1"),
        ({"seconds": 3}, "damaged, seconds is 3; delete it"),
        ({"seconds": {"total": None}}, "damaged, seconds is {'total': None}"),
        ({"peak_rss_mb": None}, "damaged, peak_rss_mb is None"),
        ({"packages": []}, r"damaged, packages is \[\]"),
        ({"peak_rss_mb": math.inf}, "damaged, peak_rss_mb is inf"),
        ({"seconds": {"total": math.nan}}, "damaged, seconds is {'total': nan}"),
        ({"status": "failed"}, "damaged, status is 'failed'"),
        ({"config": {"x": 1}}, "damaged, config is not that of its name"),
        ({"measure": "theory"}, "damaged, measure is not that of its name"),
    ],
)
def test_wrong_values_are_named(
    change: dict[str, object], says: str, store: Store, jobs: Jobs
) -> None:
    (job,) = jobs(1)
    store.path(job).parent.mkdir(parents=True)
    store.path(job).write_text(json.dumps(record_of(job, **change)))
    with pytest.raises(InputError, match=says):
        store.result(job)


def test_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/store"):
        with pytest.raises(InputError, match=f"--store .*{place}: "):
            Store(tmp_path / place).check_place()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if not os.access(closed, os.W_OK):  # root may write anywhere
        with pytest.raises(InputError, match="closed can't be written to"):
            Store(closed / "store").check_writable()


def test_a_dead_writers_file_is_cleared(store: Store, jobs: Jobs) -> None:
    (job,) = jobs(1)
    folder = store.path(job).parent
    folder.mkdir(parents=True)
    (folder / f".{store.path(job).stem}.123").write_text('{"half')
    assert list(store.records()) == []
    claim = store.claim(job)
    assert claim is not None
    claim.release()
    assert list(folder.iterdir()) == []


class TestClaims:
    @pytest.fixture
    def take(self, tmp_path: Path) -> Callable[[], Claim | None]:
        return lambda: Claim.take(tmp_path / "a.lock", tmp_path / "guard")

    def owner(self, **change: object) -> str:
        me = psutil.Process()
        owner = {"pid": me.pid, "host": socket.gethostname(), "token": "x"}
        return json.dumps(owner | {"started": me.create_time()} | change)

    def test_one_at_a_time(self, take: Callable[[], Claim | None]) -> None:
        claim = take()
        assert claim is not None
        owner = json.loads(claim.path.read_text())
        assert owner["pid"] == os.getpid()
        assert owner["host"] == socket.gethostname()
        assert take() is None
        claim.release()
        assert not claim.path.exists()
        assert take() is not None

    @pytest.mark.parametrize(
        ("change", "free"),
        [
            ({}, False),
            ({"pid": 2**22 + 1}, True),
            ({"started": 1.0}, True),  # the number is another process's now
            ({"host": "elsewhere", "pid": 2**22 + 1}, False),
        ],
    )
    def test_owners(
        self,
        change: dict[str, object],
        free: bool,
        take: Callable[[], Claim | None],
        tmp_path: Path,
    ) -> None:
        (tmp_path / "a.lock").write_text(self.owner(**change))
        assert (take() is not None) == free

    def test_heartbeat(
        self,
        take: Callable[[], Claim | None],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        lock = tmp_path / "a.lock"
        first = take()
        assert first is not None
        old = time.time() - claims.LIMIT - 5
        os.utime(lock, (old, old))
        monkeypatch.setattr(claims, "HEARTBEAT", 0.0)
        first.beat()
        assert take() is None
        os.utime(lock, (old, old))
        second = take()
        assert second is not None
        first.release()  # is no longer its own
        assert lock.exists()
        second.release()
        assert not lock.exists()

    def test_a_claim_killed_before_it_was_written(
        self, take: Callable[[], Claim | None], tmp_path: Path
    ) -> None:
        lock = tmp_path / "a.lock"
        lock.touch()
        assert take() is None
        old = time.time() - 6
        os.utime(lock, (old, old))
        assert take() is not None
