import hashlib
import json

import pytest

from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.evaluation.jobs import make_jobs, pairs
from elugcn.evaluation.monitor import show_time, time_left
from tests.evaluation.conftest import record_of


def test_splits_and_seeds() -> None:
    cora, digits = dataset_info("cora"), dataset_info("digits")
    chameleon = dataset_info("chameleon")
    assert pairs(cora, 3, False) == [(0, 0), (0, 1), (0, 2)]
    assert pairs(cora, 3, True) == [(0, 0), (1, 1), (2, 2)]
    assert pairs(digits, 12, False)[-1] == (11, 11)
    assert pairs(chameleon, 12, False)[8:] == [(8, 8), (9, 9), (0, 10), (1, 11)]
    assert pairs(chameleon, 12, True)[-1] == (1, 11)
    assert pairs(cora, 2, False, first=100) == [(0, 100), (0, 101)]
    assert pairs(cora, 2, True, first=100) == [(100, 100), (101, 101)]
    assert pairs(digits, 2, False, first=7) == [(7, 7), (8, 8)]
    assert pairs(chameleon, 3, False, first=108) == [(8, 108), (9, 109), (0, 110)]


def test_runs_from_another_seed_on() -> None:
    jobs = make_jobs(["lpa"], ["cora", "sbm"], 2, first=100)
    assert [(j.dataset, j.split, j.seed) for j in jobs] == [
        ("cora", 0, 100), ("cora", 0, 101), ("sbm", 100, 100), ("sbm", 101, 101),
    ]  # fmt: skip
    # The last seed there is, and one more.
    assert make_jobs(["lpa"], ["cora"], 2, first=2**32 - 2)[-1].seed == 2**32 - 1


def test_jobs_of_a_comparison() -> None:
    jobs = make_jobs(["gcn", "lpa", "gcn"], ["cora", "Karate"], 2)
    assert [(j.method, j.dataset, j.split, j.seed) for j in jobs] == [
        ("gcn", "cora", 0, 0), ("gcn", "cora", 0, 1),
        ("lpa", "cora", 0, 0), ("lpa", "cora", 0, 1),
        ("gcn", "karate", 0, 0), ("gcn", "karate", 1, 1),
        ("lpa", "karate", 0, 0), ("lpa", "karate", 1, 1),
    ]  # fmt: skip


def test_an_option_that_came_later_does_not_rename_earlier_runs() -> None:
    (plain,) = make_jobs(["grand"], ["cora"], 1)
    assert "sample" not in plain.config
    assert "neighbours" not in plain.config
    # Only what came later is left out, not whatever has no value.
    (gcn,) = make_jobs(["gcn"], ["cora"], 1)
    assert gcn.config["input_dropout"] is None
    (named,) = make_jobs(["grand"], ["cora"], 1, options={"grand": {"sample": 0}})
    (sampled,) = make_jobs(["grand"], ["cora"], 1, options={"grand": {"sample": 9}})
    assert named.config_hash == plain.config_hash != sampled.config_hash
    assert sampled.config == plain.config | {"sample": 9}


def test_the_hash_is_of_method_config_and_data() -> None:
    def job(method: str = "gcn", **options: object):  # noqa: ANN202
        return make_jobs([method], ["sbm"], 1, **options)[0]  # type: ignore[arg-type]

    plain = job()
    content = {
        "method": "gcn", "config": plain.config, "dataset": "sbm",
        "labels_per_class": None, "data_options": {},
    }  # fmt: skip
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert plain.config_hash == hashlib.sha256(text.encode()).hexdigest()[:12]
    others = [
        job("mlp"),
        job(labels_per_class=3),
        job(options={"gcn": {"epochs": 7}}),
        job(data_options={"sbm": {"n": 100}}),
    ]
    assert len({plain.config_hash, *(j.config_hash for j in others)}) == 5
    assert plain.config_hash == job(options={"gcn": {}}).config_hash


def test_presets_are_for_the_published_labels() -> None:
    tuned = make_jobs(["gcn"], ["chameleon"], 1)[0]
    drawn = make_jobs(["gcn"], ["chameleon"], 1, labels_per_class=5)[0]
    assert tuned.config["self_loops"] is False
    assert drawn.config["self_loops"] is True


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((["nope"], ["karate"], 1), {}, "unknown method 'nope'; there are elu-gcn"),
        ((["elu-graph"], ["karate"], 1), {}, "unknown method 'elu-graph'"),
        ((["gcn"], ["koala"], 1), {}, "unknown dataset 'koala'"),
        (([], ["karate"], 1), {}, "at least one method"),
        ((["gcn"], ["karate"], 0), {}, "seeds must be at least 1; got 0"),
        ((["gcn"], ["karate"], 1), {"labels_per_class": 0}, "at least 1; got 0"),
        ((["gcn"], ["karate"], 1), {"first": -1}, "first must be 0 to .*; got -1"),
        ((["gcn"], ["karate"], 2), {"first": 2**32 - 1}, "first must be 0 to"),
        ((["gcn"], ["karate"], 1), {"options": {"gcn": {"epoch": 1}}}, "'epochs'"),
        ((["gcn"], ["karate"], 1), {"options": {"lpa": {}}}, "not compared"),
        ((["gcn"], ["karate"], 1), {"data_options": {"sbm": {}}}, "not compared"),
    ],
)
def test_refusals(arguments: tuple, options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_jobs(*arguments, **options)


def test_time_left() -> None:
    jobs = make_jobs(["gcn", "lpa", "mlp"], ["karate", "sbm"], 1)
    assert time_left(jobs, []) is None
    by_pair = {j.pair: j for j in jobs}
    records = [
        record_of(by_pair["gcn", "karate"], process_seconds=2.0),
        record_of(by_pair["gcn", "karate"], process_seconds=4.0),
        record_of(by_pair["lpa", "karate"], process_seconds=9.0),
    ]
    left = [time_left([by_pair[m, "sbm"]], records) for m in ("gcn", "lpa", "mlp")]
    assert left == [3.0, 9.0, 5.0]
    assert time_left([by_pair["gcn", "karate"]] * 2, records) == 6.0
    # A run that failed says nothing about how long one takes.
    crash = record_of(by_pair["gcn", "sbm"], process_seconds=0.1, status="failed")
    assert time_left([by_pair["gcn", "sbm"]], [*records, crash]) == 3.0
    assert time_left(jobs, [crash]) is None
    assert [show_time(s) for s in (None, 5, 65, 3725)] == [
        "", "0:05 left", "1:05 left", "1:02:05 left",
    ]  # fmt: skip
