"""Edit nodes as text in $EDITOR; the result is one step."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnxjson.model.display import counted, visible
from onnxjson.model.errors import AddressError, DecodeError, Finding, OnnxJsonError
from onnxjson.rendering.tables import Line, Span, Style, wrapped
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.saving import ago
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell import terminal
from onnxjson_tui.shell.jobs import error_text
from onnxjson_tui.shell.terminal import program
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments

if TYPE_CHECKING:
    from onnxjson.editing.drafts import Draft
    from onnxjson.editing.round_trip import Handout, ModelEditing
    from onnxjson.model.document import Model
    from onnxjson_tui.session.session import Session

_STYLES: Final[dict[str, Style]] = {"removed": "removed", "added": "added", "hunk": "title", "context": "plain"}

_WIDTH: Final = 66


async def _edit_text(workbench: Workbench, arguments: Arguments) -> None:
    from onnxjson.editing.drafts import unsaved_drafts
    from onnxjson.editing.round_trip import ModelEditing

    session = workbench.session
    path = _named_after(session)
    kept = await workbench.jobs.awaited(
        "draft", "looking for drafts", lambda: [_choice(each) for each in unsaved_drafts(path)]
    )
    if kept:
        new = Choice("", "no draft: the nodes as they are")
        chosen = await workbench.choose("Edit as text", [*kept[::-1], new], is_wide=True)
        if chosen is None:
            return
        if chosen:
            await _resume(workbench, chosen)
            return
    addresses = list(session.places.selected) or ([workbench.here.address] if workbench.here is not None else [])
    if not addresses:
        workbench.say("there is no node here to edit")
        return
    editing = ModelEditing(session.model, path)
    # A digest of the whole model would tell whether the file changed before a kept draft is opened again, but is slow.
    draft = await workbench.jobs.awaited(
        "draft", "writing the text", lambda: editing.new_draft(addresses, knows_model=False)
    )
    await _EditorLoop(workbench, editing, draft).run()


async def _resume(workbench: Workbench, name: str) -> None:
    """Open a draft again."""
    from onnxjson.editing.drafts import open_draft
    from onnxjson.editing.round_trip import ModelEditing

    draft, editing = open_draft(Path(name)), ModelEditing(workbench.session.model, _named_after(workbench.session))
    try:
        await workbench.jobs.awaited("draft", "looking for its nodes", lambda: editing.find_places(draft))
    except AddressError as error:
        workbench.say(f"{error}; nothing was changed, the text remains in {draft.path}", "bad")
        return
    await _EditorLoop(workbench, editing, draft).run()


def _choice(path: Path) -> Choice:
    from onnxjson.editing.drafts import open_draft

    draft = open_draft(path)
    names = [f"{each[-1].operator} {each[-1].name or next(iter(each[-1].made), '')}".strip() for each in draft.ways]
    nodes = visible(names[0], 60) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "") if names else ""
    addresses = visible(", ".join(draft.addresses), 60)
    when = f"{ago(time.time() - path.stat().st_mtime)} ago"
    return Choice(str(path), nodes or addresses or "the whole model", f"{when}  {addresses if nodes else ''}".rstrip())


def _named_after(session: "Session") -> Path:
    """Return the file that drafts belong to; for a revision, the file name in it."""
    return session.opened.path or Path(session.opened.name.rpartition(":")[2])


class _EditorLoop:
    """Opens one text in the editor until it is applied, dropped or kept."""

    def __init__(self, workbench: Workbench, editing: "ModelEditing", draft: "Draft") -> None:
        self._workbench = workbench
        self._editing = editing
        self._draft = draft

    async def run(self) -> None:
        """Repeat until the change is applied, dropped or kept; an error keeps the text."""
        place: tuple[int, int] | None = None
        while True:
            try:
                place = await self._once(place)
            except (OnnxJsonError, OSError) as error:
                self._keep(error_text(error))
                return
            if place is None:
                return

    async def _once(self, place: tuple[int, int] | None) -> tuple[int, int] | None:
        """Open the editor once; return the line and column for the next time, or None at the end."""
        workbench, draft = self._workbench, self._draft
        workbench.session.sync()
        before = draft.content()
        terminal.edit_file(workbench.app, draft.path, None if place in (None, (0, 0)) else place)
        # Keys typed before the editor opened are not answers to the next question.
        program(workbench.app).keys.drop()
        if not draft.content().strip():
            self._emptied(before)
            return None
        return await self._read()

    async def _read(self) -> tuple[int, int] | None:
        """Read the text and offer the change; return the place for the next time, or None at the end."""
        workbench, draft = self._workbench, self._draft
        try:
            read = await workbench.jobs.awaited("draft", "checking the text", lambda: self._editing.read_model(draft))
        except DecodeError as error:
            return await self._after_mistakes(error)
        found = await workbench.jobs.awaited("draft", "computing the changes", lambda: self._changes(read))
        preview, difference = found
        if not preview.patch:
            draft.remove()
            workbench.say("nothing changed")
            return None
        return await self._offer(preview, read.findings, difference)

    def _emptied(self, before: bytes) -> None:
        """Handle an empty or deleted text: keep the previous text if the user had edited it."""
        draft, workbench = self._draft, self._workbench
        reason = "the text is empty" if draft.path.exists() else "the editor removed the text"
        if draft.was_handed_out(before):
            draft.remove()
            workbench.say(f"{reason}, so the model is unchanged", "changed")
        else:
            draft.restore(before)
            workbench.say(f"{reason}; the model is unchanged, and E opens your previous text again", "changed")

    async def _after_mistakes(self, error: DecodeError) -> tuple[int, int] | None:
        findings = error.findings
        lines = [line for each in findings for line in _finding_lines(each)] or _plain(error_text(error))
        count = counted(sum(each.severity == "error" for each in findings) or 1, "mistake")
        answers = [("e", "edit again", "again"), ("k", "keep the text for later", "keep"), ("D", "delete it", "drop")]
        if any(each.code == "unknown-owner" for each in findings) and not self._editing.drop_orphans:
            answers.insert(1, ("d", "drop that metadata (a renamed element keeps its own)", "orphans"))
        answer = await self._workbench.confirm(f"The text has {count}", answers, lines=lines, escape="keep")
        if answer == "orphans":
            self._editing.drop_orphans = True
            return await self._read()
        return self._next(answer, next(((each.line, each.column) for each in findings if each.line), (0, 0)))

    async def _offer(
        self, preview: Preview, findings: Sequence[Finding], difference: Sequence[Line]
    ) -> tuple[int, int] | None:
        errors = sum(each.severity == "error" for each in findings)
        lines = [line for each in findings for line in _finding_lines(each)]
        lines += [(Span(""),)] if lines else []
        lines += [*self._moved(), *difference]
        answers = [
            ("y", "make it", "make"),
            ("e", "edit again", "again"),
            ("k", "keep the text, change nothing", "keep"),
            ("D", "delete the text", "drop"),
        ]
        question = "Make this change?" if not errors else f"Make this change? It adds {counted(errors, 'new error')}"
        answer = await self._workbench.confirm(question, answers, lines=lines, escape="keep")
        if answer != "make":
            return self._next(answer, (0, 0))
        if self._workbench.accept(preview) is None:
            # The model may have changed in the meantime; the text must not be lost.
            self._keep("the change was not made")
        else:
            self._draft.remove()
        return None

    def _next(self, answer: str, place: tuple[int, int]) -> tuple[int, int] | None:
        if answer == "again":
            return place
        if answer == "drop":
            self._draft.remove()
            self._workbench.say("the text is deleted, and the model is unchanged")
        else:
            self._keep("the model is unchanged")
        return None

    def _keep(self, reason: str) -> None:
        """Keep the text and report how to open it again; delete one that was not edited."""
        try:
            is_untouched = self._draft.is_untouched()
        except OnnxJsonError:
            is_untouched = False
        if is_untouched:
            self._draft.remove()
            self._workbench.say(reason, "changed")
        else:
            self._workbench.say(f"{reason}; it is kept as a draft, E opens it again", "changed")

    def _changes(self, read: "Handout") -> tuple[Preview, list[Line]]:
        """Return the preview of a text, and its diff in canonical form, which ignores line breaks."""
        from onnxjson.diffing.unified import diff_texts

        preview = self._preview(read.model)
        if not preview.patch:
            return preview, []
        found = diff_texts(*self._editing.compared(read), "current", "edited")
        return preview, [(Span(line.text, _STYLES[line.kind]),) for line in found if line.kind != "file"]

    def _moved(self) -> list[Line]:
        places = self._draft.places or {}
        texts = [
            f"{visible(then, None)} in the text is now {visible(now, None)}"
            for then, now in places.items()
            if then != now
        ]
        lines: list[Line] = [(Span(part, "changed"),) for text in texts for part in wrapped(text, _WIDTH, indent=2)]
        return [*lines, (Span(""),)] if lines else []

    def _preview(self, model: "Model") -> Preview:
        from onnxjson.codecs.node_blocks import node_addresses

        session = self._workbench.session
        model = session.with_types(model)
        count = sum(len(node_addresses(each)) for each in self._draft.addresses)
        title = f"edit the text of {counted(count, 'node') if count else 'the model'}"
        preview = session.preview_model(model, title)
        _ = preview.patch
        return preview


def _finding_lines(finding: Finding) -> list[Line]:
    place = f"{finding.line}:{finding.column}: " if finding.line else f"{finding.address}: " if finding.address else ""
    text = f"{place}{finding.severity}: {finding.message}"
    lines: list[Line] = [(Span(each, "bad"),) for each in wrapped(text, _WIDTH, indent=0)]
    return lines + [(Span(each, "quiet"),) for each in wrapped(finding.hint, _WIDTH, indent=2)]


def _plain(text: str) -> list[Line]:
    return [(Span(each, "bad"),) for each in wrapped(text, _WIDTH, indent=0)]


ACTIONS: Final = (
    Action(
        "edit-text", "edit as text in $EDITOR", ("E",), _edit_text, "Edit", changes=True,
        help="The node, or the selected ones; consecutive ones are one list, replaced as a whole. Weights are shown as "
        "digests. If there are drafts, it offers them.",
    ),
)  # fmt: skip
