"""``onnxjson edit``, ``tui`` and ``undo-save``: a model edited in an editor or in the terminal program; restored."""

import importlib
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from onnxjson.cli import failures, options, output, processes, reports
from onnxjson.cli.paths import FilePath
from onnxjson.codecs.node_blocks import block_addresses
from onnxjson.diffing import unified
from onnxjson.diffing.difference import diff_models
from onnxjson.editing import drafts
from onnxjson.editing.drafts import Draft
from onnxjson.editing.round_trip import Editing, Proposal
from onnxjson.model.conflicts import ConflictError
from onnxjson.model.display import listed
from onnxjson.model.errors import DecodeError, Finding, OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.patterns.selectors import select_nodes
from onnxjson.rendering.change_words import change_words, text_of
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.tables import size
from onnxjson.storage import files
from onnxjson.storage.backups import History, history, restore


@options.command("tui")
@click.argument("models", metavar="[MODEL [OTHER]]", nargs=-1)
@options.option("--merge", "Resolve the conflicts of a merge in MODEL, as `onnxjson mergetool` does.")
@options.option("--readonly", "Refuse every change and every save.")
@options.option(
    "--remote",
    "Save bandwidth on a slow connection; auto: over SSH.",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
)
@options.option("--ascii", "Draw with ASCII characters only.", "ascii_only", default=None)
@options.option("--no-mouse", "Leave the mouse to the terminal.")
def tui_command(
    models: tuple[str, ...], *, merge: bool, readonly: bool, remote: str, ascii_only: bool | None, no_mouse: bool
) -> None:
    """Browse and edit a model in the terminal.

    With two models, shows what changed between them. MODEL is a .onnx or .onnx.json file, REV:PATH in git, or the
    folder of a trace. Without MODEL, offers recent files.

    \b
    onnxjson tui m.onnx
    onnxjson tui before.onnx after.onnx
    """
    if merge and (len(models) != 1 or readonly):
        raise click.UsageError("--merge is for one file, which is written")
    if len(models) > 2:
        raise click.UsageError("name one model, or two to compare them")
    if not (output.is_terminal(sys.stdin) and output.is_terminal(sys.stdout)):
        raise click.UsageError("the workbench needs a terminal; `onnxjson show` and `onnxjson diff` print anywhere")
    # The terminal program imports the command line, not the other way round.
    start = importlib.import_module("onnxjson_tui.workbench.start")
    settings = {"remote": remote, "ascii_only": ascii_only, "mouse": not no_mouse}
    code: int = (
        start.resolve_file(models[0], **settings) if merge else start.start(models, readonly=readonly, **settings)
    )
    click.get_current_context().exit(code)


@options.command("edit")
@click.argument("path", metavar="MODEL", type=FilePath())
@click.argument("selector", metavar="[SELECTOR]", required=False)
@options.option("-y, --yes", "Save a valid change without asking, unless it adds errors.")
@options.option("--continue", "Continue the latest edit of MODEL that was not saved.", "continues")
@options.option("--draft FILE", "Continue a draft of an earlier edit.", "draft_path")
@options.drop_orphans
@reports.color_options
@click.pass_context
def edit_command(
    ctx: click.Context,
    path: Path,
    selector: str | None,
    *,
    yes: bool,
    continues: bool,
    draft_path: Path | None,
    drop_orphans: bool,
    color: reports.Color,
    no_pager: bool,
) -> None:
    """Edit a model in your text editor.

    Opens MODEL (.onnx, .onnx.json or proto-JSON) as text in $VISUAL or $EDITOR, with weights as sha256; with SELECTOR,
    opens only the nodes that it matches. Checks the text when the editor closes: errors are listed, and the editor
    opens again at the first one. Shows the line diff of a valid change, asks for confirmation, and saves in place;
    `onnxjson undo-save` restores the file. Text that is not saved is kept as a draft.

    \b
    onnxjson edit m.onnx
    onnxjson edit m.onnx /layer1/conv
    EDITOR='code --wait' onnxjson edit m.onnx 'op:Conv attr:group=1'
    """
    editor = processes.chosen_editor()
    if continues and draft_path is None:
        if not (unsaved := drafts.unsaved_drafts(path)):
            raise click.UsageError(
                f"there is no unsaved edit of {path} to continue; leave out --continue to begin a new one"
            )
        draft_path = unsaved[-1]
    resumed = None if draft_path is None else drafts.open_draft(draft_path)
    with output.reading(path):
        editing = Editing(path, drop_orphans=drop_orphans)
    addresses = _addresses(editing, selector)
    if resumed is None:
        for kept in drafts.unsaved_drafts(path):
            output.talk(f"an earlier edit of {path} was not saved; to continue it: {_way_back(path, kept)}")
        draft = editing.new_draft(addresses)
    else:
        draft = resumed
        draft.addresses = draft.addresses or addresses
        editing.find_places(draft)
        if editing.is_of_another_model(draft):
            output.warn(f"{path} has changed since the draft was started; saving the draft may undo these changes")
    output.findings(editing.warnings, limit=output.SHOWN)
    view = reports.View(color=color, pager=not no_pager)
    on_terminal = output.is_terminal(sys.stdin) and output.is_terminal(sys.stderr)
    ctx.exit(_Session(editing, draft, editor, view, yes, on_terminal).run())


def _addresses(editing: Editing, selector: str | None) -> tuple[str, ...]:
    """The addresses of the blocks of the nodes that a selector matches; none without one."""
    if selector is None:
        return ()
    return block_addresses(ref.address for ref in select_nodes(editing.model, Index(editing.model), selector))


def _way_back(path: Path, draft: Path) -> str:
    return f"onnxjson edit {shlex.quote(str(path))} --draft {shlex.quote(str(draft))}"


class _Session(NamedTuple):
    """One edit, from opening the editor to saving, with as many rounds as needed."""

    editing: Editing
    draft: Draft
    editor: processes.Editor
    view: reports.View
    yes: bool
    on_terminal: bool

    def run(self) -> int:
        """Edit until the change is saved or given up, report a failure and where the draft is; return the exit code."""
        try:
            return self._rounds()
        except (OnnxJsonError, click.ClickException, click.Abort) as error:
            code = failures.report_failure(error)
            self._mention_draft()
            return code
        except BaseException:
            self._mention_draft()
            raise

    def _rounds(self) -> int:
        place: tuple[int, int] | None = None
        opens = True
        while True:
            before = self.draft.content()
            if opens:
                processes.run_editor(self.editor.command(self.draft.path, place))
            if not self.draft.content().strip():
                self._give_up(before)
                return failures.INTERRUPTED
            opens = True
            try:
                with output.working("checking the text"):
                    proposal = self.editing.read(self.draft)
            except DecodeError as error:
                place, opens = self._after_errors(error)
                continue
            if proposal is None:
                self.draft.remove()
                output.talk(f"nothing changed in {self.editing.path}")
                return 0
            answer = self._is_wanted(proposal)
            if answer == "y":
                self._save(proposal)
                return 0
            if answer == "n":
                output.talk(f"{self.editing.path} was not changed")
                self._mention_draft()
                return failures.INTERRUPTED
            place = None

    def _give_up(self, before: bytes) -> None:
        """Stop, since the editor left no text; the previous text is kept if the user had edited it."""
        reason = "the text is empty" if self.draft.path.exists() else "the editor deleted the text"
        output.talk(f"{reason}, so {self.editing.path} was not changed")
        if self.draft.was_handed_out(before):
            self.draft.remove()
        else:
            self.draft.restore(before)
            self._mention_draft()

    def _after_errors(self, error: DecodeError) -> tuple[tuple[int, int] | None, bool]:
        """Return the place of the first error, and whether to open the editor again."""
        if not self.on_terminal:
            raise error
        shown = self._short(error.findings)
        output.findings(shown, limit=output.SHOWN)
        if not shown:
            output.talk(str(error))
        has_orphans = any(each.code == "unknown-owner" for each in shown) and not self.editing.drop_orphans
        drop = "[d]rop that metadata (a renamed element keeps its own), " if has_orphans else ""
        errors = output.counted(sum(each.severity == "error" for each in shown) or 1, "error")
        question = f"{errors}: [e]dit again, {drop}or [q]uit and keep the draft?"
        answer = _ask(question, "edq" if has_orphans else "eq")
        if answer == "q":
            raise DecodeError(f"{self.editing.path} was not changed: the text has errors")
        self.editing.drop_orphans = self.editing.drop_orphans or answer == "d"
        return next(((finding.line, finding.column) for finding in shown if finding.line), None), answer == "e"

    def _short(self, findings: Sequence[Finding]) -> list[Finding]:
        """Findings with the short name of the draft, which the user has just seen in the editor."""
        draft = str(self.draft.path)
        return [
            msgspec.structs.replace(each, file=self.draft.path.name) if each.file == draft else each
            for each in findings
        ]

    def _is_wanted(self, proposal: Proposal) -> str:
        """Whether to save the change: ``y``, ``n``, or ``e`` to edit it again."""
        path = self.editing.path
        self.view.show(unified.diff_texts(self.editing.text, proposal.text, str(path), f"{path} (edited)"))
        sys.stdout.flush()
        found = self._short(proposal.findings) if self.on_terminal else proposal.findings
        output.findings(found, limit=output.SHOWN)
        errors = sum(each.severity == "error" for each in found)
        if self.yes and not errors:
            return "y"
        if self.yes and not self.on_terminal:
            counted = output.counted(errors, "new error")
            raise DecodeError(f"{path} was not changed: the change adds {counted}, which --yes does not save")
        if not self.on_terminal:
            raise click.UsageError(
                f"{path} was not changed: there is no terminal to ask on; --yes saves without asking"
            )
        return _ask(f"Save this to {path}? [y]es, [e]dit again, [n]o and keep the draft:", "yen")

    def _save(self, proposal: Proposal) -> None:
        path = self.editing.path
        with output.working(f"writing {path}"):
            self.editing.save(proposal)
        self.draft.remove()
        output.talk(f"saved {path} ({output.size(path)}); {output.undo(path)}")

    def _mention_draft(self) -> None:
        """Report how to continue the draft, if the user has edited it."""
        try:
            if self.draft.is_untouched():
                self.draft.remove()
                return
        except OnnxJsonError:
            pass  # It cannot be read now, but perhaps later.
        way = _way_back(self.editing.path, self.draft.path)
        output.talk(f"your text is kept; to continue it: {way}", always=True)


def _ask(question: str, letters: str) -> str:
    # Not by input(), which forgets a Ctrl-C that comes while it flushes the prompt.
    while True:
        try:
            click.echo(output.line(question) + " ", err=True, nl=False)
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            answer = ""
        if not answer:
            output.talk("", always=True)
            raise click.Abort
        letter = answer.strip().lower()[:1]
        if letter and letter in letters:
            return letter
        output.talk(f"please answer with {listed(letters, 5, word='or')}", always=True)


@options.command("undo-save")
@reports.with_json
@click.argument("path", metavar="MODEL", type=FilePath())
@options.option(
    "--list", "List the kept versions, newest first, and what changed in each; * marks the current one.", "lists"
)
@options.option("--to N", "Restore version N of --list.", "number", type=click.IntRange(min=1))
@options.option("--redo", "Restore the next newer version.")
def undo_save_command(path: Path, *, lists: bool, number: int | None, redo: bool) -> None:
    """Restore a file as it was before its last changes in place.

    A second call restores the version before that; --redo goes forward again. The current content is kept too, so
    nothing is lost. Works after every command that changes a file in place, even if the file has been deleted since.

    \b
    onnxjson fmt m.onnx.json
    onnxjson undo-save m.onnx.json
    onnxjson undo-save m.onnx.json --list
    """
    if sum([lists, number is not None, redo]) > 1:
        raise click.UsageError("--list, --to and --redo exclude each other")
    versions = history(path)
    if lists:
        reports.show(map(output.line, _versions(path, versions)))
        return
    position = versions.neighbour(1 if redo else -1) if number is None else number - 1
    if position == versions.present and versions.sha256:
        output.talk(f"{path} is version {number} already")
        return
    if position >= len(versions.kept):
        raise click.UsageError(f"there is no version {number}; --list shows {len(versions.kept)}")
    changes = _changes(path, path, versions.kept[position].file) if versions.sha256 else ""
    restore(versions, position)
    version = f"version {position + 1} of {len(history(path).kept)}"
    output.talk(f"restored {path} ({output.size(path)}), {version}{changes and ': '}{changes}")


def _versions(path: Path, versions: History) -> Iterator[str]:
    """Yield a line for each version, newest first; the present content is one even if no backup has it."""
    places = [backup.file for backup in versions.kept]
    replaced = [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(backup.time_ns / 1e9)) for backup in versions.kept]
    if versions.sha256 and versions.present == len(places):
        places.append(path)
        replaced.append("not replaced")
    yield "     replaced                  size  change"
    for number in range(len(places), 0, -1):
        place = places[number - 1]
        change = _changes(path, places[number - 2], place) if number > 1 else "oldest"
        mark = "*" if number - 1 == versions.present and versions.sha256 else " "
        yield f"{mark} {number:>2}  {replaced[number - 1]:<19}  {size(place.stat().st_size):>9}  {change}"


def _changes(path: Path, one: Path, other: Path) -> str:
    """Return what changed between two versions of a model, in one line."""
    with output.working(f"comparing versions of {path}"):
        try:
            base, target = (files.load(place, bind=False).model for place in (one, other))
        except ConflictError:
            return "a merge with conflicts"
        except OnnxJsonError:
            return "not readable as a model"
        shown = report(diff_models(base, target, paths=(path, path)), "", "")
        return listed([text_of(words) for words in change_words(shown)]) or "only the formatting of the text"
