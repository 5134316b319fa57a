import pytest
import torch

from elugcn import compiled


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test draws the same numbers, alone or with others."""
    torch.manual_seed(0)


@pytest.fixture(params=["compiled", "PyTorch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with the compiled loops, once without."""
    if request.param == "PyTorch":
        monkeypatch.setattr(compiled, "_loops", None)
    elif not compiled.available():
        pytest.skip("the loops were not compiled: no C compiler at installation")
