import pytest
import torch


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test draws the same numbers, alone or with others."""
    torch.manual_seed(0)
