"""The page of commands is what ``--help`` prints.

Run as a program, it writes the page: ``python -m tests.docs.test_commands_page``.
"""

import subprocess
import sys
from pathlib import Path

import click
from click.testing import CliRunner

from onnxjson.cli.group import onnxjson
from onnxjson.cli.overview import SECTIONS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "commands.md"

_HEAD = """# Commands

This page is generated from the help of the commands: `onnxjson COMMAND --help` prints the same.
"""


def _help(words: list[str]) -> str:
    done = CliRunner().invoke(onnxjson, [*words, "--help"], prog_name="onnxjson", terminal_width=100, color=False)
    assert done.exit_code == 0, done.output
    return done.output.rstrip()


def _subcommands(name: str) -> list[str]:
    command = onnxjson.get_command(click.Context(onnxjson), name)
    return sorted(command.commands) if isinstance(command, click.Group) and name != "rewrite" else []


def page() -> str:
    """Return the text of the page."""
    parts = [_HEAD]
    for section, entries in SECTIONS.items():
        parts.append(f"\n## {section}\n")
        for entry in entries:
            names = [[entry.name], *[[entry.name, each] for each in _subcommands(entry.name)]]
            parts += [f"\n### onnxjson {' '.join(words)}\n\n```text\n{_help(words)}\n```\n" for words in names]
    return "".join(parts)


def test_page_is_what_the_commands_print() -> None:
    # A process of its own: click keeps the names of the help option from whoever asked a command first.
    code = f"from {__name__} import page; print(page(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert PAGE.read_text(encoding="utf-8") == done.stdout, "run python -m tests.docs.test_commands_page"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
