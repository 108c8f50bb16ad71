"""Runs of lines that are equal but for names, numbers and weights, each consuming what the one before produced."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from onnxjson.outline.expressions import Ref, Statement

_PERIOD: Final = 128
"""Lines of the longest round."""

_SAVED: Final = 2
"""Lines that a repeat must save."""

_OTHERS: Final = 2
"""Outer values that may differ from round to round."""


class Repeat(NamedTuple):
    """Rounds with the same lines."""

    rounds: "tuple[tuple[Item, ...], ...]"
    carried: tuple[tuple[str, str], ...]
    """Values that each round hands to the next: where the first round takes it from, and where it is produced."""


Item: TypeAlias = Statement | Repeat


def fold(statements: Sequence[Statement]) -> list[Item]:
    """Return the statements with repeats folded, those that cover most first, and repeats in their rounds.

    Takes time linear in the number of statements, but for nested repeats.
    """
    keys: dict[tuple[object, ...], int] = {}
    numbers = [keys.setdefault(_key(each), len(keys)) for each in statements]
    return _folded(statements, numbers, 0, len(statements))


def _key(statement: Statement) -> tuple[object, ...]:
    """What lines of a repeat have in common."""
    pieces = [piece if isinstance(piece, str) else type(piece) for piece in statement.expression.pieces]
    return (len(statement.outputs), *pieces)


def _folded(statements: Sequence[Statement], numbers: Sequence[int], start: int, end: int) -> list[Item]:
    """The items of a part of the statements."""
    items: list[Item] = []
    at = start
    for first, period, rounds in _chosen(statements, numbers, start, end):
        if first > at:
            items += _folded(statements, numbers, at, first)
        items.append(_repeat(statements, numbers, first, period, rounds))
        at = first + period * rounds
    return items + (list(statements[at:end]) if at == start else _folded(statements, numbers, at, end))


def _chosen(
    statements: Sequence[Statement], numbers: Sequence[int], start: int, end: int
) -> list[tuple[int, int, int]]:
    """The repeats of a part that do not overlap, in order: first line, lines of a round, rounds."""
    free = bytearray(end - start)
    chosen = []
    for first, period, length in sorted(_runs(numbers[start:end]), key=lambda run: (-run[2], run[1], run[0])):
        if any(free[first : first + length]):
            continue
        found = _aligned(statements, start + first, period, length)
        if found is not None:
            begin, rounds = found
            chosen.append((begin, period, rounds))
            free[begin - start : begin - start + period * rounds] = b"\1" * (period * rounds)
    return sorted(chosen)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """The longest runs that have a period: their first line, the period, and their lines in whole rounds."""
    import numpy

    array = numpy.array(numbers)
    runs = []
    for period in range(1, min(_PERIOD, len(array) // 2) + 1):
        equal = numpy.concatenate(([0], array[:-period] == array[period:], [0])).astype(numpy.int8)
        edges = numpy.flatnonzero(numpy.diff(equal))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            length = last - first + period
            if length >= 2 * period and length - period >= _SAVED:
                runs.append((first, period, length))
    return runs


def _aligned(statements: Sequence[Statement], first: int, period: int, length: int) -> tuple[int, int] | None:
    """Return where rounds begin, and their number: those that hand on the fewest values, of these the most lines."""
    best: tuple[int, int, int] | None = None
    for begin in range(first, first + min(period, length - 2 * period + 1)):
        rounds, handed, others = _rounds(statements, begin, period, (first + length - begin) // period)
        if rounds > 1 and (rounds - 1) * period >= _SAVED:
            rank = (-rounds, len(set(handed.values())) + 2 * others, begin)
            best = rank if best is None or rank < best else best
    return None if best is None else (best[2], -best[0])


_Places: TypeAlias = dict[tuple[int, int], tuple[str, str]]
"""By line and piece of a round: where the first round has a value from, and where each round produces the next one."""


def _rounds(statements: Sequence[Statement], begin: int, period: int, most: int) -> tuple[int, _Places, int]:
    """Return the number of rounds that are alike, the values that they hand on, and the number of values that differ.

    A value of a round is one of its own, the same in all rounds, handed on from the round before, or any other outer
    value. Which of these it is is the same in all rounds.
    """
    template = statements[begin : begin + period]
    before = {name: name for each in template for name in each.outputs}
    inner = set(before)
    kinds: dict[tuple[int, int], str] = {}
    handed: _Places = {}
    for number in range(1, most):
        now: dict[str, str] = {}
        start = begin + number * period
        found: dict[tuple[int, int], str] = {}
        places: _Places = {}
        for line, (model, other) in enumerate(zip(template, statements[start : start + period], strict=True)):
            for place, (one, two) in enumerate(zip(model.expression.pieces, other.expression.pieces, strict=True)):
                if not isinstance(one, Ref) or not isinstance(two, Ref):
                    continue
                if one.name in inner:
                    if now.get(two.name) != one.name:
                        return number, handed, _differing(kinds)
                    continue
                is_inner = two.name in now
                kind = "same" if one.name == two.name else "handed" if two.name in before else "other"
                if kind == "handed":
                    places[line, place] = (one.name, before[two.name])
                found[line, place] = kind
                if is_inner:
                    return number, handed, _differing(kinds)
            now.update(zip(other.outputs, model.outputs, strict=True))
        if number > 1 and (found != kinds or places != handed):
            return number, handed, _differing(kinds)
        if number == 1 and _differing(found) > _OTHERS:
            return number, handed, 0
        kinds, handed, before = found, places, now
    return most, handed, _differing(kinds)


def _differing(kinds: dict[tuple[int, int], str]) -> int:
    return sum([kind == "other" for kind in kinds.values()])


def _repeat(statements: Sequence[Statement], numbers: Sequence[int], begin: int, period: int, rounds: int) -> Repeat:
    _, handed, _ = _rounds(statements, begin, period, rounds)
    # The first round shows where the next rounds have their values from.
    changed = list(statements)
    for (line, place), (_, end) in handed.items():
        statement = changed[begin + line]
        pieces = list(statement.expression.pieces)
        pieces[place] = Ref(end)
        changed[begin + line] = statement._replace(expression=statement.expression._replace(pieces=tuple(pieces)))
    starts = range(begin, begin + period * rounds, period)
    inside = [tuple(_folded(changed, numbers, start, start + period)) for start in starts]
    if len({shape(items) for items in inside}) > 1:
        inside = [tuple(changed[start : start + period]) for start in starts]
    return Repeat(tuple(inside), tuple(dict.fromkeys(handed.values())))


def shape(items: Sequence[Item]) -> tuple[object, ...]:
    """Return the nesting of repeats in some items."""
    return tuple([(len(item.rounds), shape(item.rounds[0])) if isinstance(item, Repeat) else 0 for item in items])


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
