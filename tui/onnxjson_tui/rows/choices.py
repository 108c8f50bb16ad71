"""Choices as rows, and the search in them."""

from collections.abc import Iterable, Sequence
from typing import Final, overload

import msgspec

from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, clipped, padded, shortened

_LOOKED_AT: Final = 500
"""Number of choices whose labels determine the width of the column."""


class Choice(msgspec.Struct, frozen=True, gc=False):
    """A choice; not tracked by the garbage collector, since there may be 100,000."""

    key: str
    """Result of the screen if it is chosen."""
    label: str
    """Visible."""
    detail: str = ""
    """Visible; at the right."""
    refused: str = ""
    """Why it cannot be chosen, or ""."""


class Searchable(Sequence[Choice]):
    """Choices prepared for searching; build it in a thread if there are many."""

    def __init__(self, choices: Iterable[Choice]) -> None:
        # Unlike lists, tuples of such objects are not traversed by every garbage collection.
        self._choices = tuple(choices)
        self.texts = tuple([f"{choice.label}\n{choice.detail}".lower() for choice in self._choices])
        """Label and detail of each, in lower case."""

    def __len__(self) -> int:
        return len(self._choices)

    @overload
    def __getitem__(self, at: int) -> Choice: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Choice, ...]: ...

    def __getitem__(self, at: int | slice) -> Choice | tuple[Choice, ...]:
        return self._choices[at]

    def having(self, words: Sequence[str]) -> list[Choice]:
        """Return the choices that contain every word; those that begin with the first word come first."""
        texts = self.texts
        found: Sequence[int] = range(len(texts))
        for word in words:
            found = [place for place in found if word in texts[place]]
        first = [place for place in found if texts[place].startswith(words[0])] if words else found
        beginning = set(first)
        return [self._choices[place] for place in (*first, *[place for place in found if place not in beginning])]


class ChoiceRows:
    """Choices as rows with a column for labels and one for details."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices = choices
        self._column = max([cells(choice.label) for choice in choices[:_LOOKED_AT]], default=0)

    def __len__(self) -> int:
        return len(self.choices)

    def line(self, number: int, width: int) -> Line:
        """Return the label, then the detail, or why it cannot be chosen."""
        choice = self.choices[number]
        more = choice.refused or choice.detail
        label = shortened(choice.label, width if not more else max(width * 3 // 5, 10))
        if more:
            label = padded(label, min(self._column, width * 3 // 5))
        room = width - cells(label) - 2
        return (
            Span(label, "quiet" if choice.refused else "plain"),
            Span(f"  {clipped(more, room)}" if more and room > 3 else "", "bad" if choice.refused else "quiet"),
        )
