from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from elugcn.errors import InputError
from elugcn.evaluation.cells import Cell, Comparison, summarize_outcomes
from elugcn.evaluation.harness import Outcomes
from elugcn.evaluation.jobs import make_jobs
from elugcn.evaluation.paper import NOTES, Published, published
from elugcn.evaluation.statistics import Difference, Summary
from elugcn.evaluation.tables import (
    as_latex,
    difference_text,
    escape_latex,
    ours,
    render,
    terminal,
)
from tests.evaluation.conftest import record_of


@pytest.fixture
def table() -> Comparison:
    cells = [
        Cell(
            "elu-gcn", "cora", Summary(84.0, 0.5, 10), paper=Published(84.29, 0.39),
            difference=Difference(2.5, 2.0, 3.0, 0.0004, 0.002, 10),
            seconds=12.34, peak_rss_mb=512.6, best=True,
        ),
        Cell("elu-gcn", "a_b", Summary(None, None, 0), 2, ("no memory",)),
        Cell("gcn", "cora", Summary(81.5, 0.25, 9), 1, seconds=1.0, peak_rss_mb=300.0),
        Cell(
            "gcn", "a_b", Summary(70.0, None, 1), paper=Published(None, None),
            seconds=0.5, peak_rss_mb=200.0, best=True,
        ),
    ]  # fmt: skip
    return Comparison(
        ("elu-gcn", "gcn"),
        ("cora", "a_b"),
        {(c.method, c.dataset): c for c in cells},
        ("a_b: note",),
    )


def test_csv(table: Comparison) -> None:
    assert render(table, "csv") == (
        "method,dataset,mean,std,runs,paper_mean,paper_std,seconds,peak_rss_mb\n"
        "elu-gcn,cora,84.0000,0.5000,10,84.29,0.39,12.340,512.6\n"
        "elu-gcn,a_b,,,0,,,,\n"
        "gcn,cora,81.5000,0.2500,9,,,1.000,300.0\n"
        "gcn,a_b,70.0000,,1,OOM,,0.500,200.0\n"
    )


def test_markdown(table: Comparison) -> None:
    assert render(table, "markdown") == (
        "Test accuracy in percent, mean ± standard deviation over runs; "
        "in parentheses the paper's.\n\n"
        "| method | cora | a\\_b |\n"
        "| --- | ---: | ---: |\n"
        "| elu-gcn | **84.00 ± 0.50** (84.29 ± 0.39) | failed |\n"
        "| gcn | 81.50 ± 0.25 [9 of 10] | **70.00** (OOM) |\n\n"
        "Difference to gcn on the same splits and seeds, in points, with "
        "95 % confidence interval and paired t-test.\n\n"
        "| method | cora | a\\_b |\n"
        "| --- | ---: | ---: |\n"
        "| elu-gcn | +2.50 [2.00, 3.00], p < 0.001 | – |\n"
        "| gcn | – | – |\n\n"
        "Mean seconds of a fit and peak memory.\n\n"
        "| method | cora | a\\_b |\n"
        "| --- | ---: | ---: |\n"
        "| elu-gcn | 12.3 s, 513 MB | – |\n"
        "| gcn | 1.0 s, 300 MB | 0.5 s, 200 MB |\n\n"
        "- a\\_b: note\n"
    )


def test_nothing_is_said_of_a_paper_that_has_no_number(table: Comparison) -> None:
    cells = {key: replace(cell, paper=None) for key, cell in table.cells.items()}
    text = render(replace(table, cells=cells), "markdown")
    assert text.startswith(
        "Test accuracy in percent, mean ± standard deviation over runs."
    )
    assert "the paper" not in text


def test_latex(table: Comparison) -> None:
    assert render(table, "latex") == (
        "% a_b: note\n"
        "% Test accuracy in percent, mean ± standard deviation over runs; in "
        "parentheses the paper's.\n"
        "\\begin{tabular}{lcc}\n"
        "\\toprule\n"
        "Method & cora & a\\_b \\\\\n"
        "\\midrule\n"
        "elu-gcn & \\textbf{84.00 $\\pm$ 0.50} (84.29 $\\pm$ 0.39) & failed \\\\\n"
        "gcn & 81.50 $\\pm$ 0.25 [9 of 10] & \\textbf{70.00} (OOM) \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\n"
        "% Difference to gcn on the same splits and seeds, in points, with 95 % "
        "confidence interval and paired t-test.\n"
        "\\begin{tabular}{lcc}\n"
        "\\toprule\n"
        "Method & cora & a\\_b \\\\\n"
        "\\midrule\n"
        "elu-gcn & $+2.50$ [2.00, 3.00], $p < 0.001$ & -- \\\\\n"
        "gcn & -- & -- \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )
    assert escape_latex(r"a\b_{50%}") == r"a\textbackslash{}b\_\{50\%\}"


def test_a_note_stays_a_comment(table: Comparison) -> None:
    spread = Comparison(table.methods, table.datasets, table.cells, ("two\nlines",))
    assert as_latex(spread).startswith("% two lines\n% Test accuracy")


def test_runs_that_are_missing_and_zeros_are_marked(table: Comparison) -> None:
    cell = table.cells["elu-gcn", "cora"]
    few = Difference(-0.001, -0.004, 0.5, 0.04, None, 5)
    short = replace(cell, summary=Summary(84.0, 0.5, 5), difference=few, most=10)
    assert ours(short) == "84.00 ± 0.50 [5 of 10]"
    assert difference_text(short) == "+0.00 [0.00, 0.50], p = 0.040, 5 pairs"
    negative = replace(few, mean=-1.5, low=-2.25)
    shown = replace(table, cells=table.cells | {
        ("elu-gcn", "cora"): replace(short, difference=negative)})  # fmt: skip
    expected = "elu-gcn & $-1.50$ [$-2.25$, 0.50], $p = 0.040$, 5 pairs & --"
    assert expected in as_latex(shown)


def test_equal_means_are_both_the_best() -> None:
    jobs = make_jobs(["gcn", "lpa"], ["karate"], 3)
    right = {"gcn": [0.822] * 3, "lpa": [0.801, 0.832, 0.833]}
    done = {
        job: record_of(job, test_accuracy=right[job.method][job.seed]) for job in jobs
    }
    found = summarize_outcomes(jobs, Outcomes(done))
    one, two = (found.cells[m, "karate"] for m in ("gcn", "lpa"))
    assert one.summary.mean != two.summary.mean  # in the last digit
    assert one.best
    assert two.best


def test_terminal(table: Comparison) -> None:
    lines = [line.strip() for line in render(table, "terminal").splitlines()]
    assert "elu-gcn   84.00 ± 0.50 (84.29 ± 0.39)        failed" in lines
    assert "gcn            81.50 ± 0.25 [9 of 10]   70.00 (OOM)" in lines
    assert "elu-gcn   +2.50 [2.00, 3.00], p < 0.001     –" in lines
    assert "note: a_b: note" in lines
    screen = Console(
        force_terminal=True, width=120, record=True, color_system="standard"
    )
    with screen.capture() as got:
        screen.print(terminal(table))
    assert "\x1b[1m84.00 ± 0.50\x1b[0m" in got.get()
    assert "\x1b[1m81.50" not in got.get()


def test_unknown_format(table: Comparison) -> None:
    with pytest.raises(InputError, match="unknown format 'html'; there are terminal"):
        render(table, "html")


def test_the_papers_numbers() -> None:
    assert published("elu-gcn", "cora") == Published(84.29, 0.39)
    assert published("gcn", "caltech36") == Published(88.47, 1.91)
    assert published("appnp", "tulane29") == Published(88.52, 0.44)
    assert published("gat", "uf21") == Published(81.68, 0.59)
    assert published("CoGSL", "pubmed") == Published(None, None)
    assert published("lpa", "cora") is None
    assert published("gcn", "digits") is None


class TestSummaries:
    def summarize(
        self, accuracies: dict[str, list[float | None]], dataset: str, **options: Any
    ) -> Comparison:
        jobs = make_jobs(list(accuracies), [dataset], 3, **options)
        outcomes = Outcomes()
        for job in jobs:
            value = accuracies[job.method][job.seed]
            if value is None:
                outcomes.failed[job] = {"status": "failed", "error": "why"}
            else:
                peak = 100.0 + job.seed
                outcomes.done[job] = record_of(job, value, peak_rss_mb=peak)
        return summarize_outcomes(jobs, outcomes)

    def test_by_hand(self) -> None:
        found = self.summarize(
            {"elu-gcn": [0.83, 0.85, None], "gcn": [0.8, 0.82, 0.87]}, "caltech36"
        )
        elu, gcn = found.rows()
        assert elu.summary.mean == pytest.approx(84)
        assert elu.summary.std == pytest.approx(2**0.5)
        assert (elu.summary.runs, elu.failed, elu.errors) == (2, 1, ("why",))
        assert elu.difference is not None
        assert elu.difference.mean == pytest.approx(3)
        assert elu.difference.pairs == 2
        assert (elu.best, gcn.best) == (True, False)
        assert (elu.peak_rss_mb, gcn.peak_rss_mb) == (101, 102)
        assert (gcn.seconds, gcn.difference) == (2.0, None)
        assert gcn.paper == Published(88.47, 1.91)
        assert found.notes == (
            f"caltech36: {NOTES['caltech36']}",
            "elu-gcn on caltech36: 1 failed (why)",
        )
        plain = found.plain()
        assert plain["cells"][0]["mean"] == pytest.approx(84)
        assert plain["cells"][0]["difference"]["pairs"] == 2
        assert plain["cells"][0]["paper"] == {"mean": 91.93, "std": 0.69}

    def test_other_labels_than_the_papers(self) -> None:
        found = self.summarize(
            {"gcn": [0.8, 0.8, 0.8]}, "caltech36", labels_per_class=2
        )
        assert found.rows()[0].paper is None
        assert found.notes == ()

    def test_all_failed(self) -> None:
        found = self.summarize({"gcn": [None] * 3, "lpa": [None] * 3}, "karate")
        assert not any(cell.best for cell in found.rows())
        assert "| gcn | failed |" in render(found, "markdown")
