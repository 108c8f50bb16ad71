"""Things to choose from, as rows, and how they are searched."""

from collections.abc import Iterable, Sequence
from typing import Final, overload

import msgspec

from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, clipped, padded, shortened

_LOOKED_AT: Final = 500
"""Choices whose labels say how wide their column is."""


class Choice(msgspec.Struct, frozen=True, gc=False):
    """One of several things to choose from; there may be 100,000, and the collector of garbage looks through none."""

    key: str
    """What the screen gives back."""
    label: str
    """Visible."""
    detail: str = ""
    """Visible; at the right."""
    refused: str = ""
    """Why it cannot be chosen; "" where it can."""


class Searchable(Sequence[Choice]):
    """Choices that were made ready to be searched; to be made in a thread where they are many."""

    def __init__(self, choices: Iterable[Choice]) -> None:
        # Tuples of such things are nothing that the collector of garbage looks through again and again, as lists are.
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
        """Those that have every word; those that begin with the first one come first."""
        texts = self.texts
        found: Sequence[int] = range(len(texts))
        for word in words:
            found = [place for place in found if word in texts[place]]
        first = [place for place in found if texts[place].startswith(words[0])] if words else found
        beginning = set(first)
        return [self._choices[place] for place in (*first, *[place for place in found if place not in beginning])]


class ChoiceRows:
    """Choices as rows: labels and details each in their column."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices = choices
        self._column = max([cells(choice.label) for choice in choices[:_LOOKED_AT]], default=0)

    def __len__(self) -> int:
        return len(self.choices)

    def line(self, number: int, width: int) -> Line:
        """Label, then detail, or why it cannot be chosen."""
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
