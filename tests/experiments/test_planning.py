from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from elugcn.config import make_config
from elugcn.errors import InputError
from elugcn.evaluation.jobs import make_jobs
from elugcn.experiments import (
    ablation,
    draws,
    fewlabels,
    runtime,
    sensitivity,
    social,
    table1,
)
from elugcn.experiments.base import QUICK_EPOCHS, Scope
from elugcn.experiments.planning import capped, two_views
from elugcn.experiments.registry import NAMES, get_experiment, get_experiments
from elugcn.methods.elu_config import ELUGCNConfig, PaperConfig
from elugcn.methods.registry import METHODS

Scopes = Callable[..., Scope]


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset has these tuned values, whatever the shipped ones are today."""

    def preset(dataset: str, method: str, *rest: object) -> dict[str, Any]:
        common: dict[str, Any] = {"hidden_channels": 256, "epochs": 1000}
        if method == "lpa":
            return {"lpa_steps": 3}
        if method != "elu-gcn":
            return common
        two = {"name": "two views", "eta": 0.4, "form": "transposed", "k": 4}
        return common | {"variants": [{"name": "other", "eta": 0.0}, two]}

    monkeypatch.setattr("elugcn.config.preset", preset)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quick", [False, True])
def test_every_plan_holds(name: str, quick: bool) -> None:
    """Every option of every run is one its method takes."""
    experiment = get_experiment(name)
    assert experiment.name == name
    plan = experiment.plan(Scope(quick, 2))
    assert plan
    for job in {p.job.config_hash: p.job for p in plan}.values():
        make_config(job.method, job.config)
        if quick:
            assert job.config.get("epochs", 0) <= QUICK_EPOCHS
    assert {p.job.seed for p in plan} == {0, 1}


def test_table1_has_the_runs_of_compare() -> None:
    plan = table1.plan(Scope(False, 10))
    expected = make_jobs(list(METHODS), table1.DATASETS, 10)
    assert {p.job for p in plan} == set(expected)
    assert len(plan) == len(METHODS) * 9 * 10
    assert all(p.row == p.job.method for p in plan)
    assert [p.row for p in plan[::10]][:4] == ["elu-gcn", "elu-gcn-paper", "gcn", "gat"]


def test_runtime_runs_nothing_of_its_own() -> None:
    scope = Scope(False, 10)
    tables = {p.job for p in table1.plan(scope) + social.plan(scope)}
    own = {p.job for p in runtime.plan(scope)}
    assert own < tables
    assert {job.method for job in own} == {"gcn", "gat", "elu-gcn", "elu-gcn-paper"}


@pytest.mark.usefixtures("tuned")
def test_quick_is_a_part_with_fewer_epochs(scope: Scopes) -> None:
    plan = table1.plan(
        scope("chameleon", methods=("gcn", "elu-gcn", "lpa"), quick=True)
    )
    full = table1.plan(scope("chameleon", methods=("gcn", "elu-gcn", "lpa")))
    for small, whole in zip(plan, full, strict=True):
        if small.row == "lpa":
            assert small.job == whole.job
        else:
            assert whole.job.config["epochs"] == 1000
            assert small.job.config == whole.job.config | {"epochs": QUICK_EPOCHS}
            assert small.job.config_hash != whole.job.config_hash


def test_the_cap_reaches_members_and_never_raises() -> None:
    job = make_jobs(["elu-gcn"], ["karate"], 1)[0]
    members = [{"name": "a", "epochs": 900}, {"name": "b", "epochs": 7}, {"name": "c"}]
    job = replace(job, config=job.config | {"variants": members, "epochs": 50})
    config = capped(job, 100).config
    assert config["epochs"] == 50
    assert [m.get("epochs") for m in config["variants"]] == [100, 7, None]
    assert job.config["variants"][0]["epochs"] == 900


def test_what_the_user_names(scope: Scopes) -> None:
    plan = table1.plan(scope("Karate", "sbm", methods=("lpa", "mlp")))
    cells = [(p.row, p.job.dataset, p.job.seed) for p in plan]
    assert cells == [
        (m, d, s) for d in ("karate", "sbm") for m in ("lpa", "mlp") for s in (0, 1)
    ]
    only = ablation.plan(scope("karate", methods=("gcn",)))
    assert {(p.row, p.job.method) for p in only} == {("gcn", "gcn")}
    assert sensitivity.plan(scope("karate", methods=("gcn",))) == []
    with pytest.raises(InputError, match="unknown method 'nope'"):
        ablation.plan(scope("karate", methods=("nope",)))


@pytest.mark.usefixtures("tuned")
def test_rows_of_the_ablation(scope: Scopes) -> None:
    plan = ablation.plan(scope("chameleon", seeds=1))
    configs = {p.row: make_config(p.job.method, p.job.config) for p in plan}
    full, member = configs["+ contrastive"], configs["two views"]
    assert isinstance(full, PaperConfig)
    assert isinstance(member, ELUGCNConfig)
    # The method as published, as tuned; and the tuned two-view member, alone.
    assert (full.form, full.beta, full.hidden_channels) == ("transposed", 1000.0, 256)
    assert full.lambda_con > 0
    assert (member.form, member.k, member.eta) == ("transposed", 4, 0.4)
    assert (member.variants, member.keep_gcn, member.refit_eta) == ((), False, False)

    def differs(row: str, base: ELUGCNConfig = full) -> dict[str, object]:
        mine, theirs = vars(configs[row]), vars(base)
        return {k: v for k, v in mine.items() if v != theirs[k]}

    assert differs("backbone alone") == {"eta": 0.0, "lambda_con": 0.0}
    assert differs("+ ELU graph") == {"lambda_con": 0.0}
    assert differs("entropy alone") == {"contrast_weight": 0.0}
    assert differs("contrast alone") == {"entropy_weight": 0.0}
    assert differs("form paper, init zero") == {
        "form": "paper", "init": "zero", "beta": 1.0, "k": 2, "damping": 0.0,
    }  # fmt: skip
    assert differs("form transposed, init lpa") == {}
    assert differs("graph topk") == {"graph_mode": "topk"}
    assert differs("H from the GCN") == {"h_source": "gcn"}
    assert differs("H from the MLP") == {}
    assert differs("two views, 2 rounds", member) == {"rounds": 2}
    published = make_jobs(["elu-gcn-paper"], ["chameleon"], 1)[0]
    assert [p.job for p in plan if p.row == "+ contrastive"] == [published]
    default = make_jobs(["elu-gcn"], ["chameleon"], 1)[0]
    assert [p.job for p in plan if p.row == "elu-gcn"] == [default]
    random = configs["random propagation"]
    assert isinstance(random, ELUGCNConfig)
    assert (random.eta, random.draws, random.pseudo_weight) == (0.0, 2, 0.0)


def test_two_views_where_none_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ELUGCNConfig(variants=(), lambda_con=0.0)
    path = "elugcn.experiments.planning.resolve_config"
    monkeypatch.setattr(path, lambda *rest: plain)
    options = two_views("anything")
    assert options["variants"] == []
    assert options["lambda_con"] == 0.1


def test_grids(scope: Scopes) -> None:
    plan = sensitivity.plan(scope("cora", seeds=1))
    grid = {
        (p.job.config["tau"], p.job.config["lambda_con"])
        for p in plan
        if p.group == sensitivity.GRID
    }
    assert grid == {(t, w) for t in sensitivity.VALUES for w in sensitivity.VALUES}
    etas = [p.job.config["eta"] for p in plan if p.group == sensitivity.ETA]
    assert etas == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_few_labels_leave_the_presets_aside(scope: Scopes) -> None:
    plan = fewlabels.plan(scope("cora", seeds=10, methods=("gcn",)))
    assert [int(p.group) for p in plan[::10]] == [1, 2, 3, 5, 10, 20]
    assert all(p.job.labels_per_class == int(p.group) for p in plan)
    bare = make_jobs(["gcn"], ["karate"], 1)[0].config
    assert plan[0].job.config == bare
    assert len({p.job.split for p in plan}) == 10


def test_draws_keep_the_tuned_values(scope: Scopes) -> None:
    plan = draws.plan(scope("cora", "pubmed", seeds=10))
    tuned = {
        (job.method, job.dataset): job.config
        for job in make_jobs(draws.METHODS, ["cora", "pubmed"], 1)
    }
    assert len(plan) == 10 * len(tuned)
    for planned in plan:
        job = planned.job
        assert job.config == tuned[job.method, job.dataset]
        assert job.labels_per_class == 20
    assert len({p.job.split for p in plan}) == 10


def test_names() -> None:
    assert [e.name for e in get_experiments("all")] == list(NAMES)
    with pytest.raises(
        InputError, match="unknown experiment 'table9'; there are table1"
    ):
        get_experiments("table9")
