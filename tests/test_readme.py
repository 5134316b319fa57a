"""The numbers in the README are those of results/."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = ROOT / "benchmarks" / "readme_table.py"
    spec = importlib.util.spec_from_file_location("readme_table", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_results(script: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert script.filled(readme, script.read(ROOT / "results")) == readme


def test_the_best_is_bold_and_the_paper_beside_it(
    script: ModuleType, tmp_path: Path
) -> None:
    head = "method,dataset,mean,std,runs,paper_mean,paper_std,seconds,peak_rss_mb\n"
    (tmp_path / "table1.csv").write_text(
        head
        + "elu-gcn,cora,84.55,0.41,10,84.29,0.39,9,400\n"
        + "gcn,cora,83.12,0.52,10,81.61,0.42,2,380\n"
        + "gcn,photo,91.5,1,5,90.44,1.23,2,380\n"
    )
    lines = script.table(script.read(tmp_path)).splitlines()
    assert lines[0].endswith("5 to 10 seeds or splits:")
    assert "| cora | **84.5 ± 0.4** | 83.1 ± 0.5 | 84.29 |" in lines
    assert "| photo | – | **91.5 ± 1.0** | 90.81 |" in lines
