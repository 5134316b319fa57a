from collections.abc import Iterator

import pytest
import torch

from elugcn import compiled


@pytest.fixture(autouse=True, params=[128, 256, 512], ids=lambda bits: f"{bits} bits")
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """These tests are of the compiled loops, for every processor that this one can be."""
    torch.manual_seed(0)
    if not compiled.available():
        pytest.skip("the loops were not compiled: no C compiler at installation")
    if compiled.use(request.param) != request.param:
        pytest.skip(f"not on this processor, or by this compiler: {request.param} bits")
    yield
    compiled.use(512)
