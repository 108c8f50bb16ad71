"""Links, anchors, pictures, files and options that the pages name exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from onnxjson.cli.group import onnxjson
from onnxjson.cli.overview import COMMANDS
from tests.docs.sessions import PAGES, ROOT

OTHERS = {
    *(
        "--abort",
        "--binary",
        "--end-of-options",
        "--indent",
        "--install",
        "--no-textconv",
        "--stat",
        "--stage",
        "--word-diff",
        "--textconv",
        "--lost-found",
        "--source",
    ),
    *("--python", "--cache", "--mistakes", "--quick", "--repeat", "--models", "--folder", "--rounds", "--wording"),
    *("--all-passes", "--unfused", "--only", "--all"),
}
"""Options of git and of commands in a clone."""


def _prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _links(page: Path) -> Iterator[tuple[Path, str]]:
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if not target.startswith("http"):
            name, _, anchor = target.partition("#")
            yield (page.parent / name).resolve() if name else page, anchor


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _links(page):
        assert target.exists(), target
        assert not anchor or anchor in _anchors(target), f"{target.name}#{anchor}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_files_of_the_repository_exist(page: Path) -> None:
    named = re.findall(r"`((?:onnxjson|tui|tests|schemas)/[\w/.-]+)", _prose(page))
    assert [name for name in named if not (ROOT / name).exists()] == []


def _options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _options(found)


def test_options_of_the_pages_exist() -> None:
    known = OTHERS | {"--help", "--version"}
    context = click.Context(onnxjson)
    for name in COMMANDS:
        command = onnxjson.get_command(context, name)
        assert command is not None
        known |= set(_options(command))
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", _prose(page)):
            unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", code)) - known
            assert not unknown, f"{page.name}: {unknown}"


def test_messages_of_troubleshooting_are_those_of_the_program() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "onnxjson").rglob("*.py"))
    messages = re.findall(r"^\| `(.*?)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), re.M)
    fragments = {part.strip() for each in messages for part in re.sub(r"error\[\d+\]:", "...", each).split("...")}
    assert {"the file is missing", "only the sha256 of"} <= fragments
    assert {each for each in fragments if each.strip(" :") and each not in source} == set()
