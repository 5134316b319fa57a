"""Finding, checking and downloading files, against a server on this computer."""

import hashlib
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from elugcn.data import checksums, files
from elugcn.data.datasets import load_dataset
from elugcn.data.files import cache_dir, find_file, url_of
from elugcn.errors import InputError

CONTENT = b"the published bytes\n" * 20_000
RELATIVE = "planetoid/ind.tiny.x"


class Server:
    """Answers every request with `body`, announcing `length` bytes."""

    def __init__(self) -> None:
        self.status = 200
        self.body = CONTENT
        self.length = len(CONTENT)
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
        self.thread = threading.Thread(
            target=self.http.serve_forever, args=(0.02,), daemon=True
        )
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server for the planetoid and amazon folders, which publish a tiny file."""
    server = Server()
    for folder in ("planetoid", "amazon"):
        monkeypatch.setitem(files.URL_BASES, folder, f"{server.base}/{folder}")
    sums = {**checksums.FILE_SHA256, RELATIVE: hashlib.sha256(CONTENT).hexdigest()}
    monkeypatch.setattr(checksums, "FILE_SHA256", sums)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.close()


def everything_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def refused(relative: str = RELATIVE, **arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        find_file(relative, **arguments)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_download_goes_to_the_cache_once(
    server: Server, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = find_file(RELATIVE)
    assert path == cache / RELATIVE
    assert path.read_bytes() == CONTENT
    assert find_file(RELATIVE, download=False) == path
    assert server.paths == ["/planetoid/ind.tiny.x"]
    assert everything_in(cache) == [path]
    assert capfd.readouterr() == ("", "")  # the bar is for terminals only


def test_progress_is_shown_on_a_terminal(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes stderr for a terminal
    monkeypatch.setenv("TERM", "xterm")  # a dumb one shows no bars
    find_file(RELATIVE)
    out, err = capfd.readouterr()
    assert out == ""
    assert "ind.tiny.x" in err


@pytest.mark.parametrize(
    "body", [b"X" + CONTENT[1:], CONTENT + b"more", b""], ids=["bit", "longer", "empty"]
)
def test_tampered_download_is_refused(body: bytes, server: Server, cache: Path) -> None:
    server.body, server.length = body, len(body)
    message = refused()
    assert "is not the published file" in message
    assert url_of(RELATIVE) in message
    assert str(cache / RELATIVE) in message
    assert everything_in(cache) == []


def test_truncated_download_is_refused(server: Server, cache: Path) -> None:
    server.body = CONTENT[:1000]
    message = refused()
    assert f"could not be downloaded (1000 of {len(CONTENT)} bytes arrived)" in message
    assert everything_in(cache) == []


@pytest.mark.parametrize("status", [404, 500])
def test_http_errors_say_where_to_put_the_file(
    status: int, server: Server, cache: Path
) -> None:
    server.status = status
    message = refused()
    assert str(status) in message
    assert message.startswith(f"{RELATIVE} is missing")
    assert f"get it from {url_of(RELATIVE)} and put it at {cache / RELATIVE}" in message
    assert everything_in(cache) == []


def test_refused_connection(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        port = taken.getsockname()[1]
        monkeypatch.setitem(files.URL_BASES, "planetoid", f"http://127.0.0.1:{port}")
        message = refused()
    assert "could not be downloaded" in message
    assert str(cache / RELATIVE) in message
    assert everything_in(cache) == []


def test_silent_server_times_out(
    cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setitem(files.URL_BASES, "planetoid", f"http://127.0.0.1:{port}")
        assert "timed out" in refused()
    assert everything_in(cache) == []


def test_interrupted_download_leaves_nothing(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "sha256_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        find_file(RELATIVE)
    assert everything_in(cache) == []


def test_cache_that_cannot_be_made(server: Server, cache: Path) -> None:
    cache.write_text("a file where the directory should be")
    assert "could not be downloaded" in refused()


def test_download_off(server: Server, cache: Path) -> None:
    message = refused(download=False)
    assert "is missing and downloading is off" in message
    assert url_of(RELATIVE) in message
    assert server.paths == []
    assert not cache.exists()


def test_order_of_the_places(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, environment = tmp_path / "named", tmp_path / "environment"
    monkeypatch.setenv("ELUGCN_DATA", str(environment))
    places = [named / RELATIVE, named / "ind.tiny.x"]
    places += [environment / RELATIVE, environment / "ind.tiny.x"]
    places += [cache / RELATIVE, cache / "ind.tiny.x"]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)
    for path in places:
        assert find_file(RELATIVE, named) == path
        path.unlink()
    assert find_file(RELATIVE, named) == cache / RELATIVE
    assert len(server.paths) == 1


def test_directories_that_do_not_exist_are_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "nowhere"
    expected = f"{nowhere} is not an existing directory"
    assert refused(data_dir=nowhere) == f"data_dir: {expected}"
    a_file = tmp_path / "file"
    a_file.touch()
    assert refused(data_dir=a_file).startswith(f"data_dir: {a_file} is not")
    monkeypatch.setenv("ELUGCN_DATA", str(nowhere))
    assert refused() == f"$ELUGCN_DATA: {expected}"


def test_default_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELUGCN_CACHE", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: f"base/{name}")
    assert cache_dir() == Path("base/elugcn/datasets")


def test_damaged_file_on_disk_is_named(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "ind.tiny.x"
    path.write_bytes(CONTENT[:-1])
    message = refused(data_dir=tmp_path)
    assert message.startswith(f"{path}: truncated or altered")
    assert server.paths == []  # never silently replaced
    assert path.read_bytes() == CONTENT[:-1]


def test_a_file_is_checked_again_when_it_changes(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ind.tiny.x"
    path.write_bytes(CONTENT)
    checked: list[Path] = []

    def count(relative: str, path: Path) -> str:
        checked.append(path)
        return checksums.sha256_of(relative, path)

    monkeypatch.setattr(files, "sha256_of", count)
    for _ in range(3):
        find_file(RELATIVE, tmp_path)
    assert len(checked) == 1
    path.write_bytes(b"X" + CONTENT[1:])
    os.utime(path, ns=(1, 1))
    assert "truncated or altered" in refused(data_dir=tmp_path)


def test_published_sums_fit_the_real_files(data_dir: Path, cache: Path) -> None:
    every = [*checksums.FILE_SHA256, *checksums.ARRAYS_SHA256]
    assert len(every) == 38
    for relative in every:
        assert find_file(relative, data_dir, download=False) == data_dir / relative
        assert url_of(relative).startswith("https://raw.githubusercontent.com/")


def test_amazon_archives_are_checked_by_their_arrays(
    data_dir: Path, tmp_path: Path, server: Server
) -> None:
    relative = "amazon/amazon_electronics_photo.npz"
    with np.load(data_dir / relative) as archive:
        arrays = dict(archive)
    path = tmp_path / "amazon_electronics_photo.npz"
    np.savez(path, **arrays)  # not compressed: other bytes, the same arrays
    assert path.read_bytes() != (data_dir / relative).read_bytes()
    assert find_file(relative, tmp_path) == path

    arrays["labels"][0] += 1
    np.savez(path, **arrays)
    assert "truncated or altered" in refused(relative, data_dir=tmp_path)
    arrays["labels"] = np.array([object()])
    np.savez(path, **arrays)
    assert "truncated or altered" in refused(relative, data_dir=tmp_path)
    shutil.copyfile(data_dir / relative, path)
    with path.open("r+b") as file:
        file.truncate(100_000)
    assert "truncated or altered" in refused(relative, data_dir=tmp_path)

    server.body = (data_dir / relative).read_bytes()
    server.length = len(server.body)
    assert find_file(relative).read_bytes() == server.body


def test_a_dataset_is_downloaded_and_loaded(
    data_dir: Path, server: Server, cache: Path
) -> None:
    server.body = (data_dir / "amazon/amazon_electronics_photo.npz").read_bytes()
    server.length = len(server.body)
    assert load_dataset("photo").num_nodes == 7487
    assert load_dataset("photo", download=False).num_nodes == 7487
    assert len(server.paths) == 1
