"""What is known of the values of one graph: producers, sizes, types and elements."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from onnxjson.model.constants import constant_values, copied_constant, is_constant
from onnxjson.model.dimensions import INVENTED
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Node
from onnxjson.model.index import Index
from onnxjson.model.operators import plain_domain
from onnxjson.model.scopes import Scope
from onnxjson.patterns.nodes import TOLERANCE, Literals, Value

SHOWN: Final = 4
"""Elements of a constant that is shown by its value."""

FAR: Final = -1000
"""Scores up to which a step has no weight."""

_SIZE: Final = re.compile(r"\w{1,16}")


def operator(node: Node) -> str:
    """Return the operator of the default domain that a node calls; "" for other domains."""
    return (node.op_type or "") if not plain_domain(node.domain) else ""


class Values:
    """The values of one graph."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.nodes = scope.graph.node
        self.constants = constant_values(scope)
        self.literals = Literals(TOLERANCE)
        self.computed: dict[str, list[int]] = {}
        """The elements of constants that the graph computes, as far as they are known."""

    def producer(self, name: str) -> int:
        """Return the position of the node that produces a value; -1 for inputs, constants and outer values."""
        return self.producers.get(name, -1)

    @cached_property
    def producers(self) -> dict[str, int]:
        """The positions of the nodes that produce values."""
        scope = self.scope
        known = (scope.inputs, scope.initializers, scope.sparse_initializers)
        return {
            name: at for name, (at, _) in scope.producers.items() if not any([name in each for each in known if each])
        }

    @cached_property
    def stored(self) -> dict[str, tuple[int, ...]]:
        """The sizes of the constants that the graph stores."""
        graph = self.scope.graph
        if isinstance(graph, Function):
            return {}
        return {each.name: each.dims for each in graph.initializer if each.name and each.name in self.constants}

    def is_weight(self, name: str) -> bool:
        """Whether a value is a constant."""
        is_outer = self.scope.outer is not None and self._is_outer_constant(name)
        return bool(name) and (name in self.constants or is_outer)

    def _is_outer_constant(self, name: str) -> bool:
        scope = self.scope
        return bool(name) and not scope.defines(name) and is_constant(scope, name)

    def elements(self, name: str) -> Sequence[Any] | None:
        """Return the elements of a small constant, or None."""
        if name in self.computed:
            return self.computed[name]
        return self.literals.elements(Value(Index.defining_scope(self.scope, name), name)) if name else None

    def numbers(self, node: Node, slot: int, name: str) -> Sequence[int] | None:
        """Return the integers of an input, or of the attribute that it was in older versions.

        None if they are not known; none of them for an input that is left out.
        """
        given = [each.ints for each in node.attribute if each.name == name]
        numbers = given[0] if given else self.elements(node.input[slot]) if any(node.input[slot : slot + 1]) else ()
        return numbers if numbers is not None and all([type(each) is int for each in numbers]) else None

    def is_square(self, kind: str, inputs: Sequence[str]) -> bool:
        """Whether an operator of two inputs computes squares."""
        return inputs[0] == inputs[1] if kind == "Mul" else kind == "Pow" and [*(self.elements(inputs[1]) or ())] == [2]

    def dtype(self, name: str) -> int | None:
        """Return the data type of a value, if it is a constant, the model states it or a Cast defines it."""
        constant = copied_constant(self.scope, name)
        if constant is not None and constant.tensor is not None:
            return constant.tensor.data_type
        stated = Index.type_of(self.scope, name)
        if stated is not None and stated.tensor_type is not None:
            return stated.tensor_type.elem_type
        producer = self.producer(name)
        if producer >= 0 and operator(self.nodes[producer]) == "Cast" and self.nodes[producer].attribute:
            return self.nodes[producer].attribute[0].i
        return None

    def dims(self, name: str) -> tuple[int | str | None, ...] | None:
        """Return the sizes of a value as its constant has them or the model states them; None if the rank is unknown.

        An axis has a number, a name, or None.
        """
        if (sizes := self.stored.get(name)) is not None:
            return sizes
        constant = copied_constant(self.scope, name) if name else None
        if constant is not None and constant.value is not None:
            return tuple(constant.value.dims)
        stated = Index.type_of(self.scope, name)
        shape = None if stated is None or stated.tensor_type is None else stated.tensor_type.shape
        return None if shape is None else tuple([each.dim_value or each.dim_param for each in shape.dim])

    def sizes(self, name: str) -> dict[int, int | str | None]:
        """Return the sizes of a value by axis, the last one -1; none if the rank is unknown."""
        dims = self.dims(name) or ()
        return dict(enumerate(dims, -len(dims)))

    def size(self, name: str, axis: int) -> int | str | None:
        """Return the size of a value along an axis, which may count from the last one; None if it is not known."""
        sizes = self.sizes(name)
        return sizes.get(axis if axis < 0 else axis - len(sizes))

    def is_each(self, name: str, size: int | str | None, axis: int, rank: int) -> bool:
        """Whether a constant of at most so many axes has a number for each place along one, which has this size."""
        sizes = self.sizes(name) if self.is_weight(name) else {}
        return len(sizes) <= rank and sizes.pop(axis, None) == size is not None and {*sizes.values()} <= {1}

    def shape_text(self, name: str, inputs: Sequence[str]) -> str:
        """Return the sizes of a value as the model states them, or those that a constant asks for."""
        sizes = [str(each or "...") for each in self.dims(name) or ()]
        known = ["..." if size.startswith(INVENTED) or not _SIZE.fullmatch(size) else visible(size) for size in sizes]
        if any([size != "..." for size in known]):
            return f"[{','.join(known)}]"
        asked = self.elements(inputs[1]) if len(inputs) > 1 else None
        return "[...]" if asked is None else f"[{','.join([str(each) for each in asked[:8]])}]"

    def is_far(self, name: str) -> bool:
        """Whether a value is a constant so low that a step has no weight."""
        elements = self.elements(name)
        return bool(elements) and all([isinstance(each, float) and each <= FAR for each in elements or ()])

    def is_empty(self, name: str) -> bool:
        """Whether the stated type of a value says that it has no elements."""
        stated = Index.type_of(self.scope, name) if name else None
        shape = None if stated is None or stated.tensor_type is None else stated.tensor_type.shape
        return shape is not None and any([size.dim_value == 0 for size in shape.dim])

    def is_zero(self, name: str) -> bool:
        """Whether a value is a constant of zeros."""
        elements = self.elements(name)
        return elements is not None and len(elements) > 0 and not any(elements)
