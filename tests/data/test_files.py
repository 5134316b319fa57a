"""Finding, checking and downloading files, against a server on this computer."""

import hashlib
import os
import pickle
import shutil
import socket
import threading
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from elugcn.data.datasets import dataset_info, files, load_dataset
from elugcn.data.datasets.files import find_file, registry
from elugcn.data.datasets.unpickle import load_pickle
from elugcn.errors import InputError

CONTENT = b"the published bytes\n" * 2_000
TINY = "planetoid/ind.tiny.x"
PHOTO = "amazon/amazon_electronics_photo.npz"


class Server:
    """Answers every request with `body`, announcing `length` bytes."""

    def __init__(self) -> None:
        self.status, self.body, self.length = 200, CONTENT, len(CONTENT)
        self.paths: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.paths.append(self.path)
                self.send_response(server.status)
                self.send_header("Content-Length", str(server.length))
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.http.server_port}"
        run = self.http.serve_forever
        self.thread = threading.Thread(target=run, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A mirror on this computer that also publishes a tiny file."""
    server = Server()
    published = files.registry

    def with_tiny() -> Any:
        made = published()
        made.registry[TINY] = hashlib.sha256(CONTENT).hexdigest()
        made.urls[TINY] = f"{os.environ['ELUGCN_MIRROR'].rstrip('/')}/{TINY}"
        return made

    monkeypatch.setattr(files, "registry", with_tiny)
    monkeypatch.setenv("ELUGCN_MIRROR", f"{server.base}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.close()


def everything_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def refused(relative: str = TINY, **arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        find_file(relative, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


# Downloads


def test_download_goes_to_the_cache_once(
    server: Server, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = find_file(TINY)
    assert path == cache / TINY
    assert path.read_bytes() == CONTENT
    assert find_file(TINY, download=False) == path
    assert server.paths == [f"/{TINY}"]
    assert everything_in(cache) == [path]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert capfd.readouterr() == ("", "")  # progress is for terminals only


@pytest.mark.parametrize(
    ("body", "length", "status", "message"),
    [
        (b"X" + CONTENT[1:], len(CONTENT), 200, "is not the published file"),
        (b"", 0, 200, "the download is not the published file"),
        (CONTENT[:1000], len(CONTENT), 200, "not downloaded"),
        (CONTENT, len(CONTENT), 404, "404"),
    ],
    ids=["bit", "empty", "truncated", "missing"],
)
def test_bad_downloads_leave_nothing(
    body: bytes, length: int, status: int, message: str, server: Server, cache: Path
) -> None:
    server.body, server.status, server.length = body, status, length
    told = refused()
    assert message in told
    assert told.startswith(f"{TINY}: file not found and not downloaded (")
    assert f"get it from {server.base}/{TINY} and put it at {cache / TINY}" in told
    assert everything_in(cache) == []


def test_servers_that_do_not_answer(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("ELUGCN_MIRROR", f"http://127.0.0.1:{port}")
        assert "timed out" in refused()
    assert "not downloaded" in refused()  # nobody listens there any more
    assert everything_in(cache) == []
    shutil.rmtree(cache)
    cache.write_text("a file where the directory should be")
    assert "not downloaded" in refused()


def test_download_off(server: Server, cache: Path) -> None:
    assert "not downloaded (download=False)" in refused(download=False)
    assert server.paths == []
    assert not cache.exists()
    # What was made from published files is not downloaded.
    assert "no public download is known" in refused("development/acm.npz")


# Places


def test_order_of_the_places(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, environment = tmp_path / "named", tmp_path / "environment"
    monkeypatch.setenv("ELUGCN_DATA", str(environment))
    directories = (named, environment, cache)
    places = [d / file for d in directories for file in (TINY, "ind.tiny.x")]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)
    for path in places:
        assert find_file(TINY, named) == path
        path.unlink()
    assert find_file(TINY, named) == cache / TINY
    assert len(server.paths) == 1
    nowhere = tmp_path / "nowhere"
    told = refused(data_dir=nowhere)
    assert told == f"data_dir={nowhere}: directory not found"
    monkeypatch.setenv("ELUGCN_DATA", str(nowhere))
    assert refused() == f"$ELUGCN_DATA={nowhere}: directory not found"


# Sums


def test_published_sums_fit_the_real_files(data_dir: Path, cache: Path) -> None:
    known = registry()
    for relative in known.registry:
        if (data_dir / relative).is_file():
            assert find_file(relative, data_dir, download=False) == data_dir / relative
    assert len(known.urls) == 34
    assert all(
        url.startswith("https://raw.githubusercontent.com/")
        for url in known.urls.values()
    )


def test_a_file_is_checked_again_when_it_changes(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ind.tiny.x"
    path.write_bytes(CONTENT)
    checked: list[Any] = []
    is_published = files._is_published
    monkeypatch.setattr(
        files, "_is_published", lambda *a: checked.append(a) or is_published(*a)
    )
    for _ in range(3):
        find_file(TINY, tmp_path)
    assert checked == [(TINY, path)]
    path.write_bytes(CONTENT[:-1])
    message = refused(data_dir=tmp_path)
    assert message.startswith(f"{path}: truncated or altered, not the file published")
    assert server.paths == []  # never silently replaced
    assert path.read_bytes() == CONTENT[:-1]


def test_amazon_archives_are_checked_by_their_arrays(
    data_dir: Path, tmp_path: Path, cache: Path
) -> None:
    with np.load(data_dir / PHOTO) as archive:
        arrays = dict(archive)
    path = tmp_path / "amazon_electronics_photo.npz"
    np.savez(path, **arrays)  # not compressed: other bytes, the same arrays
    assert path.read_bytes() != (data_dir / PHOTO).read_bytes()
    assert find_file(PHOTO, tmp_path) == path
    labels = arrays["labels"].copy()
    labels[0] += 1
    for wrong in (labels, np.array([object()])):
        np.savez(path, **{**arrays, "labels": wrong})
        assert "truncated or altered" in refused(PHOTO, data_dir=tmp_path)
    path.write_bytes((data_dir / PHOTO).read_bytes()[:100_000])
    assert "truncated or altered" in refused(PHOTO, data_dir=tmp_path)


# Files that change after they were checked: the sum was right, the contents are not


@pytest.mark.parametrize(
    ("name", "part", "message"),
    [
        ("cora", "test.index", "expected one number per line"),
        ("cora", ".graph", "not a Planetoid pickle"),
        ("photo", ".npz", "expected adj_"),
        ("chameleon", ".npz", "expected node_features"),
        ("acm", ".npz", "expected x_"),
        ("caltech36", ".mat", "not a Facebook100"),
    ],
)
def test_damage_behind_a_right_sum_is_named(
    name: str, part: str, message: str, data_dir: Path, tmp_path: Path, cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(files, "_verify", lambda *_: None)
    for relative in dataset_info(name).files:
        (tmp_path / Path(relative).name).symlink_to(data_dir / relative)
    (path,) = tmp_path.glob(f"*{part}")
    path.unlink()
    contents = [b"x" * 1000]
    if part == ".npz":  # an archive of other arrays
        np.savez(tmp_path / "other.npz", other=np.zeros(9))
        contents.append((tmp_path / "other.npz").read_bytes())
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_dataset(name, data_dir=tmp_path, download=False)
        assert str(caught.value).startswith(f"{path}: {message}")
        assert "\n" not in str(caught.value)


# Pickles: Planetoid files are read, and nothing else is run


@pytest.mark.parametrize(
    "asked",
    ["os.system", "__builtin__.eval", "builtins.getattr", "numpy.load",
     "scipy.sparse.csr.np", "elugcn.data.datasets.unpickle.pickle"],
)  # fmt: skip
def test_other_names_are_refused_without_running(asked: str, tmp_path: Path) -> None:
    proof, path = tmp_path / "proof", tmp_path / "ind.cora.x"
    module, _, name = asked.rpartition(".")
    # Protocol 0: call module.name(argument) when loaded.
    path.write_bytes(f"c{module}\n{name}\n(S'touch {proof}'\ntR.".encode())
    with pytest.raises(InputError) as caught:
        load_pickle(path)
    wanted = f"{path}: not a Planetoid pickle (it asks for {asked}, which is refused)"
    assert str(caught.value) == wanted
    assert not proof.exists()


def test_modern_pickles_cannot_reach_further(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str, ...]]:
            return eval, (f"open({str(tmp_path / 'proof')!r}, 'w')",)

    path = tmp_path / "ind.cora.graph"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps({0: [Hostile()]}, protocol=protocol))
        with pytest.raises(InputError, match=r"it asks for .*eval, which is refused"):
            load_pickle(path)
    assert not (tmp_path / "proof").exists()


def test_the_class_of_sparse_matrices_cannot_be_altered(tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.x"
    # BUILD on the class itself: would set csr_matrix.toarray = 'x' if restored plainly.
    state = b"(N(dS'toarray'\nS'x'\nst"
    path.write_bytes(b"cscipy.sparse.csr\ncsr_matrix\n" + state + b"b.")
    with pytest.raises(InputError, match="not a Planetoid pickle"):
        load_pickle(path)
    assert csr_matrix(np.eye(2)).toarray().tolist() == [[1, 0], [0, 1]]


def test_real_pickles(data_dir: Path, tmp_path: Path, strict: None) -> None:
    x, y, graph = (
        load_pickle(data_dir / f"planetoid/ind.cora.{part}")
        for part in ("x", "y", "graph")
    )
    assert x.shape == (140, 1433)
    assert set(x.data) == {1.0}
    assert y.sum(axis=1).tolist() == [1] * 140
    assert type(graph) is defaultdict
    assert graph[0] == [633, 1862, 2582]
    raw = (data_dir / "planetoid/ind.cora.x").read_bytes()
    path = tmp_path / "ind.cora.x"
    spoiled = [raw.replace(word, word[::-1]) for word in (b"indices", b"_shape")]
    for content in (*spoiled, *(raw[: int(p * len(raw))] for p in (0, 0.1, 0.999))):
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a Planetoid pickle") as caught:
            load_pickle(path)
        assert "\n" not in str(caught.value)


def test_a_small_pickle_cannot_ask_for_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.x"
    path.write_bytes(b"\x80\x02Nr\xff\xff\xff\x03.")  # entry 2**26 of the memo
    tracemalloc.start()
    load_pickle(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
