from dataclasses import replace

import pytest

from elugcn.errors import InputError
from elugcn.evaluation import (
    Cell,
    Comparison,
    Outcomes,
    Published,
    aggregate,
    make_jobs,
    render,
)
from elugcn.evaluation.statistics import Difference, Summary
from elugcn.evaluation.tables import csv_text, difference_text, escape_latex, ours
from tests.evaluation.records import record_of


@pytest.fixture
def table() -> Comparison:
    cells = [
        Cell(
            "auto", "cora", Summary(84.0, 0.5, 10), published=Published(84.29, 0.39),
            difference=Difference(2.5, 2.0, 3.0, 0.0004, 10),
            seconds=12.34, peak_rss_mb=512.6, best=True,
        ),
        Cell("auto", "a_b", Summary(None, None, 0), 2, ("no memory",)),
        Cell("gcn", "cora", Summary(81.5, 0.25, 9), 1, seconds=1.0, peak_rss_mb=300.0),
        Cell(
            "gcn", "a_b", Summary(70.0, None, 1), published=Published(None),
            seconds=0.5, peak_rss_mb=200.0, best=True,
        ),
    ]  # fmt: skip
    return Comparison(
        ("auto", "gcn"),
        ("cora", "a_b"),
        {(c.method, c.dataset): c for c in cells},
        ("a_b: two\nlines",),
    )


EXPECTED = {
    "csv": """\
method,dataset,mean,std,runs,paper_mean,paper_std,seconds,peak_rss_mb
auto,cora,84.0000,0.5000,10,84.29,0.39,12.340,512.6
auto,a_b,,,0,,,,
gcn,cora,81.5000,0.2500,9,,,1.000,300.0
gcn,a_b,70.0000,,1,OOM,,0.500,200.0
""",
    "markdown": """\
Test accuracy in percent, mean ± standard deviation over runs; in parentheses the paper's.

| method | cora | a\\_b |
| --- | ---: | ---: |
| auto | **84.00 ± 0.50** (84.29 ± 0.39) | failed |
| gcn | 81.50 ± 0.25 [9 of 10] | **70.00** (OOM) |

Difference to gcn on the same splits and seeds, in points, with 95 % confidence interval and paired t-test.

| method | cora | a\\_b |
| --- | ---: | ---: |
| auto | +2.50 [2.00, 3.00], p < 0.001 | – |
| gcn | – | – |

Mean seconds of a fit and peak memory.

| method | cora | a\\_b |
| --- | ---: | ---: |
| auto | 12.3 s, 513 MB | – |
| gcn | 1.0 s, 300 MB | 0.5 s, 200 MB |

- a\\_b: two
lines
""",
    "latex": r"""% a_b: two lines
% Test accuracy in percent, mean ± standard deviation over runs; in parentheses the paper's.
\begin{tabular}{lcc}
\toprule
Method & cora & a\_b \\
\midrule
auto & \textbf{84.00 $\pm$ 0.50} (84.29 $\pm$ 0.39) & failed \\
gcn & 81.50 $\pm$ 0.25 [9 of 10] & \textbf{70.00} (OOM) \\
\bottomrule
\end{tabular}

% Difference to gcn on the same splits and seeds, in points, with 95 % confidence interval and paired t-test.
\begin{tabular}{lcc}
\toprule
Method & cora & a\_b \\
\midrule
auto & $+2.50$ [2.00, 3.00], $p < 0.001$ & -- \\
gcn & -- & -- \\
\bottomrule
\end{tabular}
""",
}


@pytest.mark.parametrize("form", EXPECTED)
def test_formats(form: str, table: Comparison) -> None:
    assert render(table, form) == EXPECTED[form]


def test_what_is_shown_beside_the_formats(table: Comparison) -> None:
    lines = [" ".join(line.split()) for line in render(table, "terminal").splitlines()]
    assert "auto 84.00 ± 0.50 (84.29 ± 0.39) failed" in lines
    assert "auto 12.3 s, 513 MB –" in lines
    # Nothing is said of a paper that has no number.
    cells = {key: replace(cell, published=None) for key, cell in table.cells.items()}
    assert "the paper" not in render(replace(table, cells=cells), "markdown")
    assert table.only(["gcn"]).plain()["cells"][1] == {
        "method": "gcn", "dataset": "a_b", "mean": 70.0, "std": None, "runs": 1,
        "failed": 0, "errors": (), "published": {"mean": None, "std": None},
        "difference": None, "seconds": 0.5, "peak_rss_mb": 200.0, "best": True,
        "most": 0,
    }  # fmt: skip
    with pytest.raises(InputError, match="unknown format 'html'; known: terminal, m"):
        render(table, "html")
    with pytest.raises(ValueError, match="a row of 1 under a header of 2"):
        csv_text(("a", "b"), [("1",)])
    assert escape_latex(r"a\b_{50%}") == r"a\textbackslash{}b\_\{50\%\}"


def test_missing_runs_and_zeros_are_marked(table: Comparison) -> None:
    cell = table.cells["auto", "cora"]
    few = Difference(-0.001, -0.004, 0.5, 0.04, 5)
    short = replace(cell, summary=Summary(84.0, 0.5, 5), difference=few, most=10)
    assert ours(short) == "84.00 ± 0.50 [5 of 10]"
    assert difference_text(short) == "+0.00 [0.00, 0.50], p = 0.040, 5 pairs"
    negative = replace(short, difference=replace(few, mean=-1.5, low=-2.25))
    shown = replace(table, cells=table.cells | {("auto", "cora"): negative})
    expected = "auto & $-1.50$ [$-2.25$, 0.50], $p = 0.040$, 5 pairs & --"
    assert expected in render(shown, "latex")


def test_cells_by_hand() -> None:
    jobs = make_jobs(["gcn", "lpa", "mlp"], ["karate"], 3)
    right = {"gcn": [0.822] * 3, "lpa": [0.801, 0.832, 0.833], "mlp": [0.5, 0.6, 0.7]}
    outcomes, paper = Outcomes(), Published(80.0, 1.0)
    for job in jobs:
        test = right[job.method][job.seed]
        made = {"seconds": {"total": 1.0 + job.seed}, "peak_rss_mb": 100.0 * job.seed}
        made |= {"status": "failed", "error": "no luck"} if test == 0.7 else {}
        outcomes.note(job, record_of(job, test, **made))
    published = {"lpa": paper}
    found = aggregate(jobs, outcomes, published=lambda row, _: published.get(row))
    gcn, lpa, mlp = (found.cells[m, "karate"] for m in ("gcn", "lpa", "mlp"))
    assert gcn.summary.mean != lpa.summary.mean  # in the last digit
    assert (gcn.best, lpa.best, mlp.best) == (True, True, False)
    assert mlp.summary == Summary(pytest.approx(55.0), pytest.approx(50**0.5), 2)
    assert (mlp.failed, mlp.errors, mlp.most) == (1, ("no luck",), 3)
    assert (mlp.seconds, mlp.peak_rss_mb) == (1.5, 100.0)
    assert mlp.difference is not None
    assert (mlp.difference.mean, mlp.difference.pairs) == (pytest.approx(-27.2), 2)
    assert (gcn.difference, gcn.published, lpa.published) == (None, None, paper)
    assert found.notes == ("mlp on karate: 1 failed (no luck)",)


def test_another_metric_is_what_is_compared() -> None:
    jobs = make_jobs(["gcn", "mlp"], ["karate"], 1, metric="roc_auc")
    outcomes = Outcomes()
    for job, value in zip(jobs, (0.7, 0.6), strict=True):
        outcomes.note(job, record_of(job, 0.9, test_score=value, collapsed=True))
    found = aggregate(jobs, outcomes)
    assert found.cells["gcn", "karate"].summary.mean == pytest.approx(70.0)
    assert found.cells["mlp", "karate"].difference is None  # one pair has no spread
    assert render(found, "markdown").startswith("Test ROC AUC in percent, mean ± ")
    assert found.notes[0] == (
        "gcn on karate: 1 of 1 runs predict fewer classes than have labels"
    )


def test_versions_are_noted_and_drawn_labels_have_no_published_number() -> None:
    jobs = make_jobs(["gcn"], ["karate"], 2, labels_per_class=2)
    outcomes = Outcomes()
    for job, version in zip(jobs, ("0.1.0", "0.2.0"), strict=True):
        packages = {"elugcn": version, "torch": "2"}
        outcomes.note(job, record_of(job, None, packages=packages))
    rows = [("a row", job) for job in jobs]
    found = aggregate(rows, outcomes, published=lambda row, dataset: Published(1.0))
    cell = found.cells["a row", "karate"]
    assert (cell.published, cell.summary.runs, cell.best) == (None, 0, False)
    assert found.notes == ("the runs are of elugcn 0.1.0 and 0.2.0",)
