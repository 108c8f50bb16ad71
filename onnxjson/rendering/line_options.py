"""The options that lines of the outline show, and which of them a change changed."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from onnxjson.diffing.events import Event
from onnxjson.model.display import visible

_LONGEST: Final = 40
"""Characters of the values of an attribute that are shown."""

_TOKEN: Final = re.compile(r"(\w+)\(|(\w+)=|([(\[])|([)\]])|(,)|[^\w()\[\],]+|\w+")


def changed_options(
    event: Event, values: Sequence[tuple[str | None, str | None]], old: Mapping[str, str], new: Mapping[str, str]
) -> list[str]:
    """Return ``Attention.scale 0.125 -> 0.25`` for an option of a line that differs as the values of a place do.

    Else the attribute of the event. Nothing if several options differ so, since they may be those of other events.
    """
    changed = {
        name: (old.get(name) or visible(one or "default", None), new.get(name) or visible(other or "default", None))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
        for one, other in values
        if _is_like(one, old.get(name)) and _is_like(other, new.get(name))
    }
    if event.pattern in changed:
        changed = {event.pattern: changed[event.pattern]}
    if len(changed) == 1:
        return [f"{name} {' -> '.join(sides)}" for name, sides in changed.items()]
    if event.kind == "attribute-changed" and len(values) == 1:
        one, other = [visible("default" if each is None else each, None) for each in values[0]]
        return [f"{visible(event.pattern, 60)} {one} -> {other}"] if len(one + other) <= _LONGEST else []
    return []


def _is_like(value: str | None, option: str | None) -> bool:
    """Whether a value is that of an option; an attribute or option that is not stated has any."""
    if value is None or option is None or value == option:
        return True
    try:
        return math.isclose(float(value), float(option), rel_tol=1e-5)
    except ValueError:
        return False


def forms_of(number: float) -> list[str]:
    """Return a number, its square and their reciprocals as text: lines show some constants so, such as scales."""
    square = number * number
    return [str(number), str(square), str(1 / number) if number else "", str(1 / square) if square else ""]


def keywords_of(text: str) -> dict[str, str]:
    """Return the keywords of a line by the calls that have them; for a repeated call, those of its first."""
    calls: list[str] = []
    keywords: dict[str, str] = {}
    name, value, depth = "", "", 0
    for token in _TOKEN.finditer(text):
        call, keyword, opening, closing, comma = token.groups()
        if name and (comma or closing) and len(calls) == depth:
            keywords.setdefault(name, value)
            name = value = ""
        elif name:
            value += token[0]
        if call or opening:
            calls.append(call or "")
        elif closing and calls:
            calls.pop()
        elif keyword and not name and calls and calls[-1]:
            name, depth = f"{calls[-1]}.{keyword}", len(calls)
    return keywords
