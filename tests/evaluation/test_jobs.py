import json

import pytest

from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.evaluation import Job, make_jobs
from elugcn.evaluation.jobs import pairs

SPLITS = {
    "one published": ("cora", None, 0, [(0, 0), (0, 1)]),
    "other labels": ("cora", 3, 100, [(100, 100), (101, 101)]),
    "ten published": ("chameleon", None, 9, [(9, 9), (0, 10)]),
    "ten, other labels": ("chameleon", 5, 9, [(9, 9), (0, 10)]),
    "drawn": ("digits", None, 7, [(7, 7), (8, 8)]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_splits_and_seeds(name: str) -> None:
    dataset, labels, first, expected = SPLITS[name]
    assert pairs(dataset_info(dataset), 2, labels, first) == expected


def test_jobs_of_a_comparison() -> None:
    jobs = make_jobs(["gcn", "lpa", "gcn"], ["cora", "Karate"], 2)
    assert [(j.method, j.dataset, j.split, j.seed) for j in jobs] == [
        ("gcn", "cora", 0, 0), ("gcn", "cora", 0, 1),
        ("lpa", "cora", 0, 0), ("lpa", "cora", 0, 1),
        ("gcn", "karate", 0, 0), ("gcn", "karate", 1, 1),
        ("lpa", "karate", 0, 0), ("lpa", "karate", 1, 1),
    ]  # fmt: skip
    # The name of 0.1 is an alias, and the last seed there is.
    with pytest.warns(UserWarning, match="is now called elu-gcn"):
        (old,) = make_jobs(["elu-gcn-paper"], ["cora"], 1, first=2**32 - 1)
    assert (old.method, old.seed) == ("elu-gcn", 2**32 - 1)
    # Tuned options are for the published labels.
    tuned = make_jobs(["gcn"], ["chameleon"], 1)[0]
    drawn = make_jobs(["gcn"], ["chameleon"], 1, labels_per_class=5)[0]
    assert (tuned.config["self_loops"], drawn.config["self_loops"]) == (False, True)


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
    # A default that is named is still the default.
    assert plain.key == job(options={"gcn": {"epochs": plain.config["epochs"]}}).key
    assert Job(**json.loads(json.dumps(plain.plain()))) == plain
    # Stored runs are found by it.
    assert Job("gcn", "cora", 0, 3, {"dropout": 0.8}).key == "a7511ab23e5d23e0"


REFUSALS = {
    "method": ({"methods": ["nope"]}, "unknown method 'nope'"),
    "dataset": ({"datasets": ["koala"]}, "unknown dataset 'koala'"),
    "none": ({"methods": []}, "at least one method"),
    "seeds": ({"seeds": 0}, "seeds must be at least 1; got 0"),
    "labels": ({"labels_per_class": 0}, "at least 1; got 0"),
    "first": ({"first": -1}, "first must be 0 to .*; got -1"),
    "last": ({"first": 2**32 - 1}, "first must be 0 to"),
    "option": ({"options": {"gcn": {"epoch": 1}}}, "'epochs'"),
    "value": ({"options": {"gcn": {"lr": 0}}}, "lr"),
    "other method": ({"options": {"lpa": {}}}, "not compared"),
    "other data": ({"data_options": {"sbm": {}}}, "not compared"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    given, says = REFUSALS[name]
    arguments = {"methods": ["gcn"], "datasets": ["karate"], "seeds": 2}
    with pytest.raises(InputError, match=says):
        make_jobs(**(arguments | given))  # type: ignore[arg-type]
