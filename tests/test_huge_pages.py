"""Importing the package makes PyTorch ask for huge pages, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# Page faults while a new array of 256 MB is filled: 65,536 pages of 4 kB.
SCRIPT = """
import resource, sys
import elugcn, torch
torch.zeros(1)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
torch.empty(2**26).fill_(1.0)
print(faults() - before)
"""


def faults(**environment: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={k: v for k, v in os.environ.items() if k != "THP_MEM_ALLOC_ENABLE"}
        | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(
    not SETTING.exists() or "[never]" in SETTING.read_text(),
    reason="this system has no huge pages",
)
def test_large_arrays_are_in_huge_pages() -> None:
    assert faults() < 20_000


def test_a_user_s_choice_stays() -> None:
    if SETTING.exists() and "[always]" in SETTING.read_text():
        pytest.skip("this system gives huge pages to everyone")
    assert faults(THP_MEM_ALLOC_ENABLE="0") > 60_000
