"""What README and examples show must run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def percentage(text: str) -> float:
    found = re.search(r"([\d.]+)% right", text)
    assert found, text
    return float(found[1])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("own_arrays", 88.0), ("own_model", 85.0)])
def test_example(name: str, least: float, tmp_path: Path) -> None:
    out = run(sys.executable, str(ROOT / "examples" / f"{name}.py"), cwd=tmp_path)
    assert percentage(out) > least


def test_picture_is_drawn(tmp_path: Path) -> None:
    script = ROOT / "examples" / "draw_elu_graph.py"
    run(sys.executable, str(script), "digits", "x.png", cwd=tmp_path)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_python_of_the_readme(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert code
    out = run(sys.executable, "-c", code[1], cwd=tmp_path)
    assert float(out.split()[0]) > 0.9
    assert "LabelUtilization(elu=" in out
    assert "LowRankGraph(n=1797, rank≤10" in out


def test_tables_of_the_readme(tmp_path: Path) -> None:
    """The two CSV files stand side by side in a block; the commands follow it."""
    block = re.search(
        r"```\n(nodes\.csv.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    assert block
    columns = [re.split(r"\s{2,}", line) for line in block[1].strip().splitlines()]
    for i, (name, *rows) in enumerate(zip(*columns, strict=True)):
        assert name == ("nodes.csv", "edges.csv")[i]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    elugcn = str(Path(sys.executable).parent / "elugcn")
    tables = ["--nodes", "nodes.csv", "--edges", "edges.csv"]
    run(
        elugcn,
        "train",
        *tables,
        "--out",
        "runs/mine",
        "--set",
        "epochs=5",
        cwd=tmp_path,
    )
    run(elugcn, "predict", "runs/mine", *tables, "--out", "p.csv", cwd=tmp_path)
    ids = [row.split(",")[0] for row in (tmp_path / "p.csv").read_text().splitlines()]
    assert ids == ["id", "ann", "bob", "cem"]
