"""Choose payloads in rotation and record their positions, so that a mark identifies payload and position."""

import base64
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.hostile.canary.payloads import PAYLOADS, Payload
from tests.hostile.canary.tripwires import Tripwires


class Planted(NamedTuple):
    """A payload and its position."""

    payload: Payload
    position: str


class Planter:
    """Source of payloads for positions. In each round a position gets another payload, until it has had all of them."""

    def __init__(self, wires: Tripwires, payloads: tuple[Payload, ...] = PAYLOADS) -> None:
        self.wires = wires
        self.payloads = payloads
        self._uses = Counter[str]()
        self._names: set[str] = set()
        self.planted: dict[str, Planted] = {}
        """Planted payloads by mark."""
        self._round = 0

    def begin(self, number: int) -> None:
        """Begin new models in a round; they have the same payloads, whatever was planted before."""
        self._round = number
        self._uses.clear()
        self._names.clear()

    @contextmanager
    def only(self, payloads: tuple[Payload, ...]) -> Iterator[None]:
        """Plant only these payloads until the end of the ``with`` statement."""
        before, self.payloads = self.payloads, payloads
        try:
            yield
        finally:
            self.payloads = before

    def data(self, position: str) -> bytes:
        """Return the next payload for a position that holds bytes."""
        number = zlib.crc32(position.encode()) + self._round + self._uses[position]
        self._uses[position] += 1
        payload = self.payloads[number % len(self.payloads)]
        return payload.text(self.add(payload, position), self.wires)

    def add(self, payload: Payload, position: str) -> str:
        """Record a payload that the caller plants itself; return its mark."""
        mark = f"canary{len(self.planted):06}"
        self.planted[mark] = Planted(payload, position)
        return mark

    def text(self, position: str) -> str:
        """Return the next payload for a position that holds text; bytes that are not UTF-8 become base64."""
        data = self.data(position)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return base64.b64encode(data).decode()

    def name(self, position: str) -> str:
        """Return the next payload for a position whose texts must differ; payloads without a mark are used once."""
        while (text := self.text(position)) in self._names:
            pass
        self._names.add(text)
        return text

    def named(self, marks: list[str]) -> list[str]:
        """Return payload and position of each mark, for messages."""
        return [f"{self.planted[mark].payload.name} in {self.planted[mark].position}" if mark in self.planted else mark
                for mark in dict.fromkeys(marks)]  # fmt: skip

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Names of all payloads with the positions where each was planted."""
        return {(each.payload.name, each.position) for each in self.planted.values()}
