"""One call in a process of its own.

The process is new for each call, so its memory peak is that call's. What kills it kills
nothing else, a time limit ends a call that hangs, and it ends when its parent does. It
is forked from a server that has loaded the package once, so a call of a second does not
pay three for loading PyTorch.

Scripts that start processes need ``if __name__ == "__main__":``, as with all of
Python's multiprocessing.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import psutil

from elugcn.api.files import json_safe
from elugcn.errors import InputError, MissingExtraError

START_METHOD = "spawn" if sys.platform == "win32" else "forkserver"
# What the server loads once; the program itself too, or each process would load it.
_PRELOAD = ["__main__", "elugcn.evaluation.run"]
_POLL = 0.1  # seconds between two looks at memory, time limit and cancellation
# Two threads must not read the end of one process at the same time.
_STARTING = threading.Lock()


class IsolatedError(RuntimeError):
    """The call gave no result; the message says why in one line.

    ``exit_code`` is that of the process: negative if a signal ended it, 2 for wrong
    input.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def run_isolated(
    function: Callable[..., Any],
    *args: Any,
    timeout: float | None = None,
    limit_mb: float | None = None,
    cancelled: threading.Event | None = None,
) -> Any:
    """Call ``function(*args)`` in a new process; its result as JSON holds it.

    The function is at the top level of a module; its arguments are pickled. The process
    is ended after ``timeout`` seconds, above ``limit_mb`` megabytes of memory, or when
    ``cancelled`` is set.

    Raises:
        IsolatedError: The process was ended or killed, or the call raised an error.
    """
    if multiprocessing.current_process().daemon:
        raise IsolatedError(
            "this worker may not start processes; with Dask set "
            "DASK_DISTRIBUTED__WORKER__DAEMON=false",
            exit_code=1,
        )
    context: Any = multiprocessing.get_context(START_METHOD)
    if START_METHOD == "forkserver":
        context.set_forkserver_preload(_PRELOAD)
    receiving, sending = context.Pipe(duplex=False)
    arguments = (sending, function, args)
    process = context.Process(target=_child, args=arguments, daemon=True)
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    answer: dict[str, Any] = {}
    try:
        with _STARTING:
            process.start()
        sending.close()
        while not wait([receiving, process.sentinel], _POLL):
            reason = None
            if cancelled is not None and cancelled.is_set():
                reason = "cancelled"
            elif time.monotonic() > deadline:
                reason = "took longer than the time limit"
            elif limit_mb is not None and _resident_mb(process.pid) > limit_mb:
                reason = f"held more than {limit_mb:,.0f} MB"
            if reason is not None:
                raise IsolatedError(reason, -int(signal.SIGTERM))
        with suppress(EOFError):
            answer = json.loads(receiving.recv_bytes())
        with _STARTING:
            process.join(1)  # it is about to end by itself
    finally:
        with _STARTING:
            if process.pid is not None:
                process.kill()
                process.join()
        receiving.close()
    if "result" in answer:
        return answer["result"]
    if "error" in answer:
        raise IsolatedError(answer["error"], answer["exit_code"])
    code = process.exitcode or 0
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        raise IsolatedError(f"killed by {name}{hint}", code)
    raise IsolatedError(f"ended with exit code {code} and no result", code or 1)


def _resident_mb(pid: int) -> float:
    with suppress(psutil.NoSuchProcess):
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    return 0.0


def _child(sending: Connection, function: Callable[..., Any], args: Any) -> None:
    """The new process: call, send, end."""
    # Ctrl-C is for the parent, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # A library that prints must not write into the parent's output.
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        answer = {"result": json_safe(function(*args))}
    except (InputError, MissingExtraError) as error:
        answer = {"error": " ".join(str(error).split()), "exit_code": 2}
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        # PyTorch's allocator has no exception of its own.
        full = isinstance(error, MemoryError) or "can't allocate memory" in line
        answer = {"error": "ran out of memory" if full else line, "exit_code": 1}
    sending.send_bytes(json.dumps(answer, allow_nan=False).encode())
    sending.close()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
