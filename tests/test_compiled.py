"""Where the loops are used, and that a fit without them is the same but for rounding."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from elugcn import compiled
from elugcn.bench.base import two_views
from elugcn.data.checks import CheckedGraph
from elugcn.fitting import fit_graph
from elugcn.runs import environment

pytestmark = pytest.mark.skipif(
    not compiled.available(),
    reason="the loops were not compiled: no C compiler at installation",
)
ROOT = Path(__file__).resolve().parents[1]


def test_they_are_for_single_floats_on_one_thread() -> None:
    x = torch.zeros(3)
    assert compiled.usable(x)
    assert not compiled.usable(x.double())
    assert not compiled.usable(x.to("meta"))
    torch.set_num_threads(2)
    try:
        assert not compiled.usable(x)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("hidden", [16, 6])
def test_a_fit_without_them_is_the_same_but_for_rounding(
    checked: Callable[..., CheckedGraph], monkeypatch: pytest.MonkeyPatch, hidden: int
) -> None:
    graph, logits = checked(0), []
    config = two_views(5, hidden_channels=hidden, warmup=0)
    for _ in range(2):
        logits.append(fit_graph(graph, "elu-gcn", config, seed=0).prediction.logits)
        monkeypatch.setattr(compiled, "_loops", None)
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-4)
    assert not torch.equal(*logits)  # else the loops were not used


def test_a_run_says_whether_it_had_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment(1)["compiled"] is True
    monkeypatch.setattr(compiled, "_loops", None)
    assert environment(1)["compiled"] is False


@pytest.mark.parametrize(("value", "there"), [("0", False), ("1", True)])
def test_the_environment_leaves_them_out(value: str, there: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c",
         "import json; from elugcn import compiled; print(json.dumps(compiled.available()))"],
        env=os.environ | {"ELUGCN_COMPILED": value},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) is there


def test_loops_for_narrower_registers_than_those_of_pytorch_are_left_out() -> None:
    script = """
import sys, types
fake = types.ModuleType("elugcn.compiled._loops")
fake.use = lambda bits: 128
sys.modules[fake.__name__] = fake
import torch
torch.backends.cpu.get_cpu_capability = lambda: sys.argv[1]
from elugcn import compiled
print(compiled.available())
"""
    for capability, there in (("AVX2", "False"), ("DEFAULT", "True")):
        done = subprocess.run(
            [sys.executable, "-c", script, capability],
            env=os.environ | {"ELUGCN_COMPILED": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == there


def test_without_a_compiler_the_package_builds(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    source = tmp_path / "source"
    shutil.copytree(ROOT / "elugcn" / "compiled", source / "elugcn" / "compiled")
    for path in (source / "elugcn" / "compiled").glob("*.so"):
        path.unlink()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for compiler, built in (("false", 0), (os.environ.get("CC", "cc"), 1)):
        done = subprocess.run(
            [sys.executable, "setup.py", "build_ext", "--build-lib", compiler],
            cwd=source,
            env=os.environ | {"CC": compiler},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert len(list((source / compiler).rglob("_loops*"))) == built
