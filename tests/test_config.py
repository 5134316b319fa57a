"""From defaults, presets, files and single options to one configuration."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from elugcn import config as module
from elugcn.config import (
    as_plain,
    make_config,
    parse_assignments,
    preset,
    read_options,
    resolve_config,
)
from elugcn.errors import InputError
from elugcn.methods.registry import METHODS

PRESETS = sorted(
    entry.name.removesuffix(".yaml")
    for entry in (resources.files("elugcn") / "configs").iterdir()
    if entry.name.endswith(".yaml")
) if (resources.files("elugcn") / "configs").is_dir() else []  # fmt: skip


def value(config: Any, name: str) -> Any:
    return getattr(config, name)


@pytest.fixture
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package directory whose presets a test can write."""
    monkeypatch.setattr(module.resources, "files", lambda package: tmp_path)
    (tmp_path / "configs").mkdir()
    return tmp_path / "configs"


def test_later_wins(presets: Path, tmp_path: Path) -> None:
    (presets / "toy.yaml").write_text(
        "schema: 1\ncommon: {lr: 0.2, dropout: 0.2, patience: 2}\n"
        "gcn: {dropout: 0.3, hidden_channels: 3, order: 3}"
    )
    file = tmp_path / "own.yaml"
    file.write_text("hidden_channels: 4\norder: 4")
    got = resolve_config("gcn", "toy", file, {"order": 5})
    names = ("weight_decay", "lr", "dropout", "hidden_channels", "order", "patience")
    default = value(make_config("gcn", {}), "weight_decay")
    assert [value(got, n) for n in names] == [default, 0.2, 0.3, 4, 5, 2]
    # Without the others each is still there.
    assert value(resolve_config("gcn", "toy"), "hidden_channels") == 3
    assert value(resolve_config("gcn", "toy", file), "order") == 4
    assert resolve_config("gcn", "other") == make_config("gcn", {})


def test_what_is_common_goes_to_methods_that_know_it(presets: Path) -> None:
    (presets / "toy.yaml").write_text("common: {lr: 0.2, self_loops: false}\nmlp:")
    assert preset("toy", "lpa") == {"self_loops": False}
    assert preset("toy", "mlp") == {"lr": 0.2, "self_loops": False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gnc: {}", "unknown option 'gnc'"),
        ("gcn: {hiden_channels: 3}", "hidden_channels"),
    ],
)
def test_a_preset_with_an_unknown_key_is_refused(
    text: str, message: str, presets: Path
) -> None:
    (presets / "toy.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        preset("toy", "gcn")


@pytest.mark.skipif(not PRESETS, reason="no presets are shipped")
@pytest.mark.parametrize("name", PRESETS)
def test_shipped_presets_load_for_every_method(name: str) -> None:
    text = (resources.files("elugcn") / "configs" / f"{name}.yaml").read_text()
    for method in METHODS:
        config = resolve_config(method, name)
        own = (yaml.safe_load(text).get(method) or {}).items()
        for key, given in own:
            if not isinstance(given, list | dict | str):
                assert value(config, key) == given
        assert resolve_config(method, name, None, as_plain(config)) == config


@pytest.mark.parametrize("method", METHODS)
def test_plain_form_round_trips(method: str) -> None:
    config = make_config(method, {})
    plain = as_plain(config)
    assert make_config(method, json.loads(json.dumps(plain))) == config
    assert make_config(method, yaml.safe_load(yaml.safe_dump(plain))) == config


def test_types_are_coerced() -> None:
    given = parse_assignments(["lr=5e-4", "dropout=0", "epochs=7", "residual=true"])
    config = make_config("gcn", given)
    assert value(config, "lr") == 5e-4
    assert (value(config, "dropout"), type(value(config, "dropout"))) == (0.0, float)
    assert (value(config, "epochs"), value(config, "residual")) == (7, True)
    # Inside variants too, and the caller's own mapping is left alone.
    variants = parse_assignments(["variants=[{name: a, lr: 5e-4}]"])
    assert value(make_config("elu-gcn", variants), "variants")[0]["lr"] == 5e-4
    assert variants["variants"][0]["lr"] == "5e-4"
    # A value may hold an equals sign, and a later one wins.
    assert parse_assignments(["a=b=c", "a=d=e"]) == {"a": "d=e"}


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("lr", "fast", "a number"),
        ("lr", True, "a number"),
        ("lr", None, "a number"),
        ("lr", float("nan"), "a number"),
        ("lr", "inf", "a number"),
        ("lr", [1], "a number"),
        ("lr", 10**400, "a number"),
        ("epochs", 1.5, "a whole number"),
        ("epochs", "7", "a whole number"),
        ("epochs", True, "a whole number"),
        ("residual", 1, "true or false"),
        ("residual", "yes", "true or false"),
        ("norm", 3, "a word"),
        ("norm", False, "a word"),
    ],
)
def test_wrong_types_name_the_option(key: str, given: Any, expected: str) -> None:
    with pytest.raises(InputError, match=f"^{key} must be {expected}; got "):
        resolve_config("gcn", options={key: given})


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("gcn", {"num_layers": 1}, "num_layers must be at least 2"),
        ("gcn", {"order": -1}, "order must be at least 0"),
        ("gcn", {"drop_node": 1.0}, "drop_node must be"),
        ("gcn", {"dropout": -0.1}, "dropout must be"),
        ("gcn", {"patience": -1}, "patience must be at least 0"),
        ("mlp", {"weight_decay": -1.0}, "weight_decay must be at least 0"),
        ("mlp", {"lr": 0.0}, "lr must be positive"),
        ("lpa", {"lpa_alpha": -0.1}, "lpa_alpha must be between 0 and 1"),
        ("elu-gcn", {"beta": 0.0}, "beta must be positive"),
        ("elu-gcn", {"variants": [{"nope": 1}]}, "unknown option 'nope'"),
        ("elu-gcn", {"variants": [{"lpa_steps": 3}]}, "lpa_steps is shared by the var"),
        (
            "elu-gcn",
            {"variants": [{"mlp_lr": 0.1}]},
            "mlp_lr is shared by the variants",
        ),
        (
            "elu-gcn",
            {"variants": [{"feature_norm": "l7"}]},
            "feature_norm must be one of",
        ),
        ("elu-gcn", {"variants": [3]}, "variants must be a list of mappings"),
        ("elu-gcn", {"variants": [{"eta": "x"}]}, "eta must be a number; got 'x'"),
    ],
)
def test_numbers_out_of_range_are_refused(
    method: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        resolve_config(method, options=options)


def test_unknown_keys_hint_or_list() -> None:
    with pytest.raises(
        InputError, match="'epocs' of method gcn; did you mean 'epochs'"
    ):
        resolve_config("gcn", options={"epocs": 1})
    with pytest.raises(InputError, match=r"'zzz' of method lpa; known: .*lpa_steps"):
        resolve_config("lpa", options={"zzz": 1})


def test_files_of_runs_and_flat_files(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("")
    assert read_options(file, "gcn") == {}
    file.write_text("schema: 1\nlr: 0.1")
    assert read_options(file, "gcn") == {"lr": 0.1}
    file.write_text("schema: 1\nmethod: gcn\nseed: 3\noptions: {lr: 0.1}")
    assert read_options(file, "gcn") == {"lr": 0.1}
    file.write_text("method: gcn\noptions:")
    assert read_options(file, "gcn") == {}
    # The graph alone has the options of the whole method.
    file.write_text("method: elu-gcn\noptions: {k: 3}")
    assert read_options(file, "elu-graph") == {"k": 3}
    with pytest.raises(InputError, match="is for method 'elu-gcn'"):
        read_options(file, "gcn")
    with pytest.raises(InputError, match="can't be read"):
        read_options(tmp_path, "gcn")
    file.write_text("method: gcn\noptions: {}\n")
    with pytest.raises(InputError, match="say --method gcn"):
        read_options(file, "elu-gcn")
    # Commands that learn the graph alone have no --method.
    with pytest.raises(InputError, match="'elu-graph': give a run of elu-gcn"):
        read_options(file, "elu-graph")


def test_what_the_user_sets_reaches_every_variant() -> None:
    plain = {name: member for name, member in resolve_config("elu-gcn").members()}
    assert len({member.eta for member in plain.values()}) > 1  # variants differ in eta
    given = resolve_config("elu-gcn", options={"eta": 0.45}).members()
    assert [name for name, _ in given] == list(plain)
    assert {member.eta for _, member in given} == {0.45}
    # Everything else of a variant stays.
    assert [m.order for _, m in given] == [m.order for m in plain.values()]


def test_given_variants_are_taken_as_they_are() -> None:
    variants = [{"name": "a", "eta": 0.1}]
    options = {"eta": 0.45, "variants": variants}
    [(name, member)] = resolve_config("elu-gcn", options=options).members()
    assert (name, member.eta) == ("a", 0.1)


def test_what_is_set_reaches_the_variants_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    options = as_plain(resolve_config("elu-gcn", options={"epochs": 30}))
    file.write_text(yaml.safe_dump({"method": "elu-gcn", "options": options}))
    as_it_is = resolve_config("elu-gcn", file=file)
    assert as_it_is == resolve_config("elu-gcn", options={"epochs": 30})
    changed = resolve_config("elu-gcn", file=file, options={"eta": 0.45})
    assert changed == resolve_config("elu-gcn", options={"epochs": 30, "eta": 0.45})


@pytest.mark.parametrize(
    "options",
    [
        {"damping": 1.0},
        {"keep": 0.0},
        {"k": -1},
        {"mlp_dropout": 1.5},
        {"variants": [{"eta": 2.0}]},
        {"variants": [{"name": "gcn"}]},
        {"variants": [{"name": "a"}, {"name": "a"}]},
    ],
)
def test_elu_gcn_refuses_before_anything_is_trained(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        resolve_config("elu-gcn", options=options)


def test_a_few_bytes_of_yaml_are_not_gigabytes_of_message() -> None:
    text = "&a [x,x,x,x,x,x,x,x,x]"
    for name in "bcdefghi":
        before = chr(ord(name) - 1)
        text = f"&{name} [{text}, {', '.join(['*' + before] * 8)}]"
    with pytest.raises(
        InputError, match="epochs must be a whole number; got"
    ) as caught:
        make_config("gcn", {"epochs": yaml.safe_load(text)})
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("key", ["hidden_channels", "epochs", "num_layers"])
def test_numbers_that_no_count_reaches(key: str) -> None:
    with pytest.raises(InputError, match=f"{key} must be at most 2147483647; got 1000"):
        make_config("gcn", {key: 10**22})
