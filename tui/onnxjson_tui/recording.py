"""What a session writes to its journal: each step, undo and redo, as what changed, and no weight twice."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from onnxjson import __version__
from onnxjson.canonical.payload_forms import payloads, sha256_of
from onnxjson.document import Model
from onnxjson.edits.script import write_edit
from onnxjson.errors import OnnxJsonError
from onnxjson.identity import Identity
from onnxjson.patching import Patch
from onnxjson.patching.storing import PatchWriter
from onnxjson.payloads import Data, Digest, Payload
from onnxjson_tui.history import Step
from onnxjson_tui.journal import FORMAT, Header, Journal, Line, StepLine, begin

MOST_BYTES: Final = 64 * 2**20
"""Bytes of a journal from which it is written anew as one step, if that is half as long."""

HASHED_AT_ONCE: Final = 32 * 2**20
"""Bytes of a file up to which its hash is in the header; that of a bigger one is found by a thread and comes later."""


class Base:
    """The model that a journal begins with: what the file held when it was opened or saved."""

    def __init__(self, key: str, name: str, model: Model, identity: Identity) -> None:
        self.key = key
        self.name = name
        self.model = model
        self.identity = identity
        self._payloads: set[int] | None = None

    def has(self, data: Data) -> bool:
        """Whether bytes that are not in memory are in the file that was opened, so that no journal needs them."""
        if not isinstance(data, Payload) or isinstance(data, Digest):
            return False
        if self._payloads is None:
            # The objects themselves: their hashes would mean to read every weight. `model` keeps them alive.
            self._payloads = {id(each) for each, _ in payloads(self.model) if isinstance(each, Payload)}
        return id(data) in self._payloads

    def hash(self) -> str | None:
        """The SHA-256 of the file; None where another program has changed it since."""
        try:
            return self.identity.sha256
        except OnnxJsonError:
            return None

    def header(self, *, hashed: bool) -> Header:
        """The first line of a journal."""
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
    """Keeps the journal of one session in step with its history. It never stops an edit: `trouble` says what is wrong.

    Where a line cannot be written, the next one is an attempt to write the whole journal anew, so nothing is missing
    from it once there is room again.
    """

    def __init__(self, base: Base, current: Callable[[], Model]) -> None:
        self._base = base
        self._current = current
        self._journal: Journal | None = None
        self._known: set[str] = set()
        """Payloads that stand in the journal."""
        self._made: list[Step | None] = []
        """The steps that a reader of the journal would have made; None for several in one."""
        self._undone: list[Step | None] = []
        self._limit = MOST_BYTES
        self.trouble = ""
        """Why the last step is not in the journal."""

    @property
    def journal(self) -> Journal | None:
        """The file; None before the first step."""
        return self._journal

    def adopt(self, journal: Journal, known: Sequence[str], made: Sequence[Step], undone: Sequence[Step]) -> None:
        """Go on with the journal of a session that was recovered."""
        self._journal = journal
        self._known = set(known)
        self._made = list(made)
        self._undone = list(undone)
        self._limit = max(MOST_BYTES, 2 * journal.size)

    def made(self, step: Step) -> None:
        """A step was made for the first time, or again."""
        if self._undone and self._undone[-1] is step and self._write(Line(redo=True)):
            self._made.append(self._undone.pop())
        elif self._write_step(step, step.forward):
            self._made.append(step)
            self._undone.clear()

    def taken_back(self, step: Step) -> None:
        """A step was undone."""
        if self._made and self._made[-1] is step:
            if self._write(Line(undo=True)):
                self._undone.append(self._made.pop())
        elif self._write_step(Step(step.backward, title=f"undo: {step.title}"), step.backward):
            # It was made before this journal began: for its reader this is a step like any other.
            self._made.append(None)
            self._undone.clear()

    def saving(self) -> None:
        """The model is about to be saved to its file: a kill right after that leaves a journal of what is saved."""
        if self._journal is not None:
            self._write(Line(saving=True))

    def finish(self, base: Base) -> None:
        """The model was saved: there is nothing to recover, and what follows begins with what was saved."""
        self.discard()
        self._base = base

    def discard(self) -> None:
        """Nothing is to be recovered."""
        if self._journal is not None:
            self._journal.remove()
        self._journal = None
        self._forget()
        self.trouble = ""

    def sync(self) -> None:
        """Wait until the disk has every line."""
        if self._journal is not None:
            self._journal.sync()

    def close(self) -> None:
        """The session ends and leaves its journal to be recovered."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None

    def _forget(self) -> None:
        self._known = set()
        self._made = []
        self._undone = []
        self._limit = MOST_BYTES

    def _write(self, line: Line) -> bool:
        """Append a line; False where the whole journal was written anew instead, or cannot be written."""
        if self._journal is None or self.trouble or self._journal.size > self._limit:
            self.write_anew()
            return False
        try:
            self._journal.append(line)
        except OnnxJsonError as error:
            self.trouble = str(error)
            return False
        return True

    def _write_step(self, step: Step, patch: Patch) -> bool:
        if self._journal is None and not self.trouble and not self._begin():
            return False
        try:
            line, table = self._line(step, patch)
        except OnnxJsonError as error:
            self.trouble = f"the step cannot be put into the journal: {error}"
            return False
        if not self._write(line):
            return False
        self._known |= table
        return True

    def _begin(self) -> bool:
        small = self._base.identity.size <= HASHED_AT_ONCE
        try:
            self._journal = begin(self._base.header(hashed=small))
        except OnnxJsonError as error:
            self.trouble = str(error)
            return False
        if not small:
            arguments = (self._base, self._journal)
            threading.Thread(target=_append_hash, args=arguments, name="hash", daemon=True).start()
        return True

    def _line(self, step: Step, patch: Patch) -> tuple[Line, set[str]]:
        parts: list[bytes] = []
        writer = _StepWriter(parts.append, self._base, self._known)
        writer.patch(patch)
        found = StepLine(
            patch=b"".join(parts).decode(),
            edits=tuple([write_edit(edit) for edit in step.edits]),
            title=step.title,
            apart=writer.apart,
            has_files=bool(step.files),
        )
        return Line(step=found), set(writer.table)

    def write_anew(self) -> None:
        """A new journal that has all that was changed as one step, in the place of the old one."""
        old, self._journal = self._journal, None
        self._forget()
        self.trouble = ""
        patch = Patch.between(self._base.model, self._current())
        step = Step(patch, title="all steps since the model was opened or saved")
        try:
            if self._begin() and self._journal is not None:
                line, self._known = self._line(step, patch)
                self._journal.append(line)
                self._made = [None]
                self._limit = max(MOST_BYTES, 2 * self._journal.size)
        except OnnxJsonError as error:
            self.trouble = str(error)
        if self.trouble:
            # What the old one has is better than nothing.
            if self._journal is not None:
                self._journal.remove()
            self._journal = old
        elif old is not None:
            old.remove()


class _StepWriter(PatchWriter):
    """Writes a patch without payloads that the reader of the journal has from elsewhere."""

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
        except OnnxJsonError:
            return  # The session has ended, or the disk is full, which the next step says.
