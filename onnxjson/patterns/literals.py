"""Constants and attributes compared with the numbers, lists and texts of a pattern."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from onnxjson.model.constants import Constant, find_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.errors import DecodeError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.model.operators import plain_domain
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import is_external, raw_bytes, to_numpy
from onnxjson.patterns.expression import Anything, AttributeValue, Call, Elements, Number, Text

TOLERANCE: Final = 1e-3
"""Relative difference up to which numbers of floating point are equal."""

_SHOWN: Final = 8
"""Elements of a constant that a message lists."""

_CODES: Final = {DATA_TYPES[name]: code for name, code in (("float32", "f"), ("int64", "q"))}

_ELEMENTS: Final = 4096
"""Elements of the largest constant whose elements are compared."""


class Value(NamedTuple):
    """A value of a model: its name, and the graph that defines it (None for an undefined name)."""

    scope: Scope | None
    name: str


class Literals:
    """The constants of one model, each looked up once."""

    def __init__(self, index: Index, tolerance: float) -> None:
        self._index = index
        self._tolerance = tolerance
        self._constants: dict[Value, Constant | None] = {}
        self._elements: dict[Value, Sequence[Any] | None] = {}

    def constant(self, value: Value) -> Constant | None:
        """Return the constant that a value is, directly or through Identity nodes; None if a caller may replace it."""
        if value not in self._constants:
            self._constants[value] = self._find(value)
        return self._constants[value]

    def _find(self, value: Value) -> Constant | None:
        scope, name = value
        seen = set()
        while scope is not None and name and (scope, name) not in seen:
            seen.add((scope, name))
            found = find_constant(scope, name)
            if found is not None:
                return None if found.is_replaceable(self._index.model.ir_version) else found
            producer = self._index.producer(scope, name)
            if producer is None:
                return None
            node = producer.node
            if node.op_type != "Identity" or plain_domain(node.domain) or not node.input:
                return None
            scope, name = producer.scope, node.input[0]
        return None

    def elements(self, value: Value) -> Sequence[Any] | None:
        """Return the elements of a small constant of numbers or texts in this file; None for other values."""
        if value not in self._elements:
            constant = self.constant(value)
            self._elements[value] = None if constant is None else _small_elements(constant)
        return self._elements[value]

    def is_like(self, value: Value, want: Number | Elements) -> bool:
        """Whether a value is a constant with the wanted elements."""
        elements = self.elements(value)
        if elements is None:
            return False
        if isinstance(want, Number):
            return len(elements) == 1 and self._fit(elements, (want.value,))
        return self._fit(elements, want.items)

    def of_match(self, calls: Sequence[Call], refs: Sequence[NodeRef]) -> Iterator[tuple[Value, Number | Elements]]:
        """Yield the constants that the numbers and lists of a pattern stand for at the nodes of a match."""
        for call, ref in zip(calls, refs, strict=True):
            values = [Value(Index.defining_scope(ref.scope, name), name) for name in ref.node.input if name]
            for want in call.inputs or ():
                if isinstance(want, Number | Elements):
                    yield from [(value, want) for value in values if self.is_like(value, want)][:1]

    def has(self, attribute: Attribute, want: AttributeValue) -> bool:
        """Whether an attribute has the wanted value."""
        value = value_of(attribute)
        match want:
            case Anything():
                return True
            case Number():
                return isinstance(value, int | float) and self._is_close(value, want.value)
            case Text():
                return bool(value == want.value)
            case Elements():
                return isinstance(value, tuple) and self._fit(value, want.items)
            case _:
                return False

    def text(self, value: Value) -> str | None:
        """Return the elements of a small constant as a message shows them; None for other values."""
        elements = self.elements(value)
        if elements is None:
            return None
        if len(elements) == 1:
            return f"{elements[0]:.7g}" if isinstance(elements[0], float) else visible(str(elements[0]))
        shown = ", ".join([visible(str(each)) for each in elements[:_SHOWN]])
        return f"[{shown}, ...]" if len(elements) > _SHOWN else f"[{shown}]"

    def _fit(self, found: Sequence[object], wanted: Sequence[float | str | None]) -> bool:
        return found == wanted or (
            len(found) == len(wanted)
            and all(
                [
                    want is None
                    or (isinstance(each, int | float) and isinstance(want, int | float) and self._is_close(each, want))
                    or (isinstance(want, str) and each == want)
                    for each, want in zip(found, wanted, strict=True)
                ]
            )
        )

    def _is_close(self, found: float, wanted: float) -> bool:
        if found == wanted or (found != found and wanted != wanted):
            return True
        if isinstance(found, int) and isinstance(wanted, int):
            return False
        return abs(found - wanted) <= self._tolerance * max(abs(found), abs(wanted)) < float("inf")


def _small_elements(constant: Constant) -> Sequence[Any] | None:
    tensor = constant.tensor
    if tensor is None or is_external(tensor) or element_count(tensor.dims) > _ELEMENTS:
        return None
    stored, code = raw_bytes(tensor), _CODES.get(tensor.data_type or 0)
    if stored is not None and code is not None:  # without numpy, whose import takes 0.1 s
        return list(struct.unpack(f"<{element_count(tensor.dims)}{code}", whole(stored[0])))
    try:
        array = to_numpy(tensor).reshape(-1)
    except DecodeError:
        return None
    found: list[Any] = (array if array.dtype.kind in "biufcO" else array.astype("float64")).tolist()
    return found
