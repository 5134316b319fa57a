"""The file of search spaces, the package's own and others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from elugcn.data.datasets import list_datasets
from elugcn.errors import InputError
from elugcn.methods.registry import METHODS
from elugcn.tuning.searchfile import Budget, read_search

SHIPPED = tuple(METHODS)
Write = Callable[..., Path]

LAYERS = """
schema: 1
budget: {trials: 5, trials_of: {gcn: 7}}
groups: {hard: [chameleon, squirrel], one: [cora]}
spaces:
  gcn@chameleon: {values: {dropout: [0.3, 0.4]}}
  gcn: {start: [{lr: 0.1}], values: {dropout: [0.1, 0.2], hidden_channels: [4, 8]}}
  gcn@hard,cora: {start: [], values: {dropout: [0.5, 0.6], hidden_channels: null, order: 2}}
  mlp@one: {}
  elu-gcn: {like: gcn}
  elu-gcn@karate: {like: null}
"""


def test_narrower_sections_win(space_file: Write) -> None:
    file = read_search(space_file(LAYERS))
    karate, squirrel, chameleon = (
        file.space("gcn", name) for name in ("karate", "squirrel", "chameleon")
    )

    def dropout(space):  # noqa: ANN001, ANN202
        (found,) = (d for d in space.searched if d.key == "dropout")
        return found.extremes()

    assert [dropout(s) for s in (karate, squirrel, chameleon)] == [
        [0.1, 0.2], [0.5, 0.6], [0.3, 0.4],
    ]  # fmt: skip
    assert karate.columns == ["dropout", "hidden_channels", "lr"]
    assert squirrel.columns == chameleon.columns == ["dropout"]
    assert (karate.fixed, chameleon.fixed) == ({}, {"order": 2})
    assert (karate.starts, chameleon.starts) == (({"lr": 0.1},), ())
    # Nothing said of starts: the defaults come first.
    assert file.space("mlp", "cora").starts == ({},)


def test_the_base_is_what_is_common_and_no_earlier_outcome(
    space_file: Write, tmp_path: Path
) -> None:
    file = read_search(space_file(LAYERS))
    for name in ("cora", "karate"):
        (tmp_path / f"{name}.yaml").write_text(
            "common: {patience: 7, hidden_channels: 3}\n"
            "gcn: {hidden_channels: 5, dropout: 0.25}\nelu-gcn: {eta: 0.9, lr: 0.5}\n"
            "mlp: {lr: 0.75}"
        )
    names = ("patience", "hidden_channels", "dropout", "lr", "eta")

    def base(method: str, dataset: str) -> list[float]:
        found = file.space(method, dataset, tmp_path).base
        return [found[name] for name in names if name in found]

    assert base("gcn", "cora") == [7, 3, 0.8, 0.01]
    # The GCN's tuned values, not its own; and none where like is taken back.
    assert base("elu-gcn", "cora") == [7, 5, 0.25, 0.01, 0.3]
    assert base("elu-gcn", "karate") == [7, 3, 0.8, 0.01, 0.3]
    assert [file.like("elu-gcn", d) for d in ("cora", "karate")] == ["gcn", None]


ALIKE = """
schema: 1
spaces:
  elu-gcn:
    like: gcn
    values:
      variants:
        options:
          pair:
            - {name: near, like: grand, order: 3, eta: 0.0, pseudo_weight: 0.3}
            - {name: views, eta: 0.3}
      variants.near.order: [2, 3]
"""


def test_a_variant_may_begin_at_the_values_of_another_method(
    space_file: Write, tmp_path: Path
) -> None:
    file = read_search(space_file(ALIKE))
    assert file.starts_from("elu-gcn", "cora") == ["gcn", "grand"]
    (tmp_path / "cora.yaml").write_text(
        "gcn: {residual: true, lr: 0.02, dropout: 0.5}\n"
        "grand: {draws: 2, order: 5, dropout: 0.2}"
    )
    space = file.space("elu-gcn", "cora", tmp_path)
    near, views = space.configuration({})["variants"]
    # GRAND's defaults and tuned values where they differ from what is around; no
    # residual, which it does not have; and what the line itself says.
    assert near == {
        "name": "near", "residual": False, "lr": 0.01, "dropout": 0.2, "draws": 2,
        "order": 3, "drop_node": 0.5, "lambda_cons": 1.0, "hidden_channels": 32,
        "epochs": 1000, "patience": 200, "eta": 0.0, "pseudo_weight": 0.3,
    }  # fmt: skip
    assert views == {"name": "views", "eta": 0.3}
    changed = space.configuration({"variants.near.order": 2})["variants"][0]
    assert changed == near | {"order": 2}


def test_a_variant_like_nothing_known(space_file: Write) -> None:
    file = read_search(space_file(ALIKE.replace("grand", "grandma")))
    with pytest.raises(InputError, match="like must be a method; got 'grandma'"):
        file.space("elu-gcn", "cora")


def test_budget(space_file: Write) -> None:
    budget = read_search(space_file(LAYERS)).budget
    assert budget == Budget(trials=5, trials_of={"gcn": 7})
    assert [budget.trials_for(m) for m in ("gcn", "mlp")] == [7, 5]
    other = budget.but(runs=3, first=0, search_seed=None)
    assert (other.runs, other.first, other.search_seed) == (3, 0, 0)
    assert other.trials_for("gcn") == 7
    # Trials on the command line are of every method.
    assert budget.but(trials=2).trials_for("gcn") == 2
    with pytest.raises(InputError, match="--search-seed must be at least 0; got -1"):
        budget.but(search_seed=-1)


@pytest.mark.parametrize("method", SHIPPED)
def test_the_shipped_file_has_a_space_for_everything(method: str) -> None:
    file = read_search()
    for info in list_datasets():
        space = file.space(method, info.name)
        assert space.searched
        assert space.starts
        for start in space.starts:
            assert set(space.shown(start)) <= set(space.columns)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected schema 1; got None"),
        ("schema: 2", "expected schema 1; got 2"),
        ("[1]", "the file: expected 'key: value' lines"),
        ("a: [", r"not valid YAML \(line 1\)"),
        ("schema: 1\nspace: {}", "unknown key 'space'; known: schema, budget"),
        ("schema: 1\nbudget: {trial: 1}", "budget: unknown key 'trial'; known: trials"),
        ("schema: 1\nbudget: {trials: 0}", "trials must be a whole number from 1 on"),
        ("schema: 1\nbudget: {runs: true}", "runs must be a whole number from 1 on"),
        ("schema: 1\nbudget: {first: -1}", "first must be a whole number from 0 on"),
        ("schema: 1\nbudget: {trials_of: {x: 1}}", "trials_of: unknown key 'x'"),
        ("schema: 1\nbudget: {trials_of: {gcn: 0}}", "gcn must be a whole number"),
        ("schema: 1\ngroups: {cora: [cora]}", "group 'cora' must be new"),
        ("schema: 1\ngroups: {a: cora}", "group 'a' must be new and list"),
        ("schema: 1\ngroups: {a: [koala]}", "unknown dataset 'koala'"),
        ("schema: 1\nspaces: {nope: {}}", "section 'nope': unknown method 'nope'"),
        ("schema: 1\nspaces: {gcn@koala: {}}", "no dataset or group 'koala'"),
        ("schema: 1\nspaces: {gcn: {value: {}}}", "gcn: unknown key 'value'"),
        ("schema: 1\nspaces: {gcn: {values: [1]}}", "gcn: values: expected 'key"),
        ("schema: 1\nspaces: {gcn: {start: {}}}", "start must be a list"),
        ("schema: 1\nspaces: {gcn: {start: [1]}}", "gcn: start: expected 'key"),
        ("schema: 1\nspaces: {gcn: {like: x}}", "like must be a method; got 'x'"),
    ],
)
def test_refused_files(text: str, says: str, space_file: Write) -> None:
    path = space_file(text)
    with pytest.raises(InputError, match=f"--space {path}: .*{says}") as caught:
        read_search(path)
    assert "\n" not in str(caught.value)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: no such file"):
        read_search(tmp_path / "nowhere.yaml")
    with pytest.raises(InputError, match="can't be read"):
        read_search(tmp_path)


def test_refused_spaces_name_file_and_section(space_file: Write) -> None:
    text = (
        "schema: 1\nspaces: {gcn: {}, gcn@cora: {values: {drop: [1, 2]}}, mlp@cora: {}}"
    )
    path = space_file(text)
    file = read_search(path)
    says = f"--space {path}: gcn and gcn@cora: unknown option 'drop' of method gcn"
    with pytest.raises(InputError, match=says):
        file.space("gcn", "cora")
    with pytest.raises(InputError, match="no space for method 'lpa'; known: gcn, mlp"):
        file.space("lpa", "cora")
    with pytest.raises(InputError, match="no space for method 'mlp' on karate"):
        file.space("mlp", "karate")
