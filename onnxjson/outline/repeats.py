"""Runs of lines that are equal but for names, numbers and weights, each consuming what the one before produced."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from onnxjson.outline.expressions import DEPTH, NAME, Expression, Inside, Options, Piece, Ref, Statement
from onnxjson.outline.units import GraphKey

_PERIOD: Final = 128
"""Lines of the longest round."""

_SAVED: Final = 2
"""Lines that a repeat must save."""

_WIDTH: Final = 92
"""Size up to which a line is written in the one after it."""

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
        numbers = [keys.setdefault(key_of(item), len(keys)) for item in items]
        period = 0
        is_folded = False
        while (period := period + 1) <= min(_PERIOD, len(items) // 2):
            end = len(items)
            for first, length in reversed(_runs(numbers, period)):
                aligned = _aligned(items, first, period, min(length, end - first))
                if aligned is not None:
                    begin, rounds, handed = aligned
                    end = begin  # a run before may overlap with what is folded now
                    items[begin : begin + period * rounds] = [repeat := _repeat(items, begin, period, rounds, handed)]
                    numbers[begin : begin + period * rounds] = [keys.setdefault(key_of(repeat), len(keys))]
                    is_folded = True
        if not is_folded:
            return items


def joined(items: Sequence[Item], outputs: Iterable[str]) -> list[Item]:
    """Return folded lines with each call that only the line after it uses written there, where it fits.

    Chains of convolutions fold a line each, and are joined afterwards.
    """
    uses = Counter([*outputs, *values_of(items)[0]])
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
        wider: list[Item] = [each for each in both if each is not None]
        if is_joined := len(wider) == len(column):
            columns.pop()
        columns.append(wider if is_joined else list(column))
    return list(zip(*columns, strict=True)) or list(rounds)


def _with_operand(one: Item, two: Item, uses: Counter[str]) -> Statement | None:
    """A statement with the one before it written in it; None if that does not fit, or is used elsewhere."""
    if not isinstance(one, Statement) or not isinstance(two, Statement) or len(one.outputs) != 1:
        return None
    inner, outer = one.expression, two.expression
    size, depth = inner.size + outer.size - NAME, inner.depth + outer.depth
    ref = Ref(one.outputs[0])
    if uses[ref.name] != 1 or ref not in outer.pieces or size > _WIDTH or depth > DEPTH:
        return None
    at = outer.pieces.index(ref)
    is_call = outer.strength == 3 and str(outer.pieces[at - 1]).endswith(("(", ", "))
    if inner.strength < 3 and (not is_call or size > _SUM):
        return None
    pieces = (*outer.pieces[:at], *inner.pieces, *outer.pieces[at + 1 :])
    nodes, blocks = (*inner.nodes, *outer.nodes), (*outer.blocks, *inner.blocks)
    return two._replace(expression=Expression(pieces, nodes, blocks, size, depth, outer.strength))


def key_of(item: Item) -> Hashable:
    """Return what lines of a repeat have in common."""
    if isinstance(item, Repeat):
        return (len(item.rounds), len(item.carried), tuple([key_of(each) for each in item.rounds[0]]))
    pieces = [piece if isinstance(piece, str) else _kind(piece) for piece in item.expression.pieces]
    return (len(item.outputs), *pieces)


def key_of_graph(items: Sequence[Item], inputs: Iterable[str], outputs: Iterable[str]) -> GraphKey:
    """Return a graph for comparison with others."""
    numbers: dict[str, int] = {name: number for number, name in enumerate(dict.fromkeys(inputs))}
    consumed, produced = values_of(items)
    inner = {*numbers, *produced}
    keys: list[Hashable] = [key_of(item) for item in items]
    keys += [numbers.setdefault(name, len(numbers)) for name in (*consumed, *produced, *outputs)]
    return GraphKey(tuple(keys), tuple([name for name in numbers if name not in inner]))


def _kind(piece: Piece) -> Hashable:
    """What a piece has in common in all rounds; for a convolution, that it mixes points, channels or both."""
    if isinstance(piece, Options):
        names = [name or text for name, text in piece.items if not text or text == "1x1" or name == "act"]
        return (Options, *names)
    return piece.key if isinstance(piece, Inside) else (type(piece).__name__,)


def _runs(numbers: Sequence[int], period: int) -> list[tuple[int, int]]:
    """The runs that have a period: their first item, and their length."""
    import numpy

    array = numpy.array(numbers)
    equal = numpy.concatenate(([0], array[:-period] == array[period:], [0])).astype(numpy.int8)
    edges = numpy.flatnonzero(numpy.diff(equal))
    ends = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [(first, last - first + period) for first, last in ends if last - first >= max(period, _SAVED)]


_Values: TypeAlias = tuple[list[str], list[str]]
"""The values that lines consume, and those that they produce."""

_Places: TypeAlias = dict[int, tuple[str, str]]
"""By the place of a value in a round: where the first round has it from, and where each round produces the next one."""


def _aligned(items: Sequence[Item], first: int, period: int, length: int) -> tuple[int, int, _Places] | None:
    """Return where rounds begin, their number, and the values that they hand on.

    The most rounds; of these those that hand on the fewest values.
    """
    best: tuple[tuple[int, int, int, int], _Places] | None = None
    values = [values_of([item]) for item in items[first : first + length]]
    for begin in range(first, first + min(period, length - 2 * period + 1)):
        rounds, handed, others = _rounds(values[begin - first :], period, (first + length - begin) // period)
        rank = (-rounds, len(set(handed.values())) + 2 * others, -len(handed), begin)
        if rounds > 1 and (rounds - 1) * period >= _SAVED and (best is None or rank < best[0]):
            best = rank, handed
    return None if best is None else (best[0][3], -best[0][0], best[1])


def _rounds(values: Sequence[_Values], period: int, most: int) -> tuple[int, _Places, int]:
    """Return the number of rounds that are alike, the values that they hand on, and the number of values that differ.

    A value of a round is one of its own, the same in all rounds, handed on from the round before, or any other outer
    value. Which of these it is is the same in all rounds.
    """
    consumed, produced = _together(values[:period])
    before = {name: name for name in produced}
    inner = set(before)
    kinds: dict[int, str] = {}
    handed: _Places = {}
    for number in range(1, most):
        others, results = _together(values[number * period : (number + 1) * period])
        names = dict(zip(results, produced, strict=True))
        round_kinds: dict[int, str] = {}
        round_handed: _Places = {}
        is_alike = True
        for place, (one, two) in enumerate(zip(consumed, others, strict=True)):
            if one in inner or two in names:
                is_alike &= names.get(two) == one
                continue
            kind = "same" if one == two else "handed" if two in before else "other"
            if kind == "handed":
                round_handed[place] = (one, before[two])
            round_kinds[place] = kind
        if not is_alike or (number > 1 and (round_kinds != kinds or round_handed != handed)):
            most = number
            break
        kinds, handed, before = round_kinds, round_handed, names
    return most, handed, list(kinds.values()).count("other")


def _together(values: Sequence[_Values]) -> _Values:
    return [name for consumed, _ in values for name in consumed], [name for _, produced in values for name in produced]


def values_of(items: Sequence[Item]) -> _Values:
    """Return the values that items consume, with those that repeats begin with, and those that they produce."""
    consumed: list[str] = []
    produced: list[str] = []
    for item in items:
        if isinstance(item, Repeat):
            consumed += [start for start, _ in item.carried]
            for each in item.rounds:
                inner = values_of(each)
                consumed += inner[0]
                produced += inner[1]
        else:
            consumed += [piece.name for piece in item.expression.pieces if isinstance(piece, Ref)]
            produced += item.outputs
    return consumed, produced


def renamed(items: Sequence[Item], consumed: Iterator[str], produced: Iterator[str]) -> list[Item]:
    """Return items with other names of the values that they consume and produce, in the order of `values_of`."""
    changed: list[Item] = []
    for item in items:
        if isinstance(item, Repeat):
            carried = tuple([(next(consumed), end) for _, end in item.carried])
            changed.append(Repeat(tuple([tuple(renamed(each, consumed, produced)) for each in item.rounds]), carried))
            continue
        pieces = item.expression.pieces
        pieces = tuple([each._replace(name=next(consumed)) if isinstance(each, Ref) else each for each in pieces])
        outputs = tuple([next(produced) for _ in item.outputs])
        changed.append(Statement(outputs, item.expression._replace(pieces=pieces)))
    return changed


def _repeat(items: Sequence[Item], begin: int, period: int, rounds: int, handed: _Places) -> Repeat:
    """The first round shows where the next rounds have their values from."""
    first = items[begin : begin + period]
    consumed, produced = values_of(first)
    consumed = [handed[place][1] if place in handed else name for place, name in enumerate(consumed)]
    others = [tuple(items[start : start + period]) for start in range(begin + period, begin + period * rounds, period)]
    carried = tuple(dict.fromkeys(handed.values()))
    return Repeat((tuple(renamed(first, iter(consumed), iter(produced))), *others), carried)


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


def written(items: Sequence[Item]) -> Iterator[Item]:
    """Yield repeats and the statements of their first rounds, as they are written."""
    for item in items:
        yield item
        if isinstance(item, Repeat):
            yield from written(item.rounds[0])
