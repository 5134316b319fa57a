import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.data import Data

from elugcn.data.tables import load_tables
from elugcn.data.validation import check_data

# Five nodes with every kind of column, worked by hand in test_tables.
NODES = """id,label,split,age,member,colour
007,10,train,1.5,true,red
b,9,train,2,false,blue
c,,,3,true,
d,10,Valid,4,false,red
e,9,test,-5,true,blue
"""
EDGES = """source,target,weight
007,b,1
b,007,1
c,b,2.5
c,c,1
d,e,1
d,e,3
"""
FRACTIONS = ("val_fraction", "test_fraction", "seed")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own, and no data directory from the environment."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ELUGCN_CACHE", str(path))
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    return path


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Data]:
    """Write two texts to files and load them; alerts are silenced."""

    def loader(
        nodes: str | bytes = NODES,
        edges: str | bytes = EDGES,
        checked: bool = True,
        **options: Any,
    ) -> Data:
        for name, text in (("nodes", nodes), ("edges", edges)):
            raw = text if isinstance(text, bytes) else text.encode()
            (tmp_path / f"{name}.csv").write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks = {k: options.pop(k) for k in FRACTIONS if k in options}
            data = load_tables(
                tmp_path / "nodes.csv", tmp_path / "edges.csv", **options
            )
            if not checked:
                return data
            checks["require_labels"] = "schema" not in options
            graph = check_data(data, **checks)
            graph.data.notes = list(graph.notes)
            return graph.data

    return loader
