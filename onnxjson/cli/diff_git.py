"""``onnxjson diff REV..REV -- PATH``: every model that git finds changed, in all formats of a diff."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import click

from onnxjson.cli import diff, failures, output, paging, processes, sides
from onnxjson.cli.revisions import Request
from onnxjson.errors import OnnxJsonError

if TYPE_CHECKING:
    from onnxjson.git.changed_models import Change, Version

_FOR_ONE: Final = ("html", "patch", "script")
"""Formats that hold one comparison."""

_LARGEST_COMMENT: Final = 60_000
"""Characters of Markdown; GitHub takes comments of 65,536."""

Status = Literal["added", "removed", "renamed", "changed"]


class _Compared(NamedTuple):
    """What became of one change."""

    change: "Change"
    status: Status
    text: str
    """In the format that was asked for; of an added or a removed model what there is to say of it."""
    differs: bool
    problems: tuple[str, ...]
    failure: int
    """The exit code where it could not be read; 0 where it could."""


def run(request: Request, options: diff.Options) -> int:
    """Compare all models; the exit code.

    Raises:
        click.UsageError: the format holds one model, and there are more.
        OnnxJsonError: git cannot be asked, or the destination cannot be written.
    """
    from onnxjson.git.changed_models import changed
    from onnxjson.git.commands import Git

    with output.working("asking git what changed"):
        changes = changed(Git(Path.cwd()), request.revisions, request.paths, staged=request.staged)
    _check_count(changes, options)
    if not changes:
        output.talk("no models changed")
    found = [_compared(change, options) for change in changes]
    for each in found:
        for problem in each.problems:
            if not each.failure:
                output.warn(problem)
    if options.form not in _FOR_ONE and (found or options.form == "json" or options.destination is not None):
        _emit(_JOINED.get(options.form, _plain)(found), options)
    code = next((each.failure for each in found if each.failure), 0)
    if code or any(each.problems for each in found):
        return code or diff.INCOMPLETE
    return 1 if any(each.differs for each in found) else 0


def is_coloured() -> bool:
    """Whether git would colour a diff on this standard output, by its own settings."""
    from onnxjson.git.commands import CommandError, Git

    if os.environ.get("NO_COLOR"):
        return False
    shown = "true" if sys.stdout.isatty() or os.environ.get("GIT_PAGER_IN_USE") == "true" else "false"
    try:
        return Git(Path.cwd()).line("config", "--get-colorbool", "color.diff", shown) == b"true"
    except (CommandError, OnnxJsonError):
        return False


def _check_count(changes: "list[Change]", options: diff.Options) -> None:
    if options.form not in _FOR_ONE:
        return
    both = [change for change in changes if change.old is not None and change.new is not None]
    if len(changes) > 1 or len(both) != len(changes):
        names = ", ".join(_path_of(change) for change in changes[:5]) + (", ..." if len(changes) > 5 else "")
        raise click.UsageError(
            f"--format {options.form} is for one model that is on both sides, and {len(changes)} changed ({names}); "
            "name one behind --"
        )


def _compared(change: "Change", options: diff.Options) -> _Compared:
    status = _status(change)
    try:
        if change.old is not None and change.new is not None:
            return _both(change, change.old, change.new, status, options)
        version = change.new or change.old
        assert version is not None
        with _opened(version, bind=False) as side:
            text = _whole(side, status, options)
            return _Compared(change, status, text, True, side.problems, 0)
    except OnnxJsonError as error:
        return _Compared(change, status, "", True, (str(error),), failures.report(error))


def _both(change: "Change", old: "Version", new: "Version", status: Status, options: diff.Options) -> _Compared:
    pieces: list[str] = []
    if options.form not in _FOR_ONE:
        options = replace(options, destination=None, collected=pieces, pager=False)
    bind = options.form != "unified"
    with _opened(old, bind=bind) as one, _opened(new, bind=bind) as other:
        differs, problems = diff.compare(one, other, options)
    return _Compared(change, status, "".join(pieces), differs, tuple(problems), 0)


@contextmanager
def _opened(version: "Version", *, bind: bool) -> Iterator[sides.Side]:
    """A model on one side, under the name that a person knows."""
    if version.spec is None:
        with sides.opened(version.path, bind=bind) as side:
            yield side._replace(name=version.name)
        return
    with sides.opened_revision(version.spec, version.name) as side:
        yield side


def _status(change: "Change") -> Status:
    if change.old is None:
        return "added"
    if change.new is None:
        return "removed"
    return "changed" if change.old.path == change.new.path else "renamed"


def _path_of(change: "Change") -> str:
    version = change.new or change.old
    assert version is not None
    return version.name.rpartition(":")[2]


def _whole(side: sides.Side, status: Status, options: diff.Options) -> str:
    """What there is to say of a model that is on one side only."""
    from onnxjson.document import Node
    from onnxjson.rendering.unified import diff_texts, digest_text
    from onnxjson.walking import walk

    if options.form == "unified":
        texts = (b"", digest_text(side.model)) if status == "added" else (digest_text(side.model), b"")
        names = ("/dev/null", side.name) if status == "added" else (side.name, "/dev/null")
        lines = diff_texts(*texts, *names, context=options.context)
        return "".join(f"{paging.diff_line(line, coloured=options.coloured)}\n" for line in lines)
    return output.counted(sum(1 for _ in walk(side.model, Node)), "node")


def _plain(found: list[_Compared]) -> Iterator[str]:
    """Texts for a person, a blank line between two."""
    separator = ""
    for each in found:
        if each.status in ("added", "removed") and not each.failure:
            text = f"{output.line(_path_of(each.change))} {each.status}: {each.text}\n"
        else:
            text = each.text
        if text:
            yield separator + text
            separator = "\n"


def _unified(found: list[_Compared]) -> Iterator[str]:
    for each in found:
        yield each.text


def _json(found: list[_Compared]) -> Iterator[str]:
    from onnxjson.rendering.diffs_schema import FORMAT
    from onnxjson.rendering.exact import as_json

    yield f'{{"format": "{FORMAT}",\n"files": ['
    separator = "\n"
    for each in found:
        head: dict[str, object] = {"status": each.status}
        for key, version in (("old", each.change.old), ("new", each.change.new)):
            head[key] = version.name if version is not None else None
        if each.failure:
            head["error"] = each.problems[0]
        text = as_json(head, indent=None)
        if each.text and each.status not in ("added", "removed"):
            text = f'{text[:-1]}, "diff":\n{each.text.rstrip()}}}'
        yield separator + text
        separator = ",\n"
    yield "\n]}\n" if found else "]}\n"


def _markdown(found: list[_Compared]) -> Iterator[str]:
    from onnxjson.rendering.diff_markdown import code

    left = _LARGEST_COMMENT
    for position, each in enumerate(found):
        if each.failure:
            text = f"### {code(_path_of(each.change))}\n\n⚠️ {code(each.problems[0], 400)}\n"
        elif each.status in ("added", "removed"):
            text = f"### {code(_path_of(each.change))} {each.status}\n\n{each.text}.\n"
        else:
            text = each.text
        if position:
            text = "\n" + text
        left -= len(text)
        if left < 0 and position:
            yield f"\n*{output.counted(len(found) - position, 'more model')} left out.*\n"
            return
        yield text
    if not found:
        yield "No models changed.\n"


_JOINED: Final[dict[str, Callable[[list[_Compared]], Iterator[str]]]] = {
    "json": _json,
    "markdown": _markdown,
    "unified": _unified,
}


def _emit(pieces: Iterator[str], options: diff.Options) -> None:
    """Through git's pager, to the file, or as it is."""
    if options.destination is not None or options.form not in ("text", "unified") or not options.pager:
        diff.write(pieces, options)
    elif sys.stdout.isatty() and (pager := _pager()):
        processes.page((piece.encode() for piece in pieces), pager)
    else:
        diff.write(pieces, options)


def _pager() -> str:
    """The command line of the pager, as git chooses it: "" where there is to be none."""
    from onnxjson.git.commands import CommandError, Git

    pager = os.environ.get("GIT_PAGER")
    if pager is None:
        try:
            pager = os.fsdecode(Git(Path.cwd()).line("config", "--get", "core.pager"))
        except (CommandError, OnnxJsonError):
            pager = os.environ.get("PAGER", "less")
    return "" if pager == "cat" else pager
