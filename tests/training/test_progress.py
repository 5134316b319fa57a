"""Progress: silence by default, bars on a terminal."""

import io
import sys

import pytest
import rich.console

from elugcn.training.progress import Bars, default_progress


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal shows."""
    out = io.StringIO()
    real = rich.console.Console

    def console(*, stderr: bool) -> rich.console.Console:
        assert stderr  # results on stdout must stay clean
        return real(file=out, force_terminal=True, width=100)

    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no bars
    monkeypatch.setattr(rich.console, "Console", console)
    return out


def test_bars_show_the_stage_and_its_accuracy(screen: io.StringIO) -> None:
    with Bars().stage("two-view", 3) as advance:
        for accuracy in (0.25, 0.5, 0.8125):
            advance({"val_accuracy": accuracy})
    for text in ("two-view", "validation 81.2%", "3/3"):
        assert text in screen.getvalue()


def test_a_stage_inside_another_has_a_bar_below(screen: io.StringIO) -> None:
    bars = Bars()
    with bars.stage("members", 2) as member:
        for name in ("two-view", "mlp"):
            with bars.stage(name, 9) as epoch:
                epoch({"val_accuracy": 0.5})
            member({"val_score": 0.75, "seconds_left": 41.7})
    shown = screen.getvalue()
    for text in ("members", "two-view", "mlp", "validation 50.0%", "1/9", "2/2"):
        assert text in shown
    assert "validation 75.0%" in shown
    assert "at most 42 s left" in shown
    with pytest.raises(ValueError, match="no luck"), bars.stage("again", 1):
        raise ValueError("no luck")
    with bars.stage("after all", 1):
        pass
    assert "after all" in screen.getvalue()


@pytest.mark.parametrize("record", [{}, {"val_accuracy": float("nan")}], ids=str)
def test_bars_without_validation(record: dict[str, float], screen: io.StringIO) -> None:
    with Bars().stage("mlp", 2) as advance:
        advance(record)
    assert "mlp" in screen.getvalue()
    assert "validation" not in screen.getvalue()
    assert "nan" not in screen.getvalue()


@pytest.mark.parametrize(
    ("terminal", "quiet"), [(True, False), (True, True), (False, False)]
)
def test_default_progress(
    terminal: bool, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert isinstance(default_progress(quiet), Bars) == (terminal and not quiet)
