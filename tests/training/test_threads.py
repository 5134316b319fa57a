"""How many threads a graph gets, and what a fit leaves of PyTorch's state."""

import os
import threading
from contextlib import suppress

import pytest
import torch

from elugcn.training.threads import (
    SMALL,
    choose_threads,
    isolated_torch_state,
    threads,
    usable_cores,
)


def test_small_graphs_get_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elugcn.training.threads.usable_cores", lambda: 6)
    assert choose_threads(SMALL // 64 - 1, 64) == 1
    assert choose_threads(SMALL // 64 + 64, 64) == 6
    assert choose_threads(10, 1, requested=3) == 3
    assert choose_threads(SMALL, 64, requested=1) == 1


def test_cores_are_those_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert usable_cores() >= 1
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5})
        assert usable_cores() == 3
        monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert usable_cores() == 4
    for limit, expected in (("2", 2), ("9", 4), ("0", 1), ("4,3", 4), ("", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert usable_cores() == expected
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


def test_threads_are_put_back_even_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ValueError), threads(before + 1):  # noqa: PT012
        assert torch.get_num_threads() == before + 1
        raise ValueError
    assert torch.get_num_threads() == before


def test_the_callers_state_is_put_back() -> None:
    cpu = torch.device("cpu")
    torch.set_default_dtype(torch.float64)
    try:
        before = torch.random.get_rng_state()
        with suppress(ValueError), torch.inference_mode(), isolated_torch_state(cpu):
            torch.manual_seed(5)
            x = torch.rand(3, requires_grad=True)
            x.square().sum().backward()
            assert x.dtype == torch.float32
            assert x.grad is not None
            raise ValueError
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_fits_in_several_threads_wait_for_each_other() -> None:
    inside, log = threading.Event(), []

    def fit() -> None:
        with isolated_torch_state(torch.device("cpu")):
            log.append("second")

    with isolated_torch_state(torch.device("cpu")):
        other = threading.Thread(target=lambda: (inside.set(), fit()))
        other.start()
        inside.wait()
        log.append("first")
    other.join()
    assert log == ["first", "second"]
