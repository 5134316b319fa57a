"""Work in a process of its own, for the sake of its memory.

Each case gets a new process, forked from a server that has loaded the package and done
nothing else. It loads its data, tries the code once on something tiny, and from then on
counts: what it holds beyond that point is what the case needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from elugcn.bench.measure import Stopwatch
from elugcn.errors import InputError
from elugcn.runs import peak_rss_mb
from elugcn.storage import json_safe
from elugcn.training.threads import threads

START_METHOD = "spawn" if sys.platform == "win32" else "forkserver"
# What the server loads once, the program itself first: else every child would.
_PRELOAD = ["__main__"]
_PRELOAD += ["elugcn.bench.fit", "elugcn.bench.graph", "elugcn.bench.scale"]

# Loads, warms up, and returns the work that is measured; its result must fit JSON.
Prepare = Callable[..., Callable[[], Any]]


class ChildFailedError(RuntimeError):
    """A case ended without a result; the message says why."""


@dataclass(frozen=True)
class Measured:
    """What a case returned, took and held.

    Attributes:
        result: What the work returned.
        cpu: Processor seconds of the work.
        wall: The same by the clock.
        peak_mb: The most memory the process held while it worked.
        baseline_mb: What it held before: Python, PyTorch, the data.
    """

    result: Any
    cpu: float
    wall: float
    peak_mb: float
    baseline_mb: float

    @property
    def grown_mb(self) -> float:
        """Memory of the work itself; at least a page, so that ratios exist."""
        return max(self.peak_mb - self.baseline_mb, 4 / 2**10)


def in_child(prepare: Prepare, *args: Any, limit_mb: float | None = None) -> Measured:
    """Do ``prepare(*args)()`` in a new process with one thread.

    Args:
        prepare: A function of a module: it is looked up there by the new process.
        *args: Its arguments.
        limit_mb: The process is ended when it holds more.

    Raises:
        ChildFailedError: It held too much, was killed, or has a bug.
        InputError: As the work raised it.
    """
    context: Any = multiprocessing.get_context(START_METHOD)
    if START_METHOD == "forkserver":
        context.set_forkserver_preload(_PRELOAD)
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sending, prepare, args), daemon=True)
    try:
        with _interrupted_later():
            child.start()
        sending.close()
        answer = _answer(receiving, child.pid, limit_mb)
        if answer is None:
            child.join(10)
    finally:
        if child.pid is not None:
            child.kill()
            child.join()
        receiving.close()
    if answer is None:
        raise ChildFailedError(_why(child.exitcode))
    if "refused" in answer:
        raise InputError(answer["refused"])
    if "error" in answer:
        raise ChildFailedError(answer["error"])
    return Measured(**answer)


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: a child half started is nobody's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])


def _answer(
    receiving: Connection, pid: int, limit_mb: float | None
) -> dict[str, Any] | None:
    """What the child sends; None if it ends without a word."""
    while not receiving.poll(0.1):
        held = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            held = psutil.Process(pid).memory_info().rss / 2**20
        if limit_mb is not None and held > limit_mb:
            return {"error": f"held more than {limit_mb:,.0f} MB"}
    try:
        answer: dict[str, Any] = json.loads(receiving.recv_bytes())
    except EOFError:
        return None
    return answer


def _why(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"
    return f"ended with exit code {code} and no result"


def _child(sending: Connection, prepare: Prepare, args: tuple[Any, ...]) -> None:
    """The new process."""
    # Ctrl-C is for the command, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        with threads(1):
            answer = measured(prepare, *args)
    except InputError as error:
        answer = {"refused": str(error)}
    except MemoryError:
        answer = {"error": "ran out of memory"}
    except Exception:
        lines = traceback.format_exc().splitlines()
        # PyTorch's allocator has no exception of its own.
        full = "allocate" in lines[-1]
        answer = {"error": "ran out of memory" if full else "\n".join(lines)}
    sending.send_bytes(json.dumps(json_safe(answer)).encode())
    sending.close()


def measured(prepare: Prepare, *args: Any) -> dict[str, Any]:
    """Prepare and work here; the fields of ``Measured``."""
    work = prepare(*args)
    _give_back()
    baseline = psutil.Process().memory_info().rss / 2**20
    watch = Stopwatch()
    result = work()
    cpu, wall = watch.read()
    return {
        "result": result,
        "cpu": cpu,
        "wall": wall,
        "peak_mb": peak_rss_mb(),
        "baseline_mb": baseline,
    }


def _give_back() -> None:
    """Free what is not used and forget the peak: both would hide what comes next."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):  # Linux only
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def free_mb() -> float:
    """Memory that a new process could have."""
    return psutil.virtual_memory().available / 2**20
