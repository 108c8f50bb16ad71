"""Journals of sessions that ended without saving: found, shown, made again step by step, or thrown away."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from onnxjson import __version__
from onnxjson.canonical.payload_forms import payloads, sha256_of
from onnxjson.display import counted, visible
from onnxjson.document import Model, Tensor
from onnxjson.edits.applying import run
from onnxjson.edits.declaration import Edit
from onnxjson.edits.script import Script, parse_edit
from onnxjson.edits.spelling import spell_line
from onnxjson.errors import DecodeError, OnnxJsonError
from onnxjson.identity import Identity
from onnxjson.patching.loading import parse_patch
from onnxjson.payloads import Data, Digest
from onnxjson_tui.history import Step
from onnxjson_tui.journal import (
    FORMAT,
    PATIENCE_SECONDS,
    Header,
    Journal,
    Line,
    StepLine,
    decoded,
    folder_of,
    in_folder,
    is_running,
    lock_abandoned,
)

_NOT_KNOWN = Header(format="", version="", key="", name="", size=0, mtime_ns=0, started=0)


class Replay(NamedTuple):
    """What a journal leads to."""

    model: Model
    made: tuple[Step, ...]
    undone: tuple[Step, ...]
    """Steps that can be redone, the next one last."""
    trouble: str
    """Why the steps after these cannot be made; "" where all of them are."""
    known: frozenset[str]
    """The SHA-256 of the payloads that the journal has."""


class Abandoned:
    """A journal whose session has ended. This process holds its lock until `release`, `discard` or `take_over`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        data = _content(descriptor)
        self.header = _NOT_KNOWN
        self.lines: tuple[Line, ...] = ()
        self.damage = ""
        """What of it cannot be read; "" where the last line at most was cut short."""
        self.is_empty = not data
        """Whether its process ended before the first line was written."""
        self._size = 0
        self._read(data)

    def _read(self, data: bytes) -> None:
        found: list[Line] = []
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            try:
                tree = decoded(line.removesuffix(b"\n"))
                if not line.endswith(b"\n"):
                    break
                if number == 1:
                    self.header = msgspec.convert(tree, Header)
                    if self.header.format != FORMAT:
                        break  # What follows may be said in other words.
                else:
                    found.append(msgspec.convert(tree, Line))
            except (ValueError, RecursionError):  # msgspec.ValidationError is a ValueError
                if self._size + len(line) < len(data) or number == 1:
                    rest = data.count(b"\n", self._size)
                    self.damage = f"line {number:,} is damaged; {counted(rest, 'line')} cannot be read"
                break
            self._size += len(line)
        self.lines = tuple(found)

    @property
    def sha256(self) -> str | None:
        """Of the file that the steps were made on; None where the session ended before it was known."""
        later = [line.sha256 for line in self.lines if line.sha256 is not None]
        return later[-1] if later else self.header.sha256

    @property
    def steps(self) -> tuple[StepLine, ...]:
        """The steps that the session had when it ended."""
        made: list[StepLine] = []
        undone: list[StepLine] = []
        for line in self.lines:
            if line.step is not None:
                made.append(line.step)
                undone.clear()
            elif line.undo and made:
                undone.append(made.pop())
            elif line.redo and undone:
                made.append(undone.pop())
        return tuple(made)

    @property
    def commands(self) -> tuple[str, ...]:
        """What was done, a line for each edit as the command line spells it, or for each other step its title."""
        found: list[str] = []
        for step in self.steps:
            edits, _ = _edits_of(step)
            found += [spell_line(edit) for edit in edits] or [step.title]
        return tuple(found)

    def script(self) -> tuple[Script, tuple[str, ...]]:
        """The edits as a rewrite script, and what it does not have: steps that are none, or not of this version."""
        edits: list[Edit] = []
        left_out: list[str] = []
        for step in self.steps:
            found, unknown = _edits_of(step)
            edits += found
            if unknown or not found:
                left_out.append(step.title or "a step")
        return Script(tuple(edits)), tuple(left_out)

    def why_not(self, identity: Identity) -> str:
        """Why the steps are not to be made on a file that was opened; "" where they may be.

        Raises:
            OnnxJsonError: the file cannot be read.
        """
        header = self.header
        if header.format != FORMAT:
            said = f'says "{visible(header.format)}"' if header.format else "cannot be read"
            return f"the journal {said}; this version of onnxjson reads {FORMAT}"
        if header.version != __version__:
            return f"onnxjson {visible(header.version)} wrote the journal, and this is {__version__}"
        other = f"{visible(header.name)} is not the file that the edits were made on"
        if header.size != identity.size:
            return f"{other}: it had {header.size:,} bytes, and has {identity.size:,}"
        if self.sha256 is None:
            return "" if header.mtime_ns == identity.mtime_ns else f"{other}: it was changed since"
        return "" if self.sha256 == identity.sha256 else f"{other}: it has other bytes"

    def replay(self, model: Model, folder: Path | None = None, model_folder: Path | None = None) -> Replay:
        """Makes the steps on a model, each checked against what it says stands there; stops at the first that is not.

        Args:
            model: what the file holds.
            folder: where files that edits name are looked for.
            model_folder: where external data of the model stands.
        """
        known: dict[str, Data] = {}
        made: list[tuple[Step, Model]] = []
        undone: list[Step] = []
        trouble = self.damage
        now = model
        for line in self.lines:
            try:
                if line.step is not None:
                    before = now
                    step = self._step(line.step, model, known)
                    now = step.forward.apply(before)
                    if line.step.has_files:
                        step.files = _files(step.edits, before, now, folder, model_folder)
                    made.append((step, before))
                    undone.clear()
                elif line.undo and made:
                    step, now = made.pop()
                    undone.append(step)
                elif line.redo and undone:
                    step = undone.pop()
                    made.append((step, now))
                    now = step.forward.apply(now)
            except OnnxJsonError as error:
                trouble = f"step {len(made) + 1:,} cannot be made: {error}"
                break
        return Replay(now, tuple([step for step, _ in made]), tuple(undone), trouble, frozenset(known))

    def is_saved_in(self, model: Model) -> bool:
        """Whether a save had begun, and the steps can be taken back from a model one by one: it is what was saved."""
        if not self.lines or not self.lines[-1].saving or self.header.version != __version__:
            return False
        known: dict[str, Data] = {}
        try:
            # In the order of the journal, since a payload stands where it comes first.
            patches = {id(line.step): self._step(line.step, model, known).forward for line in self.lines if line.step}
            for step in reversed(self.steps):
                model = patches[id(step)].invert().apply(model)
        except OnnxJsonError:
            return False
        return True

    def _step(self, line: StepLine, model: Model, known: dict[str, Data]) -> Step:
        _find_payloads(line.apart, model, known)
        patch = parse_patch(line.patch.encode(), elsewhere=known)
        edits, _ = _edits_of(line)
        return Step(patch, edits, line.title)

    def take_over(self) -> Journal:
        """The journal, to be gone on with; what was cut short at its end is cut off."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.ftruncate(descriptor, self._size)
        return Journal(self.path, descriptor, self._size)

    def discard(self) -> None:
        """Nobody wants it any more."""
        with suppress(OSError):
            self.path.unlink()
        self.release()
        with suppress(OSError):
            self.path.parent.rmdir()

    def release(self) -> None:
        """Leave it for another time."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def abandoned(key: str) -> tuple[Abandoned, ...]:
    """The journals of a model that no session writes any more and that have steps, newest first; they are locked."""
    found: list[Abandoned] = []
    for path in in_folder(folder_of(key)):
        descriptor = lock_abandoned(path, PATIENCE_SECONDS)
        if descriptor is None:
            continue
        journal = Abandoned(path, descriptor)
        if journal.is_empty and is_running(path):
            journal.release()  # It is about to be begun, and not locked yet.
        elif journal.steps or journal.damage or (journal.header.format != FORMAT and not journal.is_empty):
            found.append(journal)
        else:
            journal.discard()
    return tuple(found)


def _content(descriptor: int) -> bytes:
    parts: list[bytes] = []
    offset = 0
    while piece := os.pread(descriptor, 1 << 20, offset):
        parts.append(piece)
        offset += len(piece)
    return b"".join(parts)


def _edits_of(step: StepLine) -> tuple[tuple[Edit, ...], bool]:
    """The edits that a step was asked as, as far as this version knows them, and whether it does not know some."""
    edits: list[Edit] = []
    unknown = False
    for text in step.edits:
        try:
            edits.append(parse_edit(text))
        except (DecodeError, OnnxJsonError):
            unknown = True
    return tuple(edits), unknown


def _find_payloads(apart: Mapping[str, int], model: Model, known: dict[str, Data]) -> None:
    """Puts payloads of the opened model that a patch names among the known ones."""
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
    """The values that edits put into files, which no patch has."""
    result = run(before, edits, folder=folder, model_folder=model_folder)
    return result.files if result.model == after else {}
