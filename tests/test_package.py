"""What `import elugcn` gives, and what it does not load for it."""

import subprocess
import sys

import pytest

import elugcn


@pytest.mark.parametrize("name", elugcn.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(elugcn, name) is not None
    assert name in dir(elugcn)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        elugcn.nothing  # noqa: B018


@pytest.mark.parametrize(
    "code", ["import elugcn", "from elugcn.cli import main; main(['--version'])"]
)
def test_pytorch_is_not_loaded_for_a_version(code: str) -> None:
    code += "; import sys; sys.exit('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("", f"elugcn {elugcn.__version__}\n")
