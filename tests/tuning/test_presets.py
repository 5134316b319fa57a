"""Tuned values in the files of datasets: one section changes, nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from elugcn.config import as_plain, make_config, preset, resolve_config
from elugcn.errors import InputError
from elugcn.tuning.presets import (
    check_presets,
    package_presets,
    preset_source,
    replace_section,
    write_preset,
)

FILE = """\
# Why these values.
# A second line.
schema: 1
common:
  patience: 7   # short
  self_loops: false

# The plain one.
gcn:
  # old
  dropout: 0.1
  # about to go
# The other one.
mlp: {lr: 0.5}
elu-gcn:
  variants:
    - name: one
# The end.
"""


def best(method: str, **options: Any) -> dict[str, Any]:
    return as_plain(make_config(method, options))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gcn", {"dropout": 0.3, "lr": 0.0123, "weight_decay": 1e-7, "norm": "none"}),
        ("gcn", {}),
        ("mlp", {"patience": 100, "self_loops": True}),  # against what is common
        ("lpa", {"lpa_steps": 3}),
        ("elu-gcn", {"variants": [{"name": "a: b #c", "eta": 0.0}, {"name": "no"}]}),
        ("elu-gcn", {"variants": []}),
    ],
)
def test_round_trip(method: str, options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "karate.yaml"
    path.write_text(FILE)
    config = best(method, **options)
    others = [m for m in ("gcn", "mlp", "lpa", "elu-gcn", "gat") if m != method]
    before = {m: preset("karate", m, tmp_path) for m in others}
    write_preset(method, "karate", config, tmp_path, "a note")
    got = resolve_config(method, "karate", presets=tmp_path)
    assert as_plain(got) == config
    assert {m: preset("karate", m, tmp_path) for m in others} == before
    text = path.read_text()
    assert text.count("a note") == 1
    for line in ("# Why these values.", "# The plain one.", "# The other one.",
                 "# The end.", "  patience: 7   # short"):  # fmt: skip
        assert text.count(line + "\n") == 1
    # Again: the same file, not even touched.
    stamp = path.stat().st_mtime_ns
    write_preset(method, "karate", config, tmp_path, "a note")
    assert (path.read_text(), path.stat().st_mtime_ns) == (text, stamp)
    assert [p.name for p in tmp_path.iterdir()] == ["karate.yaml"]


def test_only_the_section_changes(tmp_path: Path) -> None:
    (tmp_path / "karate.yaml").write_text(FILE)
    config = best("gcn", patience=7, self_loops=False, dropout=0.25)
    write_preset("gcn", "karate", config, tmp_path, "from a search")
    head, tail = FILE.split("gcn:\n", 1)[0], FILE[FILE.index("# The other one.") :]
    # What is common, or the default, is not repeated.
    assert (tmp_path / "karate.yaml").read_text() == (
        f"{head}gcn:  # from a search\n  dropout: 0.25\n{tail}"
    )


def test_the_last_section(tmp_path: Path) -> None:
    got = replace_section(
        "schema: 1\nmlp:\n  lr: 1\n\n", "mlp", {"lr": 2}, "", tmp_path
    )
    assert got == "schema: 1\nmlp:\n  lr: 2\n\n"
    got = replace_section("schema: 1\nmlp: {lr: 1}", "gcn", {}, "", tmp_path)
    assert got == "schema: 1\nmlp: {lr: 1}\ngcn: {}\n"
    got = replace_section('"mlp": {lr: 1}\nschema: 1', "mlp", {"lr": 3}, "x", tmp_path)
    assert got == "mlp:  # x\n  lr: 3\nschema: 1\n"


def test_a_dataset_without_a_file(tmp_path: Path) -> None:
    config = best("gcn", dropout=0.5)
    write_preset("gcn", "karate", config, tmp_path)
    assert yaml.safe_load((tmp_path / "karate.yaml").read_text()) == {
        "schema": 1, "gcn": {"dropout": 0.5},
    }  # fmt: skip


def test_a_new_directory_starts_from_the_packages_file(tmp_path: Path) -> None:
    shipped = (package_presets() / "chameleon.yaml").read_text()
    common = yaml.safe_load(shipped)["common"]
    assert common["self_loops"] is False
    assert preset_source("chameleon", tmp_path) == package_presets()
    write_preset("sgc", "chameleon", best("sgc", order=3), tmp_path)
    assert preset_source("chameleon", tmp_path) == tmp_path
    text = (tmp_path / "chameleon.yaml").read_text()
    assert yaml.safe_load(text)["common"] == common
    # The default is written where what is common says otherwise.
    got = resolve_config("sgc", "chameleon", presets=tmp_path)
    assert as_plain(got) == best("sgc", order=3)
    assert (package_presets() / "chameleon.yaml").read_text() == shipped


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{schema: 1, gcn: {lr: 1}}", "expected one section below the other"),
        ("- 1", "expected sections"),
        ("gcn: [", "expected sections"),
        ("gcn: &a {lr: 1}\nmlp: *a", "gcn can't be replaced; edit it by hand"),
        ("gnc: {}", "unknown option 'gnc'"),
    ],
)
def test_files_that_can_not_be_edited(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "karate.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        write_preset("gcn", "karate", best("gcn", lr=0.5), tmp_path)
    assert str(path) in str(caught.value)
    assert path.read_text() == text


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--presets .*nowhere: not an existing"):
        check_presets(tmp_path / "nowhere")


def test_the_search_spaces_are_no_preset() -> None:
    assert (package_presets() / "search.yaml").is_file()
    assert preset("search", "gcn") == {}
