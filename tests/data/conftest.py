from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own, and no data directory from the environment."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ELUGCN_CACHE", str(path))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    return path
