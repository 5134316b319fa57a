"""Directories and files that are whole or absent."""

import os
import stat
from pathlib import Path

import pytest

from elugcn.atomic import (
    atomic_directory,
    atomic_file,
    atomic_path,
    check_directory,
)
from elugcn.errors import InputError


def test_a_directory_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "a/b/run"
    with atomic_directory(target) as work:
        (work / "x").write_text("1")
        assert not target.exists()
        assert work.parent == target.parent  # a rename never crosses file systems
    assert [p.name for p in target.parent.iterdir()] == ["run"]
    assert (target / "x").read_text() == "1"
    (tmp_path / "usual").mkdir()
    # As readable as any directory the user makes.
    mode = stat.S_IMODE(target.stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing(error: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(error), atomic_directory(tmp_path / "run") as work:  # noqa: PT012
        (work / "x").write_text("1")
        raise error
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "f").write_text("old")
    with pytest.raises(error), atomic_file(tmp_path / "f") as file:  # noqa: PT012
        file.write("new")
        raise error
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "old"


def test_what_came_in_between_is_not_lost(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with pytest.raises(OSError), atomic_directory(target):  # noqa: PT012
        target.mkdir()
        (target / "other").write_text("1")
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert (target / "other").read_text() == "1"


def test_an_empty_directory_is_filled_even_from_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    with atomic_directory(Path()) as work:
        (work / "x").write_text("1")
    assert (tmp_path / "run/x").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_places_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, message in (
        ("file", "is a file"),
        ("file/x", "can't be written"),
        ("file/x/y", "can't be written"),
        ("full", "not empty"),
        ("link", "is a file"),
        ("x" * 250, "too long"),  # the name itself would fit
    ):
        with pytest.raises(InputError, match=message):
            check_directory(tmp_path / name)
        with (
            pytest.raises(InputError, match=message),
            atomic_directory(tmp_path / name),
        ):
            pytest.fail("must be refused before anything is made")
    check_directory(tmp_path / "new/deep/place")
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_closed_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(InputError, match="can't be written"):
        check_directory(tmp_path / "closed/run")


def test_files(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a.csv") as file:
        file.write("ü\n")
        assert not (tmp_path / "a.csv").exists()
    assert (tmp_path / "a.csv").read_bytes() == "ü\n".encode()
    for path, message in (
        (tmp_path / "no/a.csv", "not a writable directory"),
        (tmp_path / "a.csv/b.csv", "not a writable directory"),
        (tmp_path, "is a directory"),
        (Path(), "is a directory"),
        (tmp_path / ("x" * 250), "File name too long"),
    ):
        with pytest.raises(InputError, match=message), atomic_file(path):
            pytest.fail("must be refused before anything is made")


def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_file(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_devices_are_written_to_and_never_replaced() -> None:
    with atomic_path(Path(os.devnull)) as work:
        assert work == Path(os.devnull)
        work.write_text("x")
    assert Path(os.devnull).is_char_device()


def test_what_can_not_be_opened_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "open", refuse)
    says = r".*f: No such file"
    with pytest.raises(InputError, match=says), atomic_file(tmp_path / "f"):
        pass
