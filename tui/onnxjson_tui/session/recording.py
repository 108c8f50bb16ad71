"""Recorder of a session: writes each step, undo and redo to the journal as patches, and each weight only once."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from onnxjson import __version__
from onnxjson.codecs.tensor_text import payloads, sha256_of
from onnxjson.editing.script import write_edit
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import Data, Digest, Payload
from onnxjson.patching.patch import Patch
from onnxjson.patching.patch_text import PatchWriter
from onnxjson.storage.identity import Identity
from onnxjson_tui.session.history import Step
from onnxjson_tui.session.journal import FORMAT, Header, Journal, Line, StepLine, begin

MOST_BYTES: Final = 64 * 2**20
"""Size in bytes from which a journal is rewritten as one step, and again when it has doubled."""

HASHED_AT_ONCE: Final = 32 * 2**20
"""Maximum bytes of a file whose hash is in the header; a thread computes that of a bigger file later."""

_FAILURES: Final = (OnnxJsonError, MemoryError)  # a step that cannot be recorded for such a reason is made all the same


def _reason(error: Exception) -> str:
    return str(error) or "not enough memory"


@dataclass(eq=False)
class Base:
    """The model that a journal begins with: the content of the file when it was opened or saved."""

    key: str
    name: str
    model: Model
    identity: Identity

    @cached_property
    def _payloads(self) -> set[int]:
        # By identity, since hashing would read every weight. `model` keeps the objects alive.
        return {id(each) for each, _ in payloads(self.model) if isinstance(each, Payload)}

    def has(self, data: Data) -> bool:
        """Whether a payload is stored in the opened file, so that the journal does not need it."""
        return isinstance(data, Payload) and not isinstance(data, Digest) and id(data) in self._payloads

    def hash(self) -> str | None:
        """Return the SHA-256 of the file; None if it cannot be read, or was changed since."""
        try:
            return self.identity.sha256
        except _FAILURES:
            return None

    def header(self, *, hashed: bool) -> Header:
        """Return the first line of a journal."""
        return Header(
            format=FORMAT,
            version=__version__,
            key=self.key,
            name=self.name,
            size=self.identity.size,
            mtime_ns=self.identity.mtime_ns,
            sha256=self.hash() if hashed else None,
            started=time.time_ns(),
        )


class Recorder:
    """Keeps the journal of a session in sync with its history. It never refuses an edit; `trouble` reports errors.

    After a line could not be written, the next one rewrites the whole journal, so nothing is missing once there is
    space again.
    """

    _known: set[str]  # payloads in the journal
    _made: list[Step | None]  # the steps that a replay of the journal applies; None for several steps in one
    _undone: list[Step | None]

    def __init__(self, base: Base, current: Callable[[], Model]) -> None:
        self._base = base
        self._current = current
        self.journal: Journal | None = None  # the journal; None before the first step
        self._forget()
        self.trouble = ""  # why the last step is not in the journal

    def adopt(self, journal: Journal, known: Sequence[str], applied: Sequence[Step], undone: Sequence[Step]) -> None:
        """Continue the journal of a recovered session."""
        self.journal = journal
        self._known = set(known)
        self._made = list(applied)
        self._undone = list(undone)
        self._limit = max(MOST_BYTES, 2 * journal.size)

    def made(self, step: Step) -> None:
        """Record that a step was applied or redone."""
        if self._undone and self._undone[-1] is step and self._write(Line(redo=True)):
            self._made.append(self._undone.pop())
        elif self._write_step(step, step.forward):
            self._made.append(step)
            self._undone.clear()

    def undone_step(self, step: Step) -> None:
        """Record that a step was undone."""
        if self._made and self._made[-1] is step:
            if self._write(Line(undo=True)):
                self._undone.append(self._made.pop())
        elif self._write_step(Step(step.backward, given_title=f"undo: {step.title}"), step.backward):
            # It was applied before this journal began, so a replay treats its undo as a step.
            self._made.append(None)
            self._undone.clear()

    def saving(self) -> None:
        """Record that a save begins, so that a journal left by a kill after the save is recognised as saved."""
        if self.journal is not None:
            self._write(Line(saving=True))

    def finish(self, base: Base) -> None:
        """Discard the journal after a save; the next one begins with the saved model."""
        self.discard()
        self._base = base

    def discard(self) -> None:
        """Remove the journal."""
        if self.journal is not None:
            self.journal.remove()
        self.journal = None
        self._forget()
        self.trouble = ""

    def sync(self) -> None:
        """Sync every line to the disk."""
        if self.journal is not None:
            self.journal.sync()

    def close(self) -> None:
        """Close the journal and leave it for recovery."""
        if self.journal is not None:
            self.journal.close()
        self.journal = None

    def _forget(self) -> None:
        self._known = set()
        self._made = []
        self._undone = []
        self._limit = MOST_BYTES

    def _write(self, line: Line) -> bool:
        """Append a line; return False if the whole journal was rewritten instead, or cannot be written."""
        if self.journal is None or self.trouble or self.journal.size > self._limit:
            self.rewrite()
            return False
        try:
            self.journal.append(line)
        except _FAILURES as error:
            self.trouble = _reason(error)
            return False
        return True

    def _write_step(self, step: Step, patch: Patch) -> bool:
        if self.journal is None and not self.trouble and not self._begin():
            return False
        try:
            line, table = self._line(step, patch)
        except _FAILURES as error:
            self.trouble = f"the step cannot be written to the journal: {_reason(error)}"
            return False
        if not self._write(line):
            return False
        self._known |= table
        return True

    def _begin(self) -> bool:
        small = self._base.identity.size <= HASHED_AT_ONCE
        try:
            self.journal = begin(self._base.header(hashed=small))
        except _FAILURES as error:
            self.trouble = _reason(error)
            return False
        if not small:
            arguments = (self._base, self.journal)
            threading.Thread(target=_append_hash, args=arguments, name="hash", daemon=True).start()
        return True

    def _line(self, step: Step, patch: Patch) -> tuple[Line, set[str]]:
        parts: list[bytes] = []
        writer = _StepWriter(parts.append, self._base, self._known)
        writer.patch(patch)
        step_line = StepLine(
            patch=b"".join(parts).decode(),
            edits=tuple([write_edit(edit) for edit in step.edits]),
            title=step.title,
            apart=writer.apart,
            has_files=bool(step.files),
        )
        return Line(step=step_line), set(writer.table)

    def rewrite(self) -> None:
        """Replace the journal by a new one with all changes as one step."""
        old, self.journal = self.journal, None
        self._forget()
        self.trouble = ""
        patch = Patch.between(self._base.model, self._current())
        step = Step(patch, given_title="all steps since the model was opened or saved")
        try:
            if self._begin() and self.journal is not None:
                line, self._known = self._line(step, patch)
                self.journal.append(line)
                self._made = [None]
                self._limit = max(MOST_BYTES, 2 * self.journal.size)
        except _FAILURES as error:
            self.trouble = _reason(error)
        if self.trouble:
            # The old journal is better than none.
            if self.journal is not None:
                self.journal.remove()
            self.journal = old
        elif old is not None:
            old.remove()


class _StepWriter(PatchWriter):
    """Writes a patch without payloads that a replay finds elsewhere."""

    def __init__(self, write: Callable[[bytes], object], base: Base, known: set[str]) -> None:
        super().__init__(write, known)
        self._base = base
        self.apart: dict[str, int] = {}

    def _put(self, data: Data) -> bytes:
        if self._base.has(data):
            sha256 = sha256_of(data)
            self.apart[sha256] = len(data)
            return sha256.encode()
        return super()._put(data)


def _append_hash(base: Base, journal: Journal) -> None:
    sha256 = base.hash()
    if sha256 is not None:
        try:
            journal.append(Line(sha256=sha256))
        except _FAILURES:
            return  # The session has ended, or the disk is full, which the next step reports.
