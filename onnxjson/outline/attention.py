"""Attention: a Softmax of products, with the scales and masks between them and, where it is usual, what is around it.

The pattern is the chain product, Softmax, product, with nothing but layout, scales and masks between. From there the
block grows back over the split into heads to the projections, and on over the merge of heads; but only if all of them
are the usual ones. Else its operands are queries, keys and values as the products have them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from onnxjson.outline.heads import (
    PARTS,
    TURNS,
    Way,
    is_layout,
    is_plain,
    is_usual,
    keeps_rows,
    keeps_scores,
    order_of,
    split_axis,
    to_join,
)
from onnxjson.outline.scales import scaled
from onnxjson.outline.units import Unit, Units, called
from onnxjson.outline.values import FAR, operator

_SPLITS: Final = frozenset({"Split", "Gather", "Slice"})
_NORMS: Final = frozenset({"RMSNorm", "LayerNorm"})
_TOLERANCE: Final = 1e-3

_STEPS: Final = 12
"""Units on the way from the scores to their product."""

_NOT: Final = {"mask=": "mask=not ", "mask=not ": "mask="}


def merge_attention(graph: Units) -> None:
    """Make one block of each attention."""
    for number, softmax in enumerate(graph.units):
        if softmax.head == "Softmax" and not softmax.keywords and number not in graph.changes:
            attention = _Attention(graph, number)
            if attention.grow():
                graph.merge([*sorted(attention.inside - {attention.last}), attention.last], attention.block())


def merge_conditions(graph: Units) -> None:
    """Make the condition of a mask that chooses between 0 and a low number the mask, not expanded.

    That is so in the attentions that use it; the nodes belong to the first of them.
    """
    for number, unit in reversed(list(enumerate(graph.units))):
        is_choice = unit.head == "Where" and len(unit.operands) == 3
        is_kept = is_choice and graph.flow.is_far(unit.operands[2]) and graph.flow.is_zero(unit.operands[1])
        is_hidden = is_choice and graph.flow.is_far(unit.operands[1]) and graph.flow.is_zero(unit.operands[2])
        if not (is_kept or is_hidden or (unit.head == "Expand" and len(unit.operands) == 1)):
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
            first = len(operands) - len(user.labels)
            labels = [
                _NOT.get(label, label) if is_hidden and user.operands[first + place] == name else label
                for place, label in enumerate(user.labels)
            ]
            nodes = (*unit.nodes, *user.nodes) if at == min(blocks) else user.nodes
            graph.changes[at] = user._replace(operands=operands, nodes=nodes, labels=tuple(labels))
            graph.users.setdefault(unit.operands[0], []).append(at)
        graph.uses[unit.operands[0]] += masks.count(name) - 1
        graph.users[unit.operands[0]].remove(number)


class _Attention:
    """One attention, grown from its Softmax."""

    def __init__(self, graph: Units, softmax: int) -> None:
        self._graph = graph
        self._softmax = softmax
        self.inside = {softmax}
        self.last = softmax
        self._scale = 1.0
        self._bound: tuple[str, str] | None = None
        """The keyword of what bounds the scores."""
        self._masks: list[tuple[str, str]] = []
        """The labels and names of masks and biases."""
        self._has_addend = False
        self._operands: list[str] = []
        self._keywords: list[tuple[str, str]] = []

    def grow(self) -> bool:
        """Find the products around the Softmax, and what is around them; return whether it is an attention."""
        units = self._graph.units
        way = self._up(units[self._softmax].operands[0], _STEPS)
        if way is None or not all([self._note(units[number], scores) for number, scores in reversed(way[:-1])]):
            return False
        layout = [units[number] for number, _ in way if units[number].head == "Reshape"]
        ends = [
            self._graph.flow.dims(name) or ()
            for name in (units[way[-1][0]].outputs[0], units[self._softmax].operands[0])
        ]
        is_back = ends[0][-2:] == ends[1][-2:] and all(ends[0])
        if not is_back and not all([keeps_rows(self._graph, unit) for unit in layout]):
            return False
        values, merge = self._down(units[self._softmax].outputs[0])
        if not values:
            return False
        self.inside.update([number for number, _ in way])
        query, key = units[way[-1][0]].operands
        size = self._size(query, -1)
        ways = self._projected([self._way(query, 0), self._way(key, 1), self._way(values, 2)])
        if self._is_joined(ways, merge, self._size(values, -1)) and is_usual(
            ways, [each for at in merge if (each := order_of(units[at]))]
        ):
            self._take(ways, size)
            self.inside.update(merge)
            self.last = merge[-1]
        elif is_plain(ways):
            self._take(ways, size)
        else:
            ways = [self._way(query, 0, is_bare=True), self._way(key, 1, is_bare=True), Way(values)]
            self._take(ways, size)
            self._keywords += [("k_transposed", "")] * (not ways[1].orders)
        return True

    def _before(self, name: str, uses: int = 1) -> int:
        """The unit that produces a value that only so many operands are, if it may belong to the block; -1 else."""
        number = self._graph.producer(name)
        taken = self._graph.changes
        is_free = number not in taken and number not in self.inside and self._graph.uses[name] in (1, uses)
        return number if is_free else -1

    def _down(self, name: str) -> tuple[str, list[int]]:
        """Follow the weights to the product with the values; return the values, and the layout after the product."""
        values = ""
        merge: list[int] = []
        while (number := self._graph.only_user(name)) >= 0 and number not in self._graph.changes:
            unit = self._graph.units[number]
            if name != unit.operands[0]:
                break
            if not values and unit.head == "@" and not self._graph.flow.is_weight(unit.operands[1]):
                values = unit.operands[1]
                self.last = number
            elif not (is_layout(unit) if values else keeps_scores(self._graph, unit)):
                break
            is_turned = any([order_of(self._graph.units[each]) for each in merge])
            if values and unit.head == "Reshape" and not is_turned and not keeps_rows(self._graph, unit):
                break  # heads are beside each other only after a Transpose
            if values and number != self.last:
                merge.append(number)
            else:
                self.inside.add(number)
            name = unit.outputs[0]
        return values, to_join(self._graph, merge)

    def _up(self, name: str, steps: int) -> list[tuple[int, str]] | None:
        """The units from scores back to their product, over scales and masks, each with the scores before it.

        None if there is no such way, or more than one.
        """
        number = self._before(name)
        if number < 0 or not steps:
            return None
        unit = self._graph.units[number]
        if unit.head == "@":
            return None if self._graph.flow.is_weight(unit.operands[1]) else [(number, "")]
        names: tuple[str, ...] = ()
        if (factor := scaled(self._graph, unit)) is not None:
            names = factor[:1]
        elif unit.head in ("Max", "Clip", "Tanh", "Reshape") or keeps_scores(self._graph, unit):
            names = unit.operands[:1]
        elif unit.head in ("+", "Where", "*"):
            names = unit.operands
        ways = [(each, way) for each in names if (way := self._up(each, steps - 1)) is not None]
        return [(number, ways[0][0]), *ways[0][1]] if len(ways) == 1 else None

    def _note(self, unit: Unit, scores: str) -> bool:
        """Note what a unit between the product and the Softmax does; return whether it can be said in this order.

        Scales come first, then a bound, then masks.
        """
        graph = self._graph
        if (factor := scaled(graph, unit)) is not None:
            if self._bound is not None and self._bound[0] == "softcap" and not self._masks:
                self._bound = "softcap", f"{float(self._bound[1]) * factor[1]:.6g}"
                return True
            self._scale *= factor[1]
            return self._bound is None and not self._has_addend and (not self._masks or factor[1] > 0)
        if unit.head == "*":
            factors = unit.operands[unit.operands[0] == scores]
            self._masks.append(("scale=", factors))
            is_each = graph.flow.is_weight(factors) and (graph.flow.dims(factors) or ())[-2:] == (1, 1)
            return is_each and len(self._masks) == 1 and self._bound is None
        if unit.head == "+":
            mask = unit.operands[unit.operands[0] == scores]
            if not graph.flow.is_zero(mask):
                self._masks.append(("bias=" if self._is_bias(mask) else "mask=", mask))
                self._has_addend = True
        elif unit.head == "Where":
            place = unit.operands.index(scores)
            if place == 0 or not graph.flow.is_far(unit.operands[3 - place]):
                return False
            self._masks.append(("mask=" if place == 1 else "mask=not ", unit.operands[0]))
        elif unit.head == "Tanh":
            if self._bound is not None or self._masks:
                return False
            self._bound = "softcap", "1"
        elif unit.head in ("Max", "Clip"):
            bounds = [
                items[0] for name in unit.operands[1:] if (items := graph.flow.elements(name)) and len(items) == 1
            ]
            if len(bounds) != len(unit.operands) - 1 or not bounds or unit.keywords:
                return False
            if len(bounds) > 1 or bounds[0] > FAR:
                if self._bound is not None or self._masks:
                    return False
                text = f"[{','.join([f'{each:.6g}' for each in bounds])}]" if len(bounds) > 1 else f"{bounds[0]:.6g}"
                self._bound = "clip" if len(bounds) > 1 else "min", text
        return True

    def _size(self, name: str, axis: int) -> str:
        """The size of an axis of a value, from the last; "" if it is not known."""
        dims = self._graph.flow.dims(name) or ()
        return "" if len(dims) < -axis or dims[axis] is None else str(dims[axis])

    def _way(
        self, name: str, place: int, uses: int = 1, axis: int | None = None, *, orders: Sequence[tuple[int, ...]] = (),
        is_bare: bool = False,
    ) -> Way:  # fmt: skip
        """Go back from a product over layout and, for queries and keys, scales, rotations and norms of single heads.

        With `axis`, the value is split along it into queries, keys and values, whose layout has these `orders`. With
        `is_bare`, only over scales and one exchange of the steps and sizes of keys.
        """
        way = Way(name, orders=[*orders])
        size = self._size(name, -2 if place == 1 else -1)
        while (number := self._before(way.source, uses)) >= 0:
            unit, uses = self._graph.units[number], 1
            factor = scaled(self._graph, unit) if place < 2 and not way.norm else None
            turn = self._turn(number) if place == 1 and not way.orders else []
            if is_bare and factor is None and (not place or way.orders or not (turn or order_of(unit) in TURNS)):
                break
            if factor is not None:
                way.scale *= factor[1]
            elif turn:
                way.orders.append(TURNS[0])
                way.inside += turn[:-1]
                number, unit = turn[-1], self._graph.units[turn[-1]]
            elif is_layout(unit) and not self._breaks_rows(unit, way.orders):
                axis = way.add(self._graph, unit, axis)
            elif unit.head == "Expand" and self._is_of_groups(unit):
                way.is_grouped = True
            elif unit.head == "rope" and place < 2 and not (way.norm or way.rotation):
                way.rotation, way.angles = called(unit), unit.operands[1:]
            elif unit.head in _NORMS and place < 2 and not way.norm and size == self._size(unit.outputs[0], -1) != "":
                way.norm = called(unit)
            else:
                break
            way.inside.append(number)
            way.source = unit.operands[0] if factor is None else factor[0]
        return way

    def _breaks_rows(self, unit: Unit, orders: Sequence[tuple[int, ...]]) -> bool:
        """Whether a Reshape of single heads does more than join or split batch and heads, as far as sizes are known."""
        is_single = len(self._graph.flow.dims(unit.operands[0]) or ()) > 3 or all([each in TURNS for each in orders])
        return unit.head == "Reshape" and is_single and not keeps_rows(self._graph, unit)

    def _turn(self, number: int) -> list[int]:
        """The units of keys that join batch and heads, exchange steps and sizes, and split batch and heads again."""
        units, dims = self._graph.units, self._graph.flow.dims
        middle = self._before(units[number].operands[0]) if units[number].head == "Reshape" else -1
        first = self._before(units[middle].operands[0]) if middle >= 0 and order_of(units[middle]) in TURNS else -1
        if first < 0 or units[first].head != "Reshape":
            return []
        names = units[first].operands[0], units[first].outputs[0], units[number].outputs[0]
        before, joined, after = [dims(name) or () for name in names]
        is_turn = None not in before and joined[-2:] == before[-2:] and after == (*before[:-2], *before[:-3:-1])
        return [number, middle, first] if is_turn and len(before) == 4 else []

    def _is_of_groups(self, unit: Unit) -> bool:
        """Whether an Expand repeats each head for the queries of its group."""
        number = self._graph.producer(unit.operands[0])
        before = self._graph.units[number] if number >= 0 else unit
        axes = dict(before.keywords).get("axes", "")
        sizes = self._graph.flow.dims(unit.operands[0]) or ((None, None, 1) if axes in ("[2]", "[-3]") else ())
        return sizes[2:3] == (1,) and unit.keywords[0][1].count(",") in (0, PARTS - 1)

    def _projected(self, ways: list[Way]) -> list[Way]:
        """Follow queries, keys and values back to their projections, which have weights of their own, if all have."""
        graph, units = self._graph, self._graph.units
        splits = list(dict.fromkeys([graph.producer(way.source) for way in ways]))
        joint, *others = {self._split_value(number) for number in splits}
        parts = {(units[number].operands, units[number].keywords) for number in splits}
        outputs = [name for number in splits for name in units[number].outputs if graph.uses[name]]
        is_joint = (
            joint and not others and len(outputs) == 3 and sorted(outputs) == sorted([way.source for way in ways])
        )
        if is_joint and len(parts) == len(splits) == graph.uses[joint]:
            # One product for all three, whose parts nothing else uses.
            turned = ways[2].orders
            front = self._way(joint, 2, uses=len(splits), axis=split_axis(units[splits[0]]), orders=turned)
            ways = [
                replace(
                    way, source=front.source, inside=[*way.inside, *splits, *front.inside],
                    orders=[*way.orders, *front.orders[len(turned) :]],
                    sizes=way.sizes or front.sizes, count=way.count or front.count,
                    is_split=way.is_split or front.is_split, has_layout=way.has_layout or front.has_layout,
                )
                for way in ways
            ]  # fmt: skip
        uses = 1 if not is_joint else len(splits)
        products = [self._before(way.source, uses) for way in ways]
        weights = {units[number].operands[1:] for number in products if number >= 0 and units[number].block == "Linear"}
        marks = {units[number].keywords for number in products}
        if len(weights) != (1 if is_joint else 3) or min(products) < 0 or len(marks) > 1:
            return ways
        values = [units[number].operands[0] for number in products]
        for way, number, value in zip(ways, products, values, strict=True):
            way.source = value
            way.marks = units[number].keywords
            way.inside.append(number)
        return ways

    def _is_joined(self, ways: Sequence[Way], merge: Sequence[int], wide: str) -> bool:
        """Whether layout after the product ends with all heads of a step beside each other, as far as that is known."""
        if not merge or self._graph.units[merge[-1]].head != "Reshape":
            return bool(merge)
        query, _, value = ways
        size = self._graph.units[merge[-1]].keywords[0][1].strip("[]").split(",")[-1]
        factors = [query.heads or value.heads, *([wide] if wide else value.sizes[3:])]
        is_known = len(factors) == 2 and all([each.isdigit() for each in (*factors, size)])
        return not is_known or int(factors[0]) * int(factors[1]) == int(size)

    def _split_value(self, number: int) -> str:
        """Return the value of which a unit takes a part; "" for other units."""
        if number < 0 or number in self._graph.changes or number in self.inside:
            return ""
        unit = self._graph.units[number]
        is_fixed = all([self._graph.flow.is_operand(name) for name in unit.operands[1:] if name])
        return unit.operands[0] if unit.head in _SPLITS and is_fixed else ""

    def _take(self, ways: Sequence[Way], size: str) -> None:
        """Take what is on the ways from the products into the block."""
        query, key, value = ways
        for way in ways:
            self.inside.update(way.inside)
            self._scale *= way.scale
        heads, key_heads = query.heads or value.heads, key.heads or value.heads
        if not (heads.isdigit() or key.is_grouped or key_heads == "1"):
            heads = key_heads
        self._keywords += [("heads", heads)] if heads else []
        self._keywords += [("kv_heads", key_heads)] if heads != key_heads or key.is_grouped else []
        for mark, pair in (("rope", (query.rotation, key.rotation)), ("norm", (query.norm, key.norm))):
            both = "qk_norm" if mark == "norm" else mark
            texts = [(both, pair[0])] if pair[0] == pair[1] else zip((f"q_{mark}", f"k_{mark}"), pair, strict=True)
            self._keywords += [
                (name, text if mark == "norm" else text[5:-1] if "," not in text else text[4:])
                for name, text in texts
                if text
            ]
        self._keywords += query.marks
        self._keywords += [self._bound] if self._bound is not None else []
        if self._bound is not None and self._bound[0] == "softcap":  # which divides the scores by itself
            self._scale *= float(self._bound[1])
        size = size or (query.sizes[3] if query.sizes else "")
        usual = float(size) ** -0.5 if size.isdigit() and int(size) else math.inf
        if math.isnan(self._scale):
            self._keywords.append(("scale", "sizes(...)"))
        elif abs(self._scale / (1 if "scale=" in dict(self._masks) else usual) - 1) > _TOLERANCE:  # or an unknown size
            self._keywords.append(("scale", f"{self._scale:.6g}"))
        names = [way.source for way in ways]
        self._operands = names[:1] if len(set(names)) == 1 else names[:2] if names[1] == names[2] else names
        self._masks = [*zip(("cos=", "sin="), query.angles or key.angles, strict=False), *self._masks]

    def block(self) -> Unit:
        """Return the block."""
        labels = tuple([label for label, _ in self._masks])
        operands = (*self._operands, *[name for _, name in self._masks])
        outputs = self._graph.units[self.last].outputs
        return Unit(
            (), outputs, "Attention", operands, tuple(self._keywords), labels=labels, block="Attention",
            has_options=True,
        )  # fmt: skip

    def _is_bias(self, name: str) -> bool:
        """Whether an addend of the scores is no mask: a constant, or looked up or computed from products and sums."""
        number, flow = self._graph.producer(name), self._graph.flow
        head = self._graph.units[number].head if number >= 0 else ""
        if flow.is_weight(name):
            node = flow.nodes[at] if (at := flow.producer(name)) >= 0 else None
            names = node.input[1:] if node is not None and operator(node) == "Where" else [name]
            numbers = [each for constant in names for each in flow.elements(constant) or ()]
            return not any([isinstance(each, float) and each <= FAR for each in numbers])
        return head in ("+", "/", "@", "Transpose", "GatherElements", "Embedding")
