"""What a merge gives, in a file: a model in the form that is asked for, or the text with its conflicts.

A text with conflicts is written under any name, as a source file holds conflict markers: no runtime takes it for a
model, and what `git add` takes has all sides in it.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from onnxjson import document as d
from onnxjson import files
from onnxjson.canonical.payload_forms import Weights
from onnxjson.canonical.strings import INDENTS, string
from onnxjson.canonical.writer import TextWriter
from onnxjson.conflicts import Conflict, Slot, slot_at
from onnxjson.display import visible
from onnxjson.errors import LimitError
from onnxjson.files import Format
from onnxjson.identity import Identity, open_source
from onnxjson.patching.storing import PatchWriter
from onnxjson.payloads import Data
from onnxjson.saving import save_file
from onnxjson.sinks import Sink
from onnxjson.text_file import read

LARGEST_TEXT: Final = 512 * 1024 * 1024
"""Bytes of the longest text with conflicts that is written."""


def save(
    model: d.Model,
    conflicts: Sequence[Conflict],
    path: Path,
    format: Format,  # noqa: A002 - as in files.save
    *,
    expect: Identity | None = None,
    backup: bool = False,
) -> None:
    """Writes a merged model to a file, all or nothing: in a form of models, or with its conflicts as text.

    Raises:
        LimitError: the text with conflicts would be longer than `LARGEST_TEXT`.
        OnnxJsonError: see `files.save`.
    """
    if not conflicts:
        weights = "keep" if format == "json" else "inline"
        files.save(model, path, format, weights=weights, expect=expect, backup=backup)  # type: ignore[arg-type]
        return
    keep: Callable[[Path], object] | None = None
    if backup:
        from onnxjson.state import keep_backup

        keep = keep_backup
    save_file(
        path,
        lambda sink: write_conflicted(model, conflicts, sink),
        verify=lambda written: read(open_source(written), conflicted=True),
        expect=expect,
        backup=keep,
    )


def write_conflicted(model: d.Model, conflicts: Sequence[Conflict], sink: Sink) -> None:
    """Streams the text of a model with conflicts.

    Raises:
        LimitError: it is longer than `LARGEST_TEXT`, or nests too deep.
        WeightsMissingError, ChangedUnderneathError, FileError: payloads cannot be had.
    """
    written = 0

    def write(piece: bytes) -> None:
        nonlocal written
        written += len(piece)
        if written > LARGEST_TEXT:
            raise LimitError(
                f"the text with both sides of the conflicts has more than {LARGEST_TEXT >> 20} MiB; keep the weights "
                "in other files, or take one side with git checkout --ours or --theirs"
            )
        sink.write(piece)

    ConflictWriter(write, model, conflicts).model(model)


def conflicted_bytes(model: d.Model, conflicts: Sequence[Conflict]) -> bytes:
    """The text in one piece; see `write_conflicted`."""
    parts: list[bytes] = []
    ConflictWriter(parts.append, model, conflicts).model(model)
    return b"".join(parts)


class ConflictWriter(PatchWriter):
    """Writes one model with conflicts; payloads stand where they belong, as in a text without."""

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
        """The value of a slot alone, with payloads in a form."""
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
    """What a side has, as it stands in a text, on one line and with the sha256 of payloads; None for nothing."""
    lines = _value_lines(conflict, side)
    return None if lines is None else " ".join([line.lstrip(" ") for line in lines])


def value_lines(conflict: Conflict, side: str) -> tuple[str, ...] | None:
    """The same by the lines of the text, each made visible."""
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
    """How payloads stand: digests and blobs that were read stay what they are, in the model and in the conflicts."""
    found = [Weights.of(each, "keep") for each in (model, *_models(conflicts))]
    folders = [each.blobs for each in found if each.blobs is not None]
    return Weights("keep", any(each.has_digests for each in found), folders[0] if folders else None)


def _models(conflicts: Sequence[Conflict]) -> Iterator[d.Model]:
    """The values of conflicts, each somewhere in a model, for whoever looks at models."""
    for conflict in conflicts:
        for value in (conflict.base, conflict.ours, conflict.theirs):
            for each in value if isinstance(value, tuple) else (value,):
                match each:
                    case d.Model():
                        yield each
                    case d.Tensor():
                        yield d.Model(graph=d.Graph(initializer=(each,)))
                    case d.Node():
                        yield d.Model(graph=d.Graph(node=(each,)))
                    case d.Attribute():
                        yield d.Model(graph=d.Graph(node=(d.Node(attribute=(each,)),)))
                    case d.Graph():
                        yield d.Model(graph=each)
                    case d.Function():
                        yield d.Model(functions=(each,))
                    case d.SparseTensor():
                        yield d.Model(graph=d.Graph(sparse_initializer=(each,)))
                    case d.TrainingInfo():
                        yield d.Model(training_info=(each,))
