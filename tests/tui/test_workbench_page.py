"""docs/workbench.md: its session is typed, its pictures are those of the program."""

import asyncio
import re
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.tui.benches import bench
from tests.tui.screenshots import FOLDER, ROOT, STORIES, TEXTUAL, Story, keys, path_of, pictures

PAGE = ROOT / "docs" / "workbench.md"
_NAMED = re.compile(r"(?:ctrl\+.|f\d|tab|escape)\Z")


def _steps() -> list[tuple[str, str]]:
    """What is typed, and what can be read then."""
    blocks = re.findall(r"^```keys\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert blocks
    lines = [line for block in blocks for line in block.splitlines()]
    return [(typed, expected) for typed, expected in (re.split(r"\s{2,}", line, maxsplit=1) for line in lines)]


def test_the_session_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests/models/encoder_ts.onnx", "m.onnx")

    async def go() -> None:
        async with bench(Path("m.onnx"), (120, 40)) as found:
            for typed, expected in _steps():
                await found.press(*([typed] if _NAMED.match(typed) else keys(typed)))
                assert " ".join(expected.split()) in " ".join(found.text.split()), (typed, found.text)

    asyncio.run(go())
    assert Path("copy.onnx").exists()


@pytest.mark.skipif(
    not version("textual").startswith(TEXTUAL),
    reason=f"pictures of Textual {TEXTUAL}; others draw differently",
)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: path_of(story).stem)
def test_the_picture_of_the_page_is_what_is_seen(story: Story) -> None:
    path = path_of(story)
    for _ in range(3):  # on a busy machine a picture may be taken before the last of it was drawn
        if pictures([story])[path] == path.read_text(encoding="utf-8"):
            return
    raise AssertionError(f"{path.name} changed; look, then run python -m tests.tui.screenshots")


def test_every_picture_of_the_page_is_made() -> None:
    named = set(re.findall(r"\(images/(.*?)\)", PAGE.read_text(encoding="utf-8")))
    assert named <= {path_of(story).name for story in STORIES}
    assert {path_of(story).name for story in STORIES} == {path.name for path in FOLDER.glob("*.svg")}
