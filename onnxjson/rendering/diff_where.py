"""Where changes are in the outline: in all rounds of a repeat or some, and which option of a line they change."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from onnxjson.diffing.events import KIND_PROPERTIES, Event
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Function
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.outline.lines import Line, outline_of
from onnxjson.outline.places import LARGEST

_MOST: Final = 3
"""Maximum number of options that are listed for a change."""

_TOKEN: Final = re.compile(r"(\w+)\(|(\w+)=|([(\[])|([)\]])|(,)|[^\w()\[\],]+|\w+")


class _Place(NamedTuple):
    """Where a node is in the outline."""

    line: Line
    repeat: Line | None
    """The innermost repeat around it."""
    position: int = 0
    """The position of its round."""
    number: str = ""
    """The number of its round in the names of nodes, else the position."""


def with_places(events: Sequence[Event], alignment: Alignment) -> tuple[Event, ...]:
    """Return the events with `Event.where`; as they are for models of more than `LARGEST` nodes."""
    about = [event for event in events if _is_placed(event)]
    sides = alignment.base, alignment.target
    if not about or any(len(side.node_refs) > LARGEST for side in sides):
        return tuple(events)
    try:
        base, target = [_all_places(side) for side in sides]
    except OnnxJsonError:  # a small constant that is stored elsewhere, and cannot be read
        return tuple(events)
    return tuple(
        [
            msgspec.structs.replace(event, where=_where(event, base, target)) if _is_placed(event) else event
            for event in events
        ]
    )


def _is_placed(event: Event) -> bool:
    properties = KIND_PROPERTIES[event.kind]
    return properties.about_nodes or event.kind.startswith("weights-")


def _all_places(index: Index) -> dict[str, _Place]:
    """The places of nodes by address, and those of initializers: of the first node that consumes them."""
    places = dict(_places(index))
    for scope in index.scopes:
        if isinstance(scope.graph, Function):
            continue
        for number, tensor in enumerate(scope.graph.initializer):
            for position, _ in scope.consumers.get(tensor.name or "", ()):
                place = None if position is None else places.get(f"{scope.address}/node/{position}")
                if place is not None:
                    places[f"{scope.address}/initializer/{number}"] = place
                    break
    return places


def _places(index: Index) -> Iterator[tuple[str, _Place]]:
    """Yield the address of each node with its place; the innermost place of a node last."""
    pending: list[tuple[Line, Line | None, Mapping[NodeRef, tuple[int, str]]]] = [
        (line, None, {}) for line in reversed(outline_of(index.model, index).lines)
    ]
    while pending:
        line, repeat, numbers = pending.pop()
        if line.repeat > 1:
            repeat, numbers = line, _numbers(line)
        for ref in line.nodes:
            yield ref.address, _Place(line, repeat, *numbers.get(ref, ()))
        pending += [(inner, repeat, numbers) for inner in reversed(line.lines)]


def _numbers(repeat: Line) -> dict[NodeRef, tuple[int, str]]:
    """The position and the number of the round of each node."""
    numbers: dict[NodeRef, tuple[int, str]] = {}
    pattern = re.compile(re.escape(repeat.name).replace(r"\{i\}", "([0-9]+)"))
    for place, nodes in enumerate(repeat.rounds):
        names = [pattern.search(ref.node.name or "") for ref in nodes] if repeat.name else []
        stated = next((match[1] for match in names if match is not None), str(place))
        number = stated if len(repeat.rounds) == repeat.repeat else str(place)
        numbers.update(dict.fromkeys(nodes, (place, number)))
    return numbers


def _where(event: Event, base: Mapping[str, _Place], target: Mapping[str, _Place]) -> str:
    """``in all 4 layers: Attention.scale 0.125 -> 0.25``; "" unless all places are in one repeat."""
    places: list[_Place] = []
    options: dict[str, None] = {}
    for member in event.members:
        before, after = _first(member.base, base), _first(member.target, target)
        place = before or after
        if place is None or place.repeat is None or (places and places[0].repeat is not place.repeat):
            return ""
        places.append(place)
        if before is not None and after is not None and KIND_PROPERTIES[event.kind].effect == "changed":
            options.update(dict.fromkeys(_changed_options(event, before, after)))
    return _rounds(places) + (f": {listed([*options], _MOST)}" if options else "")


def _first(addresses: Sequence[str], places: Mapping[str, _Place]) -> _Place | None:
    """The place of the innermost node at or around the first address that has one."""
    for address in addresses:
        while address:
            if address in places:
                return places[address]
            address = address.rpartition("/")[0]
    return None


def _rounds(places: Sequence[_Place]) -> str:
    """``in all 4 layers`` or ``layers 0, 2 only``."""
    repeat = places[0].repeat
    assert repeat is not None
    word = visible(repeat.name.rpartition("/")[2].replace("{i}", "").strip("._-"), 40) or "rounds"
    numbers = list(dict.fromkeys([place.number for place in places]))
    if len(numbers) == len(repeat.rounds):
        return f"in all {len(numbers)} {word}"
    return f"{word} {listed(numbers, 8)} only"


def _changed_options(event: Event, before: _Place, after: _Place) -> list[str]:
    """``Attention.scale 0.125 -> 0.25`` for the option that differs; of several, those with a value of the event."""
    old, new = _options(before), _options(after)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if len(names) > 1:
        details = {text for member in event.members for each in member.details for text in (each.base, each.target)}
        names = [name for name in names if (details - {None}) & {old.get(name), new.get(name)}]
    return [f"{name} {old.get(name, 'default')} -> {new.get(name, 'default')}" for name in names]


def _options(place: _Place) -> dict[str, str]:
    """The keywords of a line by the calls that have them: ``Attention.scale``; of several values, that of the round."""
    keywords = _keywords(place.line.text)
    for name, value in keywords.items() if place.repeat is not None else ():
        by_round = value.strip("()").split(", ")
        if value.startswith("(") and place.repeat is not None and len(by_round) == len(place.repeat.rounds):
            keywords[name] = by_round[place.position]
    return keywords


def _keywords(text: str) -> dict[str, str]:
    """The keywords of a line by the calls that have them; for a repeated call, those of its first."""
    calls: list[str] = []
    keywords: dict[str, str] = {}
    name, value, depth = "", "", 0
    for token in _TOKEN.finditer(text):
        call, keyword, opening, closing, comma = token.groups()
        if name and (comma or closing) and len(calls) == depth:
            keywords.setdefault(name, value)
            name = value = ""
        elif name:
            value += token[0]
        if call or opening:
            calls.append(call or "")
        elif closing and calls:
            calls.pop()
        elif keyword and not name and calls and calls[-1]:
            name, depth = f"{calls[-1]}.{keyword}", len(calls)
    return keywords
