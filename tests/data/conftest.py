import os
from pathlib import Path

import pytest

_BESIDE_REPO = Path(__file__).resolve().parents[3] / "shared" / "data"
# Read now: the tests that ask for `cache` run without the variable.
_PLACES = [Path(os.environ.get("ELUGCN_DATA") or _BESIDE_REPO), _BESIDE_REPO]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The published raw files, where this computer has them."""
    for path in _PLACES:
        if path.is_dir():
            return path
    pytest.skip("no raw datasets: set ELUGCN_DATA to a directory that has them")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own, and no data directory from the environment."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ELUGCN_CACHE", str(path))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    return path
