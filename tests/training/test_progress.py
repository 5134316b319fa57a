"""Progress: silence by default, bars on a terminal."""

import io
import sys

import pytest
import rich.console

from elugcn.training.progress import SILENT, Bars, Progress, default_progress


def test_silent_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with SILENT.stage("gcn", 3) as advance:
        for _ in range(5):
            assert advance({"val_accuracy": 0.5}) is None
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def fake_console(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    out = io.StringIO()
    real = rich.console.Console

    def console(*, stderr: bool) -> rich.console.Console:
        assert stderr  # results on stdout must stay clean
        return real(file=out, force_terminal=True, width=100)

    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no bars
    monkeypatch.setattr(rich.console, "Console", console)
    return out


def test_bars_show_the_stage_and_its_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    out = fake_console(monkeypatch)
    with Bars().stage("two-view", 3) as advance:
        for accuracy in (0.25, 0.5, 0.8125):
            advance({"val_accuracy": accuracy})
    assert "two-view" in out.getvalue()
    assert "validation 81.2%" in out.getvalue()
    assert "3/3" in out.getvalue()


@pytest.mark.parametrize("record", [{}, {"val_accuracy": float("nan")}])
def test_bars_without_validation(
    record: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = fake_console(monkeypatch)
    with Bars().stage("mlp", 2) as advance:
        advance(record)
    assert "mlp" in out.getvalue()
    assert "validation" not in out.getvalue()
    assert "nan" not in out.getvalue()


def test_bars_may_end_early_or_by_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_console(monkeypatch)
    bars = Bars()

    def interrupted() -> None:
        with bars.stage("a", 5) as advance:
            advance({})
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    # The display is free again for the next stage.
    with bars.stage("b", 5) as advance:
        advance({})


@pytest.mark.parametrize(
    ("terminal", "quiet"), [(True, False), (True, True), (False, False)]
)
def test_default_progress(
    terminal: bool, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stderr)
    progress = default_progress(quiet)
    assert isinstance(progress, Progress)
    assert isinstance(progress, Bars) == (terminal and not quiet)
