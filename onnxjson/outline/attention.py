"""Attention: a Softmax of products, with the layout, scales and masks around it and the projections before it.

The pattern is the chain product, Softmax, product, with nothing but layout, scales and masks between. From there the
block grows over layout operators and projections whose values nothing else consumes.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit

_LAYOUT: Final = frozenset({"", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Cast", "Expand", "Tile"})
_SPLITS: Final = frozenset({"Split", "Gather", "Slice"})
_NORMS: Final = frozenset({"RMSNorm", "LayerNorm", "rope"})
_TOLERANCE: Final = 1e-3

_STEPS: Final = 12
"""Units on the way from an input of a product to a projection, or from a product to its Softmax."""


class Units:
    """The units of one graph, by what they produce and consume."""

    def __init__(self, flow: Flow, units: Sequence[Unit]) -> None:
        self.flow = flow
        self.units = list(units)
        self.producers = {name: number for number, unit in enumerate(units) for name in unit.outputs if name}
        self.uses = Counter([name for unit in units for name in (*unit.operands, *unit.captured, *unit.captured)])
        self.uses.update(list(flow.outputs))
        self.users: dict[str, list[int]] = {}
        for number, unit in enumerate(units):
            for name in dict.fromkeys(unit.operands):
                self.users.setdefault(name, []).append(number)

    def with_units(self, replaced: Mapping[int, Unit | None]) -> "Units":
        """Return the units with others in place of those with these numbers; None leaves one out."""
        if not replaced:
            return self
        numbered = enumerate(self.units)
        return Units(self.flow, [unit for at, each in numbered if (unit := replaced.get(at, each)) is not None])

    def producer(self, name: str) -> int:
        """Return the number of the unit that produces a value; -1 for other values."""
        return self.producers.get(name, -1)

    def only_user(self, name: str) -> int:
        """Return the one unit that consumes a value, in one place; -1 if there are others, or none."""
        return self.users[name][0] if self.uses[name] == 1 and name in self.users else -1

    def ordered(self) -> list[Unit]:
        """Return the units depth first from the outputs, each after those that it consumes from; names do not matter.

        Of the values that a unit consumes, those with most uses come first: what all layers share, such as a mask,
        comes before the first layer. Units that lead to no output follow.
        """
        order: list[int] = []
        seen = bytearray(len(self.units))
        for start in [*map(self.producer, self.flow.outputs), *range(len(self.units))]:
            if start < 0 or seen[start]:
                continue
            seen[start] = 1
            pending = [(start, iter(self._sources(start)))]
            while pending:
                number, sources = pending[-1]
                source = next((each for each in sources if not seen[each]), None)
                if source is None:
                    order.append(number)
                    pending.pop()
                else:
                    seen[source] = 1
                    pending.append((source, iter(self._sources(source))))
        return [self.units[number] for number in order]

    def _sources(self, number: int) -> list[int]:
        unit = self.units[number]
        names = sorted((*unit.operands, *unit.captured), key=lambda name: -self.uses[name])
        return [source for name in names if (source := self.producer(name)) >= 0]

    def factor(self, unit: Unit) -> tuple[str, float] | None:
        """Return the value that a unit multiplies by a number, and the number, if it does."""
        if unit.head not in ("*", "/"):
            return None
        for name, other in (unit.operands, unit.operands[::-1]):
            elements = self.flow.elements(other)
            is_shape = self.flow.is_computed_shape(other)
            if is_shape or (elements is not None and len(elements) == 1 and isinstance(elements[0], float)):
                number = float(elements[0]) if elements else math.nan  # computed from sizes
                if unit.head == "/" and (other != unit.operands[1] or not number):
                    return None
                return name, 1 / number if unit.head == "/" else number
        return None


def with_attention(graph: Units) -> Units:
    """Return the units with those of each attention as one block."""
    units = graph.units
    replaced: dict[int, Unit | None] = {}
    for number, softmax in enumerate(units):
        if softmax.head == "Softmax" and number not in replaced:
            found = _Attention(graph, number, replaced)
            if found.grow():
                replaced.update(dict.fromkeys(found.inside))
                replaced[found.last] = found.block()
    return _with_conditions(graph.with_units(replaced))


def _with_conditions(graph: Units) -> Units:
    """Return the units with the condition of a mask that chooses between two constants as the mask, not expanded.

    That is so in the attentions that use it; the nodes belong to the first of them.
    """
    replaced: dict[int, Unit | None] = {}
    for number, unit in reversed(list(enumerate(graph.units))):
        is_choice = unit.head == "Where" and all([graph.flow.is_weight(each) for each in unit.operands[1:]])
        if not is_choice and (unit.head != "Expand" or len(unit.operands) != 1):
            continue
        name = unit.outputs[0]
        users = {at: replaced.get(at, graph.units[at]) for at in graph.users.get(name, ())}
        blocks = {at: user for at, user in users.items() if user is not None and user.block == "Attention"}
        masks = [each for user in blocks.values() for each in user.operands[-len(user.labels) :] if user.labels]
        if not blocks or len(blocks) < len(users) or masks.count(name) != graph.uses[name]:
            continue
        replaced[number] = None
        for at, user in blocks.items():
            operands = tuple([unit.operands[0] if each == name else each for each in user.operands])
            nodes = (*unit.nodes, *user.nodes) if at == min(blocks) else user.nodes
            replaced[at] = user._replace(operands=operands, nodes=nodes)
            graph.users.setdefault(unit.operands[0], []).append(at)
        graph.uses[unit.operands[0]] += masks.count(name) - 1
        graph.users[unit.operands[0]].remove(number)
    return graph.with_units(replaced)


class _Attention:
    """One attention, grown from its Softmax."""

    def __init__(self, graph: Units, softmax: int, taken: dict[int, Unit | None]) -> None:
        self._graph = graph
        self._taken = taken
        self._softmax = softmax
        self.inside = {softmax}
        self.last = softmax
        self._scale = 1.0
        self._marks: dict[str, None] = {}
        self._masks: list[str] = []
        self._heads: dict[int, str] = {}
        self._size = ""

    def grow(self) -> bool:
        """Find the products around the Softmax, then the layout and projections; return whether there are both."""
        unit = self._graph.units[self._softmax]
        value = self._down(unit.outputs[0])
        scores = self._up(unit.operands[0])
        if value is None or scores is None:
            return False
        self._merge_heads()
        self._operands = self._projected([*scores, value])
        return True

    def _down(self, name: str) -> str | None:
        """Follow the weights to the product with the values; return the values."""
        for _ in range(_STEPS):
            number = self._graph.only_user(name)
            if number < 0 or number in self._taken:
                return None
            unit = self._graph.units[number]
            self.inside.add(number)
            self.last = number
            if unit.head == "@" and name == unit.operands[0] and not self._graph.flow.is_weight(unit.operands[1]):
                return unit.operands[1]
            if unit.head not in _LAYOUT or name != unit.operands[0]:
                return None
            name = unit.outputs[0]
        return None

    def _up(self, name: str) -> tuple[str, str] | None:
        """Follow the scores back to the product of queries and keys, over scales and masks; return both."""
        for _ in range(_STEPS):
            number = self._graph.producer(name)
            if number < 0 or number in self._taken or self._graph.uses[name] != 1:
                return None
            unit = self._graph.units[number]
            factor = self._graph.factor(unit)
            self.inside.add(number)
            if unit.head == "@":
                if any([self._graph.flow.is_weight(each) for each in unit.operands]):
                    return None
                return unit.operands[0], unit.operands[1]
            if factor is not None:
                name, number_of = factor
                self._scale *= number_of
            elif unit.head == "+":
                scores = [each for each in unit.operands if self._leads_to_product(each)]
                if len(scores) != 1:
                    return None
                (mask,) = [each for each in unit.operands if each != scores[0]]
                elements = self._graph.flow.elements(mask)
                if elements is None or any(elements):
                    self._masks.append(mask)
                name = scores[0]
            elif unit.head == "Where":
                scores = [each for each in unit.operands[1:] if self._leads_to_product(each)]
                if len(scores) != 1:
                    return None
                self._masks.append(unit.operands[0])
                name = scores[0]
            elif unit.head in _LAYOUT or unit.head in ("Max", "Clip", "Tanh"):
                if unit.head == "Tanh":
                    self._marks["softcap"] = None
                name = unit.operands[0]
            else:
                return None
        return None

    def _leads_to_product(self, name: str) -> bool:
        """Whether a value is a product of two computed values, behind scales, masks and layout that only it uses."""
        graph = self._graph
        pending = [(name, 0)]
        while pending:
            name, steps = pending.pop()
            number = graph.producer(name)
            if number < 0 or steps > _STEPS or graph.uses[name] != 1 or number in self._taken:
                continue
            unit = graph.units[number]
            if unit.head == "@":
                if not any([graph.flow.is_weight(each) for each in unit.operands]):
                    return True
            elif unit.head in _LAYOUT:
                pending.append((unit.operands[0], steps + 1))
            elif unit.head in ("+", "*", "/"):
                pending += [(each, steps + 1) for each in unit.operands]
            elif unit.head == "Where":
                pending += [(each, steps + 1) for each in unit.operands[1:]]
        return False

    def _merge_heads(self) -> None:
        """Add the layout operators after the last product."""
        name = self._graph.units[self.last].outputs[0]
        while (number := self._graph.only_user(name)) >= 0 and number not in self._taken:
            unit = self._graph.units[number]
            if unit.head not in ("", "Reshape", "Transpose", "Squeeze"):
                break
            self.inside.add(number)
            self.last = number
            name = unit.outputs[0]

    def _projected(self, values: list[str]) -> list[str]:
        """Follow queries, keys and values back over layout to their projections; return what is projected."""
        sources = [self._source(value, place) for place, value in enumerate(values)]
        parts = {self._graph.producer(name) for name in sources}
        if len({self._split_value(number) for number in parts} - {""}) == 1 and "" not in map(self._split_value, parts):
            # One product for all three, whose parts nothing else uses.
            value = self._split_value(min(parts))
            outputs = [name for number in parts for name in self._graph.units[number].outputs if self._graph.uses[name]]
            if sorted(outputs) == sorted(set(sources)) and self._graph.uses[value] == len(parts):
                self.inside.update(parts)
                sources = [self._source(value, 0, uses=len(parts))] * 3
        projections = [self._projection(name, sources.count(name)) for name in sources]
        if all([number >= 0 for number in projections]):
            self.inside.update(projections)
            return self._rows([self._graph.units[number].operands[0] for number in projections])
        return sources

    def _rows(self, values: list[str]) -> list[str]:
        """Go back over the Reshapes to rows before the projections."""
        rows = {}
        for name in set(values):
            number = self._graph.producer(name)
            is_free = number >= 0 and number not in self._taken and self._graph.uses[name] == values.count(name)
            if is_free and self._graph.units[number].head == "Reshape":
                self.inside.add(number)
                rows[name] = self._graph.units[number].operands[0]
        return [rows.get(name, name) for name in values]

    def _split_value(self, number: int) -> str:
        """Return the value of which a unit takes a part; "" for other units."""
        if number < 0 or number in self._taken or number in self.inside:
            return ""
        unit = self._graph.units[number]
        is_fixed = all([self._graph.flow.is_operand(name) for name in unit.operands[1:] if name])
        return unit.operands[0] if unit.head in _SPLITS and is_fixed else ""

    def _projection(self, name: str, uses: int) -> int:
        number = self._graph.producer(name)
        if number < 0 or number in self._taken or self._graph.uses[name] not in (1, uses):
            return -1
        unit = self._graph.units[number]
        return number if unit.block == "Linear" else -1

    def _source(self, name: str, place: int, uses: int = 1) -> str:
        """Go back over layout, scales and norms of single heads, adding them; return the value they start from."""
        graph = self._graph
        after = ""
        for _ in range(_STEPS):
            number = graph.producer(name)
            if number < 0 or number in self._taken or number in self.inside or graph.uses[name] != uses:
                return name
            unit, uses = graph.units[number], 1
            factor = graph.factor(unit)
            if factor is not None and place < 2:
                name = factor[0]
                self._scale *= factor[1]
            elif unit.head in _LAYOUT:
                if unit.head == "Reshape" and place < 2:
                    self._note_heads(unit, place, after)
                after = dict(unit.keywords).get("perm", "") if unit.head == "Transpose" else ""
                name = unit.operands[0]
            elif unit.head in _NORMS:
                self._marks["rope" if unit.head == "rope" else "qk_norm"] = None
                name = unit.operands[0]
            else:
                return name
            self.inside.add(number)
        return name

    def _note_heads(self, unit: Unit, place: int, perm: str) -> None:
        """Note the number of heads, and their size, where a value is split into them."""
        sizes = unit.keywords[0][1].strip("[]").split(",")
        if len(sizes) == 4 and (place not in self._heads or perm):
            self._heads[place] = sizes[2 if perm.startswith("[0,2") else 1]
            self._size = sizes[3] if sizes[3].isdigit() and not place else self._size

    def block(self) -> Unit:
        """Return the block."""
        query, key, value = self._operands
        operands = [query] if query == key == value else [query, key] if key == value else [query, key, value]
        heads, key_heads = self._heads.get(0, ""), self._heads.get(1, "")
        keywords = [("heads", heads)] if heads.isdigit() else []
        if heads.isdigit() and key_heads.isdigit() and heads != key_heads:
            keywords.append(("kv_heads", key_heads))
        keywords += [(mark, "") for mark in self._marks]
        if not self._size or abs(self._scale * int(self._size) ** 0.5 - 1) > _TOLERANCE:
            keywords.append(("scale", f"{self._scale:.6g}"))
        labels = ["bias=" if self._is_bias(name) else "mask=" for name in self._masks]
        nodes = [node for number in sorted(self.inside) if number != self.last for node in self._nodes(number)]
        return Unit(
            (*nodes, *self._nodes(self.last)), self._graph.units[self.last].outputs, "Attention",
            (*operands, *self._masks), tuple(keywords), labels=tuple(labels), block="Attention", has_options=True,
        )  # fmt: skip

    def _is_bias(self, name: str) -> bool:
        """Whether an addend of the scores is no mask: a constant, or looked up or computed from products and sums."""
        number = self._graph.producer(name)
        head = self._graph.units[number].head if number >= 0 else ""
        return self._graph.flow.is_weight(name) or head in ("+", "/", "@", "Transpose", "GatherElements", "Embedding")

    def _nodes(self, number: int) -> tuple[int, ...]:
        return self._graph.units[number].nodes
