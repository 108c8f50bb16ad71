"""``python -m tests.tui.recording``: a session of three minutes in the workbench, as asciicast version 2.

Frames are what the program shows after each key; times are those of the script, not of the machine. The line below
the workbench says what is done and which keys are typed.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.widgets import Input

from tests.tui.benches import SMALL, Bench, bench
from tests.tui.screenshots import ROOT, keys

PATH: Final = ROOT / "docs" / "workbench.cast"
_FOLDER: Final = ROOT / "tests/models/pairs"
_WIDTH, _HEIGHT = SMALL
_LETTER: Final = 0.12
"""Seconds between letters of a text."""

_CAPTION: Final = Style(color="#d4d8dc", bgcolor="#2f4f6f")


class Scene(NamedTuple):
    """What is done, what is typed for it (see `keys`), and how many seconds its result is shown."""

    caption: str
    typed: Sequence[str] = ()
    seconds: float = 3.0


SCENES: Final = (
    Scene("onnxjson tui model.onnx: a model as PyTorch exported it, on one page", seconds=4),
    Scene("unfold a line to its nodes", ("jjj", "z"), 3),
    Scene("and fold it again", ("z",), 2),
    Scene("all nodes, and lines again", ("Z", "Z"), 3),
    Scene("search unfolds what it needs", ("/Softmax⏎",)),
    Scene("next match", ("n",), 2),
    Scene("go to what defines an input", ("gd",)),
    Scene("and back", ("⟨ctrl+o⟩",), 2),
    Scene("draw what is within two steps", ("2M",), 4),
    Scene("close", ("q",), 1),
    Scene("edit an attribute", ("/Transpose⏎", "e", "⏎"), 2),
    Scene("types flow while you type: old -> new", ("[0,2,3,1]",), 5),
    Scene("make the edit", ("⏎",), 2),
    Scene("what changed", ("c"), 4),
    Scene("back, and undo", ("q", "u"), 2),
    Scene("an edit as on the command line", (":set-attribute op:Softmax axis 2⏎",), 4),
    Scene("run the model: numbers of each node", (":numbers random⏎",), 4),
    Scene("look at them", ("⟨pagedown⟩", "⟨pagedown⟩"), 3),
    Scene("difference to the saved model, and the first node that differs", (":numbers saved⏎",), 5),
    Scene("hide the numbers", ("gn6",), 1),
    Scene("map of the whole graph", ("M",), 5),
    Scene("open a box", ("⏎",), 4),
    Scene("close the map", ("q",), 1),
    Scene("compare with another export", (":compare other.onnx⏎",), 5),
    Scene("side by side", ("v",), 4),
    Scene("from change to change", ("}", "}", "30}"), 4),
    Scene("take this change of the other model", ("do",), 5),
    Scene("undo it", ("u",), 2),
    Scene("back", ("q", "q"), 2),
    Scene("the steps of the session", ("⟨f8⟩",), 4),
    Scene("save: read back and compared", ("⎋", "⎋", "⟨ctrl+s⟩"), 5),
)


class Frames:
    """Writes lines that changed as events of the recording."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.events = [json.dumps({"version": 2, "width": _WIDTH, "height": _HEIGHT + 1, "title": "onnxjson tui"})]
        self._lines: list[str] = [""] * (_HEIGHT + 1)
        self._shown = "\x1b[?25l\x1b[2J"

    def show(self, found: Bench, caption: str, typed: str) -> None:
        """Add what is seen now, with a line that says what is done and typed."""
        strips = found.app.screen._compositor.render_strips()
        lines = [_text(strip) for strip in strips]
        below = f" {caption}  {typed}"[:_WIDTH].ljust(_WIDTH)
        lines.append(_CAPTION.render(below, color_system=ColorSystem.TRUECOLOR))
        changed = [f"\x1b[{row + 1};1H{line}" for row, line in enumerate(lines) if line != self._lines[row]]
        self._lines = lines
        if changed:
            text, self._shown = self._shown + "".join(changed), ""
            self.events.append(json.dumps([round(self.seconds, 2), "o", text], ensure_ascii=False))


def _text(segments: Iterable[Segment]) -> str:
    """A line with its colours; neighbours of one style together."""
    spans = [
        (style or Style()).render(text, color_system=ColorSystem.TRUECOLOR)
        for text, style, _ in Segment.simplify(segments)
    ]
    return "".join(spans).replace("\x1b[0m\x1b[", "\x1b[0;")


def _said(key: str) -> str:
    return {"enter": "⏎", "space": " "}.get(key, key if len(key) == 1 else f" {key} ")


async def _played(bench: Bench, scenes: Sequence[Scene]) -> AsyncIterator[Frames]:
    frames = Frames()
    for scene in scenes:
        typed = ""
        frames.show(bench, scene.caption, typed)
        frames.seconds += 1.0 if scene.typed else scene.seconds
        for each in scene.typed:
            pressed = keys(each)
            for key in pressed:
                is_text = isinstance(bench.app.focused, Input) and len(key) == 1
                await (bench.pilot.press if is_text and key != pressed[-1] else bench.press)(key)
                typed += _said(key)
                frames.seconds += _LETTER
                frames.show(bench, scene.caption, typed)
            frames.seconds += 0.8
        if scene.typed:
            await bench.settle()
            await bench.pilot.pause(0.3)
            frames.show(bench, scene.caption, typed)
            frames.seconds += scene.seconds
        yield frames


def recording(scenes: Sequence[Scene] = SCENES) -> str:
    """The text of the recording of some scenes."""
    folder = Path.cwd()
    with tempfile.TemporaryDirectory() as name, mock.patch.dict(os.environ, XDG_STATE_HOME=f"{name}/state"):
        os.chdir(name)
        try:
            shutil.copy(_FOLDER / "plain_ts.onnx", "model.onnx")
            shutil.copy(_FOLDER / "plain_dynamo.onnx", "other.onnx")
            return asyncio.run(_recorded(scenes))
        finally:
            os.chdir(folder)


async def _recorded(scenes: Sequence[Scene]) -> str:
    async with bench(Path("model.onnx"), SMALL) as found:
        async for frames in _played(found, scenes):
            events = frames.events
        seconds = frames.seconds
        found.session.discard()
    return "\n".join([*events, json.dumps([round(seconds, 2), "o", "\x1b[?25h"]), ""])


def main() -> int:
    """Writes it."""
    PATH.write_text(recording(), encoding="utf-8")
    print(f"{PATH.relative_to(ROOT)}: {PATH.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
