"""The table of commands, the commands, the help and the pages agree."""

import pkgutil
from pathlib import Path

import click
import pytest

from onnxjson import cli
from onnxjson.cli import group

ROOT = Path(__file__).parent.parent.parent

PARTS = {
    "changing",
    "diff-git",
    "editors",
    "external-data",
    "group",
    "failures",
    "feeding",
    "output",
    "findings",
    "paging",
    "paths",
    "processes",
    "revisions",
    "sides",
}
"""Modules of the command line that are no command."""

ENTRIES = [entry for entries in group.SECTIONS.values() for entry in entries]


def _command(name: str) -> click.Command:
    command = group.onnxjson.get_command(click.Context(group.onnxjson), name)
    assert command is not None
    return command


def test_every_module_is_a_command_of_the_table_or_a_part() -> None:
    modules = {module.name.replace("_", "-") for module in pkgutil.iter_modules(cli.__path__)}
    assert modules == set(group.COMMANDS) | PARTS


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_command_says_in_its_first_line_what_the_list_says(entry: group.Entry) -> None:
    command = _command(entry.name)
    assert command.name == entry.name
    assert (command.help or "").splitlines()[0] == entry.summary


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_summary_fits_a_line_of_80_columns(entry: group.Entry) -> None:
    assert len(entry.summary) <= 80 - 16


@pytest.mark.parametrize("name", group.COMMANDS)
def test_every_option_has_help(name: str) -> None:
    for parameter in _command(name).params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter


@pytest.mark.parametrize("name", group.COMMANDS)
def test_readme_names_the_command(name: str) -> None:
    assert f"onnxjson {name}" in (ROOT / "README.md").read_text(encoding="utf-8")
