"""Nodes as text in the person's own editor, and what comes back as one step."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnxjson.checking import Finding
from onnxjson.display import counted, visible
from onnxjson.edits.declaration import Edit
from onnxjson.errors import AddressError, DecodeError, OnnxJsonError
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import wrapped
from onnxjson_tui import external_editor
from onnxjson_tui.action import Action, Given
from onnxjson_tui.answers import Preview
from onnxjson_tui.entering import program
from onnxjson_tui.jobs import said
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.choosing import ConfirmScreen, PickerScreen
from onnxjson_tui.screens.recovery import ago

if TYPE_CHECKING:
    from onnxjson.document import Model
    from onnxjson.drafts import Draft
    from onnxjson.editing import Handout, ModelEditing
    from onnxjson_tui.session import Session
    from onnxjson_tui.workbench import Workbench

_STYLES: Final[dict[str, Style]] = {"removed": "removed", "added": "added", "hunk": "title", "context": "plain"}

_WIDTH: Final = 66

_EXPRESSED: Final = 3_000
"""Nodes up to which a change is looked at for edits that say it, so that History has its commands."""


async def edit_text(bench: "Workbench", given: Given) -> None:
    """The selected nodes, or the one under the cursor, in $EDITOR."""
    from onnxjson.editing import ModelEditing

    session = bench.session
    addresses = list(session.places.selected) or ([bench.here.address] if bench.here is not None else [])
    if not addresses:
        bench.say("there is no node here to edit")
        return
    editing = ModelEditing(session.model, _named_after(session))
    # Whether the file is another one by the time a kept draft is taken up takes its whole text to know.
    draft = await bench.jobs.awaited(
        "draft", "writing the text", lambda: editing.new_draft(addresses, knows_model=False)
    )
    await _Round(bench, editing, draft).run()


async def take_up(bench: "Workbench", given: Given) -> None:
    """A text that was kept, in $EDITOR again."""
    from onnxjson.drafts import kept_for, take_up
    from onnxjson.editing import ModelEditing

    path = _named_after(bench.session)
    kept = await bench.jobs.awaited("draft", "looking for texts", lambda: [_choice(each) for each in kept_for(path)])
    if not kept:
        bench.say("no text of this model was kept")
        return
    name = await bench.app.push_screen_wait(PickerScreen("Take up a text that was kept", kept[::-1]))
    if name is None:
        return
    draft, editing = take_up(Path(name)), ModelEditing(bench.session.model, path)
    try:
        await bench.jobs.awaited("draft", "looking for its nodes", lambda: editing.find_places(draft))
    except AddressError as error:
        bench.say(f"{error}; nothing was changed, the text stays in {draft.path}", "bad")
        return
    await _Round(bench, editing, draft).run()


def _choice(path: Path) -> Choice:
    """A text that was kept: which nodes it is of, and since when."""
    from onnxjson.drafts import take_up

    draft = take_up(path)
    names = [f"{each[-1].operator} {each[-1].name or next(iter(each[-1].made), '')}".strip() for each in draft.ways]
    nodes = visible(names[0], 60) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "") if names else ""
    addresses = visible(", ".join(draft.addresses), 60)
    when = f"{ago(time.time() - path.stat().st_mtime)} ago"
    return Choice(str(path), nodes or addresses or "the whole model", f"{when}  {addresses if nodes else ''}".rstrip())


def _named_after(session: "Session") -> Path:
    """The file that drafts are kept for; of a revision, the name that it has there."""
    return session.opened.path or Path(session.opened.name.rpartition(":")[2])


class _Round:
    """One text, from the editor back to the model, as often as it takes."""

    def __init__(self, bench: "Workbench", editing: "ModelEditing", draft: "Draft") -> None:
        self._bench = bench
        self._editing = editing
        self._draft = draft

    async def run(self) -> None:
        """Until the change is made, given up or kept. What goes wrong leaves the text."""
        place: tuple[int, int] | None = None
        while True:
            try:
                place = await self._once(place)
            except (OnnxJsonError, OSError) as error:
                self._keep(said(error))
                return
            if place is None:
                return

    async def _once(self, place: tuple[int, int] | None) -> tuple[int, int] | None:
        """Where the editor is to open again; None where that is over."""
        bench, draft = self._bench, self._draft
        bench.session.sync()
        before = draft.content()
        external_editor.edit(bench.app, draft.path, None if place in (None, (0, 0)) else place)
        # What was typed before the editor came was not meant for the question that comes after it.
        program(bench.app).keys.drop()
        if not draft.content().strip():
            self._given_up(before)
            return None
        try:
            read = await bench.jobs.awaited("draft", "checking the text", lambda: self._editing.read_model(draft))
        except DecodeError as error:
            return await self._after_mistakes(error)
        found = await bench.jobs.awaited("draft", "finding out what changes", lambda: self._changes(read))
        preview, difference = found
        if not preview.patch:
            draft.remove()
            bench.say("nothing changed")
            return None
        return await self._offer(preview, read.findings, difference)

    def _given_up(self, before: bytes) -> None:
        """The editor left nothing; what it was given is kept where a person had typed that."""
        draft, bench = self._draft, self._bench
        reason = "the text is empty" if draft.path.exists() else "the editor has removed the text"
        if draft.was_handed_out(before):
            draft.remove()
            bench.say(f"{reason}, so the model stays as it is", "changed")
        else:
            draft.restore(before)
            bench.say(f"{reason}; the model stays as it is, and :take-up opens what you had before", "changed")

    async def _after_mistakes(self, error: DecodeError) -> tuple[int, int] | None:
        found = error.findings
        lines = [line for each in found for line in _finding_lines(each)] or _plain(said(error))
        count = counted(sum(each.severity == "error" for each in found) or 1, "mistake")
        answer = await self._bench.app.push_screen_wait(
            ConfirmScreen(
                f"The text has {count}",
                [("e", "edit again", "again"), ("k", "keep the text for later", "keep"), ("D", "drop it", "drop")],
                lines=lines,
                escape="keep",
            )
        )
        return self._next(answer, next(((each.line, each.column) for each in found if each.line), (0, 0)))

    async def _offer(
        self, preview: Preview, findings: Sequence[Finding], difference: Sequence[Line]
    ) -> tuple[int, int] | None:
        errors = sum(each.severity == "error" for each in findings)
        lines = [line for each in findings for line in _finding_lines(each)]
        lines += [(Span(""),)] if lines else []
        lines += self._moved()
        lines += difference
        answer = await self._bench.app.push_screen_wait(
            ConfirmScreen(
                "Make this change?" if not errors else f"Make this change? It brings {counted(errors, 'new error')}",
                [
                    ("y", "make it", "make"),
                    ("e", "edit again", "again"),
                    ("k", "keep the text, change nothing", "keep"),
                    ("D", "drop the text", "drop"),
                ],
                lines=lines,
                escape="keep",
            )
        )
        if answer != "make":
            return self._next(answer, (0, 0))
        if self._bench.accept(preview) is None:
            # What was typed is worth more than a tidy folder: the model may have changed meanwhile.
            self._keep("the change was not made")
        else:
            self._draft.remove()
        return None

    def _next(self, answer: str, place: tuple[int, int]) -> tuple[int, int] | None:
        if answer == "again":
            return place
        if answer == "drop":
            self._draft.remove()
            self._bench.say("the text is gone, and the model stays as it is")
        else:
            self._keep("the model stays as it is")
        return None

    def _keep(self, reason: str) -> None:
        """Says how the text is taken up again, if anybody has edited it."""
        try:
            is_untouched = self._draft.is_untouched()
        except OnnxJsonError:
            is_untouched = False
        if is_untouched:
            self._draft.remove()
            self._bench.say(reason, "changed")
        else:
            self._bench.say(f"{reason}; the text is kept, :take-up opens it again", "changed")

    def _changes(self, read: "Handout") -> tuple[Preview, list[Line]]:
        """What a text would do, and that in the lines of canonical texts: how it is broken into lines is no change."""
        from onnxjson.rendering.unified import diff_texts

        preview = self._preview(read.model)
        if not preview.patch:
            return preview, []
        found = diff_texts(*self._editing.compared(read), "as it is", "edited")
        return preview, [(Span(line.text, _STYLES[line.kind]),) for line in found if line.kind != "file"]

    def _moved(self) -> list[Line]:
        """Which nodes stand elsewhere than the text says."""
        places = self._draft.places or {}
        texts = [
            f"{visible(then, None)} of the text is {visible(now, None)} now"
            for then, now in places.items()
            if then != now
        ]
        lines: list[Line] = [(Span(part, "changed"),) for text in texts for part in wrapped(text, _WIDTH, indent=2)]
        return [*lines, (Span(""),)] if lines else []

    def _preview(self, model: "Model") -> Preview:
        from onnxjson.node_blocks import node_addresses

        session = self._bench.session
        edits = _expressed(self._editing.model, model)
        count = sum(len(node_addresses(each)) for each in self._draft.addresses)
        title = "" if edits else f"edit the text of {counted(count, 'node') if count else 'the model'}"
        preview = session.preview_model(model, title, edits)
        _ = preview.patch
        return preview


def _expressed(before: "Model", after: "Model") -> tuple[Edit, ...]:
    """Edits that say the whole change; none where there are none, or it takes too long to know."""
    from onnxjson.diffing.difference import diff
    from onnxjson.edits.expressing import express

    if before.graph is None or len(before.graph.node) > _EXPRESSED:
        return ()
    try:
        found = express(before, after, diff(before, after).alignment)
    except OnnxJsonError:
        return ()
    return () if found.reason or found.left_out else found.edits


def _finding_lines(finding: Finding) -> list[Line]:
    place = f"{finding.line}:{finding.column}: " if finding.line else f"{finding.address}: " if finding.address else ""
    text = f"{place}{finding.severity}: {finding.message}"
    lines: list[Line] = [(Span(each, "bad"),) for each in wrapped(text, _WIDTH, indent=0)]
    return lines + [(Span(each, "quiet"),) for each in wrapped(finding.hint, _WIDTH, indent=2)]


def _plain(text: str) -> list[Line]:
    return [(Span(each, "bad"),) for each in wrapped(text, _WIDTH, indent=0)]


ACTIONS: Final = (
    Action(
        "edit-text",
        "edit the node, or the selected ones, as text in $EDITOR",
        ("E",),
        edit_text,
        "Edit",
        changes=True,
        footer="$EDITOR",
        help="Nodes that follow each other are one list, replaced as a whole; weights stand as digests.",
    ),
    Action("take-up", "open a text again that $EDITOR left and that was kept", (), take_up, "Edit", changes=True),
)
