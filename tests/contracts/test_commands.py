"""The table of commands, the commands, their help pages and the documentation agree."""

import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from onnxjson import cli
from onnxjson.cli import group, options, overview
from onnxjson.cli.rewrite import EditCommand

ROOT = Path(__file__).parent.parent.parent

PARTS = {
    "changing", "diff_git", "diff_output", "failures", "feeding", "fleet_job", "fleet_run", "group",
    "options", "output", "overview", "paths", "processes", "reports",
}  # fmt: skip
"""Modules of the command line that declare no command."""

VERBS = {
    "Apply", "Browse", "Check", "Compare", "Convert", "Create", "Decode", "Edit", "Encode", "Find", "Format", "List",
    "Merge", "Print", "Remove", "Resolve", "Restore", "Run", "Serve", "Set", "Show", "Split",
}  # fmt: skip
"""The words that the help of a command begins with."""

METAVARS = {
    "MODEL", "OUT", "DIR", "FILE", "NAME", "N", "SIZE", "SECONDS", "SELECTOR", "[SELECTOR]", "PASS", "TYPE", "[RULES]",
    "NAME=VALUE", "NAME:TYPE", "NAME[:TYPE]", "NAME=TYPE", "NAME=VALUE,...", "NAME=PASS,...", "NAME,...", "[NAME=]FILE",
    "[NAME=]VALUE", "NAME=N", "NAME=N,...", "[NAME=]LOW:HIGH", "DTYPE=REL[,ABS]", "REV", "CODE",
}  # fmt: skip
"""The words that stand for the values of options."""

SEVERAL_MEANINGS = {"--base", "--input", "--to"}
"""Options that are not the same everywhere: `new` declares an input of the model, the others read its values;
`resolve` takes a side, `check` and `gate` compare with a revision;
`undo-save` goes to a version of a file, the others write a form."""

WITHOUT_REPORT = {
    *("demo", "edit", "mergetool", "tui"),  # talk with the user
    *("completion", "help", "schema"),  # print a document
    *("lsp", "mcp"),  # serve other programs
    *("git check-inline", "git check-sync", "git install", "git uninstall"),  # hooks and settings of git
}
"""Commands without ``--json`` and ``-o``."""

IN_PLACE = {"fmt", "resolve", "undo-save"}
"""Commands that change a file and write no other."""

ENTRIES = list(overview.ENTRIES.values())


def _command(name: str) -> click.Command:
    command = group.onnxjson.get_command(click.Context(group.onnxjson), name)
    assert command is not None
    return command


def _commands() -> Iterator[tuple[str, click.Command]]:
    """All commands and those of groups, but for the edits, whose help comes from their declarations."""
    for name in overview.COMMANDS:
        command = _command(name)
        yield name, command
        if isinstance(command, click.Group) and name != "rewrite":
            yield from ((f"{name} {each}", command.commands[each]) for each in command.commands)


COMMANDS = dict(_commands())


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]


def test_every_module_declares_commands_of_the_table_or_is_a_part() -> None:
    modules = {module.name for module in pkgutil.iter_modules(cli.__path__)}
    assert modules == {entry.module or entry.name.replace("-", "_") for entry in ENTRIES} | PARTS


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_first_line_of_the_help_is_the_summary_of_the_table(entry: overview.Entry) -> None:
    command = _command(entry.name)
    assert command.name == entry.name
    assert (command.help or "").splitlines()[0] == entry.summary
    assert len(entry.summary) <= 80 - 16


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_line_with_a_verb_first_and_at_most_one_paragraph_and_examples(name: str) -> None:
    text, _, _ = (COMMANDS[name].help or "").partition("\b\n")
    first, *paragraphs = text.strip().split("\n\n")
    assert first.split()[0] in VERBS
    assert first.endswith(".")
    assert "\n" not in first
    assert len(paragraphs) <= 1
    assert options.examples(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_command_line_that_is_understood(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").touch()  # a pass is looked for at once
    for line in options.examples(COMMANDS[name]):
        words = shlex.split(re.split(r"\s[|<>]|\s>>", line)[0], comments=True)
        while "=" in words[0]:
            del words[0]
        if words[0] == "git":
            continue
        assert words[0] == "onnxjson", line
        command, parent = _command(words[1]), click.Context(group.onnxjson, info_name="onnxjson")
        words = words[2:]
        while isinstance(command, click.Group) and words:
            parent = click.Context(command, parent)
            found = command.get_command(parent, words.pop(0))
            assert found is not None, line
            command = found
        command.make_context(command.name or "", words, parent)


def test_option_has_one_meaning_in_all_commands() -> None:
    found: dict[str, set[tuple[object, ...]]] = {}
    for command in COMMANDS.values():
        for option in _options(command):
            for name in option.opts:
                found.setdefault(name, set()).add((option.metavar, option.is_flag, option.nargs))
    several = {name for name, meanings in found.items() if len(meanings) > 1}
    assert several == SEVERAL_MEANINGS, {name: found[name] for name in several}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_a_known_metavar(name: str) -> None:
    for option in _options(COMMANDS[name]):
        assert option.help, option
        assert option.help.endswith("."), option.help
        choices = isinstance(option.type, click.Choice)
        assert option.is_flag or choices or option.metavar in METAVARS, (option, option.metavar)


@pytest.mark.parametrize("name", COMMANDS)
def test_report_has_a_form_and_json_is_short_for_one(name: str) -> None:
    names = {each for option in _options(COMMANDS[name]) for each in option.opts}
    assert ("--json" in names) or ("--format" not in names)
    assert ("--color" in names) == ("--no-pager" in names)
    if "--format" in names:
        (form,) = [each for each in _options(COMMANDS[name]) if "--format" in each.opts]
        assert isinstance(form.type, click.Choice)
        assert "json" in form.type.choices


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)])
def test_every_command_that_reports_has_json_and_every_one_with_an_output_has_o(name: str) -> None:
    names = {each for option in _options(COMMANDS[name]) for each in option.opts}
    assert ("--json" in names) == (name not in WITHOUT_REPORT)
    assert ("-o" in names) == (name not in WITHOUT_REPORT | IN_PLACE)


def test_every_command_can_be_quiet() -> None:
    for name, command in COMMANDS.items():
        expected = not isinstance(command, click.Group)
        assert any("--quiet" in option.opts for option in _options(command)) == expected, name
    edit = _command("rewrite")
    assert isinstance(edit, click.Group)
    relu = edit.get_command(click.Context(edit), "prune")
    assert isinstance(relu, EditCommand)
    assert any("--quiet" in option.opts for option in _options(relu))


@pytest.mark.parametrize("name", overview.COMMANDS)
def test_a_page_of_tasks_names_the_command(name: str) -> None:
    pages = [ROOT / "README.md", *(page for page in (ROOT / "docs").glob("*.md") if page.name != "commands.md")]
    assert any(f"onnxjson {name}" in page.read_text(encoding="utf-8") for page in pages)
