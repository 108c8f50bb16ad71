"""Run passes inside the guarded process: from a declaration as JSON to the resulting bytes.

The process may crash, hang or be killed at any moment; see `onnxjson.running.worker_server`. All passes except the
user's own code get a model without texts that they could evaluate: shape inference in Python computes with names of
dimensions, and sympy evaluates a string as code where it expects a number. Placeholders replace

* names of dimensions, except plain symbols of sympy and plain arithmetic of them, such as ``N // 2``;
* elements of string tensors and string attributes, except plain words, numbers and equations of an Einsum;
* names of operators and functions that are not identifiers, since shape inference makes names of dimensions from them.

Equal texts get equal placeholders, different texts different ones. No placeholder occurs in the original model.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.editing.declaration import name_of
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Dimension, Function, Model, Node, Record, SimpleShardedDim, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.messages import FIELDS, Kind
from onnxjson.model.walking import replace_records
from onnxjson.optimizing.passes.catalogue import KINDS
from onnxjson.optimizing.passes.declaration import PartStage, Pass, drain_remarks, restore_texts_with
from onnxjson.optimizing.passes.text_evaluation import (
    IDENTIFIER,
    LONGEST,
    computing_node,
    forbid_evaluation,
    is_harmless,
    is_symbol,
)

_NAME: Final = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b(?! *\()")
"""A name in arithmetic, except the name of a called function."""
_NUMBERS: Final = re.compile(rb"onnxjson([0-9]{1,18})_(?:dim|text|name)_")

_WITH_TEXTS: Final[tuple[type[Record], ...]] = (Dimension, SimpleShardedDim, Tensor, Attribute, Node, Function)
"""Records with texts that are hidden."""


class TextNeededError(OnnxJsonError):
    """A pass computes with a text that is hidden from it by a placeholder."""


class _Texts(NamedTuple):
    dims: set[str]
    texts: set[bytes]
    names: set[str]


class Placeholders:
    """Placeholders of one model; only the texts are kept, not the model."""

    def __init__(self, model: Model, data: bytes) -> None:
        found = _collect(model)
        self._prefix = _unused_prefix(data) if any(found) else ""
        self._pattern = re.compile(rf"{self._prefix}_(dim|text|name)_[0-9]+_")
        # sympy orders by name: placeholders keep the order of the originals.
        self.dims = dict(zip(sorted(found.dims), self._fresh("dim", len(found.dims)), strict=True))
        """Replaced names of dimensions with their replacements."""
        fresh_texts = self._fresh("text", len(found.texts))
        self._texts = {text: fresh.encode() for text, fresh in zip(sorted(found.texts), fresh_texts, strict=True)}
        self._names = dict(zip(sorted(found.names), self._fresh("name", len(found.names)), strict=True))
        decoded = {text.decode("utf-8", "surrogateescape"): fresh.decode() for text, fresh in self._texts.items()}
        self._originals = {new: old for each in (self.dims, decoded, self._names) for old, new in each.items()}

    @property
    def is_needed(self) -> bool:
        """Whether anything was replaced."""
        return bool(self._prefix)

    @property
    def has_texts(self) -> bool:
        """Whether text in a tensor or an attribute was replaced."""
        return bool(self._texts)

    def is_text(self, text: bytes) -> bool:
        """Whether a text is a placeholder of text in a tensor or an attribute."""
        return self.is_needed and text.startswith(f"{self._prefix}_text_".encode())

    def replace(self, model: Model) -> Model:
        """Return the model with placeholders; the same object if none is needed."""
        return self._rewritten(model, _WITH_TEXTS, self._disarm)

    def restore(self, model: Model) -> Model:
        """Return the result of a pass with the original texts instead of their placeholders.

        Raises:
            TextNeededError: the pass computed with a text of a tensor or attribute: its placeholder is part of another
                text, or in another kind of field.
        """
        return self._rewritten(model, tuple(FIELDS), self._restore)

    def restore_text(self, text: str) -> str:
        """Return a message of a pass with the original texts instead of their placeholders."""
        return self._pattern.sub(self._original, text) if self.is_needed and self._prefix in text else text

    def occurs(self, data: bytes) -> bool:
        """Whether a placeholder occurs in some bytes."""
        return self.is_needed and self._prefix.encode() in data

    def _fresh(self, kind: str, count: int) -> Iterable[str]:
        width = len(str(count))
        return [f"{self._prefix}_{kind}_{number:0{width}}_" for number in range(count)]

    def _original(self, found: re.Match[str]) -> str:
        return self._originals.get(found[0], found[0])

    def _rewritten(
        self, model: Model, kinds: tuple[type[Record], ...], updates_of: Callable[[Record], dict[str, Any]]
    ) -> Model:
        def changed(record: Record) -> Record:
            updates = updates_of(record)
            return msgspec.structs.replace(record, **updates) if updates else record

        return replace_records(model, kinds, changed) if self.is_needed else model

    def _disarm(self, record: Record) -> dict[str, Any]:
        match record:
            case Node(op_type=name) if name in self._names:
                return {"op_type": self._names[name]}
            case Dimension(dim_param=name) | SimpleShardedDim(dim_param=name) if name in self.dims:
                return {"dim_param": self.dims[name]}
            case Tensor(string_data=texts) if texts:
                return {"string_data": self._replaced(texts)}
            case Attribute(s=text, strings=texts) if texts or text is not None:
                return {"s": text and self._texts.get(text, text), "strings": self._replaced(texts)}
            case Function(name=name) if name in self._names:
                return {"name": self._names[name]}
        return {}

    def _replaced(self, texts: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return tuple([self._texts.get(text, text) for text in texts])

    def _restore(self, record: Record) -> dict[str, Any]:
        updates: dict[str, Any] = {}
        for name, restored in _text_fields(type(record)):
            value = getattr(record, name)
            if not value:
                continue
            restore = self._expression if name == "dim_param" else self._plain if restored is str else self._bytes
            if not isinstance(value, tuple):
                if (new := restore(value)) is not value:
                    updates[name] = new
            elif any([restore(each) is not each for each in value]):
                updates[name] = tuple([restore(each) for each in value])
        return updates

    def _bytes(self, text: bytes) -> bytes:
        if self._prefix.encode() not in text:
            return text
        decoded = text.decode("utf-8", "surrogateescape")
        whole = self._originals.get(decoded)
        restored = self._without_texts(decoded) if whole is None else whole
        return restored.encode("utf-8", "surrogateescape")

    def _plain(self, text: str) -> str:
        return self._without_texts(text) if self._prefix in text else text

    def _without_texts(self, text: str) -> str:
        for found in self._pattern.finditer(text):
            if found[1] == "text":
                original = self._originals.get(found[0], "")
                raise TextNeededError(f'it computes with a text of a tensor or attribute: "{original[:LONGEST]}"')
        return self._pattern.sub(self._original, text)

    def _expression(self, text: str) -> str:
        if self._prefix not in text:
            return text

        def original(found: re.Match[str]) -> str:
            name = self._original(found)
            is_alone = found.span() == (0, len(text)) or IDENTIFIER.fullmatch(name)
            is_enclosed = text[: found.start()].endswith("(") and text[found.end() :].startswith(")")
            return name if is_alone or is_enclosed else f"({name})"

        self._without_texts(text)
        return self._pattern.sub(original, text)


def _collect(model: Model) -> _Texts:
    dims, texts, names = set[str](), set[bytes](), set[str]()

    def look(record: Record) -> Record:
        match record:
            case Node(op_type=name) | Function(name=name):
                names.add(name or "")
            case Dimension(dim_param=name) | SimpleShardedDim(dim_param=name):
                dims.add(name or "")
            case Tensor(string_data=found):
                texts.update(found)
            case Attribute(s=text, strings=found):
                texts.update(found if text is None else (text, *found))
        return record

    replace_records(model, _WITH_TEXTS, look)  # looks once at records that several others share
    return _Texts(
        {name for name in dims if name and not is_symbol(name)},
        {text for text in texts if not is_harmless(text)},
        {name for name in names if name and not (IDENTIFIER.fullmatch(name) and len(name) <= LONGEST)},
    )


def _unused_prefix(data: bytes) -> str:
    used = set(map(int, _NUMBERS.findall(data)))
    return f"onnxjson{next(number for number in range(len(used) + 1) if number not in used)}"


@cache
def _text_fields(message: type[Record]) -> tuple[tuple[str, type], ...]:
    """Return the fields that hold text, each with ``str`` or ``bytes``."""
    kinds = {Kind.STRING: str, Kind.BYTES: bytes}
    fields = [field for field in FIELDS[message] if field.kind in kinds and field.name != "raw_data"]
    return tuple([(field.name, kinds[field.kind]) for field in fields])


_LONGEST: Final = 100
_DATA_FOLDER: Final = "@data"
"""Key of the folder of external data in the declaration of a pass."""


def declared(subject: Pass, data_folder: str | None = None) -> str:
    """Return a pass as JSON, for `executed` in the guarded process; see `Substituted.data_folder`."""
    fields = msgspec.to_builtins(subject.within(Path.cwd()))
    return msgspec.json.encode({**fields, _DATA_FOLDER: data_folder}).decode()


def executed(declaration: str, model: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Run a pass on a serialized model; return the result and the remarks. The current folder belongs to the pass.

    Raises:
        TextNeededError: it would compute with a text that is hidden from it.
        TypeError: it does not return a serialized model.
    """
    folder = Path.cwd()
    subject, is_light = subject_of(declaration)
    if subject.is_own_code:
        return _model_bytes(subject.run(model, folder)), drain_remarks()
    disarmed = _Disarmed(subject, model)
    with disarmed.errors():
        made = disarmed.restored(_model_bytes(disarmed.subject.run(disarmed.model, folder)))
        if not is_light:
            subject.measure(model, made)
    return made, tuple([disarmed.placeholders.restore_text(each) for each in drain_remarks()])


def staged(declaration: str, model: bytes) -> bytes:
    """Run a pass part by part; return the models after each part as MessagePack."""
    folder = Path.cwd()
    subject, _ = subject_of(declaration)
    if subject.is_own_code:
        return msgspec.msgpack.encode(list(subject.stages(model, folder)))
    disarmed = _Disarmed(subject, model)
    with disarmed.errors():
        stages = list(disarmed.subject.stages(disarmed.model, folder))
        return msgspec.msgpack.encode([PartStage(stage.name, disarmed.restored(stage.model)) for stage in stages])


class _Disarmed:
    """A pass and a model without texts that it could evaluate.

    Raises:
        TextNeededError: the pass computes values, and one of them would depend on a hidden text.
    """

    def __init__(self, subject: Pass, model: bytes) -> None:
        forbid_evaluation()
        parsed = serde.parse(model).model
        self.placeholders = Placeholders(parsed, model)
        self.subject = subject.with_dimensions(self.placeholders.dims)
        replaced = self.placeholders.replace(parsed)
        self.model = message_bytes(replaced) if self.placeholders.is_needed else model
        self._original = model
        restore_texts_with(self.restored)
        # Computed numbers have no trace of a placeholder that they depend on, so this is refused in advance.
        if subject.texts != "moved" and self.placeholders.has_texts:
            self._refuse_computing(replaced)

    def _refuse_computing(self, model: Model) -> None:
        is_run = self.subject.texts == "run"
        node = computing_node(model, self.placeholders.is_text, is_run=is_run)
        if node is None:
            return
        label = visible(node.name or (node.output[0] if node.output else ""), _LONGEST)
        advice = "remove" if is_run else "fold"
        raise TextNeededError(
            f'{visible(node.op_type or "", _LONGEST)} "{label}" computes {"" if is_run else "a constant "}from a text '
            f"of the model, which is hidden from passes; {advice} that node with an edit, or omit the pass"
        )

    def restored(self, made: bytes) -> bytes:
        """Return the result of a pass with the texts of the model restored."""
        # Not encoded again, so that an unchanged model keeps its bytes.
        if made == self.model:
            return self._original
        # Bytes of two concatenated models are returned as they are, since the pipeline reports them.
        if not self.placeholders.occurs(made) or serde.repeated_top_level(made) is not None:
            return made
        restored = message_bytes(self.placeholders.restore(serde.parse(made).model))
        if self.placeholders.occurs(restored):
            raise TextNeededError("it computes with a text of the model that is hidden from passes")
        return restored

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            restore = self.placeholders.restore_text
            error.args = tuple([restore(each) if isinstance(each, str) else each for each in error.args])
            raise


def _model_bytes(made: object) -> bytes:
    if not isinstance(made, bytes):
        raise TypeError(f"the pass returned a {type(made).__name__} instead of a model")
    return made


def subject_of(declaration: str) -> tuple[Pass, bool]:
    """Return the pass that `declared` wrote as JSON, and whether it gets a model without its big constants.

    The folder of external data becomes the current folder.
    """
    fields: dict[str, Any] = msgspec.json.decode(declaration)
    data_folder = fields.pop(_DATA_FOLDER, None)
    if data_folder:  # libraries look for external data there
        os.chdir(data_folder)
    name = fields.pop("pass")
    return next(kind for kind in KINDS if name_of(kind) == name)(**fields), data_folder is not None
