"""The shell sessions of the pages: found, run, compared.

A session is a block of kind ``console``: lines that begin with "$ " are commands, which go on in lines that begin with
"> "; the lines after each are what it prints. A line that is "..." stands for any lines. All sessions of a page run in
one new folder, in their order; next to it is ``onnxjson``, the clone.
"""

import atexit
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.output_server import CommandServer

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Step(NamedTuple):
    """One command of a page and what the page says that it prints."""

    line: int
    command: str
    expected: str


def steps_of(page: Path) -> Iterator[Step]:
    """The commands of a page in order."""
    text = page.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1)) + 1
        for part in re.split(r"^(?=\$ )", block[1], flags=re.MULTILINE):
            if part:
                head, expected = _told_apart(part)
                yield Step(line, _command(head), expected)
            line += part.count("\n")


def _told_apart(part: str) -> tuple[str, str]:
    """The lines of a command as they stand, and those of what it prints."""
    found = re.match(r"\$ [^\n]*\n?(?:>(?: [^\n]*)?\n)*", part)
    assert found is not None
    return part[: found.end()], part[found.end() :]


def _command(head: str) -> str:
    """A command without what stands before its lines."""
    return "\n".join([line[2:] for line in head.splitlines()])


@cache
def programs() -> Path:
    """A folder with an ``onnxjson`` that has imported everything already."""
    server = CommandServer()
    atexit.register(server.close)
    return server.programs


def run(command: str, folder: Path) -> str:
    """What a command prints on a terminal without colours, both streams as they come."""
    clone = folder.parent / "onnxjson"
    if not clone.is_symlink():
        clone.symlink_to(ROOT)
    environment = {
        "PATH": os.pathsep.join(
            [str(programs()), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        "HOME": str(folder.parent),
        "TMPDIR": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    return result.stdout


def fits(expected: str, printed: str) -> bool:
    """Whether `printed` is what the page says, line by line."""
    lines = (".*?" if line == "...\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch("".join(lines), printed, re.DOTALL) is not None


def rewritten(page: Path, folder: Path) -> str:
    """The text of a page with what its commands print today, where that is not what it says."""

    def block(found: re.Match[str]) -> str:
        parts = []
        for part in re.split(r"^(?=\$ )", found[1], flags=re.MULTILINE):
            if part:
                head, expected = _told_apart(part)
                printed = run(_command(head), folder)
                parts.append(head + (expected if fits(expected, printed) else printed))
        return f"```console\n{''.join(parts)}```"

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))
