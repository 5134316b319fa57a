"""The words are PyTorch's own, and so is what is drawn after them."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from elugcn import compiled


@given(st.integers(0, 2**32), st.integers(0, 1300), st.integers(0, 1500))
@example(0, 0, 312)  # all words of a state
@example(0, 1, 311)  # begins in the middle of a word
@example(0, 623, 1)
@example(0, 624, 1)
@example(0, 625, 20_000)
def test_words_are_those_of_pytorch(seed: int, before: int, count: int) -> None:
    drawn = []
    for draw in (compiled.draw_words, lambda w: w.random_(-(2**63), None)):
        torch.manual_seed(seed)
        torch.rand(before)  # takes as many halves of words
        words = torch.empty(count, dtype=torch.int64)
        draw(words)
        drawn.append((words, torch.rand(7), torch.randn(5)))
    for ours, theirs in zip(*drawn, strict=True):
        assert torch.equal(ours, theirs)


def test_every_bit_is_even() -> None:
    words = torch.empty(100_000, dtype=torch.int64)
    compiled.draw_words(words)
    for bit in range(64):
        share = float((words >> bit & 1).double().mean())
        assert share == pytest.approx(0.5, abs=0.01), bit


def test_a_state_of_another_size_is_left_to_pytorch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_STATE_BYTES", 1)
    words = torch.empty(9, dtype=torch.int64)
    torch.manual_seed(1)
    compiled.draw_words(words)
    torch.manual_seed(1)
    assert torch.equal(words, torch.empty_like(words).random_(-(2**63), None))


def test_only_whole_words_are_taken() -> None:
    with pytest.raises(ValueError, match="int64"):
        compiled.draw_words(torch.empty(8, dtype=torch.int32))
    with pytest.raises(ValueError, match="contiguous"):
        compiled.draw_words(torch.empty(8, dtype=torch.int64)[::2])
