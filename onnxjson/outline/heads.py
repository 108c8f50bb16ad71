"""The ways from the products of an attention back to the values that its queries, keys and values are computed from.

Layout on them splits values into heads; layout after the second product joins the heads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from onnxjson.outline.units import Unit, Units

RESHAPES: Final = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_HEADS: Final = (0, 2, 1, 3)
_MERGES: Final = {_HEADS: (_HEADS,), (1, 0, 2): ((1, 0, 2), (2, 0, 1, 3))}
"""By the order of a Transpose after the split into heads, those that put the heads back beside their sizes.

The second is that of sequences whose steps come before the batch.
"""

_TURNED: Final = {_HEADS: ((0, 2, 3, 1),), (1, 0, 2): ((1, 2, 0), (1, 2, 3, 0))}
"""The same orders with steps and sizes exchanged, as keys need them."""

TURNS: Final = ((0, 1, 3, 2), (0, 2, 1))
"""Orders that exchange steps and sizes alone."""

PARTS: Final = 5
"""Axes of a value that has queries, keys and values along one of them, or heads in groups."""


@dataclass
class Way:
    """What is between a product and the value that its operand is computed from."""

    source: str
    inside: list[int] = field(default_factory=list)
    orders: list[tuple[int, ...]] = field(default_factory=list)
    """Those of the Transposes, the nearest to the product first."""
    sizes: Sequence[str] = ()
    """Those of the split into heads."""
    count: str = ""
    """The number of heads among them."""
    is_split: bool = False
    has_layout: bool = False
    is_grouped: bool = False
    """Whether heads are repeated for groups of queries."""
    scale: float = 1.0
    rotation: str = ""
    """The rotation and its keywords, if there is one."""
    angles: tuple[str, ...] = ()
    """The cosines and sines of a rotation, if they depend on data."""
    norm: str = ""
    marks: tuple[tuple[str, str], ...] = ()
    """The keywords of the projection."""

    @property
    def heads(self) -> str:
        """The number of heads; "" if nothing is split, "..." if it is not known."""
        return "" if not self.is_split else self.count if self.count.isdigit() else "..."

    def add(self, graph: Units, unit: Unit, axis: int | None) -> int | None:
        """Add layout before that which is known; return the axis along which its operand is split."""
        order = order_of(unit)
        if order and axis is not None and len(order) == PARTS:
            split = order[axis]
            dims = dict(enumerate(graph.flow.dims(unit.operands[0]) or ()))
            moved = [each for place, each in enumerate(order) if place != axis and dims.get(each) != 1]
            order = tuple([each - (each > split) for place, each in enumerate(order) if place != axis])
            order = () if moved == sorted(moved) else order
            axis = split
        self.orders += [order] if order else []
        self.has_layout |= unit.head in RESHAPES
        if axis is not None and unit.head in ("Squeeze", "Unsqueeze"):
            before = re.fullmatch(r"\[(\d+)\]", dict(unit.keywords).get("axes", ""))
            axis += (int(before[1]) <= axis) * (1 if unit.head == "Squeeze" else -1) if before else 0
        if unit.head == "Reshape":
            sizes = unit.keywords[0][1].strip("[]").split(",")
            if axis is not None and sizes[axis : axis + 1] == ["3"]:
                del sizes[axis]
            self.is_split = True
            if len(sizes) == 4 and (not self.sizes or self.orders):
                self.sizes = sizes
                self.count = sizes[2 if self.orders and self.orders[-1][1:2] == (2,) else 1]
                rows = [*map(str, graph.flow.dims(unit.operands[0]) or ())]
                if rows[:2] == sizes[:2] and sizes[2] == "..." and len(rows) == 3 and (rows[2] + sizes[3]).isdigit():
                    self.count = str(int(rows[2]) // int(sizes[3]))
        return axis


def order_of(unit: Unit) -> tuple[int, ...]:
    """The order of a Transpose; none for the reverse order and for other units."""
    text = dict(unit.keywords).get("perm", "") if unit.head == "Transpose" else ""
    return tuple(map(int, re.findall(r"-?\d+", text)))


def split_axis(unit: Unit) -> int | None:
    """The axis along which a unit takes a part of a value with parts for queries, keys and values."""
    found = re.match(r"axis (-?\d+)", unit.keywords[0][1]) if unit.head == "Slice" and unit.keywords else None
    text = found[1] if found else dict(unit.keywords).get("axis", "0") if unit.head != "Slice" else ""
    return int(text) % PARTS if text.lstrip("-").isdigit() else None


def is_layout(unit: Unit) -> bool:
    """Whether a unit changes neither numbers nor, but for a Transpose in a known order, their order."""
    if unit.head == "Cast":
        return "float" in dict(unit.keywords).get("to", "")
    return (unit.head in RESHAPES and len(unit.operands) == 1) or not unit.head or bool(order_of(unit))


def to_join(graph: Units, layout: Sequence[int]) -> list[int]:
    """The beginning of layout after the product with the values that can put the heads back beside their sizes."""
    heads = [graph.units[number].head for number in layout]
    start = heads.index("Transpose") if "Transpose" in heads else 0
    ends = [place for place, head in enumerate(heads) if place >= start and head in RESHAPES]
    return list(layout[: ends[0] + 1]) if ends else []


def is_usual(ways: Sequence[Way], after: Sequence[tuple[int, ...]]) -> bool:
    """Whether values are split into heads and joined as usual, and queries and keys split alike, or not here.

    One head beside the steps is in its place without a Transpose.
    """
    query, key, value = ways
    (order,) = value.orders if len(value.orders) == 1 else query.orders if len(query.orders) == 1 else [()]
    one = [[], [_HEADS]]
    turns = [[each] for each in TURNS]
    split_keys = [[*each, *[order] * bool(order)] for each in turns] + [[each] for each in _TURNED.get(order, ((),))]
    one_keys = [*turns, *[[*each, _HEADS] for each in turns], [*_TURNED[_HEADS]]]
    is_joined = [*after] in [[each] for each in _MERGES.get(order, ())]
    is_joined |= (query.heads or value.heads) == "1" and [*after] in one
    is_value = value.is_split and (value.orders == [order] or (value.heads == "1" and value.orders in one))
    is_query = query.orders == [order] * bool(order) or (query.heads == "1" and query.orders in one)
    is_query = is_query if query.is_split else not (query.orders or query.has_layout)
    is_key = key.orders in split_keys or (key.heads == "1" and key.orders in one_keys)
    is_key = is_key if key.is_split else not key.has_layout and key.orders in turns
    is_alike = not key.is_split or (key.heads == value.heads and key.is_grouped == value.is_grouped)
    return is_joined and is_value and is_query and is_key and is_alike and _are_rotated_alike(query, key)


def is_plain(ways: Sequence[Way]) -> bool:
    """Whether nothing is split into heads."""
    query, key, value = ways
    has_layout = any([way.has_layout or way.is_grouped for way in ways]) or query.orders or value.orders
    return not has_layout and key.orders in [[each] for each in TURNS] and _are_rotated_alike(query, key)


def _are_rotated_alike(query: Way, key: Way) -> bool:
    return not (query.rotation and key.rotation) or (query.rotation, query.angles) == (key.rotation, key.angles)


def keeps_scores(graph: Units, unit: Unit) -> bool:
    """Whether a unit between the products is layout that leaves the rows and columns of the scores as they are."""
    if unit.head == "Transpose":
        order = order_of(unit)
        return len(order) > 2 and order[-2:] == (len(order) - 2, len(order) - 1)
    if unit.head not in RESHAPES:
        return unit.head == "Expand" or (unit.head in ("", "Cast") and is_layout(unit))
    return keeps_rows(graph, unit)


def keeps_rows(graph: Units, unit: Unit) -> bool:
    """Whether layout leaves the sizes of the last two axes as they are, as far as they are known."""
    before, after = graph.flow.dims(unit.operands[0]) or (), graph.flow.dims(unit.outputs[0]) or ()
    known = [pair for pair in zip(before[-2:], after[-2:], strict=False) if None not in pair]
    return all([one == other for one, other in known])
