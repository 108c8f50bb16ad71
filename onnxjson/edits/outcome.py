"""What came of an edit, as far as its patch does not say it."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """How many elements an edit was about, and what a person should hear."""

    matches: int
    """Elements that the edit was made for, changed or found as they should be."""
    notes: tuple[str, ...] = ()
    """Sentences, such as which nodes could not be changed."""
