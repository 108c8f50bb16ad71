"""Every Python block of a page runs when it is pasted alone.

The folder has the two models that the pages work on: ``digits.onnx`` and ``exported.onnx``, as
``python -m onnxjson.example`` writes them.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.sessions import PAGES, run

_BLOCK = re.compile(r"^```(?:python|py)\b[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _blocks() -> Iterator[tuple[str, str]]:
    """Page and line of each block, and its text."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            yield f"{page.name}:{text.count(chr(10), 0, block.start(1)) + 1}", block[1]


BLOCKS = dict(_blocks())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    run("python -m onnxjson.example digits.onnx && python -m onnxjson.example --unfused exported.onnx", folder)
    return folder


@pytest.mark.parametrize("place", BLOCKS)
def test_block_runs_alone(place: str, models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    shutil.copytree(models, folder)
    (tmp_path / "block.py").write_text(BLOCKS[place], encoding="utf-8")
    printed = run("python-at-once ../block.py && echo finished", folder)
    assert printed.splitlines()[-1:] == ["finished"], f"{place}\n{printed}"


def test_pages_have_blocks() -> None:
    pages = {place.partition(":")[0] for place in BLOCKS}
    assert {"README.md", "python.md", "diff.md", "edits.md", "merge.md", "patch.md"} <= pages
