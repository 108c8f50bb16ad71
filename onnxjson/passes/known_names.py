"""Names that a person gives and an optimizer would leave out without a word. Runs in the guarded process."""

from collections.abc import Iterable, Sequence
from typing import Final

from onnxjson.suggestions import suggest

_SHOWN: Final = 10


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
            others = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
            hint = suggest(name, known) or (
                f"there are {', '.join(known[:_SHOWN])}{others}" if known else "there is none"
            )
            raise ValueError(f'there is no {what} "{name}"; {hint}')
