"""Names in messages of passes: some of many, and those that an optimizer would leave out without a word."""

from collections.abc import Iterable, Sequence
from typing import Final

from onnxjson.suggestions import suggest

_SHOWN: Final = 10


def some(names: Sequence[str], most: int) -> str:
    """``a, b, c and 7 more``, as they are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def require(wanted: Iterable[str], known: Sequence[str], what: str) -> None:
    """Do nothing if all names are known.

    Args:
        wanted: names that are given.
        known: what there is.
        what: what they name, such as "dimension".

    Raises:
        ValueError: one is not; the message says what is near, or what there is.
    """
    for name in wanted:
        if name not in known:
            hint = suggest(name, known) or (f"there are {some(known, _SHOWN)}" if known else "there is none")
            raise ValueError(f'there is no {what} "{name}"; {hint}')
