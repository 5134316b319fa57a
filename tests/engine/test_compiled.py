"""What the loops in C refuse, and the same values for every width of registers."""

from typing import Any

import pytest
import torch
from torch import Tensor

from elugcn.engine import capabilities, engine_name, fast
from elugcn.engine.compiled import NOTHING_DROPPED, loops
from tests.engine.conftest import drawn, inputs, sparse, workspace
from tests.engine.test_operations import step

pytestmark = pytest.mark.skipif(loops is None, reason="nothing is compiled")


def test_the_engine_says_what_it_runs_on() -> None:
    assert engine_name() == "fast"
    found = capabilities()
    assert found["lanes"] in (4, 8, 16)
    assert found["threads"] == torch.get_num_threads()


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("x_sparse", [True, False], ids=["sparse", "dense"])
def test_all_widths_of_registers_agree(lanes: int, x_sparse: bool) -> None:
    g = inputs(70, x_sparse=x_sparse)
    results = []
    widest = loops.widest(16)
    for width in (lanes, 16):
        loops.widest(width)
        try:
            with workspace():
                loss, grads = step(fast, g)
        finally:
            assert loops.widest(16) == widest
        results.append([loss, *grads])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


A, X, Z, W, B = sparse(9, 8), drawn(9, 8), drawn(8, 3), drawn(8, 3), drawn(8)
CSR_OF = (A.crow, A.col, A.value)
OUT, WIDE = torch.empty(9, 3), drawn(9, 6)
KIND = torch.zeros(9, dtype=torch.int8)
CLASS = torch.zeros(9, dtype=torch.int64)
LOSS = [WIDE, torch.empty(9, 6), drawn(3, 3), drawn(3), CLASS, drawn(9), KIND]
LOSS += [torch.zeros(4, 3, dtype=torch.float64)]
CALLS: dict[str, list[Any]] = {
    "mask": [X, torch.empty(9, 8), 0, NOTHING_DROPPED],
    "product": [*CSR_OF, Z, drawn(3), OUT, 8, False, NOTHING_DROPPED],
    "hidden": [X, None, B, W, OUT, NOTHING_DROPPED],
    "hidden_back": [OUT, X, None, X.clone(), B, W, torch.zeros(4, 8), NOTHING_DROPPED],
    "two_views": [*LOSS, 0.5, 0.5, 1.0, 1.0],
}


def variants(name: str) -> list[tuple[int, Any]]:
    """Every tensor of a call as something that does not fit."""
    found: list[tuple[int, Any]] = []
    for i, x in enumerate(CALLS[name]):
        if isinstance(x, Tensor):
            found += [(i, "text"), (i, x.to(torch.float16)), (i, x[:-1].clone())]
            found += [(i, x[..., None, None]), (i, x.to("meta"))]
            found += [(i, torch.stack([x, x], dim=-1)[..., 0])]
    return found


@pytest.mark.parametrize("name", CALLS)
def test_operands_that_do_not_fit_are_refused(name: str) -> None:
    call = getattr(loops, name)
    call(*CALLS[name])
    for i, other in variants(name):
        arguments = list(CALLS[name])
        arguments[i] = other
        with pytest.raises(
            (ValueError, AttributeError), match=r"expected|attribute|strides"
        ):
            call(*arguments)


def test_indices_and_classes_beyond_the_operands_are_refused() -> None:
    broken = A.crow.clone()
    broken[-1] += 1
    for crow in (broken, A.crow + 1, A.crow[:0]):
        with pytest.raises(ValueError):
            loops.product(crow, *CALLS["product"][1:])
    for place, value in ((4, 3), (4, -1), (6, 3), (6, -1)):
        arguments = [
            x.clone() if isinstance(x, Tensor) else x for x in CALLS["two_views"]
        ]
        arguments[place][5] = value
        with pytest.raises(ValueError, match="class"):
            loops.two_views(*arguments)
    many = [drawn(9, 130), drawn(9, 130), drawn(65, 65), drawn(65), *LOSS[4:7]]
    many += [torch.zeros(66, 65, dtype=torch.float64), *CALLS["two_views"][8:]]
    with pytest.raises(ValueError, match="classes"):
        loops.two_views(*many)
