"""Names of values and weights in an outline, and the text of a line."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, count
from typing import Final

from onnxjson.model.constants import find_constant
from onnxjson.model.display import visible
from onnxjson.model.index import Index
from onnxjson.model.types import shown_type
from onnxjson.outline.expressions import Detail, Ref, Statement, Weight
from onnxjson.outline.flow import Flow
from onnxjson.outline.repeats import Item, Repeat, statements_of

_FRESH: Final = ("x", "h", "y", "z", "u", "v", "s", "t")
_ANONYMOUS: Final = re.compile(
    r"(?:onnx::.*|val_?\d+|[a-zA-Z]{0,2}_?\d*|_to_copy.*|const\w*|tensor\w*|new_\w*|initializer\w*)"
)
_ENDINGS: Final = frozenset(
    {
        "weight",
        "bias",
        "kernel",
        "w",
        "b",
        "W",
        "B",
        "weight_quantized",
        "weights",
        "gamma",
        "beta",
        "scale",
        "embedding",
    }
)
_SHOWN: Final = 6
"""Rounds whose numbers are listed."""


class Names:
    """The names of the values of a graph and of those around it."""

    def __init__(self, outer: "Names | None" = None) -> None:
        self._names: dict[str, str] = dict(outer._names) if outer else {}
        self._used = set(outer._used) if outer else set()
        self._same: dict[str, str] = {}
        """Values that have the name of another one: in rounds of a repeat, and handed from round to round."""
        self._rounds: dict[str, int] = {}
        """Values of a round that is not the last one, which later lines see, and the round."""

    def inner(self) -> "Names":
        """Return names for a graph inside."""
        return Names(self)

    def add_graph(self, flow: Flow, items: Sequence[Item]) -> None:
        """Name the values of a graph."""
        for name in (*flow.scope.inputs, *flow.outputs):
            self._names[name] = visible(name, 40)
            self._used.add(self._names[name])
        last = _last_uses(flow, items)
        over: dict[int, list[str]] = {}
        for name, place in last.items():
            over.setdefault(place, []).append(name)
        lent: dict[str, str] = {}
        """Names that can be given again, and their values."""
        for place, item in enumerate(_walk(items)):
            if isinstance(item, Repeat):
                self._join(item)
                end = place + sum(1 for _ in _walk(item.rounds[0]))
                for start, result in item.carried:
                    # The first value and those of all rounds have one name, unless the first one is used later, too.
                    name = self._names.get(start, "")
                    if lent.get(name) == start and last.get(start, -1) <= end and result not in self._names:
                        self._names[result] = name
                        lent[name] = result
                        last[start] = -1
                continue
            dead = [name for name in over.get(place, ()) if last[name] == place]
            free = [name for value in dead if lent.get(name := self._names.get(value, "")) == value]
            for output in item.outputs:
                if output not in self._names:
                    self._names[output] = free.pop(0) if free else self._fresh(lent)
                    lent[self._names[output]] = output
            for name in free:
                del lent[name]

    def _join(self, repeat: Repeat) -> None:
        """Give the values of all rounds the names of those of the first."""
        first = statements_of(repeat.rounds[0])
        for number, items in enumerate(repeat.rounds):
            for one, other in zip(first, statements_of(items), strict=True):
                for value, same in zip(other.outputs, one.outputs, strict=True):
                    if value != same:
                        self._same.setdefault(value, same)
                    if number < len(repeat.rounds) - 1:
                        self._rounds.setdefault(value, number)

    def _fresh(self, lent: dict[str, str]) -> str:
        for name in chain(_FRESH, (f"x{number}" for number in count(1))):
            if name not in self._used and name not in lent:
                return name
        raise AssertionError

    def of(self, value: str) -> str:
        """Return the name of a value."""
        seen = value
        while seen in self._same and seen not in self._names:
            seen = self._same[seen]
        return self._names.get(seen) or visible(value, 40)

    def starts(self, repeat: Repeat) -> str:
        """Return how the values begin that a repeat hands from round to round, where their names do not say it."""
        pairs = [(self.of(end), self.of(start)) for start, end in repeat.carried]
        return ", ".join([f"{end} = {start}" for end, start in pairs if end != start])

    def text(self, flow: Flow, same: Sequence[Statement]) -> str:
        """Return the text of a line; of the same one in all rounds of a repeat."""
        first = same[0]
        parts: list[str] = []
        for place, piece in enumerate(first.expression.pieces):
            if isinstance(piece, str):
                parts.append(piece)
            elif isinstance(piece, Ref):
                parts.append(self.of(piece.name))
            elif isinstance(piece, Weight):
                parts.append(weight_name(flow, piece))
            else:
                texts = [other.text for each in same if isinstance(other := each.expression.pieces[place], Detail)]
                parts.append(_listed(texts))
        names = ", ".join([self.of(name) for name in first.outputs])
        types = ""
        if len(same) == 1 and first.outputs[0] in flow.outputs:
            stated = Index.type_of(flow.scope, first.outputs[0])
            types = "" if stated is None else f": {visible(shown_type(stated))}"
        return f"{names} = {''.join(parts)}{types}"


def _listed(texts: Sequence[str]) -> str:
    if len(set(texts)) == 1:
        return texts[0]
    shown = texts[:_SHOWN]
    return f"({', '.join(shown)}{', ...' * (len(texts) > _SHOWN)})"


def _walk(items: Sequence[Item]) -> Iterator[Item]:
    """Yield repeats and the statements of their first rounds, as they are written."""
    for item in items:
        yield item
        if isinstance(item, Repeat):
            yield from _walk(item.rounds[0])


def _last_uses(flow: Flow, items: Sequence[Item]) -> dict[str, int]:
    """The number of the last line that consumes each value; all uses in a repeat count at the end of it.

    But for values of its own rounds, which can be over before.
    """
    last: dict[str, int] = {}

    def note(items: Sequence[Item], place: int) -> int:
        for item in items:
            if isinstance(item, Repeat):
                inner = {name for each in statements_of(item.rounds[0]) for name in each.outputs}
                inner -= {name for _, name in item.carried}
                end = note(item.rounds[0], place + 1)
                for statement in statements_of([item]):
                    _note(last, statement, end - 1, inner)
                place = end
            else:
                _note(last, item, place)
                place += 1
        return place

    note(items, 0)
    last.update(dict.fromkeys(flow.outputs, 1 << 60))
    return last


def _note(last: dict[str, int], statement: Statement, place: int, but: Collection[str] = ()) -> None:
    for piece in statement.expression.pieces:
        if isinstance(piece, Ref) and piece.name not in but:
            last[piece.name] = max(place, last.get(piece.name, -1))


def weight_name(flow: Flow, weight: Weight) -> str:
    """Return the last part of a constant's name that says something, of its user's name, or its sizes."""
    parts = [part for part in re.split(r"[./]", weight.name) if part]
    while len(parts) > 1 and parts[-1] in _ENDINGS:
        parts.pop()
    if flow.producer(weight.name) >= 0 and find_constant(flow.scope, weight.name) is None:
        parts = []
    if parts and not _ANONYMOUS.fullmatch(parts[-1]):
        return visible(parts[-1], 30)
    if len(parts) > 1 and parts[-1].isdigit():
        return visible(f"{parts[-2]}.{parts[-1]}", 30)
    scopes = [part for part in (flow.nodes[weight.user].name or "").split("/") if part]
    if len(scopes) > 1:
        return visible(scopes[-2], 30)
    constant = find_constant(flow.scope, weight.name)
    value = None if constant is None else constant.value
    if value is not None:
        return f"W[{','.join(map(str, value.dims))}]"
    sources = [name for name in _sources(flow, weight.name) if not flow.elements(name)]
    return weight_name(flow, Weight(sources[0], weight.user)) if sources else "constant"


def _sources(flow: Flow, name: str) -> Iterator[str]:
    """Yield the stored constants from which a constant is computed."""
    pending, seen = [name], {name}
    while pending:
        position = flow.producer(pending.pop())
        for each in flow.nodes[position].input if position >= 0 else ():
            if each and each not in seen:
                seen.add(each)
                pending.append(each)
                if find_constant(flow.scope, each) is not None:
                    yield each


_NUMBER: Final = re.compile(r"\d+")


def common_path(rounds: Sequence[Sequence[str]]) -> str:
    """Return what the names of all nodes of each round begin with, with ``{i}`` for the number of the round."""
    prefixes = [_prefix([name for name in names if name]) for names in rounds]
    if not all(prefixes):
        return ""
    forms = [_NUMBER.sub("{i}", prefix) for prefix in prefixes]
    if len(set(forms)) > 1:
        return ""
    varying = [
        place
        for place, numbers in enumerate(zip(*[_NUMBER.findall(prefix) for prefix in prefixes], strict=True))
        if len(set(numbers)) > 1
    ]
    if len(varying) != 1:
        return ""
    places = iter(range(len(prefixes[0])))
    form = _NUMBER.sub(lambda match: "{i}" if next(places) == varying[0] else match[0], prefixes[0])
    parts = [part for part in re.split(r"[/]", form) if part]
    at = next(place for place, part in enumerate(parts) if "{i}" in part)
    return "/".join(parts[: at + 1])


def _prefix(names: Sequence[str]) -> str:
    """The scopes that most names begin with."""
    counts: dict[str, int] = {}
    for name in names:
        scopes = name.split("/")[:-1]
        for end in range(1, len(scopes) + 1):
            path = "/".join(scopes[:end])
            counts[path] = counts.get(path, 0) + 1
    common = [path for path, count in counts.items() if 2 * count > len(names) and _NUMBER.search(path)]
    return max(common, key=len, default="")
