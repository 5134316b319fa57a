"""What a worker measures, against the same counted by hand."""

import pytest

from elugcn.config import resolve_config
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.evaluation import worker
from elugcn.evaluation.jobs import Job, make_jobs
from elugcn.evaluation.worker import execute
from elugcn.fitting import Fitted, fit_graph


def test_memory_of_a_measurement_is_not_the_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = {"peak": 100.0}

    def measure(job: Job, fitted: Fitted) -> dict[str, float]:
        now["peak"] = 900.0
        return {"something": 1.0}

    monkeypatch.setattr(worker, "peak_rss_mb", lambda: now["peak"])
    monkeypatch.setattr(worker, "measure", measure)
    (job,) = make_jobs(["lpa"], ["karate"], 1, measure="any")
    record = execute(job)
    assert record["measured"] == {"something": 1.0}
    assert record["peak_rss_mb"] == 100.0


def test_a_record_is_of_its_seed_and_its_masks() -> None:
    options = {"epochs": 6, "hidden_channels": 4}
    (job,) = make_jobs(
        ["gcn"],
        ["sbm"],
        1,
        options={"gcn": options},
        data_options={"sbm": {"n": 120, "feature_noise": 3.0}},
        first=7,
    )
    graph = check_data(load_dataset("sbm", 7, n=120, feature_noise=3.0), seed=7)
    own = fit_graph(graph, "gcn", resolve_config("gcn", options=options), seed=7)
    data = graph.data
    right = (own.prediction.logits.argmax(dim=1) == data.y).double()
    parts = ("train", "val", "test")
    counted = {part: float(right[data[f"{part}_mask"]].mean()) for part in parts}
    assert len(set(counted.values())) == 3  # or one could stand for another
    record = execute(job)
    assert {part: record[f"{part}_accuracy"] for part in parts} == pytest.approx(
        counted
    )
