"""Who is doing a run: a lock file with a heartbeat, taken over when its owner is dead.

Creating the file with ``O_EXCL`` is the claim. It names the process, so that a claim
of a process that was killed on this host is seen to be dead at once; a claim from
another host, or of a process that hangs, is dead when its heartbeat stops.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

HEARTBEAT = 10.0  # seconds between two beats
LIMIT = 300.0  # seconds without a beat after which a claim is given up
# A claim without contents: its owner is about to write them, or was killed.
_WRITING = 5.0


@dataclass
class Claim:
    """A run this process has the right to do."""

    path: Path
    guard: Path
    token: str
    beaten: float

    @classmethod
    def take(cls, path: Path, guard: Path) -> Claim | None:
        """Claim by creating ``path``; None if another process has it.

        Args:
            path: the lock file.
            guard: a file of the store; taking over and giving back are done one
                process at a time, or two could each remove the other's new claim.
        """
        token = uuid.uuid4().hex
        if _create(path, token):
            return cls(path, guard, token, time.monotonic())
        if not is_stale(path):
            return None
        with _exclusive(guard):
            if is_stale(path):
                path.unlink(missing_ok=True)
            if _create(path, token):
                return cls(path, guard, token, time.monotonic())
        return None

    def beat(self) -> None:
        """Say that the run goes on; cheap to call often."""
        now = time.monotonic()
        if now - self.beaten >= HEARTBEAT:
            self.beaten = now
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def release(self) -> None:
        """Give the claim back, unless another process has taken it over."""
        with contextlib.suppress(OSError), _exclusive(self.guard):
            owner = _owner(self.path)
            if owner is not None and owner.get("token") == self.token:
                self.path.unlink(missing_ok=True)


def is_stale(path: Path) -> bool:
    """Whether the owner of a lock file is dead, or has stopped its heartbeat.

    No file is no stale one: what appears in its place may be alive.
    """
    try:
        age = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return False
    if age > LIMIT:
        return True
    owner = _owner(path)
    if owner is None:
        return age > _WRITING
    if owner.get("host") != socket.gethostname():
        return False
    return not _lives(owner)


def _create(path: Path, token: str) -> bool:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    owner = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": psutil.Process().create_time(),
        "token": token,
    }
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(owner, file)
    return True


def _owner(path: Path) -> dict[str, Any] | None:
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return owner if isinstance(owner, dict) else None


def _lives(owner: dict[str, Any]) -> bool:
    """Whether the process is there and is the one meant: numbers are used again."""
    try:
        process = psutil.Process(int(owner["pid"]))
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(process.create_time() - float(owner["started"])) < 1.0
    except psutil.AccessDenied:
        return True
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False


@contextlib.contextmanager
def _exclusive(guard: Path) -> Iterator[None]:
    """Hold the lock of the operating system, which a killed process loses."""
    with guard.open("a+b") as file:
        if sys.platform == "win32":  # pragma: no cover
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            yield  # closing the file unlocks it
