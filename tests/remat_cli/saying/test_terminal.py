"""What goes to a terminal: within its width, and without codes where none are known."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from remat_cli.saying.progress import Line, bar


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _written(monkeypatch: pytest.MonkeyPatch, kind: str, columns: str, stream: io.StringIO, words: str) -> str:
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stderr", stream)
    with Line(quiet=False) as line:
        line.say(words)
    return stream.getvalue()


def test_a_line_that_is_written_over_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _written(monkeypatch, "xterm", "40", _Terminal(), "x" * 100)
    assert said == "\r\033[K" + "x" * 36 + "..." + "\r\033[K"
    assert _written(monkeypatch, "xterm", "40", _Terminal(), "short") == "\r\033[Kshort\r\033[K"


def test_no_codes_where_the_terminal_knows_none_or_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _written(monkeypatch, "dumb", "80", _Terminal(), "words") == ""
    assert _written(monkeypatch, "xterm", "80", io.StringIO(), "words") == ""


@pytest.mark.parametrize("at, filled", [(0.0, 0), (0.27, 5), (0.98, 20), (1.0, 20)])
def test_a_bar_is_as_full_as_the_time_is_spent(at: float, filled: int) -> None:
    words = bar(at, 1.5, "Conv")
    assert words == f"[{'#' * filled}{'.' * (20 - filled)}] {at:4.0%}  1.5s left  Conv"


def test_words_that_stand_get_the_seconds_since(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr("remat_cli.saying.progress.writes_over", lambda: True)
    monkeypatch.setattr("sys.stderr", written)
    with Line(quiet=False, patience=0.02) as line:
        line.say("the whole graph")
        while " s)" not in written.getvalue():
            time.sleep(0.01)
        line.say("")
    assert re.match(r"(\r\033\[Kthe whole graph){2}  \(\d+ s\)", written.getvalue())
    assert written.getvalue().endswith("\r\033[K")
