"""Names of dimensions, replaced by plain ones while a pass runs.

Shape inference in Python computes with names of dimensions: whatever a model calls them, a pass sees ``onnxjson0_d0``
to ``onnxjson0_dn``, and the result has the names of the model, also in expressions: ``2*(past length)``.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Dimension, Model, Record, SimpleShardedDim
from onnxjson.model.walking import replace_records

_NUMBERS: Final = re.compile(rb"onnxjson([0-9]{1,18})_d")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WITH_NAMES: Final[tuple[type[Record], ...]] = (Dimension, SimpleShardedDim)


class HiddenNames:
    """A serialized model whose names of dimensions are replaced, and the way back."""

    def __init__(self, model: bytes) -> None:
        parsed = serde.parse(model).model
        names = set[str]()

        def look(record: Record) -> Record:
            if isinstance(record, Dimension | SimpleShardedDim) and record.dim_param:
                names.add(record.dim_param)
            return record

        replace_records(parsed, _WITH_NAMES, look)  # looks once at records that several others share
        used = set(map(int, _NUMBERS.findall(model))) if names else set[int]()
        self._prefix = f"onnxjson{next(number for number in range(len(used) + 1) if number not in used)}_d"
        self._pattern = re.compile(rf"\b{self._prefix}[0-9]+\b")
        width = len(str(len(names)))  # sympy orders by name: new names keep the order of the model's
        self.replaced = {name: f"{self._prefix}{number:0{width}}" for number, name in enumerate(sorted(names))}
        """Names of the model, each with the one that the pass sees."""
        self._names = {new: name for name, new in self.replaced.items()}
        self._original = model
        self.model = message_bytes(_renamed(parsed, self.replaced.get)) if names else model
        """The model for the pass, serialized."""

    def restored(self, model: bytes) -> bytes:
        """Return the result of a pass, serialized, with the names of the model."""
        # Not encoded again, so that an unchanged model keeps its bytes.
        if model == self.model:
            return self._original
        # Bytes of two concatenated models are returned as they are, since the pipeline reports them.
        if self._prefix.encode() not in model or serde.repeated_top_level(model) is not None:
            return model
        return message_bytes(_renamed(serde.parse(model).model, self._expression))

    def restored_text(self, text: str) -> str:
        """Return a message of a pass with the names of the model."""
        return self._pattern.sub(lambda found: self._names.get(found[0], found[0]), text)

    def _expression(self, text: str) -> str:
        def original(match: re.Match[str]) -> str:
            name = self._names.get(match[0], match[0])
            is_alone = match.span() == (0, len(text)) or _IDENTIFIER.fullmatch(name)
            is_enclosed = text[: match.start()].endswith("(") and text[match.end() :].startswith(")")
            return name if is_alone or is_enclosed else f"({name})"

        return self._pattern.sub(original, text)


def _renamed(model: Model, renamed: Callable[[str], str | None]) -> Model:
    """Return a model with the names of dimensions that a function gives; None keeps a name."""

    def changed(record: Record) -> Record:
        if isinstance(record, Dimension | SimpleShardedDim) and record.dim_param:
            name = renamed(record.dim_param)
            if name is not None and name != record.dim_param:
                return msgspec.structs.replace(record, dim_param=name)
        return record

    return replace_records(model, _WITH_NAMES, changed)
