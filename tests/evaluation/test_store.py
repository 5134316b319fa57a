import os
from pathlib import Path

import pytest
from filelock import FileLock

from elugcn.errors import InputError
from elugcn.evaluation import Store, stored_outcomes
from elugcn.evaluation.store import read_records, write_records
from tests.evaluation.records import Jobs, record_of


def test_round_trip_through_the_journal_and_parquet(store: Store, jobs: Jobs) -> None:
    one, two, three = jobs(3)
    assert store.result(one) is None
    metadata = {"eta": 0.3, "members": [1, 2], "none": None}
    whole = record_of(one, 0.25, metadata=metadata, measured={"x": [0.5]})
    store.add(whole)
    store.add(record_of(two, None))
    for reader in (store, Store(store.folder)):
        assert reader.result(one) == whole
        assert reader.result(three) is None
    store.publish()
    assert not store.journal.exists()
    for reader in (store, Store(store.folder)):
        found = reader.result(one)
        assert found is not None
        # Parquet has every column in every row.
        assert {k: v for k, v in found.items() if v is not None or k in whole} == whole
        assert reader.result(two)["test_accuracy"] is None  # type: ignore[index]
    # The same records in another order give the same file.
    (path,) = (store.folder / "runs").iterdir()
    before = path.read_bytes()
    write_records(path, read_records(path)[::-1])
    assert (path.name, path.read_bytes()) == ("lpa.parquet", before)


def test_the_last_record_counts_and_failures_are_records(
    store: Store, jobs: Jobs
) -> None:
    one, two = jobs(2)
    for error in ("a", "b"):
        store.add(record_of(one, status="failed", error=error))
    assert store.result(one) is None
    outcomes = stored_outcomes([one, two, one], store)
    assert (outcomes.done, outcomes.failed[one]["error"]) == ({}, "b")
    store.add(record_of(one, 0.1))
    store.add(record_of(one, 0.2))
    store.add(record_of(two, status="failed", error="c"))
    assert store.failure(one) is None
    assert store.result(one)["test_accuracy"] == 0.2  # type: ignore[index]
    store.publish()
    # Failures are not published: they are tried again.
    assert Store(store.folder).failure(two) is store.failure(two) is None


def test_a_torn_line_is_ignored(store: Store, jobs: Jobs) -> None:
    one, two = jobs(2)
    store.add(record_of(one))
    with store.journal.open("a") as file:
        file.write('{"key": "half')
    torn = Store(store.folder)
    torn.add(record_of(two))  # begins a line of its own
    with store.journal.open("ab") as file:
        file.write(b'[1]\n"text"\n{"key": "x"}\n\xff\xfe\n')
    for reader in (torn, Store(store.folder)):
        assert [r["seed"] for r in reader.records()] == [0, 1]


def test_a_store_sees_what_another_adds_and_publishes(store: Store, jobs: Jobs) -> None:
    one, two, three = jobs(3)
    reader = Store(store.folder)
    store.add(record_of(one))
    assert reader.result(one) is None
    reader.refresh()
    assert reader.result(one) is not None
    store.add(record_of(two))
    store.publish()
    store.add(record_of(three))
    with FileLock(store.folder / ".locks" / "journal.lock"):  # readers do not wait
        reader.refresh()  # the journal begins anew
    assert all(reader.result(job) is not None for job in (one, two, three))


def test_a_changed_default_asks_for_a_new_run(store: Store, jobs: Jobs) -> None:
    (job,) = jobs(1)
    store.add(record_of(job, config=job.config | {"lpa_steps": 7}))
    assert store.result(job) is None
    # An option that either side does not know is no difference.
    known = {k: v for k, v in job.config.items() if k != "lpa_steps"}
    store.add(record_of(job, config=known | {"removed": 1}))
    assert store.result(job) is not None


def test_one_claim_at_a_time(store: Store, jobs: Jobs) -> None:
    one, two = jobs(2)
    other = Store(store.folder)
    with store.claim(one) as mine, other.claim(one) as theirs, other.claim(two) as free:
        assert (mine, theirs, free) == (True, False, True)
    with other.claim(one) as again:
        assert again
    assert not list((store.folder / ".locks").iterdir())


@pytest.mark.parametrize("content", ["text", "table"])
def test_a_damaged_file_is_named(content: str, store: Store) -> None:
    path = store.published / "lpa.parquet"
    write_records(path, [{"key": "a", "method": None}])
    if content == "text":
        path.write_text("no table")
    with pytest.raises(InputError, match=r"lpa\.parquet: not a Parquet file"):
        Store(store.folder)


def test_a_place_that_cannot_be_written(tmp_path: Path, jobs: Jobs) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is not a writable directory"):
        Store(tmp_path / "file" / "store").check_writable()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if not os.access(closed, os.W_OK):  # root may write anywhere
        with pytest.raises(InputError, match="closed is not a writable directory"):
            Store(closed / "store").check_writable()
    # A folder that is taken away is a line, not a traceback.
    with pytest.raises(InputError, match=r"^store .*: Not a directory|File exists"):
        Store(tmp_path / "file").add(record_of(jobs(1)[0]))
