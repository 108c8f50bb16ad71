"""Files of merge results: a model in the requested form, or a text with conflicts.

A text with conflicts is written under any name, as a source file holds conflict markers: no runtime reads it as a
model, and `git add` stores all sides with it.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from onnxjson.codecs.canonical_values import INDENTS, string
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights
from onnxjson.codecs.text_file import read
from onnxjson.merging.slots import wrapped
from onnxjson.model import document as d
from onnxjson.model.addresses import Slot, slot_at
from onnxjson.model.display import visible
from onnxjson.model.errors import Conflict, LimitError
from onnxjson.model.limits import CONFLICT_TEXT_BYTES
from onnxjson.model.payloads import Data
from onnxjson.patching.storing import PatchWriter
from onnxjson.storage import files
from onnxjson.storage.files import Format
from onnxjson.storage.identity import Identity, open_source
from onnxjson.storage.saving import Sink, save_file


def save(
    model: d.Model,
    conflicts: Sequence[Conflict],
    path: Path,
    format: Format,  # noqa: A002 - as in files.save
    *,
    expect: Identity | None = None,
    backup: bool = False,
) -> None:
    """Write a merged model to a file, all or nothing: in `format`, or as text if it has conflicts.

    Raises:
        LimitError: the text with conflicts would be longer than `CONFLICT_TEXT_BYTES`.
        OnnxJsonError: see `files.save`.
    """
    if not conflicts:
        weights = "keep" if format == "json" else "inline"
        files.save(model, path, format, weights=weights, expect=expect, backup=backup)  # type: ignore[arg-type]
        return
    keep: Callable[[Path], object] | None = None
    if backup:
        from onnxjson.storage.state import keep_backup

        keep = keep_backup
    save_file(
        path,
        lambda sink: write_conflicted(model, conflicts, sink),
        verify=lambda written: read(open_source(written), conflicted=True),
        expect=expect,
        backup=keep,
    )


def write_conflicted(model: d.Model, conflicts: Sequence[Conflict], sink: Sink) -> None:
    """Stream the text of a model with conflicts.

    Raises:
        LimitError: it is longer than `CONFLICT_TEXT_BYTES`, or nests too deep.
        WeightsMissingError, ChangedUnderneathError, FileError: payloads cannot be read.
    """
    written = 0

    def write(piece: bytes) -> None:
        nonlocal written
        written += len(piece)
        if written > CONFLICT_TEXT_BYTES:
            raise LimitError(
                f"the text with both sides of the conflicts has more than {CONFLICT_TEXT_BYTES >> 20} MiB; keep the "
                "weights in other files, or choose one side with git checkout --ours or --theirs"
            )
        sink.write(piece)

    ConflictWriter(write, model, conflicts).model(model)


def conflicted_bytes(model: d.Model, conflicts: Sequence[Conflict]) -> bytes:
    """Return the text in one piece; see `write_conflicted`."""
    parts: list[bytes] = []
    ConflictWriter(parts.append, model, conflicts).model(model)
    return b"".join(parts)


class ConflictWriter(PatchWriter):
    """Writer of one model with conflicts; payloads are inline, as in a text without conflicts."""

    def __init__(self, write: Callable[[bytes], object], model: d.Model, conflicts: Sequence[Conflict]) -> None:
        super().__init__(write)
        self._conflicts = conflicts
        self._weights = _weights(model, conflicts)

    def after_format(self) -> None:
        """See `TextWriter.after_format`."""
        if self._conflicts:
            self._block(b'"conflicts": [', self._conflicts, self._conflict, b"]")

    def payload(self, data: Data, storage: str | None) -> None:
        """See `TextWriter.payload`."""
        TextWriter.payload(self, data, storage)

    def _tensor_data(self, field: Any, data: Data) -> None:
        TextWriter._tensor_data(self, field, data)

    def slot_value(self, slot: Slot, value: Any, weights: Weights) -> None:
        """Write the value of a slot alone, with payloads in a form."""
        self._weights = weights
        self._slot_value(slot, value, 0)
        self.flush()

    def _conflict(self, conflict: Conflict) -> None:
        self.out.append(b'{"id": %b, "at": %b' % (string(conflict.id), string(conflict.at)))
        slot = slot_at(conflict.at)
        for key in ("base", "ours", "theirs"):
            value = getattr(conflict, key)
            if value is not None:
                self.key(b'"%b": ' % key.encode(), INDENTS[3])
                self._slot_value(slot, value, 3)
        self.out.append(b"}")

    def _slot_value(self, slot: Slot, value: Any, indent: int) -> None:
        field = slot.field
        if isinstance(value, d.Model):
            self.exact(value, indent)
        elif isinstance(value, d.Record):
            self._record(value, indent)
        elif slot.member is not None:
            self.out.append(string(value))
        elif field is not None and field.message is not None:
            self.items(value, self._record, indent)
        else:
            self._set_value(field, value, indent)


def value_text(conflict: Conflict, side: str) -> str | None:
    """The value of a side as one line of canonical text, with the SHA-256 of payloads; None if it has nothing."""
    lines = _value_lines(conflict, side)
    return None if lines is None else " ".join([line.lstrip(" ") for line in lines])


def value_lines(conflict: Conflict, side: str) -> tuple[str, ...] | None:
    """The same as the lines of the text, each made visible."""
    lines = _value_lines(conflict, side)
    return None if lines is None else tuple([visible(line, None) for line in lines])


def _value_lines(conflict: Conflict, side: str) -> list[str] | None:
    value = getattr(conflict, side)
    if value is None:
        return None
    if isinstance(value, d.Model):
        nodes = 0 if value.graph is None else len(value.graph.node)
        return [f"a model of {nodes:,} nodes"]
    parts: list[bytes] = []
    writer = ConflictWriter(parts.append, d.Model(), ())
    writer.slot_value(slot_at(conflict.at), value, Weights("digest"))
    return b"".join(parts).decode("utf-8").split("\n")


def _weights(model: d.Model, conflicts: Sequence[Conflict]) -> Weights:
    """Form of payloads: digests and blobs that were read are kept, in the model and in the conflicts."""
    found = [Weights.of(each, "keep") for each in (model, *_models(conflicts))]
    folders = [each.blobs for each in found if each.blobs is not None]
    return Weights("keep", any(each.has_digests for each in found), folders[0] if folders else None)


def _models(conflicts: Sequence[Conflict]) -> Iterator[d.Model]:
    """Yield the values of conflicts, each wrapped in a model."""
    for conflict in conflicts:
        slot = slot_at(conflict.at)
        for value in (conflict.base, conflict.ours, conflict.theirs):
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, d.Model):
                    yield each
                elif (found := wrapped(each, slot)) is not None:
                    yield found[0]
