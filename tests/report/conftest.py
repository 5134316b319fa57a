import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.core.utilization import definition_one
from elugcn.fitting import Fitted
from elugcn.methods.base import Prediction
from elugcn.methods.elu_config import ELUGCNConfig

Maker = Callable[..., Fitted]


@pytest.fixture
def six() -> Fitted:
    """Six nodes in a row, worked by hand: what each is, what is predicted for it."""
    source, target = torch.arange(5), torch.arange(1, 6)
    edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    data = Data(
        x=torch.eye(6),
        edge_index=edges,
        y=torch.tensor([0, 0, 0, 1, 1, -1]),
        train_mask=torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.bool),
        val_mask=torch.tensor([0, 1, 0, 0, 0, 0], dtype=torch.bool),
        test_mask=torch.tensor([0, 0, 1, 1, 0, 0], dtype=torch.bool),
        class_names=["left", "right"],
        directed=False,
    )
    data.num_nodes = 6
    p = torch.tensor([[9, 1], [8, 2], [7, 3], [6, 4], [1, 9], [5.5, 4.5]]) / 10
    use = definition_one(
        torch.tensor([0, 0, 0, 1, 1, -1]), torch.tensor([0, 0, 1, 1, 1, 0])
    )
    return Fitted(
        method="elu-gcn",
        config=ELUGCNConfig(),
        seed=0,
        data=data,
        prediction=Prediction(logits=p.log(), utilization=use),
        classes=np.arange(2),
        threads=1,
        device="cpu",
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of a run that the page reads besides the model."""
    write_facts(tmp_path)
    return tmp_path


def write_facts(folder: Path, **metrics: Any) -> None:
    """A run's records; ``metrics`` adds to or replaces those of the run."""
    usual = {"dataset": "six", "n_edges": 5, "notes": ["a <note>"]}
    (folder / "metrics.json").write_text(json.dumps(usual | metrics))
    (folder / "config.yaml").write_text("schema: 1\noptions: {lr: 0.01}\n")
    facts = {"python": "3.11", "packages": {"torch": "2.13"}, "cuda": False}
    (folder / "environment.json").write_text(json.dumps(facts | {"commit": None}))
