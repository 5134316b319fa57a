"""Find a dataset's files on this computer, or fetch them once into the user's cache.

A file is looked for in the directory the caller names, then in $ELUGCN_DATA, then in
the cache ($ELUGCN_CACHE, else the user's cache directory). Each may hold it as
`folder/file` (for example `planetoid/ind.cora.x`) or as plain `file`. Only the cache
is ever written to. Whatever is found is checked against the published contents before
it is used: a truncated download would otherwise train quietly on half a graph.
"""

import contextlib
import http.client
import os
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import platformdirs
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from elugcn.data.datasets.checksums import expected_sha256, sha256_of
from elugcn.errors import InputError

_GITHUB = "https://raw.githubusercontent.com"

# Where each folder of a data directory comes from.
URL_BASES: dict[str, str] = {
    "planetoid": f"{_GITHUB}/kimiyoung/planetoid/master/data",
    "amazon": f"{_GITHUB}/shchur/gnn-benchmark/master/data/npz",
    "wikipedia": f"{_GITHUB}/yandex-research/heterophilous-graphs/main/data",
    "facebook100": f"{_GITHUB}/sisaman/pyg-datasets/main/datasets/facebook100",
}

TIMEOUT = 30.0  # seconds without a byte before a download is given up
_CHUNK = 1 << 16

# Files already checked by this process: (path, mtime in ns, size).
_verified: set[tuple[str, int, int]] = set()


def cache_dir() -> Path:
    """Where downloads are kept: $ELUGCN_CACHE, else the user's cache directory."""
    override = os.environ.get("ELUGCN_CACHE")
    if override:
        return Path(override).expanduser()
    return Path(platformdirs.user_cache_dir("elugcn")) / "datasets"


def search_dirs(data_dir: str | Path | None = None) -> list[Path]:
    """The directories that are searched, first to last.

    Raises:
        InputError: `data_dir` or $ELUGCN_DATA is given and is not a directory.
    """
    dirs: list[Path] = []
    environment = os.environ.get("ELUGCN_DATA")
    for origin, value in (("data_dir", data_dir), ("$ELUGCN_DATA", environment)):
        if value is None or value == "":
            continue
        path = Path(value).expanduser()
        if not os.path.isdir(path):
            raise InputError(f"{origin}: {path} is not an existing directory")
        dirs.append(path)
    return [*dirs, cache_dir()]


def locate(relative: str, data_dir: str | Path | None = None) -> Path | None:
    """The first place that has the file, unchecked; None if no place has.

    Args:
        relative: `folder/file`, as in `planetoid/ind.cora.x`.
        data_dir: directory to look in first.
    """
    name = relative.rsplit("/", 1)[-1]
    for directory in search_dirs(data_dir):
        for path in (directory / relative, directory / name):
            if os.path.isfile(path):  # false, not an error, where access is denied
                return path
    return None


def find_file(
    relative: str, data_dir: str | Path | None = None, download: bool = True
) -> Path:
    """A checked file of a dataset, downloaded into the cache if it is nowhere.

    Args:
        relative: `folder/file`, as in `planetoid/ind.cora.x`.
        data_dir: directory to look in first.
        download: fetch the file if no directory has it.

    Raises:
        InputError: the file is nowhere and cannot be fetched, or its contents are not
            the published ones.
    """
    path = locate(relative, data_dir)
    if path is not None:
        _verify(relative, path)
        return path
    target = cache_dir() / relative
    if expected_sha256(relative) is None:
        raise InputError(
            f"{relative} is missing and no public download of it is known: put it at "
            f"{target} or in a data directory (data_dir or $ELUGCN_DATA)"
        )
    if not download:
        raise _missing(relative, "is missing and downloading is off")
    _download(relative, target)
    return target


@contextlib.contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Turn whatever goes wrong in the block into an InputError that names the file.

    A checksum does not make reading safe: it is taken once per process, and the file
    may change afterwards.

    Args:
        path: the file that is read in the block.
        expected: what it should be; the reason follows in brackets.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # zipfile, pickle, scipy, ... each raise their own
        raise InputError(f"{path}: {expected} ({_reason(error)})") from error


def url_of(relative: str) -> str:
    """Where a file is published."""
    folder, name = relative.rsplit("/", 1)
    return f"{URL_BASES[folder]}/{name}"


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _missing(relative: str, problem: str) -> InputError:
    target = cache_dir() / relative
    return InputError(
        f"{relative} {problem}: get it from {url_of(relative)} and put it at {target} "
        "or in a data directory (data_dir or $ELUGCN_DATA)"
    )


def _verify(relative: str, path: Path) -> None:
    expected = expected_sha256(relative)
    if expected is None:
        return
    try:
        status = path.stat()
        key = (str(path.resolve()), status.st_mtime_ns, status.st_size)
        if key in _verified:
            return
        intact = sha256_of(relative, path) == expected
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError:
        intact = False
    if not intact:
        raise InputError(
            f"{path}: truncated or altered, its contents are not those published at "
            f"{url_of(relative)} (SHA-256 {expected[:12]}…); delete it to fetch it anew"
        )
    _verified.add(key)


def _download(relative: str, target: Path) -> None:
    """Fetch to a temporary name beside the target, check, then rename.

    The rename is atomic, so another process sees a complete file or none; the
    temporary file goes away whatever happens, an interrupt included.
    """
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            _fetch(relative, file)
        if sha256_of(relative, temporary) != expected_sha256(relative):
            raise ValueError("checksum")
        # mkstemp makes the file private; a cache may be shared by a group.
        temporary.chmod(0o644)
        os.replace(temporary, target)
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        raise _missing(
            relative, f"is missing and could not be downloaded ({_reason(error)})"
        ) from None  # the reason is said; its traceback says nothing of the user's
    except ValueError:
        raise _missing(
            relative,
            "is missing and what was downloaded is not the published file (SHA-256)",
        ) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _fetch(relative: str, file: IO[bytes]) -> None:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with (
        urllib.request.urlopen(url_of(relative), timeout=TIMEOUT) as response,
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
    ):
        length = response.headers.get("Content-Length")
        total = int(length) if length is not None else None
        task = progress.add_task(relative, total=total)
        received = 0
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            received += len(chunk)
            progress.update(task, completed=received)
    if total is not None and received != total:
        raise OSError(f"{received} of {total} bytes arrived")
