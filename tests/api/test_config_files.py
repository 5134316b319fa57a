"""From presets, files and single options to one configuration."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from elugcn import InputError
from elugcn.api import parse_assignments, read_config_file, resolve_config
from elugcn.api.config_files import with_effort
from elugcn.methods import presets
from elugcn.methods.registry import GRAPH_ONLY, METHOD_NAMES, config_for


def values(config: Any, *names: str) -> list[Any]:
    return [getattr(config, name) for name in names]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own.yaml"


def test_later_wins(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = {
        "common": {"lr": 0.2, "dropout": 0.2, "patience": 2},
        "gcn": {"dropout": 0.3, "hidden_channels": 3, "order": 3},
    }
    monkeypatch.setattr(presets, "all_presets", lambda: {"toy": toy})
    file.write_text("hidden_channels: 4\norder: 4")
    got = resolve_config("gcn", "toy", file, {"order": 5})
    names = ("weight_decay", "lr", "dropout", "hidden_channels", "order", "patience")
    [default] = values(config_for("gcn", {}), "weight_decay")
    assert values(got, *names) == [default, 0.2, 0.3, 4, 5, 2]
    assert values(resolve_config("gcn", "toy"), "hidden_channels", "order") == [3, 3]
    assert values(resolve_config("gcn", None, file), "order", "dropout") == [4, 0.8]
    assert resolve_config("gcn", "other") == config_for("gcn", {})


@pytest.mark.parametrize("dataset", sorted(presets.all_presets()))
def test_presets_are_valid_for_every_method(dataset: str) -> None:
    for method in METHOD_NAMES:
        config = resolve_config(method, dataset)
        plain = config.model_dump(mode="json")
        assert resolve_config(method, dataset, None, plain) == config


def test_what_a_run_records_is_a_file_of_options(file: Path) -> None:
    given = {"epochs": 30, "effort": "quick", "time_limit": 7.5, "folds": 3}
    recorded = resolve_config("auto", options=given)
    text = {"method": "auto", "options": recorded.model_dump(mode="json")}
    file.write_text(yaml.safe_dump(text))
    assert resolve_config("auto", file=file) == recorded
    expected = resolve_config("auto", options=given | {"refit": True})
    assert resolve_config("auto", file=file, options={"refit": True}) == expected


def test_effort_and_time_are_options_of_the_default() -> None:
    given = with_effort("auto", {"epochs": 3}, "quick", 5.0)
    assert given == {"epochs": 3, "effort": "quick", "time_limit": 5.0}
    assert with_effort("gcn", {"epochs": 3}, None, None) == {"epochs": 3}
    for effort, limit, says in (
        ("quick", None, "effort=quick requires method='auto'; got 'gcn'"),
        (None, 5.0, "time_limit=5.0 requires method='auto'; got 'gcn'"),
    ):
        with pytest.raises(InputError) as caught:
            with_effort("gcn", {}, effort, limit)
        assert str(caught.value) == says


def test_runs_and_flat_files(file: Path) -> None:
    for text, expected in {
        "": {},
        "schema: 1\nlr: 0.1": {"lr": 0.1},
        "schema: 2\nlr: 0.1": {"lr": 0.1},
        "seed: 3\noptions:": {"seed": 3, "options": {}, "graph": {}},
    }.items():
        file.write_text(text)
        assert read_config_file(file) == expected
    # The graph alone is a stage of ELU-GCN: its options are read from such a run.
    file.write_text("method: elu-gcn\noptions: {k: 3, eta: 0.2}")
    assert values(resolve_config(GRAPH_ONLY, file=file), "k") == [3]


REFUSED = {
    "impossible date": ("when: 2025-99-99", "not valid YAML"),
    "python object": ("a: !!python/object/apply:os.system [ls]", "not valid YAML"),
    "endless brackets": ("[" * 5_000, "not valid YAML"),
    "a word": ("word", "expected 'key: value' lines"),
    "graph": ("options: {}\ngraph: cora", "graph must hold 'key: value' lines"),
    "list of methods": ("schema: 1\nmethod: [gcn]\noptions:", "unknown method"),
    "unknown option": ("zzz: 3", r"unknown option 'zzz' of .*yaml; known: .*epochs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_are_refused(case: str, file: Path) -> None:
    text, message = REFUSED[case]
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        resolve_config("gcn", file=file)
    assert "\n" not in str(caught.value)


def test_assignments() -> None:
    pairs = ["lr=5e-4", "dropout=0", "residual=true", "a=b=c", "a=d=e", " k =[1, x]"]
    given = parse_assignments(pairs)
    assert given == {
        "lr": "5e-4", "dropout": 0, "residual": True, "a": "d=e", "k": [1, "x"],
    }  # fmt: skip
    options = {name: given[name] for name in ("lr", "dropout", "residual")}
    config = resolve_config("gcn", options=options)
    assert values(config, "lr", "dropout", "residual") == [5e-4, 0.0, True]
    for pair, message in {
        "lr": "--set lr: expected key=value",
        "=3": "--set =3: expected key=value",
        "lr=[": r"--set lr=\[: the value is not valid YAML",
    }.items():
        with pytest.raises(InputError, match=message):
            parse_assignments([pair], "--set")
