"""Recovery of sessions that ended without saving: finding, showing, replaying and discarding their journals."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson import __version__
from onnxjson.codecs.tensor_text import payloads, sha256_of
from onnxjson.editing.applying import run
from onnxjson.editing.declaration import Edit
from onnxjson.editing.script import Script, parse_edit
from onnxjson.editing.spelling import spell_line
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import Data, Digest
from onnxjson.model.system import read_at
from onnxjson.patching.patch import Patch
from onnxjson.patching.patch_text import parse_patch
from onnxjson.storage.identity import Identity
from onnxjson.storage.store import discard, take_entry
from onnxjson_tui.session.history import Step
from onnxjson_tui.session.journal import FORMAT, STORE, Header, Journal, Line, StepLine, decoded

PATIENCE_SECONDS: Final = 0.25
"""Seconds to wait for the lock of a journal, which a child of a killed session may hold for a moment."""

_NOT_KNOWN = Header(format="", version="", key="", name="", size=0, mtime_ns=0, started=0)


class Replay(NamedTuple):
    """Result of replaying a journal."""

    model: Model
    made: tuple[Step, ...]
    undone: tuple[Step, ...]  # steps that can be redone, next one last
    trouble: str  # why later steps cannot be applied; "" if all were
    known: frozenset[str]  # SHA-256 of the payloads in the journal


class Abandoned:
    """Journal of an ended session. This process holds its lock until `release`, `discard` or `take_over`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        data = _content(descriptor)
        self.header = _NOT_KNOWN
        self.lines: tuple[Line, ...] = ()
        self.damage = ""  # which part cannot be read; "" if at most the last line is truncated
        self.is_empty = not data  # whether the process ended before it wrote the first line
        self._size = 0
        self._read(data)

    def _read(self, data: bytes) -> None:
        lines: list[Line] = []
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            try:
                tree = decoded(line.removesuffix(b"\n"))
                if not line.endswith(b"\n"):
                    break
                if number == 1:
                    self.header = msgspec.convert(tree, Header)
                    if self.header.format != FORMAT:
                        break  # The following lines may have another format.
                else:
                    lines.append(msgspec.convert(tree, Line))
            except (ValueError, RecursionError):  # msgspec.ValidationError is a ValueError
                if self._size + len(line) < len(data) or number == 1:
                    rest = data.count(b"\n", self._size)
                    self.damage = f"line {number:,} is damaged; {counted(rest, 'line')} cannot be read"
                break
            self._size += len(line)
        self.lines = tuple(lines)

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the edited file; None if the session ended before it was computed."""
        later = [line.sha256 for line in self.lines if line.sha256 is not None]
        return later[-1] if later else self.header.sha256

    @property
    def steps(self) -> tuple[StepLine, ...]:
        """The steps that were applied when the session ended."""
        applied: list[StepLine] = []
        undone: list[StepLine] = []
        for line in self.lines:
            if line.step is not None:
                applied.append(line.step)
                undone.clear()
            elif line.undo and applied:
                undone.append(applied.pop())
            elif line.redo and undone:
                applied.append(undone.pop())
        return tuple(applied)

    @property
    def commands(self) -> tuple[str, ...]:
        """The edits as commands, one line each; other steps by title."""
        commands: list[str] = []
        for step in self.steps:
            edits, _ = _edits_of(step)
            commands += [spell_line(edit) for edit in edits] or [step.title]
        return tuple(commands)

    def script(self) -> tuple[Script, tuple[str, ...]]:
        """Return the edits as a rewrite script, and the titles of steps that this version cannot express as edits."""
        edits: list[Edit] = []
        left_out: list[str] = []
        for step in self.steps:
            found, unknown = _edits_of(step)
            edits += found
            if unknown or not found:
                left_out.append(step.title or "a step")
        return Script(tuple(edits)), tuple(left_out)

    def why_not(self, identity: Identity) -> str:
        """Return why the steps must not be applied to an opened file, or "".

        Raises:
            OnnxJsonError: the file cannot be read.
        """
        header = self.header
        if header.format != FORMAT:
            state = f'has the format "{visible(header.format)}"' if header.format else "cannot be read"
            return f"the journal {state}; this version of onnxjson reads {FORMAT}"
        if header.version != __version__:
            return f"onnxjson {visible(header.version)} wrote the journal, but this is version {__version__}"
        other = f"{visible(header.name)} is not the file that was edited"
        if header.size != identity.size:
            return f"{other}: it had {header.size:,} bytes and now has {identity.size:,}"
        if self.sha256 is None:
            return "" if header.mtime_ns == identity.mtime_ns else f"{other}: it was changed afterwards"
        return "" if self.sha256 == identity.sha256 else f"{other}: its content is different"

    def replay(self, model: Model, folder: Path | None = None, model_folder: Path | None = None) -> Replay:
        """Apply the steps to the model in the file, each checked against the expected content, up to a mismatch.

        `folder` has the files that edits refer to, `model_folder` the external data of the model.
        """
        known: dict[str, Data] = {}
        applied: list[tuple[Step, Model]] = []
        undone: list[Step] = []
        trouble = self.damage
        current = model
        for line in self.lines:
            try:
                if line.step is not None:
                    before = current
                    step = self._step(line.step, model, known)
                    current = step.forward.apply(before)
                    if line.step.has_files:
                        step.files = _files(step.edits, before, current, folder, model_folder)
                    applied.append((step, before))
                    undone.clear()
                elif line.undo and applied:
                    step, current = applied.pop()
                    undone.append(step)
                elif line.redo and undone:
                    step = undone.pop()
                    applied.append((step, current))
                    current = step.forward.apply(current)
            except OnnxJsonError as error:
                trouble = f"step {len(applied) + 1:,} cannot be applied: {error}"
                break
        return Replay(current, tuple([step for step, _ in applied]), tuple(undone), trouble, frozenset(known))

    def is_saved_in(self, model: Model) -> bool:
        """Whether a model is the result of the steps: a save had begun, and each step can be undone from the model."""
        if not self.lines or not self.lines[-1].saving or self.header.version != __version__:
            return False
        known: dict[str, Data] = {}
        try:
            # In journal order, since a payload is stored at its first occurrence.
            patches = {id(line.step): self._step(line.step, model, known).forward for line in self.lines if line.step}
            for step in reversed(self.steps):
                model = patches[id(step)].invert().apply(model)
        except OnnxJsonError:
            return False
        return True

    def _step(self, line: StepLine, model: Model, known: dict[str, Data]) -> Step:
        _find_payloads(line.apart, model, known)
        patch = parse_patch(Patch, line.patch.encode(), elsewhere=known)
        edits, _ = _edits_of(line)
        return Step(patch, edits, line.title)

    def take_over(self) -> Journal:
        """Return the journal for further steps, without a truncated line at its end."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.ftruncate(descriptor, self._size)
        return Journal(self.path, descriptor, self._size)

    def discard(self) -> None:
        """Remove the journal."""
        descriptor, self._descriptor = self._descriptor, -1
        discard(self.path, descriptor)

    def release(self) -> None:
        """Release the lock and keep the journal."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def abandoned(key: str) -> tuple[Abandoned, ...]:
    """Lock and return the journals of ended sessions on a model that have steps, newest first."""
    journals: list[Abandoned] = []
    for path in STORE.entries(key):
        descriptor = take_entry(path, PATIENCE_SECONDS, os.O_RDWR)
        if descriptor is None:
            continue
        journal = Abandoned(path, descriptor)
        if journal.steps or journal.damage or (journal.header.format != FORMAT and not journal.is_empty):
            journals.append(journal)
        else:
            journal.discard()
    return tuple(journals)


def _content(descriptor: int) -> bytes:
    parts: list[bytes] = []
    offset = 0
    while piece := read_at(descriptor, 1 << 20, offset):
        parts.append(piece)
        offset += len(piece)
    return b"".join(parts)


def _edits_of(step: StepLine) -> tuple[tuple[Edit, ...], bool]:
    """Return the edits of a step that this version knows, and whether there are unknown ones."""
    edits: list[Edit] = []
    unknown = False
    for text in step.edits:
        try:
            edits.append(parse_edit(text))
        except OnnxJsonError:
            unknown = True
    return tuple(edits), unknown


def _find_payloads(apart: Mapping[str, int], model: Model, known: dict[str, Data]) -> None:
    """Add payloads of the opened model that a patch references to the known ones."""
    wanted = {sha256: length for sha256, length in apart.items() if sha256 not in known}
    if not wanted:
        return
    lengths = set(wanted.values())
    for data, _ in payloads(model):
        if len(data) in lengths and not isinstance(data, Digest) and sha256_of(data) in wanted:
            known[sha256_of(data)] = data


def _files(
    edits: Sequence[Edit], before: Model, after: Model, folder: Path | None, model_folder: Path | None
) -> Mapping[Path, Tensor]:
    """Return the tensors that edits write to files, which are not part of a patch."""
    result = run(before, edits, folder=folder, model_folder=model_folder)
    return result.files if result.model == after else {}
