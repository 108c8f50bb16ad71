"""The dataflow of one graph: producers and uses of values by position, constants, and arithmetic of shapes."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from onnxjson.model.constants import constant_values, copied_constant, is_constant
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.document import Node
from onnxjson.model.elements import element_count
from onnxjson.model.index import Index
from onnxjson.model.operators import plain_domain
from onnxjson.model.scopes import Scope
from onnxjson.model.types import format_type
from onnxjson.patterns.nodes import TOLERANCE, Literals, Value

SHAPE_INPUTS: Final = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "Dropout": (1, 2), "Expand": (1,), "EyeLike": (), "Gather": (1,), "GatherElements": (), "HammingWindow": (0,),
    "HannWindow": (0,), "MaxUnpool": (2,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2), "ReduceL1": (1,),
    "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,), "ReduceMax": (1,), "ReduceMean": (1,),
    "ReduceMin": (1,), "ReduceProd": (1,), "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,),
    "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Squeeze": (1,), "STFT": (1, 3),
    "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,), "DFT": (1, 2), "CumSum": (1,),
}  # fmt: skip
"""Inputs of operators that are shapes, sizes, axes, indices, starts, ends, steps or repeats."""

_ARITHMETIC: Final = frozenset(
    [
        "Abs",
        "Add",
        "And",
        "Cast",
        "CastLike",
        "Ceil",
        "Clip",
        "Concat",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Expand",
        "Flatten",
        "Floor",
        "Gather",
        "GatherElements",
        "GatherND",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "Less",
        "LessOrEqual",
        "Log",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pad",
        "Pow",
        "Range",
        "Reciprocal",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "Reshape",
        "Round",
        "ScatterElements",
        "ScatterND",
        "Shape",
        "Sign",
        "Size",
        "Slice",
        "Split",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Sum",
        "Tile",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
        "Xor",
    ]
)
"""Operators of which arithmetic of shapes consists; anything else is part of the network."""

_TABLE: Final = 64
"""Elements above which a constant that is looked up is an embedding."""

NO_EFFECT: Final = frozenset({"Identity", "Dropout"})
"""Operators whose first output is their first input when a model is used."""


def operator(node: Node) -> str:
    """Return the operator of the default domain that a node calls; "" for other domains."""
    return (node.op_type or "") if not plain_domain(node.domain) else ""


class Flow:
    """The dataflow of one graph."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.nodes = scope.graph.node
        self.constants = constant_values(scope)
        self.outputs = [name for name in scope.output_names if name]
        self.literals = Literals(TOLERANCE)

    @cached_property
    def consumed(self) -> list[list[str]]:
        """For each node the values that it consumes: inputs at their positions, then captured values."""
        # `consumed_names` leaves out omitted inputs, whose positions count here.
        found: list[list[str]] = []
        for node in self.nodes:
            inputs = list(node.input)
            if any([part.g is not None or part.graphs for part in node.attribute]):
                inputs += [name for name in consumed_names(node) if name not in node.input]
            found.append(inputs)
        return found

    @cached_property
    def uses(self) -> dict[str, list[tuple[int, int]]]:
        """For each value the nodes that consume it, with the position of the input; -1 for outputs of the graph."""
        uses: dict[str, list[tuple[int, int]]] = {}
        for position, names in enumerate(self.consumed):
            for slot, name in enumerate(names):
                if name:
                    uses.setdefault(name, []).append((position, slot))
        for slot, name in enumerate(self.outputs):
            uses.setdefault(name, []).append((-1, slot))
        return uses

    def producer(self, name: str) -> int:
        """Return the position of the node that produces a value; -1 for inputs, constants and outer values."""
        found = self.scope.producer_position(name)
        return -1 if found is None else found

    def is_constant(self, position: int) -> bool:
        """Whether a node computes from constants alone."""
        return all([name in self.constants for name in self.nodes[position].output])

    def only_user(self, name: str) -> int:
        """Return the one node that consumes a value, in one place; -1 if there are others, or none."""
        uses = self.uses.get(name, ())
        return uses[0][0] if len(uses) == 1 else -1

    @cached_property
    def order(self) -> list[int]:
        """The nodes, each after those that it consumes from, depth first from the outputs; independent of names.

        Nodes that lead to no output follow in their order.
        """
        order: list[int] = []
        state = bytearray(len(self.nodes))
        for start in self._ends():
            pending = [(start, iter(self._sources(start)))] if start >= 0 and not state[start] else []
            if pending:
                state[start] = 1
            while pending:
                position, sources = pending[-1]
                for source in sources:
                    if not state[source]:
                        state[source] = 1
                        pending.append((source, iter(self._sources(source))))
                        break
                else:
                    order.append(position)
                    pending.pop()
        return order

    def _ends(self) -> Iterator[int]:
        yield from map(self.producer, self.outputs)
        unused = [at for at, node in enumerate(self.nodes) if not any([self.uses.get(name) for name in node.output])]
        yield from unused
        yield from range(len(self.nodes))

    def _sources(self, position: int) -> list[int]:
        return [source for name in self.consumed[position] if name and (source := self.producer(name)) >= 0]

    @cached_property
    def shape_nodes(self) -> set[int]:
        """The nodes of arithmetic of shapes: every way from them to an output enters an input of `SHAPE_INPUTS`."""
        found: set[int] = set()
        for position in reversed(self.order):
            node = self.nodes[position]
            if operator(node) not in _ARITHMETIC or self.is_constant(position):
                continue
            uses = [use for name in node.output for use in self.uses.get(name, ())]
            if uses and all([user >= 0 and (user in found or self.is_shape_input(user, slot)) for user, slot in uses]):
                found.add(position)
        return found

    def is_operand(self, name: str) -> bool:
        """Whether a value is a constant or arithmetic of shapes, which its consumer shows."""
        return name in self.constants or self.is_computed_shape(name) or self._is_outer_constant(name)

    def is_weight(self, name: str) -> bool:
        """Whether a value is a constant."""
        return bool(name) and (name in self.constants or self._is_outer_constant(name))

    def _is_outer_constant(self, name: str) -> bool:
        return bool(name) and not self.scope.defines(name) and is_constant(self.scope, name)

    def is_computed_shape(self, name: str) -> bool:
        """Whether a value is arithmetic of shapes."""
        return self.producer(name) in self.shape_nodes

    def elements(self, name: str) -> Sequence[Any] | None:
        """Return the elements of a small constant, or None."""
        return self.literals.elements(Value(Index.defining_scope(self.scope, name), name)) if name else None

    def is_big(self, name: str) -> bool:
        """Whether a constant has so many elements that it is a table of weights."""
        found = copied_constant(self.scope, name)
        return found is None or found.value is None or element_count(found.value.dims) > _TABLE

    def has_no_effect(self, position: int) -> bool:
        """Whether a node returns its first input: an Identity, a Dropout, or a Cast to the type that it has."""
        name = operator(self.nodes[position])
        if name != "Cast":
            return name in NO_EFFECT and len(self.nodes[position].output) == 1
        before, after = [self.dtype(each) for each in (self.nodes[position].input[0], self.nodes[position].output[0])]
        return before is not None and before == after

    def dtype(self, name: str) -> int | None:
        """Return the data type of a value, if the model states it or a Cast defines it."""
        stated = Index.type_of(self.scope, name)
        if stated is not None and stated.tensor_type is not None:
            return stated.tensor_type.elem_type
        producer = self.producer(name)
        if producer >= 0 and operator(self.nodes[producer]) == "Cast":
            return self.nodes[producer].attribute[0].i
        return None

    def shape_text(self, name: str, inputs: Sequence[str]) -> str:
        """Return the sizes of a value as the model states them, or those that a constant asks for."""
        stated = Index.type_of(self.scope, name)
        text = None if stated is None else format_type(stated)
        if text is not None and "[" in text and "?" not in text:
            return text[text.index("[") :]
        asked = self.elements(inputs[1]) if len(inputs) > 1 else None
        return "[...]" if asked is None else f"[{','.join([str(each) for each in asked[:8]])}]"

    def is_shape_input(self, position: int, slot: int) -> bool:
        """Whether an input of a node is a shape, size, axis, index or the like."""
        return slot in SHAPE_INPUTS.get(operator(self.nodes[position]), ())
