"""The changes of a model in words, the same in all reports: lists of parts that each report marks in its own way."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from onnxjson.diffing.events import CHANGED, KIND_PROPERTIES, NOT_FINITE, RELATIVE, SPARSITY, Detail, Event
from onnxjson.diffing.interface_changes import InterfaceChange
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.index import Index
from onnxjson.model.types import format_data_type
from onnxjson.model.weights import held_constants, weight_tensors
from onnxjson.rendering.diff_report import Nodes, Report, is_cleanup, is_of_interface, operator_of
from onnxjson.rendering.diff_text import detail_text, place_text
from onnxjson.rendering.diff_where import Layers
from onnxjson.rendering.values import Weights, weights

_LONGEST: Final = 120

_OF_QUANTIZED: Final = frozenset(
    name for name, number in DATA_TYPES.items() if name != "bool" and BITS.get(number, 64) <= 8
)
"""Dtypes of the weights of a quantized model."""

_PACKED: Final = frozenset({"MatMulNBits", "GatherBlockQuantized"})
"""Operators whose weights share bytes: their dtype and number of elements say nothing."""

_BIAS: Final = 2
"""The input of a convolution or Gemm that is no longer called its weights."""

_TIMES: Final = 10
"""A greater change relative to the value is told as a number of times."""

_MOST_NAMES: Final = 2
_MOST_QUANTIZED: Final = 3
"""Number of weights, and of quantized operators, that are named."""

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
    told = {id(report.events[number]) for layers in report.layers for number in layers.events}
    told |= {id(event) for event in loud if report.interface and is_of_interface(event)}
    events = [event for event in loud if id(event) not in told]
    words = first_words(report)
    groups: dict[str, list[Event]] = {}
    is_quantized = any([event.kind == "quantized" for event in events])
    weight_names = {each.name for each in held_constants(report.alignment.base) if each.is_weight}
    for number, event in enumerate(events):
        groups.setdefault(_group(event, is_quantized, weight_names) or str(number), []).append(event)
    totals = {count.what: count.before for count in report.operators}
    for group, members in groups.items():
        words += _together(group, members, report, totals)
    if not words:
        return [(Part(visible(f"{_word(event)} {event.pattern}", _LONGEST)),) for event in quiet]
    if report.without_effect:
        words.append((Part(f"{counted(report.without_effect, 'change')} without effect"),))
    elif [*groups] == ["weights"] and len(words) == 1 and not report.incomplete:
        words = [(Part("only "), *words[0])]
    return words


def first_words(report: Report) -> list[Words]:
    """Return what callers of a model notice, and layers that were removed or added."""
    return [*map(interface_words, report.interface), *map(_layer_words, report.layers)]


def _layer_words(layers: Layers) -> Words:
    return (Part(layers.text), *([Part(": "), *_code(layers.name)] if layers.name else []))


def interface_words(change: InterfaceChange) -> Words:
    """Return ``breaking: output "382" renamed to "logits"``."""
    numbered = enumerate(change.parts)
    parts = [Part(visible(text, _LONGEST), "name") if number % 2 else Part(text) for number, text in numbered]
    return (Part(change.word, "strong"), Part(": "), *parts)


def _group(event: Event, is_quantized: bool, weight_names: Container[str]) -> str:
    """Return the word for events that are told in one sentence, "" for others."""
    if event.kind == "retyped":
        dtype, _, other = event.pattern.partition(" -> ")
        if is_quantized and other in _OF_QUANTIZED:
            return "quantized"
        return f"converted {event.pattern}" if "float" in dtype and "float" in other else ""
    if (
        event.kind == "weights-changed"
        and _shares(event)
        and all([member.place in weight_names for member in event.members])
    ):
        return "weights"
    return "quantized" if event.kind == "quantized" else "cleanup" if is_cleanup(event) else ""


def _together(group: str, events: Sequence[Event], report: Report, totals: Mapping[str, int]) -> list[Words]:
    """Return what happened: several events of a group in one sentence.

    `totals` has the number of nodes of each operator of the base.
    """
    places = sum([event.count for event in events])
    if group == "quantized" and (words := _quantized(events, report, totals)):
        return [words]
    if group.startswith("converted"):
        dtype, _, other = events[0].pattern.partition(" -> ")
        number = _of(places, _weights(report.alignment.base).get(dtype, Weights()).tensors)
        noun = " weight" if number == "1" else " weights"
        return [(Part("converted to "), *_code(other), Part(f": {number} "), *_code(dtype), Part(noun))]
    if group == "weights":
        return [_changed_weights(events, report, totals)]
    if len(events) == 1 or group not in ("quantized", "cleanup"):
        return [_event(event, totals) for event in events]
    example = max(events, key=lambda event: event.count)
    kind = "" if group == example.kind else f"{_word(example)} "
    text = f"{group} in {counted(places, 'place')}, such as {kind}"
    return [(Part(text), Part(visible(_pattern(example.pattern), _LONGEST), "code"))]


def _quantized(events: Sequence[Event], report: Report, totals: Mapping[str, int]) -> Words:
    """Return ``dynamically quantized to 8 bits: 36 of 48 MatMul, 50,000 of 53,000 parameters are uint8 now``.

    Nothing if no weights became integers, as where a model is no longer quantized.
    """
    before, after = _weights(report.alignment.base), _weights(report.alignment.target)
    increased = [dtype for dtype in after if after[dtype].elements > before.get(dtype, Weights()).elements]
    dtypes = [dtype for dtype in increased if dtype in _OF_QUANTIZED]
    if not dtypes:
        return ()
    more = [count.what.rpartition("::")[2] for count in report.operators if count.change > 0]
    is_dynamic, is_static = [
        any([name.startswith(starts) for name in more]) for starts in ("DynamicQuantize", ("QuantizeLinear", "QLinear"))
    ]
    how = "dynamically quantized" if is_dynamic else "statically quantized" if is_static else "quantized"
    nodes = Nodes(report.alignment)
    pairs = [nodes.of(member) for event in events for member in event.members]
    packed = [[ref.node for ref in pair[1] if ref.node.op_type in _PACKED] for pair in pairs]
    attributes = [{each.name: each.i or 0 for each in node.attribute} for group in packed for node in group]
    bits = {each.get("bits", 4) for each in attributes}
    if not all(packed):
        bits |= {BITS[DATA_TYPES[dtype]] for dtype in dtypes}
    phrases: list[Words] = []
    gone, new = [Counter([operator_of(ref) for pair in pairs for ref in pair[side]]) for side in (0, 1)]
    for operator, number in (gone - new).most_common(_MOST_QUANTIZED):
        phrases.append((Part(f"{_of(number, totals.get(operator, 0))} "), *_code(operator)))
    if not any(packed):
        elements = sum([after[dtype].elements for dtype in dtypes])
        count = _of(elements, sum([each.elements for each in after.values()]))
        phrases.append((Part(f"{count} parameters are now "), *_joined([_code(dtype) for dtype in dtypes], " or ")))
    return (Part(f"{how} to {' or '.join(map(str, sorted(bits)))} bits: "), *_joined(phrases, ", "))


def _changed_weights(events: Sequence[Event], report: Report, totals: Mapping[str, int]) -> Words:
    """Return ``weights changed, those of all 12 Conv: a, b and 10 more; elements changed by up to 2 %``."""
    names = [member.place for event in events for member in event.members]
    number = sum([event.count for event in events])
    shown = _joined([_code(name) for name in names[:_MOST_NAMES]], ", ")
    left = f" and {number - _MOST_NAMES:,} more" if number > _MOST_NAMES else ""
    largest = max([share for event in events for share in _shares(event)])
    changes = f"{100 * largest:.3g} %" if largest < _TIMES else f"{largest:,.0f} times their value"
    which: Words = (Part(_of(number, sum([each.tensors for each in _weights(report.alignment.base).values()]))),)
    place: Words = ()
    operator, _, slot = events[0].pattern.rpartition(" input ")
    if len(events) == 1 and operator:
        where, bias = events[0].where, f" (input {slot})" * (int(slot) >= _BIAS)
        which = (Part(f"those of {_of(number, totals.get(operator, 0))} "), *_code(operator), Part(bias))
        place = (Part(" " if where.startswith("in ") else " in "), *_code(where)) if where else ()
    details = [detail for event in events for member in event.members for detail in member.details]
    amounts = [f"by up to {changes}"] if math.isfinite(largest) else []
    counts = [f"{each.target} elements changed" for each in details if each.what == CHANGED and number == 1]
    share = f"; {', '.join(counts + amounts)}" if counts else f"; elements changed {amounts[0]}" if amounts else ""
    if any([each.what == NOT_FINITE for each in details]):
        share += f"{',' if share else ';'} some became or were NaN or infinite"
    return (Part("weights changed, "), *which, *place, Part(": "), *shown, Part(left + share + _zeros(details, number)))


def _zeros(details: Sequence[Detail], number: int) -> str:
    """Return ``; 30 of 34 have more zeros, up to 50 %``, or nothing; `number` is that of the weights."""
    pairs = [(float(each.base or 0), float(each.target or 0)) for each in details if each.what == SPARSITY]
    sparse = [after for before, after in pairs if before < after]
    which = "more zeros:" if number == 1 else f"{_of(len(sparse), number)} have more zeros, up to"
    return f"; {which} {100 * max(sparse):.3g} %" if sparse else ""


def _shares(event: Event) -> list[float]:
    """The largest changes of elements, relative to them."""
    details = [detail for member in event.members for detail in member.details]
    return [float(detail.target) for detail in details if detail.what == RELATIVE and detail.target]


def _weights(index: Index) -> dict[str, Weights]:
    """The weights of a model by dtype."""
    tensors: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in weight_tensors(index):
        tensors[format_data_type(tensor.data_type or 0)].append(tensor)
    return {dtype: weights(several) for dtype, several in tensors.items()}


def _of(number: int, total: int) -> str:
    """Return ``36 of 48``, ``all 48``, or ``1``."""
    if total < number or total == 1:
        return f"{number:,}"
    return f"all {total:,}" if total == number else f"{number:,} of {total:,}"


def _event(event: Event, totals: Mapping[str, int]) -> Words:
    """Return ``Softmax.axis -1 -> 1 in all 4 layers``, or ``fused 3× MatMul+Add -> Gemm in all 4 layers``."""
    place, _, options = event.where.partition(": ")
    if options:
        sentences = [sentence.partition(": ") for sentence in event.where.split("; ")]
        return _joined([_joined([_code(option), _code(rounds)]) for rounds, _, option in sentences], ", ")
    details = list(dict.fromkeys([detail for member in event.members for detail in member.details]))
    pattern = _pattern(event.pattern)
    is_attribute = event.kind == "attribute-changed"
    shown: list[Words] = []
    constant = re.fullmatch(r"(\S+) (input [0-9]+)", pattern) if event.kind == "weights-changed" else None
    if event.kind == "opset-changed" and details:
        return _opset(event.pattern, details[0])
    if is_attribute and len(details) == 1:
        pattern = f"{pattern} {details[0].base or 'default'} -> {details[0].target or 'default'}"
    elif event.kind == "retyped" or (event.kind == "weights-changed" and _shares(event)):
        pass
    elif details and event.count == 1 and not (KIND_PROPERTIES[event.kind].is_drawn and event.kind != "rewired"):
        shown.append((Part(detail_text(event, details[0], _LONGEST), "code"),))
    if place:
        shown.append((*([] if place.startswith("in ") else [Part("in ")]), *_code(place)))
    elif event.count == 1:
        shown.append((Part("in "), *_code(place_text(event.members[0]))))
    is_counted = event.count > 1 and not place.startswith(f"in {event.count} of ")
    number = [(Part(_number(event, totals)),)] if is_counted else []
    if constant is not None:
        return _joined([*number, _code(constant[1]), (Part(f"changed at {constant[2]}"),), *shown])
    head = number if is_attribute else [(Part(_word(event)),), *number]
    return _joined([*head, _code(pattern), *shown])


def _opset(pattern: str, detail: Detail) -> Words:
    """Return ``opset raised from 17 to 20``."""
    domain = pattern.partition(" ")[0]
    name = () if domain == "ai.onnx" else (Part(" of "), *_code(domain))
    if detail.base is None or detail.target is None:
        word, version = ("added", detail.target) if detail.base is None else ("removed", detail.base)
        return (Part(f"operator set {word}: "), *_code(f"{domain} {version}"))
    versions = [int(each) if each.isdecimal() and len(each) < _LONGEST else 0 for each in (detail.base, detail.target)]
    word = "lowered" if versions[1] < versions[0] else "raised"
    return (Part("opset"), *name, Part(f" {word} from "), *_code(detail.base), Part(" to "), *_code(detail.target))


def _word(event: Event) -> str:
    return "removed" if event.kind == "eliminated" else event.kind.replace("-", " ")


def _number(event: Event, totals: Mapping[str, int]) -> str:
    """Return ``3×``, or ``all 3`` and ``3 of 5`` where it is known how many nodes of the operator there are."""
    operator = re.split(r"[ .]", event.pattern, maxsplit=1)[0]
    total = totals.get(operator, 0)
    if event.kind not in ("attribute-changed", "weights-changed") or total < event.count:
        return f"{event.count:,}×"
    return _of(event.count, total)


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
