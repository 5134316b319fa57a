"""Runs that measure something on the fitted model, and rows with names."""

import json
from typing import Any

import pytest

from elugcn.errors import InputError
from elugcn.evaluation.cells import summarize_outcomes, summarize_rows
from elugcn.evaluation.harness import Outcomes, stored_outcomes
from elugcn.evaluation.jobs import Job, make_jobs
from elugcn.evaluation.store import Store
from elugcn.evaluation.worker import execute
from elugcn.experiments import measures
from elugcn.fitting import Fitted
from tests.evaluation.conftest import record_of


def job(**more: Any) -> Job:
    return make_jobs(["lpa"], ["karate"], 1, **more)[0]


def test_a_measure_is_another_run() -> None:
    plain, measured, other = job(), job(measure="a"), job(measure="b")
    assert plain.measure is None
    assert len({j.config_hash for j in (plain, measured, other)}) == 3
    assert measured.plain()["measure"] == "a"
    again = Job(**json.loads(json.dumps(measured.plain())))
    assert again == measured
    assert again.config_hash == measured.config_hash


def test_the_worker_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(fitted: Fitted) -> dict[str, Any]:
        return {"nodes": fitted.prediction.logits.size(0)}

    monkeypatch.setitem(measures.MEASURES, "count", count)
    assert execute(job(measure="count"))["measured"] == {"nodes": 34}
    assert "measured" not in execute(job())
    with pytest.raises(InputError, match="unknown measure 'nope'; there are "):
        execute(job(measure="nope"))


def test_what_the_store_has(tmp_path: Any) -> None:
    store = Store(tmp_path)
    jobs = make_jobs(["lpa"], ["karate"], 3)
    store.path(jobs[0]).parent.mkdir(parents=True)
    store.add(jobs[0], record_of(jobs[0], 0.25))
    store.add_failure(jobs[1], {"status": "failed", "error": "no luck"})
    outcomes = stored_outcomes(jobs, store)
    assert {j: r["test_accuracy"] for j, r in outcomes.done.items()} == {jobs[0]: 0.25}
    assert {j: r["error"] for j, r in outcomes.failed.items()} == {jobs[1]: "no luck"}


def test_rows_with_names() -> None:
    """A run may count for two rows; the reference may have any name."""
    gcn = make_jobs(["gcn"], ["cora"], 2)
    other = make_jobs(["gcn"], ["cora"], 2, options={"gcn": {"dropout": 0.1}})
    values = dict(zip([*gcn, *other], [0.5, 0.6, 0.7, 0.9], strict=True))
    outcomes = Outcomes(done={j: record_of(j, v) for j, v in values.items()})
    runs = [("plain", j) for j in gcn] + [("less", j) for j in other]
    table = summarize_rows(
        [*runs, *(("again", j) for j in gcn)], outcomes, {"plain": "gcn"}, "plain"
    )
    cells = {name: table.cells[name, "cora"] for name in table.methods}
    assert list(cells) == ["plain", "less", "again"]
    means = [cells[n].summary.mean for n in cells]
    assert means == pytest.approx([55.0, 80.0, 55.0])
    assert [cells[n].best for n in cells] == [False, True, False]
    assert cells["plain"].difference is None
    assert cells["less"].difference is not None
    assert cells["less"].difference.mean == pytest.approx(25.0)
    assert cells["again"].difference is not None
    assert cells["again"].difference.mean == 0.0
    assert cells["plain"].paper is not None
    assert cells["plain"].paper.mean == 81.61
    assert cells["less"].paper is None
    assert table.plain()["reference"] == "plain"
    part = table.only(["again", "less"])
    assert part.methods == ("less", "again")
    assert part.rows() == [cells["less"], cells["again"]]


def test_methods_are_rows() -> None:
    jobs = make_jobs(["elu-gcn-paper", "gcn"], ["cora"], 1)
    outcomes = Outcomes(done={j: record_of(j) for j in jobs})
    table = summarize_outcomes(jobs, outcomes)
    papers = [cell.paper.mean for cell in table.rows() if cell.paper]
    assert papers == [84.29, 81.61]
