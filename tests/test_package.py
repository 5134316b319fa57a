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


def loaded_by(code: str) -> tuple[str, set[str]]:
    """What a new process prints, and the modules that it has then."""
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("import elugcn", ""),
        ("from elugcn.cli.app import _run; _run(['--version'])", elugcn.__version__),
        ("from elugcn.cli.app import _run; _run(['--help'])", "reproduce"),
        ("from elugcn.cli.app import _run; _run([])", "reproduce"),
        ("from elugcn.cli.app import _run; _run(['trian'])", ""),
    ],
)
def test_pytorch_is_not_loaded_for_a_word(code: str, shown: str) -> None:
    out, modules = loaded_by(code)
    assert shown in out
    assert "torch" not in modules


def test_a_command_loads_no_more_than_it_needs() -> None:
    _, modules = loaded_by("from elugcn.cli.app import _run; _run(['train', '-h'])")
    assert "torch_geometric" in modules
    assert not modules & {"matplotlib", "sklearn", "elugcn.cli.compare"}


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elugcn", "--version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"elugcn {elugcn.__version__}\n"
