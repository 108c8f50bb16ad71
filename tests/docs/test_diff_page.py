"""docs/diff.md names every kind of event, every format, every option that leaves something out."""

import re
from pathlib import Path

import click

from onnxjson.cli.diff import diff_command as command
from onnxjson.diffing.events import IGNORABLE, KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "diff.md").read_text(encoding="utf-8")


def _rows(section: str) -> list[str]:
    """The first cells of the table of a section."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def test_every_kind_has_a_meaning_in_the_order_of_the_source() -> None:
    assert _rows("Kinds of changes") == list(KINDS)


def test_every_format_is_there() -> None:
    form = next(option.type for option in command.params if option.name == "form")
    assert isinstance(form, click.Choice)
    assert set(_rows("Formats")) == set(form.choices)


def test_everything_that_can_be_left_out_is_there() -> None:
    assert {f"--ignore {word}" for word in IGNORABLE} <= set(_rows("Ignore changes"))
