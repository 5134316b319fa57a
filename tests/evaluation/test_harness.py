"""Real runs of the cheapest method, in real processes."""

import json
import multiprocessing
import signal
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.estimator import NodeClassifier
from elugcn.evaluation import Job, Store, compare, make_jobs, run_jobs, stored_outcomes
from elugcn.evaluation.run import Settings, execute
from tests.evaluation.records import Jobs, record_of


def runs_of(store: Store) -> Counter[str]:
    """How often each run was done: every one leaves a line."""
    lines = store.journal.read_text().splitlines()
    return Counter(f"{r['method']} {r['seed']}" for r in map(json.loads, lines))


def measured(count: int, measure: str) -> list[Job]:
    measure = f"tests.evaluation.records:{measure}"
    return make_jobs(["lpa"], ["karate"], count, measure=measure)


def test_records_are_those_of_a_fit_and_are_not_made_again(store: Store) -> None:
    graph = {"n": 60, "n_classes": 2, "n_features": 4}

    def plan(seeds: int) -> list[Job]:
        return make_jobs(
            ["lpa", "sgc"],
            ["sbm"],
            seeds,
            options={"sgc": {"epochs": 3}},
            data_options={"sbm": graph},
            measure="tests.evaluation.records:measure",
        )

    todo = plan(1)
    outcomes = run_jobs(todo, store, workers=2)
    assert (len(outcomes.done), outcomes.failed) == (2, {})
    for job, record in outcomes.done.items():
        data = load_dataset("sbm", job.split, **graph)
        alone = NodeClassifier(job.method, random_state=job.seed, **job.options)
        alone.fit(data)
        expected = [alone.score(data[f"{m}_mask"]) for m in ("train", "val", "test")]
        found = [record[f"{m}_accuracy"] for m in ("train", "val", "test")]
        assert found == pytest.approx(expected)
        assert record["config"] == job.config
        assert record["measured"] == {"nodes": 60}
        assert record["threads"] == 1
        assert record["seconds"].keys() >= {"load", "total"}
        assert 0 < record["seconds"]["total"] < record["process_seconds"]
    # Another call, and another process, do only what is new.
    more = run_jobs(plan(2), Store(store.folder))
    assert outcomes.done.items() <= more.done.items()
    assert runs_of(store) == {"lpa 0": 1, "lpa 1": 1, "sgc 0": 1, "sgc 1": 1}


def test_a_killed_run_fails_alone_and_is_tried_again(store: Store) -> None:
    todo = measured(3, "kills_seed_1")
    outcomes = run_jobs(todo, store, workers=3)
    assert {job.seed for job in outcomes.done} == {0, 2}
    (record,) = outcomes.failed.values()
    assert record["error"] == "killed by SIGKILL, perhaps for want of memory"
    assert (record["seed"], record["exit_code"]) == (1, -signal.SIGKILL)
    assert stored_outcomes(todo, store).failed == outcomes.failed
    assert len(run_jobs(todo, store, executor=InThisProcess()).done) == 3
    assert runs_of(store) == {"lpa 0": 1, "lpa 1": 2, "lpa 2": 1}
    assert stored_outcomes(todo, store).failed == {}


def test_a_run_that_hangs_is_ended(store: Store) -> None:
    (job,) = measured(1, "stuck")
    outcomes = run_jobs([job], store, timeout=0.5)
    assert outcomes.failed[job]["error"] == "took longer than the time limit"
    assert outcomes.failed[job]["process_seconds"] >= 0.5


class InThisProcess(ThreadPoolExecutor):
    """Makes records in no time."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(2)
        self.seconds = seconds

    def submit(self, run: object, job: Job, *rest: object) -> Future:  # type: ignore[override]
        return super().submit(self._run, job)

    def _run(self, job: Job) -> dict[str, object]:
        time.sleep(self.seconds)
        return record_of(job)


def share(jobs: list[Job], store: Store) -> None:
    run_jobs(jobs, store, executor=InThisProcess(0.1), workers=2)


def test_processes_share_a_store_and_survive_each_other(
    store: Store, jobs: Jobs
) -> None:
    todo = jobs(24)
    context = multiprocessing.get_context("fork")
    crew = [context.Process(target=share, args=(todo, store)) for _ in range(3)]
    for process in crew:
        process.start()
    until = time.monotonic() + 30
    while len(list(store.records())) < 6 and time.monotonic() < until:
        time.sleep(0.02)
        store.refresh()
    crew[0].kill()  # what it was doing is free again
    for process in crew:
        process.join(60)
    assert [process.exitcode for process in crew] == [-signal.SIGKILL, 0, 0]
    store.refresh()
    assert len(stored_outcomes(todo, store).done) == 24
    assert runs_of(store) == {f"lpa {seed}": 1 for seed in range(24)}
    locks = {path.stem for path in (store.folder / ".locks").iterdir()}
    assert len(locks - {"journal"}) <= 2  # what was killed leaves them


def test_an_interruption_gives_back_what_is_claimed(store: Store, jobs: Jobs) -> None:
    def advance(shown: object) -> None:
        if len(list(store.records())) == 3:
            raise KeyboardInterrupt

    how: Any = {"executor": InThisProcess(), "workers": 2}
    stopped: Any = SimpleNamespace(stage=lambda name, total: nullcontext(advance))
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs(8), store, progress=stopped, **how)
    assert len(run_jobs(jobs(8), Store(store.folder), **how).done) == 8
    assert runs_of(store) == {f"lpa {seed}": 1 for seed in range(8)}


def test_an_executor_that_loses_a_job(store: Store, jobs: Jobs) -> None:
    class Broken(InThisProcess):
        def _run(self, job: Job) -> dict[str, object]:
            raise OSError("the worker\nis gone")

    (job,) = jobs(1)
    outcomes = run_jobs([job], store, executor=Broken())
    assert outcomes.failed[job]["error"].startswith("OSError: the worker")


def test_a_dask_cluster(store: Store) -> None:
    import distributed

    todo = measured(2, "measure")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        outcomes = run_jobs(todo, store, executor=client.get_executor(), workers=2)
    assert runs_of(store) == {"lpa 0": 1, "lpa 1": 1}
    # The same as without a cluster.
    here = run_jobs(todo[:1], Store(store.folder / "here")).done[todo[0]]
    assert here["test_accuracy"] == outcomes.done[todo[0]]["test_accuracy"]


def test_a_comparison_in_one_call(store: Store) -> None:
    for _ in range(2):  # the second time from the store
        found = compare(["lpa"], ["karate"], 3, store.folder, executor=InThisProcess())
        assert found.cells["lpa", "karate"].summary == (50.0, 0.0, 3)
    assert runs_of(store) == {f"lpa {seed}": 1 for seed in range(3)}


REFUSALS = {
    "workers": ({"workers": 0}, {}, "workers must be at least 1; got 0"),
    "threads": ({"n_threads": 0}, {}, "n_threads must be at least 1; got 0"),
    "data": ({}, {"data_options": {"sbm": {"n": 3}}}, "n=3: expected at least 15"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_wrong_is_said_before_any_run(name: str, store: Store) -> None:
    how, what, says = REFUSALS[name]
    with pytest.raises(InputError, match=says):
        run_jobs(make_jobs(["lpa"], ["sbm"], 2, **what), store, **how)  # type: ignore[arg-type]
    assert not store.folder.exists()


@pytest.mark.parametrize("measure", ["nowhere:x", "json:nothing"])
def test_a_measure_that_is_not_there(measure: str) -> None:
    (job,) = make_jobs(["lpa"], ["karate"], 1, measure=measure)
    with pytest.raises(InputError, match=f"measure '{measure}' not found"):
        execute(job, Settings())
