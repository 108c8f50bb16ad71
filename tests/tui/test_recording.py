"""The recording in the pages: the script makes it, and only colours and places in it act on a terminal."""

import json
import re
from importlib.metadata import version

import pytest

from tests.tui.recording import PATH, SCENES, recording
from tests.tui.screenshots import ROOT, TEXTUAL

SEQUENCES = re.compile(r"\x1b\[(?:[0-9;]*m|[0-9]+;1H|2J|\?25[lh])")


def test_it_is_three_minutes_small_and_holds_only_colours_and_places() -> None:
    assert PATH.stat().st_size < 300_000
    header, *events = map(json.loads, PATH.read_text(encoding="utf-8").splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 80, 25)
    times = [time for time, _, _ in events]
    assert times == sorted(times)
    assert 150 <= times[-1] <= 210
    for _, kind, text in events:
        assert kind == "o"
        assert SEQUENCES.sub("", text).isprintable(), text
    shown = SEQUENCES.sub("", "".join(text for _, _, text in events))
    for scene in SCENES:
        assert f" {scene.caption}  " in shown
    assert "does nothing here" not in shown
    assert f"({PATH.relative_to(ROOT / 'docs')})" in (ROOT / "docs" / "workbench.md").read_text(encoding="utf-8")


@pytest.mark.skipif(
    not version("textual").startswith(TEXTUAL),
    reason=f"recorded with Textual {TEXTUAL}; others draw differently",
)
def test_the_script_makes_it() -> None:
    for _ in range(3):  # on a busy machine a frame may be taken before the last of it was drawn
        made = recording(SCENES[:4]).splitlines()[:-1]
        if PATH.read_text(encoding="utf-8").startswith("\n".join(made) + "\n"):
            return
    raise AssertionError("the program shows something else; run python -m tests.tui.recording")
