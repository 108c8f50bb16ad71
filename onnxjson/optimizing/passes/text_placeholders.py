"""Placeholders for texts of a model that Python code could evaluate.

Shape inference in Python computes with names of dimensions, and sympy evaluates a string as code where it expects a
number. So these texts are replaced before such code gets a model, and restored in its result:

* names of dimensions, except plain symbols of sympy and plain arithmetic of them, such as ``N // 2``;
* elements of string tensors and string attributes, except plain words, numbers and equations of an Einsum;
* names of operators and functions that are not identifiers, since shape inference makes names of dimensions from them.

Equal texts get equal placeholders, different texts different ones. No placeholder occurs in the original model.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.model.document import Attribute, Dimension, Function, Model, Node, Record, SimpleShardedDim, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.messages import FIELDS, Kind
from onnxjson.model.walking import replace_records
from onnxjson.optimizing.passes.text_evaluation import IDENTIFIER, LONGEST, is_harmless, is_symbol

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
