import csv
from pathlib import Path

import pytest

from elugcn.bench import fit, graph, scale, step
from elugcn.bench.base import Settings, Suite
from elugcn.bench.names import ALL, NAMES
from elugcn.bench.records import Outcome, shown
from elugcn.bench.runner import SUITES, get_suites, run_suite
from elugcn.errors import InputError


def test_names_are_those_of_the_suites() -> None:
    assert tuple(SUITES) == NAMES
    assert [suite.name for suite in get_suites(ALL)] == list(NAMES)
    assert [suite.name for suite in get_suites("fit")] == ["fit"]
    with pytest.raises(InputError, match="unknown suite 'speed'; there are step, fit"):
        get_suites("speed")


def test_numbers_in_tables() -> None:
    values = (None, 0.001463, 1.5, 99.96, 100.4, 12345.6)
    assert list(map(shown, values)) == ["–", "0.00146", "1.5", "100", "100", "12,346"]


def example(suite: str) -> Outcome:
    """Numbers as each suite has them."""
    outcome = Outcome(suite, notes=["something *odd*"])
    add = outcome.add
    if suite == "step":
        for metric, value in zip(
            ("elu_gcn_ms", "floor_ms", "pyg_gcn_ms", "pyg_gat_ms"), (3, 2, 12, 30),
            strict=True,
        ):  # fmt: skip
            add("cora", 2708, metric, value, "ms")
        for metric, value in (("ratio_gcn", 0.25), ("ratio_gat", 0.1), ("overhead", 1.5)):  # fmt: skip
            add("cora", 2708, metric, value)
    elif suite == "fit":
        add("cora", 2708, "elu_gcn_ms", 1234.0, "ms")
        add("cora", 2708, "pyg_gcn_ms", 2468.0, "ms")
        add("cora", 2708, "ratio_gcn", 0.5)
    elif suite == "graph":
        for n in (1000, 2000):
            add("synthetic", n, "factored_ms", 2.5, "ms")
            add("synthetic", n, "factored_mb", 0.5, "MB")
        add("synthetic", 1000, "dense_ms", 250.0, "ms")
        add("synthetic", 1000, "dense_mb", 50.0, "MB")
        add("synthetic", 1000, "ratio_time", 0.01)
    else:
        for n in (1000, 10_000):
            add("sbm", n, "total_s", n / 1e3, "s")
            add("sbm", n, "grown_mb", n / 1e2, "MB")
        add("sbm", 10_000, "exponent_time", 1.0, "exponent")
    return outcome


ROWS = {
    "step": "| cora | 2,708 | 3 | 2 | 12 | 30 | 0.25 | 0.1 | 1.5 |",
    "fit": "| cora | 2,708 | 1,234 | 2,468 | 0.5 | – | – | – | – | – |",
    "graph": "| 1,000 | 2.5 | 250 | 0.01 | 0.5 | 50 | – |",
    "scale": "| time | 1.00 |",
}


@pytest.mark.parametrize("module", [step, fit, graph, scale])
def test_a_page_with_what_was_measured(
    module: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: Suite = module.SUITE  # type: ignore[attr-defined]
    numbers = example(own.name)
    suite = Suite(
        own.name, own.title, own.question, lambda settings: numbers, own.write
    )
    monkeypatch.setattr("elugcn.bench.runner.load_average", lambda: 3.25)
    outcome, files = run_suite(suite, Settings(quick=True), tmp_path / "new", "elugcn bench x")  # fmt: skip
    assert outcome is numbers
    assert sorted(p.name for p in files) == [
        f"{own.name}.{form}" for form in ("csv", "md", "png", "svg")
    ]
    page = (tmp_path / "new" / f"{own.name}.md").read_text()
    assert page.startswith(
        f"# {own.title}\n\n{own.question}\n\n```\nelugcn bench x\n```"
    )
    assert ROWS[own.name] in page.splitlines()
    assert "One thread on a machine of" in page
    assert "load average was 3.2 before and 3.2 after" in page
    assert "torch 2." in page
    assert "small version" in page
    assert "something" in page.split("## Notes")[1]
    with (tmp_path / "new" / f"{own.name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [
        (
            r["suite"],
            r["dataset"],
            int(r["n"]),
            r["metric"],
            float(r["value"]),
            r["unit"],
        )
        for r in rows
    ] == [record.row() for record in numbers.records]


def test_curves_have_logarithmic_axes() -> None:
    from elugcn.bench.figures import Line, draw_growth

    figure = draw_growth(
        [("seconds", [Line("elu-gcn", [(10, 1.0), (100, 9.0)]), Line("none", [])])]
    )
    (axis,) = figure.axes
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    (line,) = axis.get_lines()
    assert line.get_xydata().tolist() == [[10, 1], [100, 9]]  # type: ignore[union-attr]
    assert axis.get_ylabel() == "seconds (logarithmic)"


def test_dots_share_a_logarithmic_axis() -> None:
    from elugcn.bench.figures import draw_times
    from elugcn.report.dots import Dot, Panel

    panels = [Panel("a", [Dot("elu-gcn", 2.0)]), Panel("b", [Dot("elu-gcn", 500.0)])]
    figure = draw_times(panels, ["elu-gcn"], "ms")
    assert [axis.get_xscale() for axis in figure.axes] == ["log", "log"]
    assert [axis.get_xlim() for axis in figure.axes] == [(1.0, 1000.0)] * 2
