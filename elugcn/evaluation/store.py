"""The results of runs on disk: one JSON file per finished run, whole or absent.

``<store>/<method>/<dataset>/<split>-<seed>-<config hash>.json`` is written under a
temporary name, synced and then linked to its final name, which fails if that exists:
what is finished is never half there, never lost and never overwritten. A failed run
is kept beside it as ``….failed.json`` until a later run succeeds.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elugcn.errors import InputError
from elugcn.evaluation.claims import Claim, is_stale
from elugcn.evaluation.jobs import Job
from elugcn.storage import json_safe

SCHEMA = 1
Record = dict[str, Any]

_IDENTITY = ("method", "dataset", "split", "seed", "labels_per_class", "config_hash")
# What the hash is of; a record that names one of them must mean the same.
_HASHED = ("config", "data_options", "measure")
_ACCURACIES = ("train_accuracy", "val_accuracy", "test_accuracy")


class Store:
    """A directory of results that several processes may share."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, job: Job) -> Path:
        """Where the result of a job is, or will be."""
        name = f"{job.split}-{job.seed}-{job.config_hash}.json"
        return self.folder / job.method / job.dataset / name

    def failed_path(self, job: Job) -> Path:
        """Where the failure of a job is noted."""
        return self.path(job).with_suffix(".failed.json")

    def result(self, job: Job) -> Record | None:
        """The result of a job; None if it is not done.

        Raises:
            InputError: the file is damaged or is about another run.
        """
        record = _read(self.path(job))
        if record is not None:
            _check(record, self.path(job))
            expected = job.plain() | {"config_hash": job.config_hash}
            for key in _IDENTITY:
                if record[key] != expected[key]:
                    raise InputError(
                        f"{self.path(job)}: {key} is {record[key]!r}; "
                        f"its name says {expected[key]!r}"
                    )
            for key in _HASHED:
                if key in record and record[key] != expected[key]:
                    raise InputError(
                        f"{self.path(job)}: damaged, {key} is not that of its name; "
                        "delete it to run it again"
                    )
        return record

    def failure(self, job: Job) -> Record | None:
        """What is known of the last failure of a job that is not done."""
        return None if self.path(job).exists() else _read(self.failed_path(job))

    def records(self) -> Iterator[Record]:
        """Every result in the store, whatever comparison it was for."""
        for path in sorted(self.folder.glob("*/*/*.json")):
            if not path.name.startswith(".") and not path.name.endswith(".failed.json"):
                record = _read(path)
                if record is not None:
                    _check(record, path)
                    yield record

    def check_writable(self) -> None:
        """Refuse a store that can't be written to, before any work is done."""
        place = self._nearest()
        if not os.access(place, os.W_OK | os.X_OK):
            raise InputError(f"--store {self.folder}: {place} can't be written to")

    def check_place(self) -> None:
        """Refuse a place that can't be a directory; it need not exist yet."""
        place = self._nearest()
        if not place.is_dir():
            raise InputError(f"--store {self.folder}: {place} is not a directory")

    def _nearest(self) -> Path:
        """The store, or the directory above it that exists."""
        with self._reported():
            place = self.folder.resolve()
            while not place.exists() and place != place.parent:
                place = place.parent
        return place

    def claim(self, job: Job) -> Claim | None:
        """The right to do a job; None while another process has it."""
        path = self.path(job)
        with self._reported():
            path.parent.mkdir(parents=True, exist_ok=True)
            claim = Claim.take(path.with_suffix(".lock"), self.folder / ".takeover")
            if claim is not None:
                # Only who holds the claim writes, so these are a dead writer's.
                for left in path.parent.glob(f".{path.stem}.*"):
                    left.unlink(missing_ok=True)
        return claim

    def tidy(self, job: Job) -> None:
        """Remove the claim on a finished job that its owner was killed with."""
        lock = self.path(job).with_suffix(".lock")
        # A store that can only be read is as good as before.
        with contextlib.suppress(InputError):
            if is_stale(lock) and (claim := self.claim(job)) is not None:
                claim.release()

    def add(self, job: Job, record: Record) -> bool:
        """Keep a result; False if there was one already, which stays."""
        path = self.path(job)
        with self._reported():
            added = _place(path, record, replace=False)
            self.failed_path(job).unlink(missing_ok=True)
        return added

    def add_failure(self, job: Job, record: Record) -> None:
        """Note that a run failed and why; the job stays to be done."""
        with self._reported():
            _place(self.failed_path(job), record, replace=True)

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """A full disk or a store taken away is no bug: say so in a line."""
        try:
            yield
        except OSError as error:
            raise InputError(f"--store {self.folder}: {error.strerror}") from None


def _place(path: Path, record: Record, replace: bool) -> bool:
    text = json.dumps(json_safe(record), indent=1, allow_nan=False) + "\n"
    work = path.with_name(f".{path.name.removesuffix('.json')}.{os.getpid()}")
    try:
        with work.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(work, path)
        elif not _link(work, path):
            return False
        _sync_directory(path.parent)
        return True
    finally:
        work.unlink(missing_ok=True)


def _link(work: Path, path: Path) -> bool:
    try:
        os.link(work, path)
    except FileExistsError:
        return False
    except FileNotFoundError:  # another process took the claim over and tidied up
        return False
    except OSError:  # a file system without links; the claim keeps others away
        if path.exists():
            return False
        os.replace(work, path)
    return True


def _sync_directory(folder: Path) -> None:
    """A new name survives a power cut only once its directory is synced."""
    with contextlib.suppress(OSError):  # Windows can't open directories
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(path: Path) -> Record | None:
    try:
        text = path.read_text(encoding="utf-8")
        record = json.loads(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise InputError(
            f"{path}: damaged, expected a JSON record; delete it to run it again"
        )
    return record


def _check(record: Record, path: Path) -> None:
    if record.get("schema") != SCHEMA:
        raise InputError(
            f"{path}: schema is {record.get('schema')!r}; expected {SCHEMA}"
        )
    for key in (*_IDENTITY, *_ACCURACIES, "seconds", "peak_rss_mb", "packages"):
        if key not in record:
            raise InputError(
                f"{path}: damaged, {key} is missing; delete it to run it again"
            )
    if record.get("status") != "done":
        raise InputError(
            f"{path}: damaged, status is {record.get('status')!r}; delete it to run "
            "it again"
        )
    for key in _ACCURACIES:
        value = record[key]
        if value is not None and not (_is_number(value) and 0 <= value <= 1):
            raise InputError(f"{path}: damaged, {key} is {value!r}; expected 0 to 1")
    times = record["seconds"]
    right = {
        "seconds": isinstance(times, dict) and all(map(_is_number, times.values())),
        "peak_rss_mb": _is_number(record["peak_rss_mb"]),
        "packages": isinstance(record["packages"], dict),
    }
    for key, is_right in right.items():
        if not is_right:
            raise InputError(
                f"{path}: damaged, {key} is {record[key]!r}; delete it to run it again"
            )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
