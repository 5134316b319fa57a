"""A worker process as its parent sees it: start, ask, read, end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elugcn.evaluation.jobs import Job
from elugcn.evaluation.nursery import Nursery
from elugcn.evaluation.store import SCHEMA, Record
from elugcn.evaluation.worker import WITH_PARENT

COMMAND = (sys.executable, "-m", "elugcn.evaluation.worker", WITH_PARENT)


class Child:
    """One job in a process of its own, however that was started.

    Output goes to files: a pipe that nobody reads in time would block the child.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.start = time.monotonic()
        self._out = tempfile.NamedTemporaryFile()  # noqa: SIM115
        self._err = tempfile.NamedTemporaryFile()  # noqa: SIM115

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.start

    def code(self) -> int | None:
        """The exit code; None while it runs."""
        raise NotImplementedError

    def finished(self) -> bool:
        """Whether the process has ended."""
        return self.code() is not None

    def outcome(self) -> Record:
        """The record of the finished process, ``status`` being done or failed."""
        code = self.code()
        assert code is not None
        seconds = self.seconds
        text = _contents(self._out.name)
        try:
            record = json.loads(text) if code == 0 else None
        except ValueError:
            record = None
        problem = _problem(code, _contents(self._err.name))
        self.close()
        if isinstance(record, dict):
            return record | {"process_seconds": round(seconds, 3)}
        return {
            "schema": SCHEMA,
            "status": "failed",
            **self.job.plain(),
            "config_hash": self.job.config_hash,
            "error": problem,
            "exit_code": code,
            "process_seconds": round(seconds, 3),
            "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }

    def kill(self) -> None:
        """End the process at once; what it was doing is given up."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what connects to the process."""
        self._out.close()
        self._err.close()


class Forked(Child):
    """A child of the nursery."""

    def __init__(self, job: Job, settings: dict[str, Any], nursery: Nursery) -> None:
        super().__init__(job)
        self._nursery = nursery
        task = {"job": job.plain()} | settings
        self._number = nursery.start(task, self._out.name, self._err.name)

    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._nursery.code(self._number)

    def kill(self) -> None:
        """End the process at once; what it was doing is given up."""
        self._nursery.kill()
        self.close()


class Spawned(Child):
    """A process started by a command."""

    def __init__(
        self, job: Job, settings: dict[str, Any], command: Sequence[str] = COMMAND
    ) -> None:
        super().__init__(job)
        threads = str(settings.get("n_threads", 1))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self._out,
            stderr=self._err,
            # Libraries that make their threads when they are loaded read these.
            env=os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
            # Ctrl-C is for the comparison, which then ends its children.
            start_new_session=True,
        )
        task = json.dumps({"job": job.plain()} | settings) + "\n"
        assert self._process.stdin is not None
        # A child that is dead already is found out by its exit code.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(task.encode())
            self._process.stdin.flush()

    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End the process at once; what it was doing is given up."""
        self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Close what connects to the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        super().close()


def _contents(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _problem(code: int, stderr: str) -> str:
    """Why a run failed, in one line."""
    if code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
            return f"killed by {name}{hint}"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines:
        return lines[-1].removeprefix("InputError: ")
    return f"ended with exit code {code} and no record"
