import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from elugcn.bench import children
from elugcn.bench.children import ChildFailedError, in_child, measured
from elugcn.errors import InputError

MB = 2**20


def held(megabytes: int) -> np.ndarray[Any, Any]:
    return np.ones(megabytes * MB, dtype=np.uint8)


def prepare_memory(before: int, during: int) -> Callable[[], dict[str, int]]:
    kept = held(before)

    def work() -> dict[str, int]:
        extra = held(during)
        return {"bytes": len(kept) + len(extra), "pid": os.getpid()}

    return work


def prepare_spike(megabytes: int) -> Callable[[], None]:
    """A peak before the work, which is none of the work's."""
    held(megabytes)
    return lambda: None


def prepare_threads() -> Callable[[], int]:
    return torch.get_num_threads


def prepare_backward() -> Callable[[], float]:
    def work() -> float:
        w = torch.ones(3, requires_grad=True)
        (w * w).sum().backward()
        assert w.grad is not None
        return float(w.grad.sum())

    return work


def prepare_refusal(message: str) -> Callable[[], None]:
    raise InputError(message)


def prepare_bug() -> Callable[[], Any]:
    return lambda: {}["nothing here"]


def prepare_torch_memory() -> Callable[[], Any]:
    return lambda: torch.empty(2**60)


def prepare_death(number: int) -> Callable[[], Any]:
    return lambda: os.kill(os.getpid(), number)


def prepare_exit() -> Callable[[], Any]:
    return lambda: os._exit(7)


def prepare_growth() -> Callable[[], Any]:
    def work() -> None:
        # Bounded, should nobody end it.
        kept = [held(900)]
        time.sleep(30)
        kept.clear()

    return work


def test_memory_is_what_the_work_adds() -> None:
    done = in_child(prepare_memory, 50, 120)
    assert done.result["bytes"] == 170 * MB
    assert done.result["pid"] != os.getpid()
    assert done.grown_mb == pytest.approx(120, abs=8)
    assert done.peak_mb - done.baseline_mb == done.grown_mb
    assert done.baseline_mb > 50
    assert 0 < done.cpu <= done.wall + 0.05


def test_an_earlier_peak_is_forgotten() -> None:
    assert in_child(prepare_spike, 200).grown_mb < 20


def test_one_thread_and_gradients() -> None:
    assert in_child(prepare_threads).result == 1
    assert in_child(prepare_backward).result == 6.0


def test_what_goes_wrong_comes_back() -> None:
    with pytest.raises(InputError, match=r"^n must be odd$"):
        in_child(prepare_refusal, "n must be odd")
    with pytest.raises(ChildFailedError, match="KeyError: 'nothing here'"):
        in_child(prepare_bug)
    with pytest.raises(ChildFailedError, match=r"^ran out of memory$"):
        in_child(prepare_torch_memory)
    with pytest.raises(ChildFailedError, match="killed by SIGKILL, perhaps for want"):
        in_child(prepare_death, signal.SIGKILL)
    with pytest.raises(ChildFailedError, match=r"killed by SIGTERM$"):
        in_child(prepare_death, signal.SIGTERM)
    with pytest.raises(ChildFailedError, match="exit code 7"):
        in_child(prepare_exit)


def test_a_child_that_holds_too_much_is_ended() -> None:
    here = psutil.Process().memory_info().rss / MB
    limit, before = here + 300, psutil.Process().children()
    with pytest.raises(ChildFailedError, match=f"more than {limit:,.0f} MB"):
        in_child(prepare_growth, limit_mb=limit)
    assert set(psutil.Process().children()) <= set(before)


def test_a_child_that_is_just_starting_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C while it starts: it is known by then, and does not go on alone."""
    kind: Any = type(multiprocessing.get_context(children.START_METHOD).Process())
    start, started = kind.start, []

    def interrupted(process: Any) -> None:
        start(process)
        started.append(process)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)  # here it would be raised
        started.append("whole")

    monkeypatch.setattr(kind, "start", interrupted)
    # A suite that runs in the background of a shell has the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_child(prepare_threads)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    child, word = started
    assert word == "whole"
    assert child.exitcode is not None


def test_measured_here() -> None:
    answer = measured(prepare_memory, 1, 40)
    assert answer["result"]["pid"] == os.getpid()
    assert answer["peak_mb"] >= answer["baseline_mb"] + 30


@pytest.mark.parametrize(
    ("prepare", "args", "expected"),
    [
        (prepare_threads, (), ("result", 1)),
        (prepare_refusal, ("no",), ("refused", "no")),
        (prepare_torch_memory, (), ("error", "ran out of memory")),
    ],
)
def test_the_childs_side(
    prepare: Callable[..., Any],
    args: tuple[Any, ...],
    expected: tuple[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same here, where no process has to be made."""
    ignored = []
    monkeypatch.setattr(children.signal, "signal", lambda *given: ignored.append(given))
    receiving, sending = multiprocessing.Pipe(duplex=False)
    children._child(sending, prepare, args)
    answer = json.loads(receiving.recv_bytes())
    assert answer[expected[0]] == expected[1]
    # Ctrl-C is the parent's.
    assert ignored == [(signal.SIGINT, signal.SIG_IGN)]
