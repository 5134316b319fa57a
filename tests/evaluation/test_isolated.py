import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from elugcn.evaluation.isolated import IsolatedError, run_isolated
from tests.evaluation.records import end, hold, watch_a_sleeper


def test_each_call_has_its_own_memory_peak(capfd: pytest.CaptureFixture[str]) -> None:
    large = run_isolated(hold, 200)
    small = run_isolated(hold, 1)
    assert large["pid"] != small["pid"] != os.getpid()
    assert 190 < large["peak"] - small["peak"] < 215
    # What a call prints is not in the output of the caller; JSON has no NaN.
    assert run_isolated(end, "print") == {"nan": None, "tuple": [1, 2]}
    assert capfd.readouterr().out == ""


ENDS = {
    "kill": ("killed by SIGKILL, perhaps for want of memory", -signal.SIGKILL),
    "exit": ("ended with exit code 3 and no result", 3),
    "error": ("ValueError: no luck", 1),
    "memory": ("ran out of memory", 1),
    "input": ("lr must be positive", 2),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_call_that_fails_says_why_in_a_line(how: str) -> None:
    with pytest.raises(IsolatedError) as caught:
        run_isolated(end, how)
    assert (str(caught.value), caught.value.exit_code) == ENDS[how]


def test_a_call_that_hangs_or_grows_is_ended() -> None:
    start = time.monotonic()
    with pytest.raises(IsolatedError, match="longer than the time limit"):
        run_isolated(end, "sleep", timeout=0.3)
    with pytest.raises(IsolatedError, match="held more than 1 MB"):
        run_isolated(end, "sleep", limit_mb=1)
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    with pytest.raises(IsolatedError, match="cancelled"):
        run_isolated(end, "sleep", cancelled=cancelled)
    assert time.monotonic() - start < 20


def test_the_death_of_the_parent_leaves_no_orphan(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    run_isolated(end, "fine")  # from now on there is a server to start processes from
    context = multiprocessing.get_context("forkserver")
    parent = context.Process(target=watch_a_sleeper, args=(str(path),))
    parent.start()
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until, "the call did not start"
        time.sleep(0.05)
    child = psutil.Process(int(path.read_text()))
    assert child.is_running()
    parent.kill()
    parent.join()
    child.wait(30)
