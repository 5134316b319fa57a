import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch

# The package reads these when it is imported. Conftest files of its parts import it
# before pytest has read its options.
_options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
_options.add_argument("--engine", default=os.environ.get("ELUGCN_ENGINE", "fast"))
os.environ["ELUGCN_ENGINE"] = _options.parse_known_args()[0].engine
# The reference fills what an operation consumes with NaN: nobody may read it again.
os.environ["ELUGCN_CHECK_CONSUMED"] = "1"

# The graphs are small: a second thread gains nothing, and on a busy machine the two
# wait for each other.
torch.set_num_threads(1)
# A busy machine is no reason to fail.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

_BESIDE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"
# Read now: tests that use `cache` run without the variable.
_PLACES = [
    Path(os.environ.get("ELUGCN_DATA") or _BESIDE_REPOSITORY),
    _BESIDE_REPOSITORY,
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        choices=("fast", "reference"),
        default=os.environ["ELUGCN_ENGINE"],
        help="run everything on this implementation of the engine",
    )


def pytest_report_header() -> str:
    from elugcn.engine import engine_name

    loops = "compiled loops" if engine_name() == "fast" else "plain PyTorch"
    return f"engine: {engine_name()} ({loops})"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The published raw files, where this computer has them."""
    for path in _PLACES:
        if path.is_dir():
            return path
    pytest.skip("no raw datasets: set ELUGCN_DATA to a directory that has them")


@pytest.fixture(scope="session")
def sbm() -> Callable[..., Any]:
    """Small drawn graphs on which a few epochs already say something."""
    from elugcn.data.datasets import load_dataset

    def draw(seed: int = 0, **options: Any) -> Any:
        small = {"n": 150, "n_classes": 3, "n_features": 8, "feature_noise": 2.0}
        return load_dataset("sbm", split=seed, **(small | options))

    return draw


@pytest.fixture(scope="session")
def checked(sbm: Callable[..., Any]) -> Callable[..., Any]:
    """The same graphs, ready to be fitted."""
    from elugcn.data.validation import check_data

    return lambda seed=0, **options: check_data(sbm(seed, **options))


@pytest.fixture(scope="session")
def uneven() -> Any:
    """Two classes, seven nodes of the first for each of the second."""
    from elugcn.data.datasets import load_dataset

    noisy = {"feature_noise": 3.0, "homophily": 0.5, "label_rate": 0.1}
    data = load_dataset("sbm", n=600, n_classes=8, n_features=16, **noisy)
    data.y = (data.y == 0).long()
    data.class_names = ["common", "rare"]
    return data


@pytest.fixture
def path_graph() -> Any:
    """Six nodes in a row, two classes, worked by hand in the tests."""
    from torch_geometric.data import Data

    source, target = torch.arange(5), torch.arange(1, 6)
    return Data(
        x=torch.eye(6),
        edge_index=torch.stack([source, target]),
        y=torch.tensor([0, 0, 0, 1, 1, 1]),
        train_mask=torch.tensor([1, 0, 0, 0, 0, 1], dtype=torch.bool),
        val_mask=torch.tensor([0, 1, 0, 0, 0, 0], dtype=torch.bool),
    )


@pytest.fixture
def strict() -> Iterator[None]:
    """Warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
