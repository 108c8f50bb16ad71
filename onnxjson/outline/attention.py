"""Attention: a Softmax of products, with the layout, scales and masks around it and the projections before it.

The pattern is the chain product, Softmax, product, with nothing but layout, scales and masks between. From there the
block grows over layout operators and projections whose values nothing else consumes.
"""

import math
from typing import Final

from onnxjson.outline.units import Unit, Units

_LAYOUT: Final = frozenset({"", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Cast", "Expand", "Tile"})
_BOUNDS: Final = frozenset({"Max", "Clip", "Tanh"})
_SPLITS: Final = frozenset({"Split", "Gather", "Slice"})
_NORMS: Final = frozenset({"RMSNorm", "LayerNorm", "rope"})
_HEADS: Final = "[0,2,1,3]"
_MERGES: Final = {_HEADS: (_HEADS,), "[1,0,2]": ("[1,0,2]", "[2,0,1,3]")}
"""By the order of a Transpose after the split into heads, those that put the heads back beside their sizes.

The second is that of sequences whose steps come before the batch.
"""

_TURNED: Final = {_HEADS: "[0,2,3,1]", "[1,0,2]": "[1,2,0]"}
"""The same orders with steps and sizes exchanged, as keys need them."""

_TOLERANCE: Final = 1e-3

_STEPS: Final = 12
"""Units on the way from the scores to their product."""


def merge_attention(graph: Units) -> None:
    """Make one block of each attention."""
    for number, softmax in enumerate(graph.units):
        if softmax.head == "Softmax" and number not in graph.changes:
            attention = _Attention(graph, number)
            if attention.grow():
                graph.merge([*sorted(attention.inside - {attention.last}), attention.last], attention.block())


def merge_conditions(graph: Units) -> None:
    """Make the condition of a mask that chooses between two constants the mask, not expanded.

    That is so in the attentions that use it; the nodes belong to the first of them.
    """
    for number, unit in reversed(list(enumerate(graph.units))):
        is_choice = unit.head == "Where" and all([graph.flow.is_weight(each) for each in unit.operands[1:]])
        if not is_choice and (unit.head != "Expand" or len(unit.operands) != 1):
            continue
        name = unit.outputs[0]
        users = {at: graph.changes.get(at, graph.units[at]) for at in graph.users.get(name, ())}
        blocks = {at: user for at, user in users.items() if user is not None and user.block == "Attention"}
        masks = [each for user in blocks.values() for each in user.operands[-len(user.labels) :] if user.labels]
        if not blocks or len(blocks) < len(users) or masks.count(name) != graph.uses[name]:
            continue
        graph.changes[number] = None
        for at, user in blocks.items():
            operands = tuple([unit.operands[0] if each == name else each for each in user.operands])
            nodes = (*unit.nodes, *user.nodes) if at == min(blocks) else user.nodes
            graph.changes[at] = user._replace(operands=operands, nodes=nodes)
            graph.users.setdefault(unit.operands[0], []).append(at)
        graph.uses[unit.operands[0]] += masks.count(name) - 1
        graph.users[unit.operands[0]].remove(number)


class _Attention:
    """One attention, grown from its Softmax."""

    def __init__(self, graph: Units, softmax: int) -> None:
        self._graph = graph
        self._taken = graph.changes
        self._softmax = softmax
        self.inside = {softmax}
        self.last = softmax
        self._scale = 1.0
        self._marks: dict[str, set[int]] = {}
        """What happens to queries, 0, and keys, 1, before their product, or to the product."""
        self._masks: list[str] = []
        self._heads: dict[int, str] = {}
        self._size = ""
        self._perms: list[list[str]] = [[], [], [], []]
        """The orders of the Transposes between the products and the splits of queries, keys and values; and after."""

    def grow(self) -> bool:
        """Find the products around the Softmax, then the layout and projections; return whether there are both."""
        unit = self._graph.units[self._softmax]
        if unit.keywords:  # another axis than the last
            return False
        value = self._down(unit.outputs[0])
        way = self._up(unit.operands[0], _STEPS)
        if not value or way is None:
            return False
        for number, scores in way[:-1]:
            self._note(self._graph.units[number], scores)
        self.inside.update([number for number, _ in way])
        self._operands = self._projected([*self._graph.units[way[-1][0]].operands, value])
        return True

    def _before(self, name: str, uses: int = 1) -> int:
        """The unit that produces a value that only so many operands are, if it may belong to the block; -1 else."""
        number = self._graph.producer(name)
        is_free = number not in self._taken and number not in self.inside and self._graph.uses[name] in (1, uses)
        return number if is_free else -1

    def _down(self, name: str) -> str:
        """Follow the weights to the product with the values, and over layout after it; return the values.

        A Transpose after it belongs to the block only if it puts the heads back beside their sizes.
        """
        values = ""
        while (number := self._graph.only_user(name)) >= 0 and number not in self._taken:
            unit = self._graph.units[number]
            if name != unit.operands[0]:
                break
            if not values and unit.head == "@" and not self._graph.flow.is_weight(unit.operands[1]):
                values = unit.operands[1]
            elif unit.head not in _LAYOUT or not (_merges(unit) if values else _keeps_scores(self._graph, unit)):
                break
            self._perms[3] += [_perm(unit)] * (unit.head == "Transpose")
            self.inside.add(number)
            self.last, name = number, unit.outputs[0]
        return values

    def _up(self, name: str, steps: int) -> list[tuple[int, str]] | None:
        """The units from scores back to their product, over scales and masks, each with the scores before it.

        None if there is no such way, or more than one.
        """
        number = self._before(name)
        if number < 0 or not steps:
            return None
        unit = self._graph.units[number]
        if unit.head == "@":
            return None if any([self._graph.flow.is_weight(each) for each in unit.operands]) else [(number, "")]
        if (factor := _factor(self._graph, unit)) is not None:
            names: tuple[str, ...] = factor[:1]
        elif unit.head in _BOUNDS or (unit.head in _LAYOUT and _keeps_scores(self._graph, unit)):
            names = unit.operands[:1]
        else:
            names = unit.operands if unit.head == "+" else unit.operands[1:] if unit.head == "Where" else ()
        ways = [(each, way) for each in names if (way := self._up(each, steps - 1)) is not None]
        return [(number, ways[0][0]), *ways[0][1]] if len(ways) == 1 else None

    def _note(self, unit: Unit, scores: str) -> None:
        """Note the scale or mask of a unit between the product and the Softmax."""
        factor = _factor(self._graph, unit)
        if factor is not None:
            self._scale *= factor[1]
        elif unit.head == "+":
            mask = unit.operands[unit.operands[0] == scores]
            elements = self._graph.flow.elements(mask)
            self._masks += [mask] if elements is None or any(elements) else []
        elif unit.head == "Where":
            self._masks.append(unit.operands[0])
        elif unit.head == "Tanh":
            self._marks["softcap"] = {0, 1}

    def _projected(self, values: list[str]) -> list[str]:
        """Follow queries, keys and values back over layout to their projections; return what is projected."""
        units, uses = self._graph.units, self._graph.uses
        sources = [self._source(value, place) for place, value in enumerate(values)]
        splits = {self._graph.producer(name) for name in sources}
        joint, *others = {self._split_value(number) for number in splits}
        outputs = [name for number in splits for name in units[number].outputs if uses[name]]
        if joint and not others and sorted(outputs) == sorted(set(sources)) and uses[joint] == len(splits):
            # One product for all three, whose parts nothing else uses.
            self.inside.update(splits)
            sources = [self._source(joint, 0, uses=len(splits))] * 3
        projections = [self._before(name, sources.count(name)) for name in sources]
        if not all([number >= 0 and units[number].block == "Linear" for number in projections]):
            return sources
        self.inside.update(projections)
        values = [units[number].operands[0] for number in projections]
        rows = {name: number for name in values if (number := self._before(name, values.count(name))) >= 0}
        rows = {name: number for name, number in rows.items() if units[number].head == "Reshape"}
        self.inside.update(rows.values())
        return [units[rows[name]].operands[0] if name in rows else name for name in values]

    def _split_value(self, number: int) -> str:
        """Return the value of which a unit takes a part; "" for other units."""
        if number < 0 or number in self._taken or number in self.inside:
            return ""
        unit = self._graph.units[number]
        is_fixed = all([self._graph.flow.is_operand(name) for name in unit.operands[1:] if name])
        return unit.operands[0] if unit.head in _SPLITS and is_fixed else ""

    def _source(self, name: str, place: int, uses: int = 1) -> str:
        """Go back over layout, scales and norms of single heads, adding them; return the value they start from."""
        perm = ""
        perms = self._perms[place]
        while (number := self._before(name, uses)) >= 0:
            unit, uses = self._graph.units[number], 1
            factor = _factor(self._graph, unit) if place < 2 else None
            if factor is not None:
                self._scale *= factor[1]
            elif unit.head in _LAYOUT:
                if unit.head == "Reshape" and place < 2:
                    self._note_heads(unit, place, perm)
                perm = _perm(unit)
                perms += [perm] * (unit.head == "Transpose")
            elif unit.head in _NORMS and place < 2:
                self._marks.setdefault("rope" if unit.head == "rope" else "qk_norm", set()).add(place)
            else:
                break
            self.inside.add(number)
            name = unit.operands[0] if factor is None else factor[0]
        return name

    def _note_heads(self, unit: Unit, place: int, perm: str) -> None:
        """Note the number of heads, and their size, where a value is split into them."""
        sizes = unit.keywords[0][1].strip("[]").split(",")
        if len(sizes) == 4 and (place not in self._heads or perm):
            self._heads[place] = sizes[2 if perm.startswith("[0,2,") else 1]
            self._size = sizes[3] if sizes[3].isdigit() and not place else self._size

    def block(self) -> Unit:
        """Return the block."""
        query, key, value = self._operands
        operands = [query] if query == key == value else [query, key] if key == value else [query, key, value]
        orders = [[perm for perm in perms if perm.count(",") < 4] for perms in self._perms]
        is_usual = _is_usual(orders, is_single=self._heads.get(0) == "1")
        heads, key_heads = (self._heads.get(0, ""), self._heads.get(1, "")) if is_usual else ("", "")
        size = int(self._size) if is_usual and self._size else math.inf
        keywords = [("heads", heads)] if heads.isdigit() else []
        if heads.isdigit() and key_heads.isdigit() and heads != key_heads:
            keywords.append(("kv_heads", key_heads))
        keywords += [(mark, "" if len(places) == 2 else "qk"[min(places)]) for mark, places in self._marks.items()]
        if abs(self._scale * size**0.5 - 1) > _TOLERANCE:  # also for a size that is unknown; not for an unknown scale
            keywords.append(("scale", f"{self._scale:.6g}"))
        labels = ["bias=" if self._is_bias(name) else "mask=" for name in self._masks]
        return Unit(
            (), self._graph.units[self.last].outputs, "Attention", (*operands, *self._masks), tuple(keywords),
            labels=tuple(labels), block="Attention", has_options=True,
        )  # fmt: skip

    def _is_bias(self, name: str) -> bool:
        """Whether an addend of the scores is no mask: a constant, or looked up or computed from products and sums."""
        number = self._graph.producer(name)
        head = self._graph.units[number].head if number >= 0 else ""
        return self._graph.flow.is_weight(name) or head in ("+", "/", "@", "Transpose", "GatherElements", "Embedding")


def _perm(unit: Unit) -> str:
    """The order of a Transpose; "" for other layout and for the reverse order."""
    return dict(unit.keywords).get("perm", "")


def _merges(unit: Unit) -> bool:
    """Whether layout after the values may put the heads back beside their sizes."""
    return unit.head != "Transpose" or any([_perm(unit) in orders for orders in _MERGES.values()])


def _is_usual(orders: list[list[str]], *, is_single: bool) -> bool:
    """Whether Transposes from the products back to the splits, and those after the values, are those of heads.

    Or of a single head.
    """
    query, key, value, after = orders
    if not query and key in (["[0,1,3,2]"], ["[0,2,1]"], [_TURNED[_HEADS]]):
        return is_single and not value and not after  # one head beside the steps is in its place
    order = query[0] if query else ""
    is_key = key in (["[0,1,3,2]", order], ["[0,2,1]", order], [_TURNED.get(order)])
    return query == value == [order] and is_key and after in [[each] for each in _MERGES.get(order, ())]


def _keeps_scores(graph: Units, unit: Unit) -> bool:
    """Whether layout between the products leaves the rows and columns of the scores as they are."""
    if unit.head == "Transpose":
        order = _perm(unit).strip("[]").split(",")
        return len(order) > 2 and order[-2:] == [str(len(order) - 2), str(len(order) - 1)]
    before, after = graph.flow.dims(unit.operands[0]) or (), graph.flow.dims(unit.outputs[0]) or ()
    known = [pair for pair in zip(before[-2:], after[-2:], strict=False) if None not in pair]
    return unit.head in ("", "Cast", "Expand") or all([one == other for one, other in known])


def _factor(graph: Units, unit: Unit) -> tuple[str, float] | None:
    """Return the value that a unit multiplies by a number, and the number, if it does."""
    if unit.head not in ("*", "/"):
        return None
    for name, other in (unit.operands, unit.operands[::-1]):
        elements = graph.flow.elements(other)
        is_shape = graph.flow.is_computed_shape(other)
        if is_shape or (elements is not None and len(elements) == 1 and isinstance(elements[0], float)):
            number = float(elements[0]) if elements else math.nan  # computed from sizes
            if unit.head == "/" and (other != unit.operands[1] or not number):
                return None
            return name, 1 / number if unit.head == "/" else number
    return None
