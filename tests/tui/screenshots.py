"""``python -m tests.tui.screenshots``: the pictures of the workbench in the pages, from the program itself.

They are the snapshots of the tests, too: a change of what is seen shows as a change of a file.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

from tests.tui.benches import bench
from tests.tui.screens import send

ROOT: Final = Path(__file__).parent.parent.parent
FOLDER: Final = ROOT / "docs" / "images"
MODEL: Final = "tests/models/encoder_ts.onnx"

TEXTUAL: Final = "8.2"
"""The version of Textual whose pictures these are; another one may draw differently."""

SMALL: Final = (80, 24)
MIDDLE: Final = (120, 40)
LARGE: Final = (160, 45)

_EDITS: Final = (":set-attribute op:Softmax axis 2⏎⏎", ":delete-node /layers.2/Erf⏎")

_OTHER: Final = ":compare tests/models/pairs/plain_dynamo.onnx⏎"


class Story(NamedTuple):
    """One picture: what is typed before it is taken; ⏎ is enter, ⎋ escape, words in ⟨⟩ are names of keys."""

    name: str
    size: tuple[int, int]
    typed: tuple[str, ...]
    model: str = MODEL


STORIES: Final = (
    Story("main", SMALL, ("jj",)),
    Story("main", MIDDLE, ("/Softmax⏎", ":set-attribute . axis 2⏎")),
    Story("main", LARGE, ("/Softmax⏎", ":set-attribute . axis 2⏎")),
    Story("nodes", MIDDLE, ("Z", "/Softmax⏎")),
    Story("diff", LARGE, (*_EDITS, "c", "⟨down⟩", "⏎")),
    Story("tensor", SMALL, (":@/graph/node/46⏎", "t", "S", "+")),
    Story("form", SMALL, ("/Softmax⏎", ":edits set-attribute⏎", "axis", "⟨down⟩", "2")),
    Story("drawing", SMALL, ("/Softmax⏎", "2M")),
    Story("types", SMALL, ("/Transpose⏎", "e", "⏎", "⟨ctrl+u⟩[0,2,3,1]")),
    Story("panes", SMALL, (_OTHER, "v", "12}"), "tests/models/pairs/plain_ts.onnx"),
    Story("map", SMALL, (*_EDITS, "M", "n")),
    Story(
        "tutorial",
        MIDDLE,
        (":@/graph/node/29⏎", ":set-attribute . strides '[1, 1]'⏎", "c"),
        "tests/models/mobile_ts.onnx",
    ),
)


def keys(typed: str) -> list[str]:
    """The keys of what is typed."""
    names = {" ": "space", "⏎": "enter", "⎋": "escape"}
    return [word[1:-1] if len(word) > 1 else names.get(word, word) for word in re.findall(r"⟨[^⟩]*⟩|.", typed)]


async def picture(story: Story) -> str:
    """The SVG of a story. Fonts are those of whoever looks at it: none is fetched."""
    async with bench(Path(story.model), story.size) as found:
        for typed in story.typed:
            *most, last = keys(typed)
            for key in most:
                send(found.app, key)
            await found.press(last)
            await found.settle()
        text = found.app.export_screenshot(title="onnxjson tui")
        found.session.discard()
    return re.sub(r"\s*@font-face \{.*?\}", "", text, flags=re.S)


def path_of(story: Story) -> Path:
    """Where its picture stands."""
    return FOLDER / f"workbench-{story.name}-{story.size[0]}x{story.size[1]}.svg"


def pictures(stories: Sequence[Story] = STORIES) -> dict[Path, str]:
    """The pictures of stories, by the files that they stand in."""
    found = {}
    folder = Path.cwd()
    os.chdir(ROOT)
    try:
        for story in stories:
            with tempfile.TemporaryDirectory() as state, mock.patch.dict(os.environ, XDG_STATE_HOME=state):
                found[path_of(story)] = asyncio.run(picture(story))
    finally:
        os.chdir(folder)
    return found


def main() -> int:
    """Writes them."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
