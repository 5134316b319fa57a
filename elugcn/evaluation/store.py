"""The records of finished and failed runs.

New records are lines of a journal, ``runs.jsonl``, that several processes may share.
``publish`` moves them into one Parquet file per method, ``runs/<method>.parquet``,
which is small enough for a repository. Both are read.
"""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from elugcn.atomic import atomic_path
from elugcn.errors import InputError
from elugcn.evaluation.jobs import Job

SCHEMA = 2
Record = dict[str, Any]
# Fields of a record that are mappings or lists; a Parquet file holds them as JSON.
NESTED = ("options", "config", "data_options", "packages", "seconds", "metadata",
          "measured")  # fmt: skip
_REQUIRED = ("key", "status", "method", "dataset", "split", "seed")
# Equal values beside each other: the file is small, and a new run changes little.
_ORDER = ("dataset", "measure", "labels_per_class", "config", "seed", "key")


class Store:
    """A directory of records; it is made when something is written."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.journal = self.folder / "runs.jsonl"
        self.published = self.folder / "runs"
        self._done: dict[str, Record] = {}
        self._failed: dict[str, Record] = {}
        self._published_at = -1  # what is known of the Parquet files
        self._read_up_to = 0  # and of the journal
        self.refresh()

    def result(self, job: Job) -> Record | None:
        """The record of a finished job; None if it is not done.

        A record does not count if a default of its method has changed since.
        """
        record = self._done.get(job.key)
        if record is None:
            return None
        then = record.get("config") or {}
        changed = any(job.config[k] != then[k] for k in job.config.keys() & then.keys())
        return None if changed else record

    def failure(self, job: Job) -> Record | None:
        """The last failure of a job that is not done."""
        return None if self.result(job) else self._failed.get(job.key)

    def records(self) -> Iterator[Record]:
        """Every finished run."""
        yield from self._done.values()

    def add(self, record: Record) -> None:
        """Append a record to the journal; when this returns, it is on the disk."""
        with self._reported(), self._lock("journal"):
            append_line(self.journal, record)
        self.refresh()

    def refresh(self) -> None:
        """Read what any process has added or published since the last time."""
        with self._reported():
            at = self.published.stat().st_mtime_ns if self.published.is_dir() else -1
            if at != self._published_at:
                self._published_at, self._read_up_to = at, 0
                for path in sorted(self.published.glob("*.parquet")):
                    self._keep(read_records(path, _REQUIRED))
            records, self._read_up_to = read_lines(self.journal, self._read_up_to)
        self._keep(r for r in records if all(name in r for name in _REQUIRED))

    def publish(self) -> None:
        """Move the finished runs of the journal into the Parquet files.

        Failures are forgotten: the next comparison tries these jobs again.
        """
        by_method: dict[str, list[Record]] = defaultdict(list)
        with self._reported(), self._lock("journal"):
            self.refresh()
            for record in self._done.values():
                by_method[record["method"]].append(record)
            for method, records in by_method.items():
                write_records(self.published / f"{method}.parquet", records)
            self.journal.unlink(missing_ok=True)
            self._failed.clear()
            if by_method:
                os.utime(self.published)  # others see that the journal begins anew

    @contextmanager
    def claim(self, job: Job) -> Iterator[bool]:
        """Whether this process may do the job; False while another one has it.

        The operating system gives the claim back when the process dies.
        """
        with self._reported():
            lock = self._lock(job.key)
            with suppress(Timeout):
                lock.acquire(timeout=0)
        try:
            yield lock.is_locked
        finally:
            if lock.is_locked:
                Path(lock.lock_file).unlink(missing_ok=True)
                lock.release()

    def check_writable(self) -> None:
        """Refuse a store that cannot be written to, before any work is done."""
        place = self.folder.resolve()
        while not place.exists():
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            what = f"{place} is not a writable directory"
            raise InputError(f"store {self.folder}: {what}")

    def _keep(self, records: Iterable[Record]) -> None:
        for record in records:
            place = self._done if record["status"] == "done" else self._failed
            place[record["key"]] = record

    def _lock(self, name: str) -> FileLock:
        place = self.folder / ".locks"
        place.mkdir(parents=True, exist_ok=True)
        return FileLock(place / f"{name}.lock")

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """A full disk or a store that was taken away is not a bug."""
        try:
            yield
        except OSError as error:
            raise InputError(f"store {self.folder}: {error.strerror}") from None


def append_line(path: Path, record: Record) -> None:
    """Add a record to a journal in one write; when this returns, it is on the disk."""
    data = f"{_as_json(record)}\n".encode()
    with path.open("a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            data = b"\n" + data  # half a line of a writer that was killed
        if file.write(data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


def read_lines(path: Path, start: int = 0) -> tuple[list[Record], int]:
    """The records of a journal from a position on, and the position after them.

    A line that is being written is left for the next time. A line that a killed writer
    left unfinished is ignored.
    """
    if not path.exists():
        return [], 0
    with path.open("rb") as file:
        file.seek(start)
        text = file.read()
    end = text.rfind(b"\n") + 1
    records = []
    for line in text[:end].splitlines():
        with suppress(ValueError):
            records.append(json.loads(line))
    return [r for r in records if isinstance(r, dict)], start + end


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write records as one Parquet file; the same records give the same file."""
    rows = [
        {k: _as_json(v) if k in NESTED and v is not None else v for k, v in r.items()}
        for r in records
    ]
    rows.sort(key=lambda row: [str(row.get(name)) for name in _ORDER])
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as work:
        pq.write_table(table, work, compression="zstd", compression_level=19)


def read_records(path: Path, required: Sequence[str] = ()) -> list[Record]:
    """The records of a Parquet file; each must have what is required."""
    try:
        rows: list[Record] = pq.read_table(path).to_pylist()
        for row in rows:
            for name in NESTED:
                if row.get(name) is not None:
                    row[name] = json.loads(row[name])
        if any(row.get(name) is None for row in rows for name in required):
            raise ValueError
    except (OSError, pa.ArrowException, TypeError, ValueError):
        raise InputError(f"{path}: not a Parquet file of records") from None
    return rows


def _as_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)
