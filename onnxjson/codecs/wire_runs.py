"""What several files have in common, which is read once: equal graphs, runs of equal records, frequent small parts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from onnxjson.codecs.wire_format import Buffer, read_varint
from onnxjson.model import document as d

MOST_SHARED: Final = 1 << 26
"""Maximum bytes of a main graph, or of a run, that is compared with others; of a bigger one that costs too much."""

_MOST_NEW: Final = 64
"""Maximum number of consecutive new members of a run after which the rest is not searched here."""

ReadRun = Callable[[int, int, int], tuple[list[Any], int]]
"""Reads a run from a position to an end, at a depth; see `GenericReader`."""


class Run:
    """A run of a repeated field in one file: the bytes of its members, each with its tag, and their records."""

    def __init__(self, data: bytes, members: Sequence[Any]) -> None:
        self._data = data
        self._members = members
        self._starts = [0]  # offsets of the first members, as far as they were needed

    def follow(
        self, read: ReadRun, tag: int, buffer: Buffer, position: int, end: int, depth: int
    ) -> tuple[list[Any], int]:
        """Return the run at `position` of another file and the position after it; `read` reads what is new there."""
        found: list[Any] = []
        member = new = 0
        while position < end and buffer[position] == tag:
            for near in range(member, member + new + 3):  # some may be deleted
                same, after = self._common(near, buffer, position, end)
                if same:
                    found += same
                    member, new, position = near + len(same), 0, after
                    break
            else:
                size, after = read_varint(buffer, position + 1)
                more, position = read(position + 1, end if new > _MOST_NEW else min(after + size, end), depth)
                found += more
                new += 1
        return found, position

    def _common(self, member: int, buffer: Buffer, position: int, end: int) -> tuple[Sequence[Any], int]:
        """Return the members from `member` on that are in `buffer` at `position`, and the position after them."""
        first, step = member, 1
        while step and member < len(self._members):
            step = min(step, len(self._members) - member)
            own = self._data[self._start(member) : self._start(member + step)]
            after = position + len(own)
            if after <= end and own == buffer[position:after]:
                member, position, step = member + step, after, step * 2
            else:
                step //= 2
        return self._members[first:member], position

    def _start(self, member: int) -> int:
        starts, data = self._starts, self._data
        while len(starts) <= member:
            after = starts[-1] + 2
            size = data[after - 1]
            if size > 0x7F:
                size, after = read_varint(data, after - 1)
            starts.append(after + size)
        return starts[member]


class Shared:
    """What is known of the files that were read before."""

    def __init__(self) -> None:
        self.graphs: dict[bytes, d.Graph] = {}
        """Main graphs by their digests."""
        self.runs: dict[tuple[type[d.Record], int], Run] = {}
        """The first run of each repeated field of main graphs, by the class of its records and its tag."""


SHARED: Final = ContextVar[Shared | None]("shared", default=None)
"""What is shared within `sharing_graphs`."""


@contextmanager
def sharing_graphs() -> Iterator[None]:
    """Read what files have in common as the same records; weights of equal main graphs are read from the first file."""
    token = SHARED.set(Shared())
    try:
        yield
    finally:
        SHARED.reset(token)
