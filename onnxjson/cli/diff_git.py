"""``onnxjson diff REV..REV -- PATH``: every model that git reports as changed, in all forms of a diff."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

import click

from onnxjson.cli import failures, output, processes, reports
from onnxjson.cli.diff_output import INCOMPLETE, Options, compare
from onnxjson.cli.paths import Side, open_revision, open_side
from onnxjson.git.changed_models import Change, Version, changed
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.revisions import is_range, is_revision_spec
from onnxjson.model.display import listed
from onnxjson.model.document import Node
from onnxjson.model.errors import OnnxJsonError, OtherJsonError
from onnxjson.model.walking import walk
from onnxjson.rendering.diff_report import Report, places_of
from onnxjson.rendering.tables import size, table
from onnxjson.rendering.values import as_json

Status = Literal["added", "removed", "renamed", "changed"]


class _Compared(NamedTuple):
    change: Change
    text: str
    """Report in the requested form; for a model that was added or removed, a summary of it."""
    differs: bool
    problems: tuple[str, ...]
    failure: int = 0
    """The exit code if it could not be read, else 0."""

    @property
    def status(self) -> Status:
        return status_of(self.change)

    @property
    def has_report(self) -> bool:
        """Whether the text is a report, rather than a summary of a model on one side."""
        return not self.failure and self.status in ("changed", "renamed")

    @property
    def path(self) -> str:
        return path_of(self.change)


class Request(NamedTuple):
    """A comparison as git makes it."""

    revisions: tuple[str, ...]
    paths: tuple[str, ...]
    staged: bool


def request_of(words: Sequence[Path], after: list[str] | None, *, in_git: bool, staged: bool) -> Request | None:
    """Return the comparison for git; None if the words, `after` those after ``--``, are two files, or ``REV:path``."""
    texts = [str(word) for word in words]
    for text in after or ():
        if text.startswith("-") and not os.path.lexists(text) and (texts or in_git or staged):
            raise click.UsageError(f"{output.quoted(text)} after -- is read as a path; write options before --")
    if not staged and after is None and _has_spec(texts):
        return None
    if not in_git and not staged and _are_files(texts, after):
        if len(texts or after or []) < 2:
            raise click.UsageError("diff compares two models; name OLD and NEW, or a revision, or use --git")
        return None
    if after is not None:
        return _request(texts, after, staged=staged)
    at = next((position for position, text in enumerate(texts) if not _is_revision(text)), len(texts))
    return _request(texts[:at], texts[at:], staged=staged)


def _are_files(texts: Sequence[str], after: Sequence[str] | None) -> bool:
    if after is not None:
        # "-- A B" protects names of files that look like options.
        return not texts
    if len(texts) == 1:
        return os.path.isfile(texts[0]) and not _is_in_repository()
    return not texts or os.path.lexists(texts[0]) or not _is_revision(texts[0])


def _is_in_repository() -> bool:
    try:
        return bool(Git(Path.cwd()).line("rev-parse", "--git-dir"))
    except (CommandError, OnnxJsonError):
        return False


def _has_spec(texts: Sequence[str]) -> bool:
    """Whether two words name one model each, and one of them at a revision, which needs no further word."""
    return len(texts) == 2 and any(map(is_revision_spec, texts)) and not any(map(_is_revision, texts))


def _is_revision(text: str) -> bool:
    """Whether a word is a revision or a range, and not a file."""
    if ":" in text.partition("^{")[0]:
        return False
    try:
        git = Git(Path.cwd())
        if os.path.lexists(text) and git.line("rev-parse", "--is-bare-repository") == b"false":
            return False  # in a bare repository, HEAD is a file, too
        return is_range(text) or git.named(text, "commit") is not None or git.named(text, "tree") is not None
    except (CommandError, OnnxJsonError):
        return is_range(text) and not os.path.lexists(text)


def _request(revisions: Sequence[str], paths: Sequence[str], *, staged: bool) -> Request:
    if len(revisions) > 2 or (len(revisions) == 2 and any(is_range(text) for text in revisions)):
        raise click.UsageError("diff compares at most two revisions: A B, or A..B, or A...B")
    if staged and (len(revisions) == 2 or any(is_range(text) for text in revisions)):
        raise click.UsageError("--staged compares the index with one revision")
    return Request(tuple(revisions), tuple(paths), staged)


def run(request: Request, options: Options) -> int:
    """Compare all models; return the exit code."""
    with output.working("listing changed models"):
        changes = changed(Git(Path.cwd()), request.revisions, request.paths, staged=request.staged)
    return compare_all(changes, options)


def with_base(base: Path, others: Sequence[Path]) -> list[Change]:
    """Return the comparisons of models with a base."""
    first, *rest = [Version(str(path), None, path, str(path)) for path in (base, *others)]
    return [Change(first, each) for each in rest]


def compare_all(changes: list[Change], options: Options) -> int:
    """Compare models; return the exit code."""
    _check_count(changes, options)
    if not changes:
        output.talk("no models changed")
    compared = [_compared(change, replace(options, prefix=f"m{number}")) for number, change in enumerate(changes)]
    compared_models = [each for each in compared if each is not None]
    for problem in [problem for each in compared_models if not each.failure for problem in each.problems]:
        output.warn(problem)
    if options.form != "patch" and (
        compared_models or options.form in ("html", "json") or options.view.destination is not None
    ):
        pieces = list(_JOINED[options.form](compared_models))
        if options.reports is not None and options.form == "text":
            lines = [f"{line}\n" for line in _table(options.reports)]
            pieces = [*lines, "\n", *pieces] if options.verbose else lines
        _emit(pieces, options.view)
    code = next((each.failure for each in compared_models if each.failure), 0)
    if code or any(each.problems for each in compared_models):
        return code or INCOMPLETE
    return 1 if any(each.differs for each in compared_models) else 0


def _table(reports_of_models: Sequence[Report]) -> list[str]:
    """Return a row for the base, and one for each model that is compared with it."""
    if not reports_of_models:
        return []
    base = reports_of_models[0]
    heads = ("model", "nodes", "matched", "parameters", "bytes", "changes")
    first = (base.base_name, f"{base.nodes.before:,}", "", f"{base.parameters.before:,}", size(base.bytes.before), "")
    rows = [heads, first]
    for report in reports_of_models:
        changes = listed([f"{count:,} {kind}" for kind, count in places_of(report.events).items()], 4) or "the same"
        counts = f"{report.nodes.after:,}", f"{report.matched:,}", f"{report.parameters.after:,}"
        doubt = "; not all compared" if report.incomplete else ""
        rows.append((report.target_name, *counts, size(report.bytes.after), changes + doubt))
    return table(rows, reports.width(), right=range(1, 5), indent=0)


def is_coloured() -> bool:
    """Whether git would colour a diff on this standard output, by its own settings."""
    if os.environ.get("NO_COLOR"):
        return False
    shown = "true" if output.is_terminal(sys.stdout) or os.environ.get("GIT_PAGER_IN_USE") == "true" else "false"
    try:
        return Git(Path.cwd()).line("config", "--get-colorbool", "color.diff", shown) == b"true"
    except (CommandError, OnnxJsonError):
        return False


def _check_count(changes: list[Change], options: Options) -> None:
    if options.form != "patch":
        return
    both = [change for change in changes if change.old is not None and change.new is not None]
    if len(changes) > 1 or len(both) != len(changes):
        names = listed([path_of(change) for change in changes], 5, word="and")
        raise click.UsageError(
            f"--format patch is for one model that exists on both sides, but {len(changes)} changed ({names}); "
            "name one after --"
        )


def _compared(change: Change, options: Options) -> _Compared | None:
    """Compare both sides; None if they are JSON of another program."""
    try:
        if change.old is not None and change.new is not None:
            return _both(change, change.old, change.new, options)
        version = change.new or change.old
        assert version is not None
        with open_version(version, bind=False) as side:
            return _Compared(change, _whole(side, status_of(change), options), True, side.problems)
    except OnnxJsonError as error:
        if isinstance(error, OtherJsonError) and all(map(_is_other_json, filter(None, change))):
            output.talk(f"{path_of(change)} is JSON of another program, left out; git diff shows it")
            return None
        return _Compared(change, "", True, (str(error),), failures.report_failure(error))


def _is_other_json(version: Version) -> bool:
    try:
        with open_version(version, bind=False):
            return False
    except OtherJsonError:
        return True
    except OnnxJsonError:
        return False


def _both(change: Change, old: Version, new: Version, options: Options) -> _Compared:
    pieces: list[str] = []
    if options.form != "patch":
        options = replace(options, view=options.view._replace(collected=pieces))
    bind = options.form != "unified"
    with open_version(old, bind=bind) as one, open_version(new, bind=bind) as other:
        differs, problems = compare(one, other, options)
    return _Compared(change, "".join(pieces), differs, tuple(problems))


@contextmanager
def open_version(version: Version, *, bind: bool) -> Iterator[Side]:
    """Open a model on one side, under its name for the user."""
    if version.spec is None:
        with open_side(version.path, bind=bind) as side:
            yield side._replace(name=version.name)
        return
    with open_revision(version.spec, version.name) as side:
        yield side


def status_of(change: Change) -> Status:
    """Return what happened to a model."""
    if change.old is None:
        return "added"
    if change.new is None:
        return "removed"
    return "changed" if change.old.path == change.new.path else "renamed"


def path_of(change: Change) -> str:
    """Return the file of a model; the new one if it was renamed."""
    version = change.new or change.old
    assert version is not None
    return version.file


def _whole(side: Side, status: Status, options: Options) -> str:
    """The summary of a model that is on one side only."""
    if options.form == "unified":
        from onnxjson.diffing.unified import diff_texts, digest_text

        texts = (b"", digest_text(side.model)) if status == "added" else (digest_text(side.model), b"")
        names = ("/dev/null", side.name) if status == "added" else (side.name, "/dev/null")
        lines = diff_texts(*texts, *names, context=options.context)
        coloured = options.view.coloured
        return "".join([f"{reports.styled(line, coloured=coloured)}\n" for line in lines])
    return output.counted(sum(1 for _ in walk(side.model, Node)), "node")


def _plain(compared: list[_Compared]) -> Iterator[str]:
    """Texts, separated by blank lines."""
    separator = ""
    for file in compared:
        is_plain = file.has_report or file.failure
        head = "" if is_plain else f"{output.line(file.path)} {file.status}: "
        if text := head + file.text + ("" if is_plain else "\n"):
            yield separator + text
            separator = "\n"


def _json(compared: list[_Compared]) -> Iterator[str]:
    from onnxjson.rendering.reports import DIFFS_FORMAT

    yield f'{{"format": "{DIFFS_FORMAT}",\n"files": ['
    separator = "\n"
    for file in compared:
        names = {key: version and version.name for key, version in file.change._asdict().items()}
        text = as_json({"status": file.status, **names, **({"error": file.problems[0]} if file.failure else {})}, None)
        yield separator + (f'{text[:-1]}, "diff":\n{file.text.rstrip()}}}' if file.has_report else text)
        separator = ",\n"
    yield "\n]}\n" if compared else "]}\n"


def _markdown(compared: list[_Compared]) -> Iterator[str]:
    from onnxjson.rendering.markdown_reports import LARGEST, code

    left = LARGEST
    for position, file in enumerate(compared):
        text = "\n" * (position > 0) + file.text
        if file.failure:
            text += f"### {code(file.path)}\n\n⚠️ {code(file.problems[0], 400)}\n"
        elif not file.has_report:
            text = "\n" * (position > 0) + f"### {code(file.path)} {file.status}\n\n{file.text}.\n"
        left -= len(text)
        if left < 0 and position:
            yield f"\n*{output.counted(len(compared) - position, 'more model')} left out.*\n"
            return
        yield text
    if not compared:
        yield "No models changed.\n"


def _html(compared: list[_Compared]) -> Iterator[str]:
    from onnxjson.rendering.diff_html import html_page, page_code, page_text

    links = "".join(
        f'<li><a class="kind" href="#m{number}">{page_text(each.path)}</a></li>' for number, each in enumerate(compared)
    )
    content = [f'<ul class="badges">{links}</ul>\n'] if len(compared) > 1 else []
    for number, file in enumerate(compared):
        text = file.text
        if file.failure:
            text = f'<h1>{page_code(file.path)}</h1>\n<p class="problem">{page_text(file.problems[0])}</p>\n'
        elif not file.has_report:
            text = f"<h1>{page_code(file.path)} {file.status}</h1>\n<p>{page_text(file.text)}</p>\n"
        content.append(f'<section id="m{number}">\n{text}</section>\n')
    title = output.counted(len(compared), "model") if len(compared) != 1 else compared[0].path
    return html_page(title, content or ["<p>No models changed.</p>\n"], "onnxjson diff")


_JOINED: Final[dict[str, Callable[[list[_Compared]], Iterable[str]]]] = {
    "html": _html,
    "json": _json,
    "markdown": _markdown,
    "text": _plain,
    "unified": lambda found: [each.text for each in found],
}


def _emit(pieces: Iterable[str], view: reports.View) -> None:
    """Write to git's pager, to the file, or to standard output."""
    is_text = view.destination is None and view.form in ("text", "unified") and view.pager
    if is_text and output.is_terminal(sys.stdout) and (pager := _pager()):
        processes.page((piece.encode() for piece in pieces), pager)
    else:
        view.write(pieces)


def _pager() -> str:
    """The command line of git's pager; "" for none."""
    pager = os.environ.get("GIT_PAGER")
    if pager is None:
        try:
            pager = os.fsdecode(Git(Path.cwd()).line("config", "--get", "core.pager"))
        except (CommandError, OnnxJsonError):
            pager = os.environ.get("PAGER", "less")
    return "" if pager == "cat" else pager
