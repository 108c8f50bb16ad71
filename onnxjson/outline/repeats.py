"""Runs of lines that are equal but for names, numbers and weights, each consuming what the one before produced."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from onnxjson.outline.expressions import DEPTH, NAME, WIDTH, Expression, Inside, Options, Piece, Ref, Statement
from onnxjson.outline.units import GraphKey

_PERIOD: Final = 128
"""Lines of the longest round."""

_SAVED: Final = 2
"""Lines that a repeat must save."""

_SUM: Final = 56
"""Size of a call up to which a sum is written in it."""


class Repeat(NamedTuple):
    """Rounds with the same lines."""

    rounds: "tuple[tuple[Item, ...], ...]"
    carried: tuple[tuple[str, str], ...]
    """Values that each round hands to the next: where the first round takes it from, and where it is produced."""


Item: TypeAlias = Statement | Repeat


def fold(statements: Sequence[Statement]) -> list[Item]:
    """Return the statements with repeats folded, short rounds before longer ones, which may then consist of repeats.

    Takes time linear in the number of statements for each level of nesting.
    """
    items: list[Item] = list(statements)
    keys: dict[Hashable, int] = {}
    while True:
        numbers = [keys.setdefault(_key(item), len(keys)) for item in items]
        period = 0
        is_folded = False
        while (period := period + 1) <= min(_PERIOD, len(items) // 2):
            end = len(items)
            for first, length in reversed(_runs(numbers, period)):
                aligned = _aligned(items, first, period, min(length, end - first))
                if aligned is not None:
                    begin, rounds, handed = aligned
                    end = begin  # a run before may overlap with what is folded now
                    parts = [tuple(items[at : at + period]) for at in range(begin, begin + period * rounds, period)]
                    items[begin : begin + period * rounds] = [repeat := _repeat(parts, handed)]
                    numbers[begin : begin + period * rounds] = [keys.setdefault(_key(repeat), len(keys))]
                    is_folded = True
        if not is_folded:
            return items


def joined(items: Sequence[Item], outputs: Iterable[str]) -> list[Item]:
    """Return folded lines with each call that only the line after it uses written there, where it fits.

    Chains of convolutions fold a line each, and are joined afterwards.
    """
    uses = Counter(list(outputs))
    for statement in statements_of(items):
        uses.update([piece.name for piece in statement.expression.pieces if isinstance(piece, Ref)])
    (found,) = _joined([tuple(items)], uses)
    return list(found)


def _joined(rounds: Sequence[tuple[Item, ...]], uses: Counter[str]) -> list[tuple[Item, ...]]:
    """The lines of all rounds, joined at the same places."""
    columns: list[list[Item]] = []
    for column in zip(*rounds, strict=True):
        if isinstance(column[0], Repeat):
            repeats = [item for item in column if isinstance(item, Repeat)]
            inner = iter(_joined([each for repeat in repeats for each in repeat.rounds], uses))
            columns.append([each._replace(rounds=tuple([next(inner) for _ in each.rounds])) for each in repeats])
            continue
        both = [_with_operand(one, two, uses) for one, two in zip(columns[-1], column, strict=True)] if columns else []
        wider = [each for each in both if each is not None]
        if wider and len(wider) == len(both):
            columns.pop()
        columns.append([*(wider if len(wider) == len(both) else ())] or list(column))
    return list(zip(*columns, strict=True)) or list(rounds)


def _with_operand(one: Item, two: Item, uses: Counter[str]) -> Statement | None:
    """A statement with the one before it written in it; None if that does not fit, or is used elsewhere."""
    if not isinstance(one, Statement) or not isinstance(two, Statement) or len(one.outputs) != 1:
        return None
    inner, outer = one.expression, two.expression
    size, depth = inner.size + outer.size - NAME, inner.depth + outer.depth
    ref = Ref(one.outputs[0])
    if uses[ref.name] != 1 or ref not in outer.pieces or size > WIDTH or depth > DEPTH:
        return None
    at = outer.pieces.index(ref)
    is_call = outer.strength == 3 and str(outer.pieces[at - 1]).endswith(("(", ", "))
    if inner.strength < 3 and (not is_call or size > _SUM):
        return None
    pieces = (*outer.pieces[:at], *inner.pieces, *outer.pieces[at + 1 :])
    nodes, blocks = (*inner.nodes, *outer.nodes), (*outer.blocks, *inner.blocks)
    return two._replace(expression=Expression(pieces, nodes, blocks, size, depth, outer.strength))


def _key(item: Item) -> Hashable:
    """What lines of a repeat have in common."""
    if isinstance(item, Repeat):
        return (Repeat, tuple([_key(each) for each in item.rounds[0]]))
    pieces = [_kind(piece) for piece in item.expression.pieces]
    return (len(item.outputs), *pieces)


def key_of_graph(items: Sequence[Item], inputs: Iterable[str], outputs: Iterable[str]) -> GraphKey:
    """Return a graph for comparison with others."""
    numbers: dict[str, int] = {}
    inner = set(inputs)
    for name in inputs:
        numbers.setdefault(name, len(numbers))
    keys: list[Hashable] = [_key(item) for item in items]
    for statement in statements_of(items):
        names = [piece.name for piece in statement.expression.pieces if isinstance(piece, Ref)]
        inner.update(statement.outputs)
        keys.append(tuple([numbers.setdefault(name, len(numbers)) for name in (*names, *statement.outputs)]))
    keys.append(tuple([numbers.setdefault(name, len(numbers)) for name in outputs]))
    return GraphKey(tuple(keys), tuple([name for name in numbers if name not in inner]))


def with_names(items: Sequence[Item], names: Mapping[str, str]) -> list[Item]:
    """Return items with other names of values."""

    def renamed(statement: Statement) -> Statement:
        pieces = [
            piece._replace(name=names.get(piece.name, piece.name)) if isinstance(piece, Ref) else piece
            for piece in statement.expression.pieces
        ]
        outputs = tuple([names.get(name, name) for name in statement.outputs])
        return Statement(outputs, statement.expression._replace(pieces=tuple(pieces)))

    return _changed(items, renamed)


def _with_sources(statement: Statement, names: Mapping[str, str]) -> Statement:
    """A statement with other names of the values that it consumes."""
    (renamed,) = statements_of(with_names([statement], names))
    return renamed._replace(outputs=statement.outputs)


def _changed(items: Sequence[Item], change: Callable[[Statement], Statement]) -> list[Item]:
    """Items with each statement changed, in order."""
    return [
        change(item)
        if isinstance(item, Statement)
        else item._replace(rounds=tuple([tuple(_changed(each, change)) for each in item.rounds]))
        for item in items
    ]


def _kind(piece: Piece) -> Hashable:
    """What a piece has in common in all rounds: for a convolution, that it mixes points, channels or both."""
    if isinstance(piece, Options):
        names = [name or text for name, text in piece.items if not text or text == "1x1" or name == "act"]
        return (Options, *names)
    return piece if isinstance(piece, str | Inside) else (type(piece).__name__,)


def _runs(numbers: Sequence[int], period: int) -> list[tuple[int, int]]:
    """The runs that have a period: their first item, and their length."""
    import numpy

    array = numpy.array(numbers)
    if len(array) < 2 * period:
        return []
    equal = numpy.concatenate(([0], array[:-period] == array[period:], [0])).astype(numpy.int8)
    edges = numpy.flatnonzero(numpy.diff(equal))
    lengths = [
        (first, last - first + period) for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]
    return [(first, length) for first, length in lengths if length >= 2 * period and length - period >= _SAVED]


_Places: TypeAlias = dict[tuple[int, int], tuple[str, str]]
"""By line and piece of a round: where the first round has a value from, and where each round produces the next one."""


def _aligned(items: Sequence[Item], first: int, period: int, length: int) -> tuple[int, int, _Places] | None:
    """Return where rounds begin, their number, and the values that they hand on.

    The most rounds; of these those that hand on the fewest values.
    """
    best: tuple[tuple[int, int, int], _Places] | None = None
    for begin in range(first, first + min(period, length - 2 * period + 1)):
        rounds, handed, others = _rounds(items, begin, period, (first + length - begin) // period)
        rank = (-rounds, len(set(handed.values())) + 2 * others, begin)
        if rounds > 1 and (rounds - 1) * period >= _SAVED and (best is None or rank < best[0]):
            best = rank, handed
    return None if best is None else (best[0][2], -best[0][0], best[1])


def _rounds(items: Sequence[Item], begin: int, period: int, most: int) -> tuple[int, _Places, int]:
    """Return the number of rounds that are alike, the values that they hand on, and the number of values that differ.

    A value of a round is one of its own, the same in all rounds, handed on from the round before, or any other outer
    value. Which of these it is is the same in all rounds.
    """
    parts = [items[start : start + period] for start in range(begin, begin + most * period, period)]
    is_uneven = are_uneven(parts)
    lines = [_comparable(part, is_uneven=is_uneven) for part in parts]
    template = lines[0]
    before = {name: name for each in template for name in each.outputs}
    inner = set(before)
    kinds: dict[tuple[int, int], str] = {}
    handed: _Places = {}
    for number in range(1, most):
        now: dict[str, str] = {}
        kinds_now: dict[tuple[int, int], str] = {}
        handed_now: _Places = {}
        is_alike = True
        for line, (model, other) in enumerate(zip(template, lines[number], strict=True)):
            for place, (one, two) in enumerate(zip(model.expression.pieces, other.expression.pieces, strict=True)):
                if not isinstance(one, Ref) or not isinstance(two, Ref):
                    continue
                if one.name in inner or two.name in now:
                    is_alike &= now.get(two.name) == one.name
                    continue
                kind = "same" if one.name == two.name else "handed" if two.name in before else "other"
                if kind == "handed":
                    handed_now[line, place] = (one.name, before[two.name])
                kinds_now[line, place] = kind
            now.update(zip(other.outputs, model.outputs, strict=True))
        if not is_alike or (number > 1 and (kinds_now != kinds or handed_now != handed)):
            most = number
            break
        kinds, handed, before = kinds_now, handed_now, now
    return most, handed, list(kinds.values()).count("other")


def _repeat(parts: Sequence[tuple[Item, ...]], handed: _Places) -> Repeat:
    numbers = iter([number for _, number in numbered(parts[0], is_uneven=are_uneven(parts))])

    through: dict[str, str] = {}

    def handing(statement: Statement) -> Statement:
        """The first round shows where the next rounds have their values from."""
        line = next(numbers)
        pieces = list(statement.expression.pieces)
        for place, piece in enumerate(pieces):
            start, result = handed.get((line, place), ("", ""))
            if isinstance(piece, Ref) and start:
                # Or it is the start of a repeat inside, which shows it.
                if piece.name == start:
                    pieces[place] = piece._replace(name=result)
                else:
                    through[start] = result
        return statement._replace(expression=statement.expression._replace(pieces=tuple(pieces)))

    first = _with_starts(_changed(parts[0], handing), through)
    return Repeat((tuple(first), *parts[1:]), tuple(dict.fromkeys(handed.values())))


def _with_starts(items: Sequence[Item], names: Mapping[str, str]) -> list[Item]:
    """Items with other names of the values that repeats start from."""
    return [
        item
        if isinstance(item, Statement) or not names
        else Repeat(
            tuple([tuple(_with_starts(each, names)) for each in item.rounds]),
            tuple([(names.get(start, start), result) for start, result in item.carried]),
        )
        for item in items
    ]


def _comparable(items: Sequence[Item], *, is_uneven: bool) -> list[Statement]:
    """The statements of items with the values that they consume; of uneven repeats those of the first and last rounds.

    The first round of a repeat shows what it produces where it consumes what the repeat starts from.
    """
    if not any([isinstance(item, Repeat) for item in items]):
        return statements_of(items)
    lines: list[Statement] = []

    def add(items: Sequence[Item], others: Mapping[str, str]) -> None:
        names = dict(others)
        for item in items:
            if isinstance(item, Statement):
                lines.append(_with_sources(item, names) if names else item)
                for name in item.outputs:
                    names.pop(name, None)
                continue
            first, *rest = item.rounds
            add(first, names | {result: names.get(start, start) for start, result in item.carried})
            produced = {number: each.outputs for each, number in numbered(first, is_uneven=True)}
            for place, part in enumerate(rest):
                if not is_uneven:
                    add(part, names)
                elif place == len(rest) - 1:  # consumes what the first round produced, as in a repeat of two rounds
                    before = numbered(rest[-2], is_uneven=True) if place else []
                    pairs = [pair for each, at in before for pair in zip(each.outputs, produced[at], strict=True)]
                    add(part, names | dict(pairs))

    add(items, {})
    return lines


def are_uneven(rounds: Sequence[Sequence[Item]]) -> bool:
    """Whether a repeat in rounds of another one has other numbers of rounds in some of them."""
    return any([isinstance(item, Repeat) for item in rounds[0]]) and len({_counts(each) for each in rounds}) > 1


def _counts(items: Sequence[Item]) -> Hashable:
    return tuple([tuple([_counts(each) for each in item.rounds]) for item in items if isinstance(item, Repeat)])


def numbered(items: Sequence[Item], *, is_uneven: bool) -> list[tuple[Statement, int]]:
    """Return the statements of items, in order, with numbers that are equal for statements that are alike.

    In rounds that are uneven, all rounds of a repeat but the first one have the numbers of its last one.
    """
    if not is_uneven:
        return [(statement, number) for number, statement in enumerate(statements_of(items))]
    pairs: list[tuple[Statement, int]] = []

    def add(items: Sequence[Item], start: int) -> int:
        for item in items:
            if isinstance(item, Statement):
                pairs.append((item, start))
                start += 1
            else:
                second = add(item.rounds[0], start)
                *_, start = [add(each, second) for each in item.rounds[1:]]
        return start

    add(items, 0)
    return pairs


def statements_of(items: Sequence[Item]) -> list[Statement]:
    """Return the statements of items, in order."""
    return [
        statement
        for item in items
        for statement in (
            [item]
            if isinstance(item, Statement)
            else [each for round_items in item.rounds for each in statements_of(round_items)]
        )
    ]
