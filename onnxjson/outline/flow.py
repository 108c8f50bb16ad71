"""The dataflow of one graph: producers and uses of values by position, constants, and arithmetic of shapes."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from onnxjson.model.constants import RANDOM
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.dimensions import INVENTED
from onnxjson.model.document import Node
from onnxjson.model.elements import element_count
from onnxjson.model.scopes import Scope
from onnxjson.outline.values import SHOWN, Values, operator

SHAPE_INPUTS: Final = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "Dropout": (1, 2), "Expand": (1,), "EyeLike": (), "Gather": (1,), "GatherElements": (), "GatherND": (1,),
    "HammingWindow": (0,), "HannWindow": (0,), "MaxUnpool": (2,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2),
    "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,), "ReduceMax": (1,),
    "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,), "ReduceSum": (1,), "ReduceSumSquare": (1,),
    "Reshape": (1,), "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,),
    "Squeeze": (1,), "STFT": (1, 3), "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
    "DFT": (1, 2), "CumSum": (1,),
}  # fmt: skip
"""Inputs of operators that are shapes, sizes, axes, indices, starts, ends, steps or repeats."""

_ARITHMETIC: Final = frozenset(
    {
        "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Concat", "ConstantOfShape", "Div", "Equal",
        "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity",
        "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "Range",
        "Reciprocal", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round", "ScatterElements",
        "ScatterND", "Shape", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tile", "Transpose",
        "Trilu", "Unsqueeze", "Where", "Xor",
    }
)  # fmt: skip
"""Operators of which arithmetic of shapes consists; anything else is part of the network."""

_OF_SIZES: Final = _ARITHMETIC | {"Cos", "Exp", "MatMul", "Sin"}
"""Operators that compute positions, grids and masks from sizes alone."""

_SIZES: Final = ("Shape", "Size")

OFTEN: Final = 4
"""How often a value is used from which on it does not matter how often: not how many layers there are."""

LONG: Final = 10**9
"""The end of a Slice from which on it is that of the axis."""

INFIX: Final = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "MatMul": "@"}

_OF_RANK: Final = frozenset({*INFIX, "Cast", "Clip", "Identity", "Max", "Slice", "Softmax"})
"""Operators whose result has as many axes as their first input, or as the longer of two."""

_NEUTRAL: Final = {"Add": 0, "Div": 1, "Mul": 1, "Sub": 0}
"""Operators that return their first input if the second one is this number."""

_SHOWN_AGAIN: Final = RANDOM | {"Dropout", "MatMul", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
"""Operators that are shown each time: their results differ, or they are parts of blocks, such as projections."""

NO_EFFECT: Final = frozenset({"Cast", "Concat", "Dropout", "Expand", "Identity", "Pad", "Reshape", "Slice", *_NEUTRAL})
"""Operators whose first output may be their first input when a model is used."""

_OF_SLICE: Final = ("starts", "ends", "axes", "steps")


class Kept(NamedTuple):
    """What a Slice keeps of one axis."""

    axis: int
    start: int | None
    """None if it is computed from sizes, like `end`."""
    end: int | None
    """`LONG` for the end of the axis."""
    step: int


def depth_first(starts: Iterable[int], sources: Callable[[int], Sequence[int]]) -> list[int]:
    """Return numbers depth first, each after its sources; negative ones are left out."""
    order: list[int] = []
    seen: set[int] = set()
    for start in starts:
        pending = [start] if start >= 0 else []
        while pending:
            number = pending.pop()
            if number < 0:
                order.append(~number)
            elif number not in seen:
                seen.add(number)
                pending.append(~number)
                for source in reversed(sources(number)):
                    if source >= 0 and source not in seen:
                        pending.append(source)
    return order


class Flow(Values):
    """The dataflow of one graph."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.outputs = dict.fromkeys([name for name in scope.output_names if name])

    @cached_property
    def consumed(self) -> list[tuple[str, ...]]:
        """For each node the values that it consumes: inputs at their positions, then captured values."""
        # `consumed_names` leaves out omitted inputs, whose positions count here.
        consumed = [node.input for node in self.nodes]
        for position, node in enumerate(self.nodes):
            if node.attribute and any([part.g is not None or part.graphs for part in node.attribute]):
                names = [name for name in consumed_names(node) if name not in node.input]
                consumed[position] = (*node.input, *names)
        return consumed

    @cached_property
    def uses(self) -> dict[str, list[tuple[int, int]]]:
        """For each value the nodes in `order` that consume it, with the input; -1 for outputs of the graph."""
        uses: dict[str, list[tuple[int, int]]] = {}
        for position in sorted(self.order):
            for slot, name in enumerate(self.consumed[position]):
                if name:
                    uses.setdefault(name, []).append((position, slot))
        for slot, name in enumerate(self.outputs):
            uses.setdefault(name, []).append((-1, slot))
        return uses

    @cached_property
    def constant_nodes(self) -> set[int]:
        """The nodes that compute from constants alone."""
        known = self.constants
        return {at for at, node in enumerate(self.nodes) if all([name in known for name in node.output])}

    @cached_property
    def order(self) -> list[int]:
        """The nodes, each after those that it consumes from, depth first from the outputs; independent of names.

        Nodes that lead to no output are left out.
        """
        producers = self.producers
        sources = [[producers[name] for name in names if name in producers] for names in self.consumed]
        return depth_first(map(self.producer, self.outputs), sources.__getitem__)

    @cached_property
    def shape_nodes(self) -> set[int]:
        """The nodes of arithmetic of shapes, which the lines that consume their values show as one operand.

        Every way from them to an output enters an input of `SHAPE_INPUTS`, or they compute from sizes and constants
        alone, as positions and grids are, or only the sizes of their values are used, or they have no elements.
        """
        shapes = self.entering | {at for at in self._of_sizes if self.outputs.keys().isdisjoint(self.nodes[at].output)}
        shapes |= {at for at in self.order if self._is_empty(at)}
        sizes = {at for at in shapes if operator(self.nodes[at]) in _SIZES}
        for position in reversed(self.order):  # what only the sizes of are used
            users = {user for name in self.nodes[position].output for user, _ in self.uses.get(name, ())}
            if users and users <= sizes:
                sizes.add(position)
        return shapes | sizes

    def _is_empty(self, position: int) -> bool:
        """Whether a node computes values without elements, such as the rest of a whole head that is rotated."""
        names = [name for name in self.nodes[position].output if name]
        return all(map(self.is_empty, names)) and self.outputs.keys().isdisjoint(names)

    @cached_property
    def entering(self) -> set[int]:
        """The nodes of sizes from which every way to an output enters a shape, size, axis, index or the like."""
        entering: set[int] = set()
        for position in reversed(self.order):
            node = self.nodes[position]
            if operator(node) not in _ARITHMETIC or position not in self._of_sizes:
                continue
            uses = [use for name in node.output for use in self.uses.get(name, ())]
            if uses and all(
                [user >= 0 and (user in entering or self.is_shape_input(user, slot)) for user, slot in uses]
            ):
                entering.add(position)
        return entering

    @cached_property
    def _of_sizes(self) -> set[int]:
        """The nodes that compute from sizes and constants alone."""
        sized: set[int] = set()
        values: set[str] = set()
        for position in self.order:
            node = self.nodes[position]
            name = operator(node)
            if name in _SIZES or (
                name in _OF_SIZES
                and position not in self.constant_nodes
                and all([not each or each in values or each in self.constants for each in self.consumed[position]])
            ):
                values.update(node.output)
                sized.add(position)
        return sized

    @cached_property
    def operands(self) -> set[str]:
        """The values that their consumers show: constants and arithmetic of shapes, but for those of graphs around."""
        return {*self.constants, *[name for at in self.shape_nodes for name in self.nodes[at].output]}

    @cached_property
    def silent(self) -> set[int]:
        """The nodes that lines which consume their values show as if they were not there."""
        return self.shape_nodes | self.hidden | self.constant_nodes

    def is_operand(self, name: str) -> bool:
        """Whether a value is a constant or arithmetic of shapes, which its consumer shows."""
        return name in self.operands or (self.scope.outer is not None and self._is_outer_constant(name))

    def is_hidden_shape(self, name: str) -> bool:
        """Whether a shape or index is computed, or a constant too long to show, as optimizers make it of one."""
        elements = self.elements(name)
        is_long = self.is_weight(name) and (elements is None or len(elements) > SHOWN)
        return is_long or self.producer(name) in self.shape_nodes

    @cached_property
    def without_effect(self) -> dict[int, str]:
        """The nodes that return their first input, and that value."""
        return {at: node.input[0] for at, node in enumerate(self.nodes) if self._has_no_effect(at, node)}

    def _has_no_effect(self, position: int, node: Node) -> bool:
        """Whether a node is an Identity, a Dropout, a Cast or Reshape to what its input is, an empty Pad or Slice."""
        name = operator(node)
        if name not in NO_EFFECT or len([each for each in node.output if each]) != 1 or not node.input:
            return False
        if position in self.constant_nodes:
            return False
        if name in _NEUTRAL:
            neutral = node.input[1] if len(node.input) == 2 and node.input[1] in self.constants else ""
            return list(self.elements(neutral) or ()) == [_NEUTRAL[name]] and self.dims(neutral) == ()
        if name == "Concat":
            return all(map(self.is_empty, node.input[1:]))
        if name == "Dropout":
            return len(node.input) < 3 or list(self.elements(node.input[2]) or ()) == [False] or not node.input[2]
        if name == "Cast":
            before, after = self.dtype(node.input[0]), self.dtype(node.output[0])
            return before is not None and before == after
        if name in ("Expand", "Reshape"):
            sizes = self.dims(node.input[0])
            is_known = sizes is not None and not any(
                [size in (None, "") or str(size).startswith(INVENTED) for size in sizes]
            )
            return is_known and sizes == self.dims(node.output[0])
        if name == "Pad":
            return not any(self.numbers(node, 1, "pads") or (1,))
        if name == "Slice":
            kept = self.kept(node)
            return bool(kept) and all([(each.start, each.step) == (0, 1) and each.end == LONG for each in kept])
        return True

    def kept(self, node: Node) -> list[Kept]:
        """Return what a Slice keeps of each axis; nothing if that depends on data, or the axes are not known."""
        starts, ends, axes, steps = [self.numbers(node, slot, name) for slot, name in enumerate(_OF_SLICE, 1)]
        if axes is None or steps is None or any([name and not self.is_operand(name) for name in node.input[1:]]):
            return []
        count = max([len(each or ()) for each in (starts, ends, axes)])
        unknown: Sequence[int | None] = [None] * count
        kept = list(map(Kept, axes or range(count), starts or unknown, ends or unknown, steps or [1] * count))
        for place, (axis, _, end, _) in enumerate(kept):
            if end is not None and (end > LONG or end == self.size("".join(node.input[:1]), axis)):
                kept[place] = kept[place]._replace(end=LONG)
        return kept if len(kept) == count else []

    @cached_property
    def equal(self) -> dict[str, str]:
        """The values that equal others, behind nodes without effect, or computed before unless they are outputs."""
        equal: dict[str, str] = {}
        first: dict[Hashable, int] = {}
        for position in self.order:
            node = self.nodes[position]
            same = node.output
            if (source := self.without_effect.get(position)) is not None:
                same = (equal.get(source, source),) * len(same)
            elif (key := self._computation(position, node, equal)) is not None:
                before = first.setdefault(key, position)
                same = self.nodes[before].output if self.outputs.keys().isdisjoint(same) else same
            equal.update(
                {name: other for name, other in zip(node.output, same, strict=True) if name not in ("", other)}
            )
        return equal

    def _computation(self, position: int, node: Node, equal: Mapping[str, str]) -> Hashable:
        """What nodes that compute the same have in common; None for constants and nodes that are not alike for sure."""
        if self.consumed[position] is not node.input or position in self.constant_nodes:
            return None
        kind = operator(node)
        if kind in _SHOWN_AGAIN or not kind:
            return None
        inputs: list[Hashable] = [equal.get(name, name) for name in node.input]
        for slot, name in enumerate(node.input):
            if name in self.constants and element_count(self.stored.get(name, ())) <= SHOWN:
                inputs[slot] = (self.dtype(name), self.dims(name), tuple(self.elements(name) or (name,)))
        return kind, tuple(inputs), tuple(map(bool, node.output)), node.attribute

    @cached_property
    def hidden(self) -> set[int]:
        """The nodes whose values are shown as those of others: without effect, or computed before."""
        return {at for at, node in enumerate(self.nodes) if not self.equal.keys().isdisjoint(node.output)}

    def alias(self, name: str) -> str:
        """Return the value that a value equals, of the first node that computes it."""
        return self.equal.get(name, name)

    def is_last_axis(self, axis: int, names: Sequence[str]) -> bool:
        """Whether an axis of values of one shape is their last one, as far as the rank of one is known."""
        return axis == -1 or any([axis + 1 == self.rank(name) for name in names])

    def rank(self, name: str, ranks: Mapping[str, int | None] | None = None) -> int | None:
        """Return the number of axes of a value, also where layout or a product before it says it; None if unknown."""
        dims = self.dims(name)
        return len(dims) if dims is not None else (self._ranks if ranks is None else ranks).get(name)

    @cached_property
    def _ranks(self) -> dict[str, int | None]:
        ranks: dict[str, int | None] = {}
        for position in self.order:
            node = self.nodes[position]
            ranks.update(dict.fromkeys(node.output[:1], self._rank_of(node, ranks)))
        return ranks

    def _rank_of(self, node: Node, ranks: Mapping[str, int | None]) -> int | None:
        """The number of axes of a node's output, by those of the nodes before it."""
        kind, inputs = operator(node), (*node.input, "", "")
        if kind == "Transpose" and node.attribute:
            return len(node.attribute[0].ints or ())
        if kind == "Reshape" and (sizes := self.elements(inputs[1])) is not None:
            return len(sizes)
        if kind in ("Squeeze", "Unsqueeze") and (before := self.rank(inputs[0], ranks)) is not None:
            axes = self.numbers(node, 1, "axes")
            return None if not axes else before + len(axes) * (1 if kind == "Unsqueeze" else -1)
        if kind in _OF_RANK:
            known = [self.rank(each, ranks) for each in inputs[: 1 if kind not in INFIX else 2]]
            return None if None in known else max([each for each in known if each is not None])
        return None

    def is_shape_input(self, position: int, slot: int) -> bool:
        """Whether an input of a node is a shape, size, axis, index or the like."""
        return slot in SHAPE_INPUTS.get(operator(self.nodes[position]), ())
