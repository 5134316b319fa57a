"""A directory that is whole or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from elugcn.errors import InputError


@contextmanager
def whole_directory(target: Path) -> Iterator[Path]:
    """Yield a temporary directory that becomes ``target`` when the block succeeds.

    An existing ``target`` that is not empty is never touched.
    """
    check_writable(target)
    target = target.resolve()  # "." has no name and is its own parent
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"--out {target}: can't be made ({error.strerror})") from None
    try:
        yield work
        if target.exists():
            target.rmdir()  # empty, as checked; fails rather than lose anything
        # mkdtemp makes private directories; a result is as readable as any other.
        work.chmod(0o777 & ~_umask())
        os.replace(work, target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


@contextmanager
def whole_file(target: Path) -> Iterator[TextIO]:
    """Yield a text file that replaces ``target`` when the block succeeds."""
    with whole_path(target) as work:
        try:
            file = work.open("w", newline="", encoding="utf-8")
        except OSError as error:
            raise InputError(f"--out {target}: {error.strerror}") from None
        with file:
            yield file


@contextmanager
def whole_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``target`` when the block succeeds.

    What is there and is no file (a pipe, ``/dev/stdout``) is written to as it is.
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


def check_file(target: Path) -> None:
    """Refuse a target that can't become a file, before any work is done."""
    try:
        # First: "." and "/" are directories, and have no name to look at.
        if target.is_dir():
            raise InputError(f"--out {target}: is a directory; expected a file")
        _check_name(_work_for(target))
        _check_file(target)
    except OSError as error:
        raise InputError(f"--out {target}: {error.strerror}") from None


def _check_name(path: Path) -> None:
    """Let the system say what it has against a name, such as its length."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)


def _work_for(target: Path) -> Path:
    """Where a file is written before it takes its place."""
    return target.with_name(f".{os.getpid()}.{target.name}")


def _check_file(target: Path) -> None:
    parent = target.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"--out {target}: {parent} is not a writable directory")


def make_readable(path: Path) -> None:
    """Give a file the usual rights, where a library writes private ones."""
    path.chmod(0o666 & ~_umask())


def check_writable(target: Path) -> None:
    """Refuse a target that can't become a new directory, before any work is done."""
    try:
        _check_new(target)
    except OSError as error:  # too long a name, a directory that can't be read
        raise InputError(f"--out {target}: {error.strerror}") from None


def _check_new(target: Path) -> None:
    if target.is_dir() and any(target.iterdir()):
        raise InputError(f"--out {target}: exists and is not empty; choose another")
    place = target.resolve()
    _check_name(place.with_name(f".{place.name}.{8 * 'x'}"))  # as mkdtemp will
    if not target.is_dir() and (target.exists() or target.is_symlink()):
        raise InputError(f"--out {target}: is a file; expected a new directory")
    parent = target.resolve().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"--out {target}: {parent} can't be written to")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
