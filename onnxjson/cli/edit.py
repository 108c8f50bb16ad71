"""``onnxjson edit``: a model changed in the person's own editor."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from onnxjson.checking import Finding
from onnxjson.cli import editors, failures, output, paging, processes
from onnxjson.cli.paths import FilePath
from onnxjson.errors import DecodeError, OnnxJsonError

if TYPE_CHECKING:
    from onnxjson.drafts import Draft
    from onnxjson.editing import Editing, Proposal


@click.command("edit")
@click.argument("path", metavar="MODEL", type=FilePath())
@click.argument("selector", metavar="[SELECTOR]", required=False)
@click.option("-y", "--yes", is_flag=True, help="Save a valid change that makes no new errors without asking.")
@click.option(
    "--draft",
    "draft_path",
    metavar="FILE",
    type=FilePath(),
    help="Take up a text that an earlier edit kept.",
)
@click.option("--drop-orphans", is_flag=True, help="Leave out metadata whose element is not there any more.")
@paging.options
@click.pass_context
def command(
    ctx: click.Context,
    path: Path,
    selector: str | None,
    *,
    yes: bool,
    draft_path: Path | None,
    drop_orphans: bool,
    color: paging.Colour,
    no_pager: bool,
) -> None:
    """Change a model in your editor.

    Opens the text of MODEL (.onnx, .onnx.json or proto-JSON) in $VISUAL or $EDITOR, weights as sha256; with SELECTOR
    only the nodes that it finds. What comes back is checked: mistakes are shown, and the editor opens again at the
    first one. A valid change is shown line by line and saved in place after a yes; undo-save takes it back. A text
    is never lost: until it is saved it is kept, and the way to take it up again is said.

    \b
    onnxjson edit m.onnx
    onnxjson edit m.onnx /layer1/conv
    EDITOR='code --wait' onnxjson edit m.onnx 'op:Conv attr:group=1'
    """
    from onnxjson import drafts
    from onnxjson.editing import Editing

    editor = editors.chosen()
    taken_up = None if draft_path is None else drafts.take_up(draft_path)
    with output.working(f"reading {path}"):
        editing = Editing(path, drop_orphans=drop_orphans)
    addresses = _addresses(editing, selector)
    if taken_up is None:
        _mention_kept(path)
        draft = editing.new_draft(addresses)
    else:
        draft = taken_up
        draft.addresses = draft.addresses or addresses
        editing.find_places(draft)
        if editing.is_of_another_model(draft):
            output.warn(f"{path} has changed since the draft was begun; the draft may take back what others changed")
    output.findings(editing.warnings, limit=failures.SHOWN)
    show = _Show(coloured=paging.is_coloured(color), pager=not no_pager)
    ctx.exit(_Session(editing, draft, editor, show, yes=yes).run())


def _addresses(editing: "Editing", selector: str | None) -> tuple[str, ...]:
    """Those of the blocks of the nodes that a selector finds; none without one."""
    if selector is None:
        return ()
    from onnxjson.index import Index
    from onnxjson.node_blocks import block_addresses
    from onnxjson.selectors import select_nodes

    found = select_nodes(editing.model, Index(editing.model), selector)
    return block_addresses(ref.address for ref in found)


def _mention_kept(path: Path) -> None:
    from onnxjson.drafts import kept_for

    for kept in kept_for(path):
        output.talk(f"an earlier edit of {path} was not saved; to take it up: {_way_back(path, kept)}")


def _way_back(path: Path, draft: Path) -> str:
    return f"onnxjson edit {shlex.quote(str(path))} --draft {shlex.quote(str(draft))}"


class _Show:
    """How differences are shown."""

    def __init__(self, *, coloured: bool, pager: bool) -> None:
        self._coloured = coloured
        self._pager = pager

    def differences(self, path: Path, old: bytes, new: bytes) -> None:
        """The line diff of two texts of one model."""
        from onnxjson.rendering import unified

        lines = unified.diff_texts(old, new, str(path), f"{path} (edited)")
        paging.show((paging.diff_line(line, coloured=self._coloured) for line in lines), pager=self._pager)
        sys.stdout.flush()


class _Session:
    """One edit, from opening the editor to saving, with as many rounds as it takes."""

    def __init__(self, editing: "Editing", draft: "Draft", editor: editors.Editor, show: _Show, *, yes: bool) -> None:
        self._editing = editing
        self._draft = draft
        self._editor = editor
        self._show = show
        self._yes = yes
        self._on_terminal = sys.stdin.isatty() and sys.stderr.isatty()

    def run(self) -> int:
        """Edit until the change is saved or given up; the exit code. A failure is said, and then where the draft is."""
        try:
            return self._rounds()
        except (OnnxJsonError, click.ClickException, click.Abort) as error:
            code = failures.report(error)
            self._say_where_it_is()
            return code
        except BaseException:
            self._say_where_it_is()
            raise

    def _rounds(self) -> int:
        place: tuple[int, int] | None = None
        while True:
            before = self._draft.content()
            processes.run_editor(self._editor.command(self._draft.path, place))
            if not self._draft.content().strip():
                self._give_up(before)
                return failures.INTERRUPTED
            try:
                with output.working("checking the text"):
                    proposal = self._editing.read(self._draft)
            except DecodeError as error:
                place = self._after_mistakes(error)
                continue
            if proposal is None:
                self._draft.remove()
                output.talk(f"nothing changed; {self._editing.path} stays as it is")
                return 0
            answer = self._is_wanted(proposal)
            if answer == "y":
                self._save(proposal)
                return 0
            if answer == "n":
                output.talk(f"{self._editing.path} stays as it is")
                self._say_where_it_is()
                return failures.INTERRUPTED
            place = None

    def _give_up(self, before: bytes) -> None:
        """The editor left nothing; what it was given is kept where a person had typed that."""
        reason = "the text is empty" if self._draft.path.exists() else "the editor has removed the text"
        output.talk(f"{reason}, so {self._editing.path} stays as it is")
        if self._draft.was_handed_out(before):
            self._draft.remove()
        else:
            self._draft.restore(before)
            self._say_where_it_is()

    def _after_mistakes(self, error: DecodeError) -> tuple[int, int] | None:
        """Where the editor is to open again.

        Raises:
            DecodeError: it is not.
        """
        if not self._on_terminal:
            raise error
        shown = self._short(error.findings)
        output.findings(shown, limit=failures.SHOWN)
        if not shown:
            output.talk(str(error))
        answer = _ask(f"{_mistakes(shown)}: [e]dit again, or [q]uit and keep the draft?", "eq")
        if answer == "q":
            raise DecodeError(f"{self._editing.path} was not changed: the text has mistakes")
        return next(((finding.line, finding.column) for finding in shown if finding.line), None)

    def _short(self, found: Sequence[Finding]) -> list[Finding]:
        """Findings with the plain name of the draft, which the person has just seen in the editor."""
        draft = str(self._draft.path)
        return [
            msgspec.structs.replace(each, file=self._draft.path.name) if each.file == draft else each for each in found
        ]

    def _is_wanted(self, proposal: "Proposal") -> str:
        """Whether the change is to be saved: ``y``, ``n``, or ``e`` to edit it again.

        Raises:
            DecodeError: the model would have errors that it has not, and nobody can be asked.
            click.UsageError: nobody can be asked.
        """
        path = self._editing.path
        self._show.differences(path, self._editing.text, proposal.text)
        found = self._short(proposal.findings) if self._on_terminal else proposal.findings
        output.findings(found, limit=failures.SHOWN)
        errors = sum(each.severity == "error" for each in found)
        if self._yes and not errors:
            return "y"
        if self._yes and not self._on_terminal:
            counted = output.counted(errors, "new error")
            raise DecodeError(f"{path} was not changed: it would have {counted}, which --yes does not save")
        if not self._on_terminal:
            raise click.UsageError(f"{path} was not changed: nobody can be asked here; say --yes to save without")
        return _ask(f"Save this to {path}? [y]es, [e]dit again, [n]o and keep the draft:", "yen")

    def _save(self, proposal: "Proposal") -> None:
        path = self._editing.path
        with output.working(f"writing {path}"):
            self._editing.save(proposal)
        self._draft.remove()
        output.talk(f"saved {path} ({output.size(path)}); to undo: onnxjson undo-save {shlex.quote(str(path))}")

    def _say_where_it_is(self) -> None:
        """Say how the text is taken up again, if anybody has edited it."""
        try:
            if self._draft.is_untouched():
                self._draft.remove()
                return
        except OnnxJsonError:
            pass  # It cannot be read now, and perhaps it can later.
        output.talk(f"your text is kept; to take it up again: {_way_back(self._editing.path, self._draft.path)}")


def _mistakes(found: Sequence[Finding]) -> str:
    return output.counted(sum(each.severity == "error" for each in found) or 1, "mistake")


def _ask(question: str, letters: str) -> str:
    """The letter that the person answers with.

    Raises:
        click.Abort: the person pressed Ctrl-C, or the terminal is gone.
    """
    # Not by input(), which forgets a Ctrl-C that comes while it flushes the prompt.
    while True:
        try:
            click.echo(output.line(question) + " ", err=True, nl=False)
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            answer = ""
        if not answer:
            output.talk("")
            raise click.Abort
        letter = answer.strip().lower()[:1]
        if letter and letter in letters:
            return letter
        output.talk(f"please answer with {', '.join(letters[:-1])} or {letters[-1]}")
