"""A process that has loaded everything once and forks a child for each run.

A run of a second should not pay three for loading PyTorch. Each run still has a process
of its own: its memory is its own, and what kills it kills nothing else.

Requests come as lines of JSON on stdin: ``{"id", "task", "out", "err"}`` starts a run
whose output goes to two files. Answers go out on stdout, a line ``id code`` for each
run that ended. When stdin closes everything ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any

COMMAND = (
    *(sys.executable, "-c"),
    "from elugcn.evaluation.nursery import main; main()",
)
# Forking a process that has loaded PyTorch is known to work on Linux.
AVAILABLE = sys.platform == "linux"
_GONE = -int(signal.SIGKILL)


class Nursery:
    """The parent's side: starts runs and learns how they ended."""

    def __init__(self, threads: int) -> None:
        count = str(threads)
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Libraries that make their threads when they are loaded read these.
            env=os.environ | {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count},
            # Ctrl-C is for the comparison, which then ends its children.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._codes: dict[int, int] = {}
        self._text = b""
        self._next = 0

    @property
    def pid(self) -> int:
        """Of the nursery itself."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can start another run."""
        return self._process.poll() is None

    def start(self, task: dict[str, Any], out: str, err: str) -> int:
        """Begin a run; the number it is known by."""
        self._next += 1
        self._send({"id": self._next, "task": task, "out": out, "err": err})
        return self._next

    def code(self, number: int) -> int | None:
        """The exit code of a run, negative if a signal ended it; None while it runs."""
        assert self._process.stdout is not None
        ended = self._process.poll() is not None
        self._text += self._process.stdout.read() or b""
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            which, code = line.split()
            self._codes[int(which)] = int(code)
        return self._codes.get(number, _GONE if ended else None)

    def kill(self) -> None:
        """End the nursery and all its runs at once, even while it is still loading."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it is dead, which ``code`` tells


_KEPT: dict[int, Nursery] = {}


def nursery(threads: int) -> Nursery:
    """The nursery of this process for runs with that many threads.

    It stays for the next call, and ends when this process does: its stdin closes.
    """
    kept = _KEPT.get(threads)
    if kept is None or not kept.alive:
        kept = _KEPT[threads] = Nursery(threads)
    return kept


def discard(threads: int) -> None:
    """End the kept nursery at once: whoever wanted it was interrupted."""
    kept = _KEPT.pop(threads, None)
    if kept is not None:
        kept.kill()


def main() -> None:
    """The nursery itself."""
    # Everything a run needs, and nothing that starts a thread.
    import elugcn.evaluation.worker
    import elugcn.experiments.measures  # noqa: F401

    children: dict[int, int] = {}
    pending = b""
    while True:
        ready, _, _ = select.select([0], [], [], 0.02)
        if ready:
            chunk = os.read(0, 65536)
            if not chunk:
                break
            pending += chunk
            *lines, pending = pending.split(b"\n")
            for line in lines:
                _obey(json.loads(line), children)
        _reap(children)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _obey(request: dict[str, Any], children: dict[int, int]) -> None:
    pid = os.fork()
    if pid:
        children[pid] = request["id"]
        return
    _run(request)


def _run(request: dict[str, Any]) -> None:
    """One run, in the forked child; does not return."""
    code = 1
    try:
        parent = os.getppid()
        for path, number in ((request["out"], 1), (request["err"], 2)):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        threading.Thread(target=_die_without, args=(parent,), daemon=True).start()
        from elugcn.evaluation.worker import perform

        code = perform(request["task"])
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _reap(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        code = os.waitstatus_to_exitcode(status)
        os.write(1, f"{children.pop(pid)} {code}\n".encode())
