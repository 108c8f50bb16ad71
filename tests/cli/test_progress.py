"""What commands show on a terminal while they work."""

import io
import sys
import time

import pytest

from onnxjson.cli import output


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def _wait_for(text: str, screen: _Screen, *, since: int = 0) -> int:
    end = time.monotonic() + 30
    while text not in screen.getvalue()[since:]:
        assert time.monotonic() < end, screen.getvalue()
        time.sleep(0.01)
    return len(screen.getvalue())


def test_one_line_shows_the_innermost_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "PATIENCE", 0.01)
    monkeypatch.setattr(output, "_REFRESH", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    with output.working("outer"):
        _wait_for("outer", screen)
        with output.working("inner") as update:
            start = _wait_for("inner", screen)
            update("renamed")
            end = _wait_for("renamed", screen, since=start)
            output.talk("a message")
        _wait_for("outer", screen, since=end)
    shown = screen.getvalue()
    assert "outer" not in shown[start:end]
    assert "\r\x1b[2Ka message\n\r\x1b[2K" in shown  # on a line of its own
    assert shown.endswith("\r\x1b[2K")
    assert output._in_progress == []
