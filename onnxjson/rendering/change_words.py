"""The changes of a model in words, the same in all reports: lists of parts that each report marks in its own way."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.events import KIND_PROPERTIES, RELATIVE, Event
from onnxjson.diffing.interface_changes import InterfaceChange
from onnxjson.model.display import counted, visible
from onnxjson.rendering.diff_report import Report, is_cleanup, is_of_interface
from onnxjson.rendering.diff_text import detail_text, place_text

_LONGEST: Final = 120

_MOST_OPERATORS: Final = 6
"""Number of operators of a side of a pattern that are listed."""


class Part(NamedTuple):
    """A part of a sentence, visible (`onnxjson.model.display`)."""

    text: str
    mark: Literal["word", "strong", "code", "name"] = "word"
    """Text of a model is code, or a name that needs quotes where code has no mark."""


Words = tuple[Part, ...]
"""One change."""


def text_of(words: Words) -> str:
    """Return the plain text."""
    return "".join([f'"{part.text}"' if part.mark == "name" else part.text for part in words])


def change_words(report: Report) -> list[Words]:
    """Return the changes of a model, the most important first; those without effect only if there are no others."""
    loud, quiet = report.by_weight
    events = [event for event in loud if not (report.interface and is_of_interface(event))]
    words = [interface_words(change) for change in report.interface]
    words += [(Part(layers, "code"),) for layers in report.layers]
    totals = {count.what: count.before for count in report.operators}
    for group, members in groupby(events, key=_group):
        words += _together(group, list(members), totals)
    if not words:
        return [(Part(visible(f"{_word(event)} {event.pattern}", _LONGEST)),) for event in quiet]
    if report.without_effect:
        words.append((Part(f"{counted(report.without_effect, 'change')} without effect"),))
    return words


def interface_words(change: InterfaceChange) -> Words:
    """Return ``breaking: output "382" renamed to "logits"``."""
    numbered = enumerate(change.parts)
    parts = [Part(visible(text, _LONGEST), "name") if number % 2 else Part(text) for number, text in numbered]
    return (Part(change.word, "strong"), Part(": "), *parts)


def _group(event: Event) -> str:
    """Return the word for events of which only an example is named; the events of one are next to each other."""
    return "quantized" if event.kind == "quantized" else "cleanup" if is_cleanup(event) else ""


def _together(group: str, events: Sequence[Event], totals: Mapping[str, int]) -> list[Words]:
    """Return what happened; several events of a group as ``quantized in 25 places, such as Gemm -> ...``.

    `totals` has the number of nodes of each operator of the base.
    """
    if len(events) == 1 or not group:
        return [_event(event, totals) for event in events]
    places = counted(sum([event.count for event in events]), "place")
    example = max(events, key=lambda event: event.count)
    kind = "" if group == example.kind else f"{_word(example)} "
    return [(Part(f"{group} in {places}, such as {kind}"), Part(visible(_pattern(example.pattern), _LONGEST), "code"))]


def _event(event: Event, totals: Mapping[str, int]) -> Words:
    """Return ``Softmax.axis -1 -> 1 in all 4 layers``, or ``fused 3× MatMul+Add -> Gemm in all 4 layers``."""
    place, _, options = event.where.partition(": ")
    if options:
        sentences = [sentence.partition(": ") for sentence in event.where.split("; ")]
        return _joined([_joined([_code(option), _code(rounds)]) for rounds, _, option in sentences], ", ")
    details = list(dict.fromkeys([detail for member in event.members for detail in member.details]))
    pattern = _pattern(event.pattern)
    is_attribute = event.kind == "attribute-changed"
    numbers = [float(detail.target) for detail in details if detail.what == RELATIVE and detail.target]
    shown: list[Words] = []
    weights = re.fullmatch(r"(\S+) input [0-9]+", pattern) if event.kind == "weights-changed" else None
    if is_attribute and len(details) == 1:
        pattern = f"{pattern} {details[0].base or 'default'} -> {details[0].target or 'default'}"
    elif event.kind == "weights-changed" and numbers and math.isfinite(max(numbers)):
        shown.append((Part(f"by up to {100 * max(numbers):.3g} % of an element"),))
    elif event.kind == "retyped":
        pass
    elif details and event.count == 1 and not (KIND_PROPERTIES[event.kind].is_drawn and event.kind != "rewired"):
        shown.append((Part(detail_text(event, details[0], _LONGEST), "code"),))
    if place:
        shown.append((*([] if place.startswith("in ") else [Part("in ")]), *_code(place)))
    elif event.count == 1:
        shown.append((Part("in "), *_code(place_text(event.members[0]))))
    is_counted = event.count > 1 and not place.startswith(f"in {event.count} of ")
    number = [(Part(_number(event, totals)),)] if is_counted else []
    if weights is not None:
        return _joined([(Part("weights of"),), *number, _code(weights[1]), (Part("changed"),), *shown])
    head = number if is_attribute else [(Part(_word(event)),), *number]
    return _joined([*head, _code(pattern), *shown])


def _word(event: Event) -> str:
    return "removed" if event.kind == "eliminated" else event.kind.replace("-", " ")


def _number(event: Event, totals: Mapping[str, int]) -> str:
    """Return ``3×``, or ``all 3`` and ``3 of 5`` where it is known how many nodes of the operator there are."""
    operator = re.split(r"[ .]", event.pattern, maxsplit=1)[0]
    total = totals.get(operator, 0)
    if event.kind not in ("attribute-changed", "weights-changed") or total < event.count:
        return f"{event.count:,}×"
    return f"all {total:,}" if total == event.count else f"{event.count:,} of {total:,}"


def _pattern(pattern: str) -> str:
    """Return ``26 nodes -> Gemm`` for a pattern with more operators on a side than can be read at a glance."""
    sides = pattern.split(" -> ")
    for place, side in enumerate(sides):
        counts = [int(number[0]) if (number := re.match("[0-9]{1,6} ", part + " ")) else 1 for part in side.split("+")]
        if len(counts) > _MOST_OPERATORS:
            sides[place] = f"{sum(counts):,} nodes"
    return " -> ".join(sides)


def _code(text: str) -> Words:
    return (Part(visible(text, _LONGEST), "code"),) if text else ()


def _joined(phrases: Sequence[Words], separator: str = " ") -> Words:
    parts: list[Part] = []
    for phrase in filter(None, phrases):
        parts += [Part(separator), *phrase] if parts else phrase
    return tuple(parts)
