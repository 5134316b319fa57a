"""What is published: the store, the pages that it gives, the paper's numbers."""

import csv
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from elugcn_reproduction.experiments import ALL, NAMES, get_experiments
from elugcn_reproduction.experiments.base import Scope
from elugcn_reproduction.page import write_overview
from elugcn_reproduction.published import DATASETS, METHODS, published
from elugcn_reproduction.runner import NothingToShowError, reproduce

from elugcn.evaluation import Job, Published, Store
from elugcn.evaluation.jobs import differing
from elugcn.methods.presets import all_presets, preset
from elugcn.tuning import read_trials

RESULTS = Path(__file__).parents[2] / "reproduction" / "results"
PAPER = Path(__file__).parents[2] / "reproduction/elugcn_reproduction/paper_results.csv"


@pytest.fixture(scope="module")
def stored() -> Store:
    return Store(RESULTS)


@pytest.fixture(scope="module")
def pages(stored: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every page, made again from the store."""
    folder = tmp_path_factory.mktemp("results")
    for one in get_experiments(ALL):
        scope = Scope(quick=False, seeds=one.seeds, store=stored)
        try:
            reproduce(one, scope, stored, None, folder, f"elugcn reproduce {one.name}")
        except NothingToShowError:  # a page of an earlier version stays until it has
            for path in RESULTS.glob(f"{one.name}.*"):
                shutil.copy(path, folder)
    listed = [(e.name, e.title, e.question) for e in get_experiments(ALL)]
    write_overview(folder, listed, ("table1", "social"))
    return folder


@pytest.mark.parametrize("name", [*NAMES, "README"])
def test_published_pages_are_what_the_store_gives(name: str, pages: Path) -> None:
    for ending in ("md",) if name == "README" else ("csv", "md"):
        made, here = (folder / f"{name}.{ending}" for folder in (pages, RESULTS))
        assert made.exists() == here.exists()
        assert not made.exists() or made.read_text() == here.read_text()


def test_every_stored_run_is_of_a_job_of_today(stored: Store) -> None:
    names = [field.name for field in fields(Job)]
    records = list(stored.records())
    assert len(records) >= 5331
    for record in records:
        known = {n: record[n] for n in names if record.get(n) is not None}
        job = Job(**known)
        assert job.key == record["key"]
        assert stored.result(job) is record
        assert record["packages"]["elugcn"] == record["version"]
        if record["version"] == "0.1.0":  # says so, with the name that made it
            ours = ("elu-gcn-paper", "elu-gcn")  # the default with one member, too
            names_then = ours if job.method == "elu-gcn" else (job.method,)
            assert record["original_method"] in names_then
            assert record["commit"]
        assert 0 <= record["test_accuracy"] <= 1


def test_cora_by_hand(stored: Store) -> None:
    """The cell of the first table, from its records with nothing in between."""
    cell = {"method": "elu-gcn", "dataset": "cora"}
    tuned = differing("elu-gcn", preset("elu-gcn", "cora"))
    asked = cell | {"labels_per_class": None, "measure": None, "options": tuned}
    found = [r for r in stored.records() if all(r[k] == asked[k] for k in asked)]
    runs = [r["test_accuracy"] for r in found if r["seed"] < 10]
    assert len(runs) == 10
    with (RESULTS / "table1.csv").open() as file:
        (row,) = [r for r in csv.DictReader(file) if cell.items() <= r.items()]
    assert float(row["mean"]) == pytest.approx(100 * sum(runs) / 10, abs=1e-4)
    assert (row["paper_mean"], row["paper_std"]) == ("84.29", "0.39")


def test_trials_chose_the_presets() -> None:
    trials = read_trials(RESULTS)
    assert len(trials) >= 1235
    assert all(t["error"] or 0 <= t["val_accuracy"] <= 1 for t in trials)
    tuned = [t for t in trials if t["first"] == 100]  # others are of unseen.py
    assert {t["dataset"] for t in tuned} <= all_presets().keys()
    here = [t for t in trials if (t["method"], t["dataset"]) == ("elu-gcn", "cora")]
    best = max(here, key=lambda trial: trial["val_accuracy"])
    assert (best["number"], best["val_accuracy"]) == (1, 0.819)
    assert preset("elu-gcn", "cora")["hidden_channels"] == 32
    assert best["options"]["hidden_channels"] == 32


def test_the_papers_numbers_under_our_names() -> None:
    with PAPER.open() as file:
        rows = [r for r in csv.DictReader(file) if r["table"] != "ablation"]
    ours = {theirs: name for name, theirs in METHODS.items() if name != "auto"}
    places = {theirs: name for name, theirs in DATASETS.items()}
    assert len(rows) == 115
    for row in rows:
        dataset = places.get(row["dataset"], row["dataset"])
        number = published(ours.get(row["method"], row["method"]), dataset)
        assert number is not None
        if row["mean"] == "OOM":
            assert number.mean is None
        else:
            assert (number.mean, number.std) == (float(row["mean"]), float(row["std"]))
    # Typed from the paper.
    for method, place, mean, std in (
        ("elu-gcn", "cora", 84.29, 0.39),
        ("+ELU graph", "cora", 83.49, 0.55),
        ("cogsl", "pubmed", None, None),
    ):
        assert published(method, place) == Published(mean, std)
    assert published("gcn", "squirrel").mean == 43.43  # type: ignore[union-attr]
    assert published("gcn-lpa", "caltech36").mean == 89.12  # type: ignore[union-attr]
    assert published("lpa", "cora") is None
    assert published("elu-gcn", "digits") is None
