"""What goes in and out of a model, a row each: name, type, who takes it."""

from typing import Literal, NamedTuple

from onnxjson.display import counted, visible
from onnxjson.document import Function, Type
from onnxjson.index import Index
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded, shortened
from onnxjson.types import format_type

_LONGEST = 1000


class Port(NamedTuple):
    """One input or output of the main graph."""

    kind: Literal["input", "output"]
    name: str
    """As the model has it: never to be shown as it is."""
    label: str
    """Visible."""
    type: str
    """Visible."""
    note: str
    """Who takes it, or what makes it. Visible."""


def ports_of(index: Index) -> list[Port]:
    """The inputs and outputs of the main graph; none where there is no graph."""
    scope = next((each for each in index.scopes if each.kind == "main"), None)
    if scope is None or isinstance(scope.graph, Function):
        return []
    found = []
    for value in scope.graph.input:
        name = value.name or ""
        uses = len(index.consumers(scope, name))
        note = f"{counted(uses, 'use')}" if uses else "nothing takes it"
        if name in scope.initializers:
            note += ", has a default"
        found.append(Port("input", name, visible(name, _LONGEST), _type(value.type), note))
    for value in scope.graph.output:
        name = value.name or ""
        maker = scope.makers.get(name)
        note = f"made by {maker[0]} {visible(scope.graph.node[maker[0]].op_type or '?', 40)}" if maker else "not made"
        if maker is None and scope.defines(name):
            note = "an input or constant"
        found.append(Port("output", name, visible(name, _LONGEST), _type(value.type), note))
    return found


def _type(kind: Type | None) -> str:

    return visible(format_type(kind) or "?", 300) if kind is not None else "no type"


class InterfaceRows:
    """The rows; an input has ``in`` before it, an output ``out``."""

    def __init__(self, ports: list[Port]) -> None:
        self.ports = ports
        self._names = max([cells(port.label) for port in ports], default=0)
        self._types = max([cells(port.type) for port in ports], default=0)

    def __len__(self) -> int:
        return len(self.ports)

    def line(self, number: int, width: int) -> Line:
        """Direction, name, type, who takes it."""
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
