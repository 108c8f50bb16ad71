"""Details of an event of a diff, and the text of both sides of a place."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from onnxjson.diffing.events import Event, Member
from onnxjson.model.display import visible
from onnxjson.rendering.diff_text import event_lines
from onnxjson.rendering.tables import GAP, Line, Span
from onnxjson_tui.rows.difference import Compared
from onnxjson_tui.rows.side_texts import Pair, pair_lines, side_by_side_lines, text_of, unified_lines
from onnxjson_tui.widgets.lines import Rows, TextRows

_MOST_LINES: Final = 600  # of the places of an event
SIDE_BY_SIDE: Final = 140  # columns from which both sides of a text are shown next to each other


def texts(compared: Compared, member: Member) -> list[Pair]:
    """Return the text of a place on both sides, paired line by line."""
    return pair_lines(text_of(compared.base.model, member.base), text_of(compared.target.model, member.target))


def text_rows(member: Member, pairs: list[Pair], width: int) -> Rows:
    """Return both sides of a place, side by side if the screen is wide enough."""
    if width < SIDE_BY_SIDE - 1:
        return TextRows(list(unified_lines(pairs, width)))
    named = Pair(" ", *("nothing" if not side else _named(side) for side in (member.base, member.target)))
    head = [tuple(Span(span.text, "quiet") for span in line) for line in side_by_side_lines([named], width)]
    return TextRows([*head, *side_by_side_lines(pairs, width)])


def _named(addresses: Sequence[str]) -> str:
    return " ".join(f"@{visible(address, None)}" for address in addresses[:4]) + (" ..." if len(addresses) > 4 else "")


def details_of(event: Event, width: int, *, can_prove: bool) -> list[Line]:
    """Return an event with its places, unabridged, and the key that finds its verdict."""
    found = event_lines(event, len(event.kind) + GAP, max(width, 60), details=True, says_not_run=True)
    lines = list(islice(found, _MOST_LINES))
    if event.verdict == "not-run" and not event.evidence and can_prove:
        lines.append((Span("p runs both sides", "quiet"),))
    return lines
