"""Files and directories that are whole or absent."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from elugcn.errors import InputError


@contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """Yield a temporary directory that becomes ``target`` when the block succeeds.

    An existing ``target`` that is not empty is never touched.
    """
    check_directory(target)
    target = target.resolve()  # "." has no name and is its own parent
    work = _work_for(target)
    with _system_errors(target):
        work.mkdir(parents=True)
    try:
        yield work
        if target.exists():
            target.rmdir()  # empty, as checked; fails rather than lose anything
        os.replace(work, target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``target`` when the block succeeds.

    A pipe or a device (``/dev/stdout``) is written to as it is.
    """
    check_file(target)
    if target.exists() and not target.is_file():
        yield target
        return
    target = target.resolve()  # a link stays a link
    work = _work_for(target)
    try:
        yield work
        os.replace(work, target)
    finally:
        work.unlink(missing_ok=True)


@contextmanager
def atomic_file(target: Path) -> Iterator[TextIO]:
    """Yield a text file that replaces ``target`` when the block succeeds."""
    with atomic_path(target) as work:
        with _system_errors(target):
            file = work.open("w", newline="", encoding="utf-8")
        with file:
            yield file


def check_file(target: Path) -> None:
    """Refuse a target that can't become a file, before any work is done."""
    with _system_errors(target):
        if target.is_dir():
            raise InputError(f"{target}: is a directory; expected a file")
        _check_name(target)
        if not _is_writable(target.parent):
            raise InputError(f"{target}: {target.parent} is not a writable directory")


def check_directory(target: Path) -> None:
    """Refuse a target that can't become a new directory, before any work is done."""
    with _system_errors(target):
        if target.is_dir() and any(target.iterdir()):
            raise InputError(f"{target}: exists and is not empty; choose another")
        _check_name(target.resolve())
        if not target.is_dir() and (target.exists() or target.is_symlink()):
            raise InputError(f"{target}: is a file; expected a new directory")
        above = next(path for path in target.resolve().parents if path.exists())
        if not _is_writable(above):
            raise InputError(f"{target}: {above} can't be written to")


def make_readable(path: Path) -> None:
    """Give a file the usual rights, where a library writes private ones."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _work_for(target: Path) -> Path:
    """Where a target is written before it takes its place; it has the same suffix."""
    return target.with_name(f".{uuid.uuid4().hex[:8]}.{target.name}")


def _check_name(target: Path) -> None:
    """Let the system say what it has against a name, such as its length."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(_work_for(target))


def _is_writable(directory: Path) -> bool:
    return directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)


@contextmanager
def _system_errors(target: Path) -> Iterator[None]:
    """What the system refuses, in one line that names the target."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}") from None
