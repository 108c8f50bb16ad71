"""Inputs and outputs of a model as rows: name, type, consumers or producer."""

from typing import Literal, NamedTuple

from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Type
from onnxjson.model.index import Index
from onnxjson.model.types import format_type
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded, shortened

_LONGEST = 1000


class Port(NamedTuple):
    """One input or output of the main graph."""

    kind: Literal["input", "output"]
    name: str
    """Original name; escape it before showing it."""
    label: str
    """Visible."""
    type: str
    """Visible."""
    note: str
    """Consumers or producer. Visible."""


def ports_of(index: Index) -> list[Port]:
    """Return the inputs and outputs of the main graph; none if there is no graph."""
    scope = index.main
    if scope is None or isinstance(scope.graph, Function):
        return []
    found = []
    for value in scope.graph.input:
        name = value.name or ""
        uses = len(index.consumers(scope, name))
        note = f"{counted(uses, 'use')}" if uses else "not consumed"
        if name in scope.initializers:
            note += ", has a default"
        found.append(Port("input", name, visible(name, _LONGEST), _type(value.type), note))
    for value in scope.graph.output:
        name = value.name or ""
        producer = scope.producers.get(name)
        note = "an input or constant" if scope.defines(name) else "not produced"
        if producer is not None:
            note = f"produced by {producer[0]} {visible(scope.graph.node[producer[0]].op_type or '?', 40)}"
        found.append(Port("output", name, visible(name, _LONGEST), _type(value.type), note))
    return found


def _type(kind: Type | None) -> str:
    return visible(format_type(kind) or "?", 300) if kind is not None else "no type"


class InterfaceRows:
    """Rows that begin with ``in`` for an input and ``out`` for an output."""

    def __init__(self, ports: list[Port]) -> None:
        self.ports = ports
        self._names = max([cells(port.label) for port in ports], default=0)
        self._types = max([cells(port.type) for port in ports], default=0)

    def __len__(self) -> int:
        return len(self.ports)

    def line(self, number: int, width: int) -> Line:
        """Return direction, name, type, and consumers or producer."""
        port = self.ports[number]
        names = min(self._names, max((width - 5) * 2 // 5, 8))
        types = min(self._types, max((width - 5) * 2 // 5, 8))
        room = max(width - 5 - names - types - 4, 0)
        return (
            Span("in   " if port.kind == "input" else "out  ", "quiet"),
            Span(padded(shortened(port.label, names), names) + "  ", "plain"),
            Span(padded(shortened(port.type, types), types) + "  ", "quiet"),
            Span(shortened(port.note, room) if room > 3 else "", "quiet"),
        )
