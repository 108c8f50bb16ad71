"""Arithmetic on the sequence of a list: by runs, so that it costs what changed and not how long the list is."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from onnxjson.document import Record
from onnxjson.patching.changes import Sequence


def joined(items: Iterable[range | Record]) -> Sequence:
    """The same sequence with runs that go on in each other made one, and empty ones left out."""
    found: list[range | Record] = []
    for item in items:
        if type(item) is range:
            if not item:
                continue
            last = found[-1] if found else None
            if type(last) is range and last.stop == item.start:
                found[-1] = range(last.start, item.stop)
                continue
        found.append(item)
    return tuple(found)


def of_positions(positions: Iterable[int], members: tuple[Record, ...]) -> Sequence:
    """The sequence of a list whose members come from old `positions`; -1 for one that is new, taken from `members`."""
    found: list[range | Record] = []
    start = stop = -1
    for place, position in enumerate(positions):
        if position >= 0 and position == stop:
            stop += 1
            continue
        if start >= 0:
            found.append(range(start, stop))
        if position < 0:
            start = stop = -1
            found.append(members[place])
        else:
            start, stop = position, position + 1
    if start >= 0:
        found.append(range(start, stop))
    return tuple(found)


def base_length(sequence: Sequence, removed: Mapping[int, Record]) -> int:
    """How many members the list had."""
    return len(removed) + sum([item.stop - item.start for item in sequence if type(item) is range])


def target_length(sequence: Sequence) -> int:
    """How many members the list has afterwards."""
    return sum([item.stop - item.start if type(item) is range else 1 for item in sequence])


def is_identity(sequence: Sequence, removed: Mapping[int, Record]) -> bool:
    """Whether a joined sequence leaves every member at its place."""
    if removed or len(sequence) > 1:
        return False
    return not sequence or (type(sequence[0]) is range and sequence[0].start == 0)


def keeps_order(sequence: Sequence) -> bool:
    """Whether the members that stay stand in the same order as before."""
    last = -1
    for item in sequence:
        if type(item) is range:
            if item.start < last:
                return False
            last = item.stop
    return True


def placed(sequence: Sequence) -> Iterator[tuple[int, range | Record]]:
    """Every item with the position, afterwards, of its first member."""
    position = 0
    for item in sequence:
        yield position, item
        position += item.stop - item.start if type(item) is range else 1


def inverted(sequence: Sequence, removed: Mapping[int, Record]) -> tuple[Sequence, dict[int, Record]]:
    """The sequence that leads back, and what it removes."""
    back: list[tuple[int, range | Record]] = list(removed.items())
    added: dict[int, Record] = {}
    for position, item in placed(sequence):
        if type(item) is range:
            back.append((item.start, range(position, position + item.stop - item.start)))
        else:
            added[position] = item
    back.sort(key=lambda each: each[0])
    return joined([item for _, item in back]), added


class Positions:
    """Where the members that stay stand after a sequence."""

    __slots__ = ("_starts", "_targets")

    def __init__(self, sequence: Sequence) -> None:
        runs = sorted([(item.start, item.stop, place) for place, item in placed(sequence) if type(item) is range])
        self._starts = [start for start, _, _ in runs]
        self._targets = runs

    def after(self, position: int) -> int | None:
        """The new position of the member at an old one; None where it does not stay."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return None
        start, stop, place = self._targets[index]
        return place + position - start if position < stop else None
