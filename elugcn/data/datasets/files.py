"""Files of datasets: found on this computer, or downloaded once into the cache.

A file is looked for in ``data_dir``, then in $ELUGCN_DATA, then in the cache
($ELUGCN_CACHE, else the user's cache directory), as ``folder/file`` (for example
``planetoid/ind.cora.x``) or as plain ``file``. Only the cache is written to. Every file
is compared with its published SHA-256 before it is used. $ELUGCN_MIRROR is the address
of a server that has all files as ``folder/file``, to download from instead.
"""

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pooch  # type: ignore[import-untyped]
import requests

from elugcn.atomic import make_readable
from elugcn.errors import InputError

# Seconds without a byte before a download is given up.
_TIMEOUT = 30.0
# In the registry: the sum is over the arrays of an archive, not over its bytes.
_ARRAYS = "arrays:"

# Files that this process has checked: (path, time of change, size).
_verified: set[tuple[str, int, int]] = set()


def cache_dir() -> Path:
    """Where downloads are kept: $ELUGCN_CACHE, else the user's cache directory."""
    if override := os.environ.get("ELUGCN_CACHE"):
        return Path(override).expanduser()
    return Path(platformdirs.user_cache_dir("elugcn")) / "datasets"


def locate(relative: str, data_dir: str | Path | None = None) -> Path | None:
    """The first place that has the file ``folder/file``, unchecked, or None."""
    places = []
    given = {"data_dir": data_dir, "$ELUGCN_DATA": os.environ.get("ELUGCN_DATA")}
    for origin, value in given.items():
        if value:
            places.append(Path(value).expanduser())
            if not os.path.isdir(places[-1]):
                raise InputError(f"{origin}={places[-1]}: directory not found")
    for directory in (*places, cache_dir()):
        for path in (directory / relative, directory / Path(relative).name):
            if os.path.isfile(path):  # false, not an error, where access is denied
                return path
    return None


def find_file(
    relative: str, data_dir: str | Path | None = None, download: bool = True
) -> Path:
    """A checked file of a dataset, downloaded into the cache if it is missing."""
    known = registry()
    if (path := locate(relative, data_dir)) is not None:
        if relative in known.registry:
            _verify(relative, path)
        return path
    where = f"{cache_dir() / relative} or in a data directory (data_dir, $ELUGCN_DATA)"
    if relative not in known.urls:
        raise InputError(
            f"{relative}: file not found, and no public download is known; put it at "
            f"{where}"
        )
    try:
        if not download:
            raise OSError("download=False")
        return _download(relative)
    except (OSError, ValueError, requests.RequestException) as error:
        raise InputError(
            f"{relative}: file not found and not downloaded ({_reason(error)}); get it "
            f"from {known.urls[relative]} and put it at {where}"
        ) from None


@contextlib.contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Turn every error in the block into an InputError that names the file.

    A right checksum does not make reading safe: the file may change afterwards.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # zipfile, pickle, scipy, ... each raise their own
        raise InputError(f"{path}: {expected} ({_reason(error)})") from error


@contextlib.contextmanager
def read_arrays(path: Path, expected: str) -> Iterator[Any]:
    """Open an .npz archive, with the errors of ``reading``."""
    with reading(path, expected), np.load(path, allow_pickle=False) as archive:
        yield archive


def registry() -> Any:
    """Names, sums and addresses of all published files, as pooch keeps them."""
    made = pooch.create(cache_dir(), base_url="")
    with (files("elugcn") / "data_files" / "datasets.sha256").open() as file:
        made.load_registry(file)
    if mirror := os.environ.get("ELUGCN_MIRROR"):
        made.urls = {name: f"{mirror.rstrip('/')}/{name}" for name in made.urls}
    return made


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _is_published(relative: str, path: Path) -> bool:
    known = registry().registry[relative]
    if known.startswith(_ARRAYS):
        return bool(known == _ARRAYS + _arrays_sha256(path))
    return bool(known == pooch.file_hash(str(path)))


def _arrays_sha256(path: Path) -> str:
    """SHA-256 over the arrays of an .npz archive, however it is compressed.

    For each array in the order of the names: name, dtype and shape as a line of text,
    then its bytes in C order.
    """
    digest = hashlib.sha256()
    with read_arrays(path, "not an archive of arrays") as archive:
        for name in sorted(archive.files):
            array = archive[name]
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _verify(relative: str, path: Path) -> None:
    try:
        status = path.stat()
        key = (str(path.resolve()), status.st_mtime_ns, status.st_size)
        intact = key in _verified or _is_published(relative, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except InputError:
        intact = False
    if not intact:
        origin = registry().urls.get(relative, "its source")
        raise InputError(
            f"{path}: truncated or altered, not the file published at {origin} "
            "(SHA-256); delete it to download it again"
        )
    _verified.add(key)


def _download(relative: str) -> Path:
    """Fetch a file to a temporary name, check it, then rename it."""
    if not sys.stderr.isatty():
        pooch.get_logger().setLevel("WARNING")
    source = registry()
    source.registry[relative] = None  # checked below: pooch knows no sums over arrays

    def checked(url: str, path: str, _: Any) -> None:
        pooch.HTTPDownloader(timeout=_TIMEOUT)(url, path, source)
        if not _is_published(relative, Path(path)):
            raise ValueError("the download is not the published file (SHA-256)")

    path = Path(source.fetch(relative, downloader=checked))
    make_readable(path)
    return path
