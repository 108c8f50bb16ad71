"""Where changes are in the outline: in all rounds of a repeat or some, and which option of a line they change."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from onnxjson.diffing.events import KIND_PROPERTIES, Event, Kind, Member
from onnxjson.diffing.matching.alignment import Alignment
from onnxjson.model.addresses import innermost
from onnxjson.model.constants import is_constant_node
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Function
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import operator_name
from onnxjson.outline.lines import Line, outline_of
from onnxjson.outline.places import LARGEST
from onnxjson.patterns.nodes import TOLERANCE, Literals, Value
from onnxjson.rendering.line_options import changed_options, forms_of, keywords_of

_Found = TypeVar("_Found")

_MOST: Final = 3
"""Maximum number of options that are listed for a change."""

_PLAIN: Final = re.compile(r"(?!..s$|.*ss$)[A-Za-z][A-Za-z0-9]+(?:[._][A-Za-z0-9]+)*")

_ELSEWHERE: Final = 0.1
"""Share of the nodes of removed layers that may be counterparts of those in others, such as a norm between layers."""


class _Place(NamedTuple):
    """Where a node is in the outline."""

    line: Line
    repeat: Line | None
    """The innermost repeat around it."""
    slot: tuple[int, str, int]
    """The same in all rounds: the line, the operator, and which of the nodes of this operator in the line it is."""
    position: int = 0
    """The position of its round."""
    number: int = 0
    """The number of its round in the names of nodes, else the position."""


class _Side(NamedTuple):
    """One of the two models."""

    places: Mapping[str, Sequence[_Place]]
    """By the address of a node or initializer; of constants the places of all nodes that consume them."""
    numbers: Mapping[str, Sequence[float]]
    """By address, the elements of constants that a line may show as an option: one number, or integers."""
    operators: Mapping[str, str]
    """By the address of a node."""


class Layers(NamedTuple):
    """Rounds of a repeat that were added or removed."""

    text: str
    """``5 of 6 layers removed (layers 1 to 5)``."""
    name: str
    """What the names of their nodes have in common, visible: ``encoder/layer``."""
    events: frozenset[int] = frozenset()
    """The positions of the events that say nothing else."""


def with_places(events: Sequence[Event], alignment: Alignment) -> tuple[tuple[Event, ...], tuple[Layers, ...]]:
    """Return the events with `Event.where`, and the layers that were added or removed.

    Events are as they are for models of more than `LARGEST` nodes.
    """
    about = [event for event in events if _is_placed(event)]
    sides = alignment.base, alignment.target
    if not about or any(len(side.node_refs) > LARGEST for side in sides):
        return tuple(events), ()
    try:
        base, target = [_side(side) for side in sides]
    except OnnxJsonError:  # a small constant that is stored elsewhere, and cannot be read
        return tuple(events), ()
    placed = [
        msgspec.structs.replace(event, where=_where(event, base, target)) if _is_placed(event) else event
        for event in events
    ]
    layers = [*_layers(events, "eliminated", base), *_layers(events, "inserted", target)]
    return tuple(placed), tuple(layers or _numbered(alignment, base, target))


def _layers(events: Sequence[Event], kind: Kind, side: _Side) -> Iterator[Layers]:
    """Yield the rounds that were added or removed, if they have the operators of all nodes of the events about them."""
    repeats = {id(place.repeat): place.repeat for places in side.places.values() for place in places}
    nodes = {
        number: [
            address
            for member in event.members
            for address in (member.base if kind == "eliminated" else member.target)
            if address in side.operators
        ]
        for number, event in enumerate(events)
        if event.kind == kind or (kind == "inserted" and event.pattern == "constant -> Identity")
    }
    for repeat in repeats.values():
        about = {
            number: addresses
            for number, addresses in nodes.items()
            if any([each in side.places and side.places[each][0].repeat is repeat for each in addresses])
        }
        changed = [address for addresses in about.values() for address in addresses]
        places = [place for place in _covered(changed, side) if place.repeat is repeat]
        if repeat is None or not places or len(repeat.rounds) != repeat.repeat:
            continue
        rounds = [ref for place in places for ref in _round(place)]
        elsewhere = {*changed} - {ref.address for ref in rounds}
        is_explained = Counter([side.operators[address] for address in changed]) == Counter(map(_operator, rounds))
        if is_explained and len(elsewhere) <= _ELSEWHERE * len(changed):
            total, (one, several) = repeat.repeat, _words(repeat)
            _, first = next(iter(_numbers(repeat).values()))
            which = f"{_which(places)}, counted from {first}"
            if kind == "inserted":
                text = f"{counted(total, one)} instead of {total - len(places)} (added: {which})"
            else:
                text = f"{len(places)} of {total} {several} removed" + (f" ({which})" if len(places) < total else "")
            yield Layers(text, _name(repeat.name), frozenset(about))


def _numbered(alignment: Alignment, base: _Side, target: _Side) -> Iterator[Layers]:
    """Yield ``5 layers instead of 6: encoder/layer`` for numbers in names that only one of the models has."""
    names = dict.fromkeys(
        [place.repeat.name for side in (base, target) for places in side.places.values() for place in places
         if place.repeat is not None and "{i}" in place.repeat.name]
    )  # fmt: skip
    pairs = [*alignment.node_pairs()]
    for name in names:
        pattern = re.compile(re.escape(name).replace(r"\{i\}", "([0-9]+)") + r"\b")
        base_numbers, target_numbers = [
            {ref.address: match[1] for ref in side.node_refs if (match := pattern.search(ref.name))}
            for side in (alignment.base, alignment.target)
        ]
        numbers = [(base_numbers.get(one), target_numbers.get(other)) for one, other in pairs]
        renamed = {number for pair in numbers if None in pair for number in pair}
        before, after = {*base_numbers.values()}, {*target_numbers.values()}
        if len(before) != len(after) and before and after and renamed.isdisjoint(before ^ after):
            yield Layers(f"{counted(len(after), 'layer')} instead of {len(before)}", _name(name))


def _name(name: str) -> str:
    return visible(name.replace("{i}", "").strip("./_-"), 60)


def _is_placed(event: Event) -> bool:
    properties = KIND_PROPERTIES[event.kind]
    return properties.about_nodes or event.kind.startswith("weights-")


def _side(index: Index) -> _Side:
    single = dict(_places(index))
    places: dict[str, Sequence[_Place]] = {address: (place,) for address, place in single.items()}
    numbers: dict[str, Sequence[float]] = {}
    literals = Literals(TOLERANCE)
    for scope in index.scopes:
        nodes = enumerate(scope.graph.node)
        constants = [(f"node/{at}", node.output[0]) for at, node in nodes if is_constant_node(node) and node.output]
        if not isinstance(scope.graph, Function):
            constants += [(f"initializer/{at}", each.name or "") for at, each in enumerate(scope.graph.initializer)]
        for part, name in constants:
            address = f"{scope.address}/{part}"
            users = dict.fromkeys([at for at, _ in scope.consumers.get(name, ()) if at is not None])
            addresses = [f"{scope.address}/node/{at}" for at in users]
            if used := [single[each] for each in addresses if each in single]:
                places[address] = used
            elements = literals.elements(Value(scope, name)) or ()
            if all([isinstance(each, int) for each in elements]) or (
                len(elements) == 1 and isinstance(elements[0], float)
            ):
                numbers[address] = elements
    return _Side(places, numbers, {ref.address: _operator(ref) for ref in index.node_refs})


def _places(index: Index) -> Iterator[tuple[str, _Place]]:
    """Yield the address of each node with its place; the innermost place of a node last."""
    pending: list[tuple[Line, Line | None, Mapping[NodeRef, tuple[int, int]]]] = [
        (line, None, {}) for line in reversed(outline_of(index.model, index).lines)
    ]
    count = 0
    while pending:
        line, repeat, numbers = pending.pop()
        count += 1
        if line.repeat > 1:
            repeat, numbers = line, _numbers(line)
        alike: Counter[tuple[int, str]] = Counter()
        for ref in line.nodes:
            position, number = numbers.get(ref, (0, 0))
            name = _operator(ref)
            yield ref.address, _Place(line, repeat, (count, name, alike[position, name]), position, number)
            alike[position, name] += 1
        pending += [(inner, repeat, numbers) for inner in reversed(line.lines)]


def _numbers(repeat: Line) -> dict[NodeRef, tuple[int, int]]:
    """The position and the number of the round of each node: the position if names do not tell all rounds apart."""
    pattern = re.compile(re.escape(repeat.name).replace(r"\{i\}", "([0-9]{1,9})(?![0-9])"))
    stated = [
        int(match[1])
        for nodes in repeat.rounds
        if (match := next(filter(None, [pattern.search(ref.name) for ref in nodes if pattern.groups]), None))
    ]
    is_told = len({*stated}) == len(repeat.rounds) == repeat.repeat
    return {
        ref: (place, stated[place] if is_told else place) for place, nodes in enumerate(repeat.rounds) for ref in nodes
    }


def _where(event: Event, base: _Side, target: _Side) -> str:
    """``in all 4 layers: Attention.scale 0.125 -> 0.25``; "" unless places are in one repeat.

    Options with other values, in other rounds or outside the repeat are sentences of their own, separated by ``; ``.
    """
    is_changed = KIND_PROPERTIES[event.kind].effect == "changed"
    places_of: list[Sequence[_Place]] = []
    for member in event.members:
        rounds = () if is_changed else _covered(member.base, base) or _covered(member.target, target)
        places_of.append(rounds or _first(member.base, base.places) or _first(member.target, target.places) or ())
    repeats = {id(place.repeat) for places in places_of for place in places if place.repeat is not None}
    if len(repeats) != 1 or not all(places_of):
        return ""
    inside: dict[str, list[_Place]] = {}
    outside: dict[str, list[_Place]] = {}
    for member, places in zip(event.members, places_of, strict=True):
        before, after = _first(member.base, base.places), _first(member.target, target.places)
        for number, place in enumerate(places):
            names: list[str] = []
            if before and after and len(before) == len(after) and is_changed:
                values = _values(member, base, target, is_attribute=event.kind == "attribute-changed")
                names = changed_options(event, values, _options(before[number]), _options(after[number]))
            for name in names or [""]:
                (outside if place.repeat is None else inside).setdefault(name, []).append(place)
    sentences: dict[str, list[str]] = {}
    for name, changed in inside.items():
        sentences.setdefault(_rounds(changed, of_operator=event.kind == "attribute-changed"), []).append(name)
    for name, changed in outside.items():
        sentences.setdefault(f"in {counted(len(changed), 'other place')}", []).append(name)
    texts = [
        f"{rounds}: {listed(options, _MOST)}" if (options := [name for name in names if name]) else rounds
        for rounds, names in sentences.items()
    ]
    more = [f"and {len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return "; ".join(texts[:_MOST] + more)


def _first(addresses: Sequence[str], by_address: Mapping[str, _Found]) -> _Found | None:
    """What is known of the innermost node at or around the first address of which something is."""
    known = [innermost(by_address, address) for address in addresses]
    return next((each for each in known if each is not None), None)


def _covered(addresses: Sequence[str], side: _Side) -> list[_Place]:
    """A place for each round of which most nodes are among several, such as those of a layer that was removed."""
    by_round: dict[tuple[int, int], list[_Place]] = {}
    for place in [side.places[address][0] for address in addresses if address in side.places]:
        if place.repeat is not None and len(addresses) > 1:
            by_round.setdefault((id(place.repeat), place.position), []).append(place)
    return [
        places[0]._replace(slot=(0, "", 0)) for places in by_round.values() if len(places) * 2 > len(_round(places[0]))
    ]


def _round(place: _Place) -> list[NodeRef]:
    """The nodes of its round but for constants."""
    assert place.repeat is not None
    return [ref for ref in place.repeat.rounds[place.position] if not is_constant_node(ref.node)]


def _rounds(places: Sequence[_Place], *, of_operator: bool) -> str:
    """``in all 4 layers``, ``layers 0, 2 only``, or ``in 7 of 8 places`` if some rounds have only some of the places.

    The places of a round are those that any round has; with `of_operator`, all nodes of the operator in their lines.
    """
    repeat = places[0].repeat
    assert repeat is not None
    by_round: dict[int, set[tuple[int, str, int]]] = {}
    for place in places:
        by_round.setdefault(place.position, set()).add(place.slot)
    slots = set().union(*by_round.values())
    total = len(slots) * len(repeat.rounds)
    if of_operator:
        lines = {place.slot[:2]: place for place in places}.values()
        total = sum([_count(place) for place in lines])
    if any([len(each) * len(repeat.rounds) != total for each in by_round.values()]):
        return f"in {sum(map(len, by_round.values()))} of {total} places"
    if len(by_round) == len(repeat.rounds):
        return f"in all {len(by_round)} {_words(repeat)[1]}{_around(repeat)}"
    return f"{_which(places)}{_around(repeat)} only"


def _words(repeat: Line) -> tuple[str, str]:
    """``layer`` and ``layers``: a plain word of their name, or ``round``."""
    word = repeat.name.rpartition("/")[2].replace("{i}", "").strip("._-")
    one = word.removesuffix("s") if _PLAIN.fullmatch(word) else "round"
    return one, f"{one}s"


def _around(repeat: Line) -> str:
    """`` of stages.2`` if its name says that it is in one of several."""
    match = re.search(r"([A-Za-z]+[._][0-9]+)[/.][A-Za-z_]+[/._]?\{i\}$", repeat.name)
    return f" of {match[1]}" if match else ""


def _which(places: Sequence[_Place]) -> str:
    """``layer 4``, ``layers 0, 2``, ``layers 1 to 5``."""
    numbers = sorted({place.number for place in places})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    assert places[0].repeat is not None
    one, several = _words(places[0].repeat)
    return f"{several if len(numbers) > 1 else one} {listed(texts, 8)}"


def _count(place: _Place) -> int:
    """The number of nodes of the operator of a place in its line, in all rounds."""
    return sum([_operator(ref) == place.slot[1] for ref in place.line.nodes])


def _operator(ref: NodeRef) -> str:
    return operator_name(ref.node.domain, ref.node.op_type)


def _values(member: Member, base: _Side, target: _Side, *, is_attribute: bool) -> list[tuple[str | None, str | None]]:
    """The values before and after at one place: of its details, and of elements of a constant that differ.

    Lines show some constants by their reciprocal or square, such as the scale of an attention that divides by it.
    """
    values = [
        (each.base, each.target)
        for each in member.details
        if is_attribute or (each.base is not None and each.target is not None)  # others are sizes of the difference
    ]
    before, after = _first(member.base, base.numbers) or (), _first(member.target, target.numbers) or ()
    for old, new in zip(before, after, strict=False) if len(before) == len(after) else ():
        if old != new:
            values += zip(forms_of(old), forms_of(new), strict=True)
    return values


def _options(place: _Place) -> dict[str, str]:
    """The keywords of a line by the calls that have them: ``Attention.scale``; of several values, that of the round."""
    keywords = keywords_of(place.line.text)
    for name, value in keywords.items() if place.repeat is not None else ():
        by_round = value.strip("()").split(", ")
        if value.startswith("(") and place.repeat is not None and len(by_round) == len(place.repeat.rounds):
            keywords[name] = by_round[place.position]
    return keywords
