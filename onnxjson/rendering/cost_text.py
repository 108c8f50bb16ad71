"""The cost of a model, and of two models side by side, as lines of text and rows of tables."""

import re
from collections.abc import Sequence
from math import prod
from typing import Final, NamedTuple

from onnxjson.checking.cost import Cost, GroupCost, Number
from onnxjson.model.display import counted
from onnxjson.rendering.tables import size, table, wrapped
from onnxjson.rendering.values import picked

_MOST_ROWS: Final = 15  # maximum number of listed operators, scopes and nodes
_UNITS: Final = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

_INTEGER: Final = re.compile(r"\b[0-9]+\b")
_LONGEST: Final = 100  # characters of a formula that is shown

TOTALS: Final = (
    "macs", "flops", "parameters", "weight_bytes", "constant_bytes", "activation_bytes", "peak_activation_bytes",
    "unsized",
)  # fmt: skip
"""The properties of a cost that are one number."""

_COMPARED: Final = {
    "parameters": "parameters", "weights": "weight_bytes", "other constants": "constant_bytes",
    "MACs": "macs", "FLOPs": "flops",
    "activations": "activation_bytes", "peak of activations": "peak_activation_bytes",
}  # fmt: skip


def amount(number: Number | None) -> str:
    """Return ``4.12 G``, or the text of a formula, not yet made visible."""
    if not isinstance(number, int):
        if number is not None and len(number) > _LONGEST:
            return "formula"
        return "not known" if number is None else number
    unit, name = next(((unit, name) for unit, name in _UNITS if abs(number) >= unit), (1, ""))
    return f"{number / unit:.4g} {name}" if name else f"{number:,}"


def bytes_text(number: Number | None) -> str:
    """Return ``1.2 MB``, or the text of a formula."""
    text = amount(number)
    return size(number) if isinstance(number, int) else text + (" bytes" if text == number else "")


def total_rows(cost: Cost) -> list[tuple[str, str]]:
    """Return the numbers of a whole model with their names, visible."""
    at = f" (at @{cost.peak_at})" if cost.peak_at else ""
    return [
        ("MACs", number_text(cost, "macs")),
        ("FLOPs", number_text(cost, "flops")),
        ("parameters", f"{cost.parameters:,}"),
        ("weights", size(cost.weight_bytes)),
        *([("other constants", size(cost.constant_bytes))] if cost.constant_bytes else []),
        ("activations", number_text(cost, "activation_bytes")),
        ("peak", number_text(cost, "peak_activation_bytes") + at),
    ]


def cost_lines(cost: Cost, width: int) -> list[str]:
    """Return the lines of a cost, visible."""
    texts = problems(cost)
    if isinstance(cost.flops, str) and len(cost.flops) > _LONGEST:
        names = dict.fromkeys(re.findall(r"[A-Za-z_]\w*(?![\w(])", cost.flops))
        sizes = " ".join([f"--dim {name}=SIZE" for name in names])
        texts.append(f"! {sizes} gives numbers; --json has the formulas")
    lines = ["cost", *table(total_rows(cost), width), *wrapped("\n".join(texts), width)]
    for title, groups in (("by operator", cost.operators), ("by scope", cost.scopes)):
        lines += _group_lines(title, groups, cost, width)
    counted_nodes = [each for each in cost.nodes if isinstance(each.flops, int)]
    top = sorted(counted_nodes, key=lambda each: -int(each.flops))[:_MOST_ROWS]
    nodes = [(each.operator, each.name or f"@{each.address}", amount(each.macs), amount(each.flops)) for each in top]
    if nodes:
        lines += ["", "most expensive nodes", *table([("", "", "MACs", "FLOPs"), *nodes], width, right=(2, 3))]
    return lines


def problems(cost: Cost) -> list[str]:
    """Return what is not in the numbers, not yet made visible."""
    texts = [f"! not counted: {each.operator}, {counted(each.nodes, 'node')}: {each.reason}" for each in cost.unknown]
    if cost.unsized:
        texts.append(f"! {counted(cost.unsized, 'activation')} of unknown size; --dim sets the size of a dimension")
    return texts + [f"! {note}" for note in cost.notes]


def _group_lines(title: str, groups: Sequence[GroupCost], cost: Cost, width: int) -> list[str]:
    others = "outside of scopes" if title == "by scope" else "used by no node"
    rows = [
        (group.name or others, counted(group.nodes, "node"), size(group.weight_bytes), amount(group.macs),
         amount(group.flops), _share(group, cost))
        for group in groups
        if group.flops != 0 or group.weight_bytes
    ]  # fmt: skip
    if not rows:
        return []
    left = len(rows) - _MOST_ROWS
    head = ("", "", "weights", "MACs", "FLOPs", "")
    lines = ["", title, *table([head, *rows[:_MOST_ROWS]], width, right=(1, 2, 3, 4, 5))]
    return [*lines, f"  ... and {left:,} more"] if left > 0 else lines


def _share(group: GroupCost, cost: Cost) -> str:
    if isinstance(group.flops, int) and isinstance(cost.flops, int) and cost.flops:
        return f"{group.flops / cost.flops:.1%}"
    return ""


def cost_totals(cost: Cost) -> dict[str, object]:
    """Return a cost as data, without the parts by operator, scope and node."""
    return picked(cost, f"{' '.join(TOTALS)} dims unknown")


class CostRow(NamedTuple):
    """One line of a comparison."""

    label: str
    before: str
    after: str
    change: str


def cost_rows(base: Cost, target: Cost) -> list[CostRow]:
    """Return the rows of a comparison: before, after, change in percent."""
    partial = {*base.partial, *target.partial}
    return [
        CostRow(label, number_text(base, field), number_text(target, field),
                "not known" if field in partial else _change(getattr(base, field), getattr(target, field)))
        for label, field in _COMPARED.items()
        if field != "constant_bytes" or base.constant_bytes or target.constant_bytes
    ]  # fmt: skip


def number_text(cost: Cost, field: str) -> str:
    """Return a number of a cost; ``at least 1.2 M`` if something is not counted in it."""
    text = (bytes_text if field.endswith("bytes") else amount)(getattr(cost, field))
    return f"at least {text}" if field in cost.partial else text


def short_text(cost: Cost, field: str) -> str:
    """Return a number of a cost for a narrow cell; of a long formula its largest part: ``>= 3.66 M x N``."""
    number = getattr(cost, field)
    if not isinstance(number, str):
        return number_text(cost, field)
    formulas = number[4:-1].split(", ") if number.startswith("max(") else [number]
    terms = [part for text in formulas for part in text.split(" + ")]
    largest = max(terms, key=lambda term: prod(map(int, _INTEGER.findall(term))) * (1000 ** term.count("*")))
    text = _INTEGER.sub(lambda found: amount(int(found[0])), largest).replace("*", " x ")
    if field.endswith("bytes"):
        number, times, sizes = text.partition(" x ")
        text = f"{number}B{times}{sizes}" if number[0].isdigit() and number[-1].isalpha() else f"{text} bytes"
    is_part = len(terms) > 1 or field in cost.partial
    return f"{'>= ' * is_part}{text}"


def _change(before: Number | None, after: Number | None) -> str:
    if before == after:
        return ""
    if not isinstance(before, int) or not isinstance(after, int):
        return "differs"
    return f"{(after - before) / before:+.1%}" if before else f"+{after:,}"


def comparison_of_cost(base: Cost, target: Cost, width: int) -> list[str]:
    """Return the lines of a comparison, with what is not in the numbers of each side."""
    lines = ["cost", *table([("", "before", "after", "change"), *cost_rows(base, target)], width, right=(1, 2, 3))]
    for name, cost in (("before", base), ("after", target)):
        lines += wrapped("\n".join([f"{name}: {text}" for text in problems(cost)]), width)
    return lines
