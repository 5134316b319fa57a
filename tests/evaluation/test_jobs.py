import json

import pytest

from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.evaluation import Job, make_jobs
from elugcn.evaluation.jobs import pairs


@pytest.mark.parametrize(
    ("dataset", "labels", "first", "expected"),
    [
        ("cora", None, 0, [(0, 0), (0, 1)]),  # one published split
        ("cora", 3, 0, [(0, 0), (1, 1)]),  # other labels for each seed
        ("cora", 3, 100, [(100, 100), (101, 101)]),
        ("chameleon", None, 9, [(9, 9), (0, 10)]),  # ten published splits
        ("chameleon", 5, 9, [(9, 9), (0, 10)]),
        ("digits", None, 7, [(7, 7), (8, 8)]),  # drawn splits
    ],
    ids=["one split", "labels", "first", "ten splits", "ten, labels", "drawn"],
)
def test_splits_and_seeds(
    dataset: str, labels: int | None, first: int, expected: list[tuple[int, int]]
) -> None:
    assert pairs(dataset_info(dataset), 2, labels, first) == expected


def test_jobs_of_a_comparison() -> None:
    jobs = make_jobs(["gcn", "lpa", "gcn"], ["cora", "Karate"], 2)
    assert [(j.method, j.dataset, j.split, j.seed) for j in jobs] == [
        ("gcn", "cora", 0, 0), ("gcn", "cora", 0, 1),
        ("lpa", "cora", 0, 0), ("lpa", "cora", 0, 1),
        ("gcn", "karate", 0, 0), ("gcn", "karate", 1, 1),
        ("lpa", "karate", 0, 0), ("lpa", "karate", 1, 1),
    ]  # fmt: skip
    assert jobs[1].title == "gcn on cora, split 0, seed 1"
    # The name of 0.1 is an alias, and the last seed there is.
    (old,) = make_jobs(["elu-gcn-paper"], ["cora"], 1, first=2**32 - 1)
    assert (old.method, old.seed) == ("elu-gcn", 2**32 - 1)


def test_a_key_is_of_everything_that_decides_the_result() -> None:
    def job(method: str = "gcn", **more: object) -> Job:
        return make_jobs([method], ["sbm"], 1, **more)[0]  # type: ignore[arg-type]

    plain = job()
    others = [
        job("mlp"),
        job(labels_per_class=3),
        job(options={"gcn": {"epochs": 7}}),
        job(data_options={"sbm": {"n": 100}}),
        job(measure="a:b"),
        job(first=1),
    ]
    assert len({plain.key, *(j.key for j in others)}) == 7
    assert plain.key == job(options={"gcn": {}}).key == Job("gcn", "sbm").key
    # A default that is named is still the default.
    assert plain.key == job(options={"gcn": {"epochs": plain.config["epochs"]}}).key
    assert Job(**json.loads(json.dumps(plain.plain()))) == plain
    # Stored runs are found by it.
    assert Job("gcn", "cora", 0, 3, {"dropout": 0.8}).key == "a7511ab23e5d23e0"


def test_tuned_options_are_for_the_published_labels() -> None:
    tuned = make_jobs(["gcn"], ["chameleon"], 1)[0]
    drawn = make_jobs(["gcn"], ["chameleon"], 1, labels_per_class=5)[0]
    assert (tuned.config["self_loops"], drawn.config["self_loops"]) == (False, True)


REFUSALS = {
    "method": ((["nope"], ["karate"], 1), {}, "unknown method 'nope'"),
    "dataset": ((["gcn"], ["koala"], 1), {}, "unknown dataset 'koala'"),
    "none": (([], ["karate"], 1), {}, "at least one method"),
    "seeds": ((["gcn"], ["karate"], 0), {}, "seeds must be at least 1; got 0"),
    "labels": ((["gcn"], ["karate"], 1), {"labels_per_class": 0}, "at least 1; got 0"),
    "first": ((["gcn"], ["karate"], 1), {"first": -1}, "first must be 0 to .*; got -1"),
    "last": ((["gcn"], ["karate"], 2), {"first": 2**32 - 1}, "first must be 0 to"),
    "option": ((["gcn"], ["karate"], 1), {"options": {"gcn": {"epoch": 1}}}, "'epochs'"),
    "value": ((["gcn"], ["karate"], 1), {"options": {"gcn": {"lr": 0}}}, "lr"),
    "other method": ((["gcn"], ["karate"], 1), {"options": {"lpa": {}}}, "not compared"),
    "other data": ((["gcn"], ["karate"], 1), {"data_options": {"sbm": {}}}, "not comp"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    arguments, options, says = REFUSALS[name]
    with pytest.raises(InputError, match=says):
        make_jobs(*arguments, **options)
