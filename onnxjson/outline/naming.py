"""Names of values and weights in an outline, and the text of a line."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count, groupby
from types import MappingProxyType
from typing import Final

from onnxjson.model.constants import find_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Type
from onnxjson.model.index import Index
from onnxjson.model.types import shown_type
from onnxjson.outline.expressions import Detail, Inside, Options, Ref, Statement, Weight
from onnxjson.outline.flow import Flow
from onnxjson.outline.repeats import Item, Repeat, statements_of, values_of, written

_FRESH: Final = ("x", "h", "y", "z", "u", "v", "s", "t")
_ANONYMOUS: Final = re.compile(
    r"onnx::.*|.*_output_\d+.*|[a-zA-Z]{0,3}_?\d+|_to_copy.*|(?:const|tensor|new_|initializer)\w*"
)
_ENDINGS: Final = frozenset({
    "weight", "bias", "kernel", "w", "b", "W", "B", "weight_quantized", "weights", "gamma", "beta", "scale",
    "embedding",
})  # fmt: skip
_EXPRESSION: Final = re.compile(r"'[^']{13,}'")
_LIST: Final = 36
"""Characters of a list of what differs from round to round."""

_TRIED: Final = 64
"""Constants from which another one is computed that are tried for a name."""

_SHOWN: Final = 4
"""Rounds whose numbers are listed."""


class Names:
    """The names of the values of a graph and of those around it."""

    def __init__(self, outer: "Names | None" = None) -> None:
        self._outer = outer
        self._names: dict[str, str] = {"": "_"}
        self._used: set[str] = set()
        """Names of inputs and outputs, and those that were ever given."""
        self._kept: set[str] = set()
        """Names of inputs and outputs."""
        self._numbers = count()
        self._returned: list[int] = []
        """The numbers of names that can be given again, as a heap."""
        self._same: dict[str, str] = {}
        """Values that have the name of another one: in rounds of a repeat, and handed from round to round."""
        self._rounds: dict[str, list[tuple[int, bool, set[int]]]] = {}
        """For values in repeats, the outer before the inner: the round, whether it is the last, all statements."""

    def add_graph(self, flow: Flow, items: Sequence[Item]) -> None:
        """Name the values of a graph; those that equal others have their names."""
        self._same.update({name: other for name, other in flow.equal.items() if name not in flow.outputs})
        width = 40 if flow.scope.owner is None else 24
        for name in dict.fromkeys((*flow.scope.inputs, *flow.outputs)):
            text = visible(name, width)
            self._names[name] = f"…{visible(name)[1 - width :]}" if text in self._kept else text
            self._kept.add(self._names[name])
        self._used |= self._kept
        for item in written(items):
            if isinstance(item, Repeat):
                self._join(item)
        last = self._last_uses(flow, items)
        over: dict[int, list[str]] = {}
        for name, place in last.items():
            over.setdefault(place, []).append(name)
        lent: dict[str, str] = {}
        """Names that can be given again, and their values."""
        for place, item in enumerate(written(items)):
            dead = [name for name in over.get(place, ()) if last[name] == place]
            if isinstance(item, Repeat):
                end = place + sum(1 for _ in written(item.rounds[0]))
                for start, result in [(self._first(start), self._first(end)) for start, end in item.carried]:
                    # The first value and those of all rounds have one name, unless the first one is used later, too.
                    name = self._names.get(start, "")
                    if result in self._names:
                        continue
                    if lent.get(name) != start or last.get(start, -1) > end:
                        name = self._fresh(lent)
                    else:
                        last[start] = -1
                    self._names[result] = name
                    lent[name] = result
            free = [name for value in dead if lent.get(name := self._names.get(value, "")) == value]
            for output in () if isinstance(item, Repeat) else item.outputs:
                if (output := self._first(output)) not in self._names:
                    self._names[output] = free.pop(0) if free else self._fresh(lent)
                    lent[self._names[output]] = output
            for name in free:
                del lent[name]
                heappush(self._returned, _number(name))

    def _last_uses(self, flow: Flow, items: Sequence[Item]) -> dict[str, int]:
        """The number of the last line that consumes each value; for uses in a repeat that of the line after it.

        But for values of its own rounds, which can be over before.
        """
        last: dict[str, int] = {}

        def note(statement: Statement, place: int, but: Collection[str] = ()) -> None:
            for piece in statement.expression.pieces:
                if isinstance(piece, Ref) and (name := self._first(piece.name)) not in but:
                    last[name] = max(place, last.get(name, -1))

        def walk(items: Sequence[Item], place: int) -> int:
            for item in items:
                if isinstance(item, Repeat):
                    inner = {name for each in statements_of(item.rounds[0]) for name in each.outputs}
                    inner -= {name for _, name in item.carried}
                    end = walk(item.rounds[0], place + 1)
                    for start, _ in item.carried:
                        last[self._first(start)] = max(place, last.get(self._first(start), -1))
                    for statement in statements_of([item]):
                        note(statement, end, inner)
                    place = end
                else:
                    note(item, place)
                    place += 1
            return place

        walk(items, 0)
        last.update({self._first(name): 1 << 60 for name in flow.outputs})
        return last

    def _join(self, repeat: Repeat) -> None:
        """Give the values of all rounds the names of those of the first."""
        first = statements_of(repeat.rounds[0])
        inside = {id(each) for each in statements_of([repeat])}
        for number, items in enumerate(repeat.rounds):
            for one, other in zip(first, statements_of(items), strict=True):
                for value, same in zip(other.outputs, one.outputs, strict=True):
                    if value != same:
                        self._same.setdefault(value, same)
                    self._rounds.setdefault(value, []).append((number, number == len(repeat.rounds) - 1, inside))

    def _fresh(self, lent: dict[str, str]) -> str:
        while True:
            number = heappop(self._returned) if self._returned else next(self._numbers)
            name = _FRESH[number] if number < len(_FRESH) else f"x{number - len(_FRESH) + 1}"
            if name not in self._kept and name not in lent and not self._is_outer(name):
                self._used.add(name)
                return name

    def _is_outer(self, name: str) -> bool:
        outer = self._outer
        return outer is not None and (name in outer._used or outer._is_outer(name))

    def _first(self, value: str) -> str:
        """The value of the first rounds that a value has the name of."""
        while value in self._same:
            value = self._same[value]
        return value

    def of(self, value: str) -> str:
        """Return the name of a value."""
        name = self._names.get(value) or self._names.get(self._first(value))
        return name or (self._outer.of(self._first(value)) if self._outer else visible(value, 40))

    def _numbers_of(self, value: str, statement: int) -> str:
        """The numbers of the rounds of a value for a line outside the repeats; the last rounds have none.

        A value of a repeat in a repeat stands for those of all rounds of the outer one.
        """
        if not self._rounds:
            return ""
        rounds: dict[int, tuple[int, bool]] = {}
        same: str | None = value
        while same is not None:
            for number, is_last, inside in self._rounds.get(same, ()):
                if statement not in inside:
                    rounds.setdefault(id(inside), (number, is_last))
            same = self._same.get(same)
        has_numbers = not all([is_last for _, is_last in rounds.values()])
        return "".join([f"[{number}]" for number, _ in rounds.values()] * has_numbers)

    def _output(self, flow: Flow, values: Sequence[str]) -> str:
        """The name of a value; of the same one in all rounds of a repeat."""
        if all([value in flow.outputs for value in values]):
            return _listed([self._names.get(value) or visible(value, 40) for value in values])
        return self.of(self._first(values[0]))

    def ends(self, flow: Flow, repeat: Repeat) -> str:
        """Return how the values begin that a repeat hands from round to round, and which outputs it defines.

        Only where their names do not say it.
        """
        pairs = [(self.of(self._first(end)), self.of(start)) for start, end in repeat.carried]
        texts = [f"{end} = {start}" for end, start in pairs if end != start]
        outputs = [
            (slot, name)
            for items in repeat.rounds
            for slot, name in enumerate(values_of(items)[1])
            if name in flow.outputs
        ]
        counts = Counter([slot for slot, _ in outputs])
        for slot, name in sorted(outputs, key=lambda each: each[0]):
            if counts[slot] < len(repeat.rounds):
                texts.append(f"{visible(name, 40)} = {self.of(self._first(name))}{self._numbers_of(name, -1)}")
        return ", ".join(texts)

    def text(
        self, flow: Flow, same: Sequence[Statement], graphs: Mapping[int, tuple[str, str]] = MappingProxyType({})
    ) -> tuple[str, str]:
        """Return the text of a line, and its form without names; of the same line in all rounds of a repeat.

        With the texts and forms of `graphs` inside that are written in it, by their nodes.
        """
        graphs = dict(graphs)
        first = same[0]
        parts: list[str] = []
        forms: list[str] = []
        for place, piece in enumerate(first.expression.pieces):
            others = [each.expression.pieces[place] for each in same]
            if isinstance(piece, Ref) and not piece.is_shown:
                continue
            if isinstance(piece, Inside):
                text, form = graphs.pop(piece.node, ("", ""))
                comma = ", " * (bool(text) and not parts[-1].endswith("("))
                parts.append(comma + text)
                forms.append(comma + form)
                continue
            if isinstance(piece, str):
                parts.append(piece)
            elif isinstance(piece, Ref):
                refs = [each.name for each in others if isinstance(each, Ref)]
                parts.append(_listed([self.of(name) + self._numbers_of(name, id(first)) for name in refs]))
            elif isinstance(piece, Weight):
                parts.append(_weights(flow, [each for each in others if isinstance(each, Weight)]))
            elif isinstance(piece, Options):
                parts.append(_options([each.items for each in others if isinstance(each, Options)]))
            else:
                parts.append(_listed([each.text for each in others if isinstance(each, Detail)]))
            forms.append({Ref: ".", Weight: "w"}.get(type(piece)) or parts[-1])
        names = ", ".join(
            [self._output(flow, [each.outputs[slot] for each in same]) for slot in range(len(first.outputs))]
        )
        types = ""
        if len(same) == 1 and first.outputs[0] in flow.outputs and flow.scope.owner is None:
            stated = Index.type_of(flow.scope, first.outputs[0])
            types = "" if stated is None else f": {type_text(stated)}"
        return f"{names} = {''.join(parts)}{types}", "".join(forms)


def _number(name: str) -> int:
    return _FRESH.index(name) if name in _FRESH else len(_FRESH) - 1 + int(name[1:])


def _by_key(items: Sequence[tuple[str, str]]) -> dict[tuple[str, int], str]:
    """The texts of keywords by what they have in common that are listed together: their name, or the kind of a mark."""
    keys: Counter[str] = Counter()
    texts: dict[tuple[str, int], str] = {}
    for name, text in items:
        key = name if name and text else f"#{name}"
        texts[key, keys[key]] = text or name
        keys[key] += 1
    return texts


def _options(rounds: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Keywords of all rounds; a hyphen where a round does not have one."""
    keywords = []
    by_key = [_by_key(items) for items in rounds]
    for key in dict.fromkeys([key for texts in by_key for key in texts]):
        texts = [each.get(key, "-") for each in by_key]
        keywords.append(("" if key[0].startswith("#") else f"{key[0]}=") + _listed(texts))
    return ", ".join(keywords)


def _listed(texts: Sequence[str]) -> str:
    """What differs from round to round: one text if it does not."""
    if len(set(texts)) == 1:
        return texts[0]
    runs = [(text, len(list(run))) for text, run in groupby(texts)]
    if len(texts) > _SHOWN or 2 * len(runs) <= len(texts):
        texts = [text if length == 1 else f"{text} \u00d7{length}" for text, length in runs]
    shown = [
        text for number, text in enumerate(texts[:_SHOWN]) if not number or len("".join(texts[: number + 1])) < _LIST
    ]
    return f"({', '.join(shown)}{', ...' * (len(texts) > len(shown))})"


def type_text(stated: Type) -> str:
    """Return a type to read, without long expressions of sizes."""
    return visible(_EXPRESSION.sub("...", shown_type(stated)))


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
    user = "" if weight.user < 0 else flow.nodes[weight.user].name or ""
    scopes = [part for part in user.split("/") if part]
    if len(scopes) > 1:
        return visible(scopes[-2], 30)
    constant = find_constant(flow.scope, weight.name)
    value = None if constant is None else constant.value
    if value is not None:
        return f"W[{','.join(map(str, value.dims))}]"
    source = next((name for name in _sources(flow, weight.name) if flow.is_hidden_shape(name)), None)
    name = "" if source is None else weight_name(flow, Weight(source, weight.user))
    return "constant" if not name or name.startswith("W[") else name  # the sizes of the source are others


def _weights(flow: Flow, rounds: Sequence[Weight]) -> str:
    """The name of a constant; in a repeat of those in all rounds, with their sizes where they differ."""
    name = weight_name(flow, rounds[0])
    if len(rounds) > 1 and len({each.name for each in rounds}) == 1:
        return f"same {name}"
    names = [weight_name(flow, each) for each in rounds]
    if len({re.sub(r"[._]?\d+", "", each) for each in names}) > 1 and not any(
        [each.startswith("W[") for each in names]
    ):
        return _listed(names)
    sizes = [dims for each in rounds if (dims := flow.dims(each.name)) is not None]
    if len({tuple(sorted(map(str, dims))) for dims in sizes}) < 2:
        return name
    return ("W" if name.startswith("W[") else name) + _listed([f"[{','.join(map(str, dims))}]" for dims in sizes])


def _sources(flow: Flow, name: str) -> Iterator[str]:
    """Yield the stored constants from which a constant is computed, in a few steps."""
    pending, seen = [name], {name}
    while pending and len(seen) < _TRIED:
        position = flow.producer(pending.pop())
        for operand in flow.nodes[position].input if position >= 0 else ():
            if operand and operand not in seen:
                seen.add(operand)
                pending.append(operand)
                if find_constant(flow.scope, operand) is not None:
                    yield operand


_NUMBER: Final = re.compile(r"\d+")


def common_path(rounds: Sequence[Sequence[str]]) -> str:
    """Return what the names of all nodes of each round begin with, with ``{i}`` for the number of the round."""
    if not (first := _prefix([name for name in rounds[0] if name])):
        return ""
    prefixes = [first, *[_alike(first, names) for names in rounds[1:]]]
    if not all(prefixes):
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


def _alike(prefix: str, names: Sequence[str]) -> str:
    """The scope that most names begin with and that differs from another one only in numbers; "" if there is none."""
    form, parts = _NUMBER.sub("{i}", prefix), prefix.count("/") + 1
    for scope in dict.fromkeys(["/".join(name.split("/", parts)[:parts]) for name in names]):
        if _NUMBER.sub("{i}", scope) == form and 2 * sum([name.startswith(f"{scope}/") for name in names]) > len(names):
            return scope
    return ""


def _prefix(names: Sequence[str]) -> str:
    """The scopes that most names begin with."""
    counts: Counter[str] = Counter()
    for scope, number in Counter([name.rpartition("/")[0] for name in names]).items():
        parts = scope.split("/")
        counts.update({"/".join(parts[:end]): number for end in range(1, len(parts) + 1)})
    common = [path for path, count in counts.items() if 2 * count > len(names) and _NUMBER.search(path)]
    for path in sorted(common, key=len, reverse=True):
        form = _NUMBER.sub("{i}", path)
        others = [number for other, number in counts.items() if other != path and _NUMBER.sub("{i}", other) == form]
        if 4 * max(others, default=0) <= len(names):  # else a round has several of them
            return path
    return ""
