"""Follow the batch from the inputs of a model through its nodes.

`Tracer` records for each value its axes, with the batch among their factors, and for small integer values (shapes) what
their elements are: numbers, which may come from a constant that can be changed, or sizes of axes. The rules of the
operators are in `batch_rules`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.editing.batch_axes import (
    BATCH,
    PAIRED,
    Axes,
    Axis,
    BlockedError,
    LostError,
    MixedError,
    axis_of,
    has_batch,
    size,
)
from onnxjson.editing.batch_calls import Call, NodeInput, Outputs, Requests, ShapeElement
from onnxjson.editing.inference import LooseInference
from onnxjson.editing.tensor_values import integer_constant
from onnxjson.editing.type_relations import dims_of
from onnxjson.model.display import visible
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain

_DEEPEST: Final = 60
"""Maximum length of a chain of nodes that compute a shape."""


MOST_ELEMENTS: Final = 1024
"""Maximum number of elements of a computed shape."""


NodeRule = Callable[[Call], Outputs]
BodyRule = Callable[[Call, Sequence[Scope]], Outputs]
"""Rule of an operator with subgraphs, which it traces itself."""
ElementRule = Callable[[Call], list[ShapeElement] | None]
"""Elements of the first output of an operator that computes shapes; None if they are not known."""


class Rules(NamedTuple):
    """Rules by operator of the default domain."""

    nodes: Mapping[str, NodeRule]
    bodies: Mapping[str, BodyRule]
    elements: Mapping[str, ElementRule]
    refused: Mapping[str, BlockedError]
    """Why others cannot be followed."""
    shape_inputs: Mapping[str, int]
    """Operators whose output can get the batch from a shape alone -> the slot of that shape."""


class Tracer:
    """Follows the batch through a model."""

    def __init__(
        self,
        inference: LooseInference,
        batch: int,
        new: int | str,
        opset: int,
        rules: Rules,
        *,
        follow_number: "Callable[[Call], None]",
        joins_later: bool = False,
        mixes: bool = False,
    ) -> None:
        self._track_number = follow_number
        """Called with each node; raises `MixedError` where the number of samples is computed with."""
        self.mixes = mixes
        """Whether elements may be computed from each other, as those of a sequence may, but not samples."""
        self.joins_later = joins_later
        """Whether a batch of 1 joins the last of the axes that are possible after a Reshape; any consistent choice is
        correct."""
        self.inference = inference
        self.batch = batch
        self.new = new
        self.opset = opset
        self._rules = rules
        self.found: dict[Scope, dict[str, Axes | None]] = {}
        """Axes of the values that have the batch, by graph; None if it was lost."""
        self.problems: dict[str, str] = {}
        """Reasons why a node cannot be followed or cannot have another batch, by its address."""
        self.mixed: dict[str, str] = {}
        """Those of nodes that cannot have another batch."""
        self.is_foldable = False
        """Whether a node cannot be followed because of a shape that would be known with constants folded."""
        self.requests = Requests()
        self._resolved: dict[Scope, dict[str, Axes]] = {}
        """Axes of values without the batch of which more is known than onnx infers."""
        self._elements: dict[tuple[Scope, str], list[ShapeElement] | None] = {}
        self._depth = 0

    def start(self, scope: Scope, name: str, axis: int) -> None:
        """Set the axis of an input along which the batch runs."""
        axes = list(self.axes(scope, name) or ())
        axes[axis] = (BATCH,)
        self.found.setdefault(scope, {})[name] = tuple(axes)

    def sizes(self, scope: Scope, name: str) -> tuple[int | str | None, ...] | None:
        """Return the shape of a value before the change, as onnx infers or the model states it."""
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            return None
        inferred = self.inference.dims(defining_scope, name)
        stated = dims_of(defining_scope.types.get(name))
        if inferred is None or stated is None or len(inferred) != len(stated):
            return stated if inferred is None else inferred
        return tuple([a if a is not None else b for a, b in zip(inferred, stated, strict=True)])

    def axes(self, scope: Scope, name: str) -> Axes | None:
        """Return the axes of a value; None if its rank is not known."""
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            return None
        for known in (self.found.get(defining_scope, {}), self._resolved.get(defining_scope, {})):
            if name in known:
                return known[name]
        sizes = self.sizes(defining_scope, name)
        return None if sizes is None else self._completed(name, [None] * len(sizes), sizes)

    def has_batch(self, scope: Scope, name: str) -> bool:
        """Whether a value has the batch, or may have it."""
        defining_scope = Index.defining_scope(scope, name)
        return defining_scope is not None and name in self.found.get(defining_scope, {})

    def trace(self, scope: Scope) -> None:
        """Follow the batch through the nodes of a graph, in their order."""
        self.found.setdefault(scope, {})
        resolved = self._resolved.setdefault(scope, {})
        for position, node in enumerate(scope.graph.node):
            children = scope.bodies.get(position, [])
            captured = {name for child in children for name in child.consumers if not child.defines(name)}
            touched = any([name and (self.has_batch(scope, name) or name in resolved) for name in node.input])
            touched = touched or any([self.has_batch(scope, name) for name in captured])
            slot = self._rules.shape_inputs.get(node.op_type or "")
            if touched or (slot is not None and slot < len(node.input) and node.input[slot] in scope.producers):
                self._follow(Call(self, NodeRef(scope, position)), children)
            self._follow_number(Call(self, NodeRef(scope, position)))

    def _follow_number(self, call: Call) -> None:
        try:
            self._track_number(call)
        except MixedError as mixed:
            self.problems[call.ref.address] = self.mixed[call.ref.address] = str(mixed)

    def _follow(self, call: Call, children: list[Scope]) -> None:
        axes_of = self.found[call.scope]
        try:
            for name, axes in zip(call.node.output, self._outputs(call, children), strict=False):
                if not name:
                    continue
                sizes = self.sizes(call.scope, name)
                complete = None if axes is None else self._completed(name, axes, sizes)
                if not self.mixes and sum(axis.count(BATCH) for axis in complete or ()) > 1:
                    raise MixedError(PAIRED)
                if complete is None or any(map(has_batch, complete)):
                    axes_of[name] = complete
                elif None in (sizes or (None,)) and not any(map(_is_unknown, complete)):
                    self._resolved[call.scope][name] = complete
        except BlockedError as blocked:
            if not isinstance(blocked, LostError) and (children or self._is_concerned(call)):
                self.problems[call.ref.address] = str(blocked)
                slot = self._rules.shape_inputs.get(call.node.op_type or "")
                self.is_foldable |= slot is not None and call.is_foldable(slot)
                if isinstance(blocked, MixedError):
                    self.mixed[call.ref.address] = str(blocked)
            if children or self._is_concerned(call):
                axes_of.update(dict.fromkeys([name for name in call.node.output if name]))

    def _outputs(self, call: Call, children: list[Scope]) -> Outputs:
        """Apply the rule of a node; a `BlockedError` if there is none, or the rule refuses."""
        node = call.node
        given = [name for name in node.input if name]
        if any([self.has_batch(call.scope, name) and self.axes(call.scope, name) is None for name in given]):
            return [None] * len(node.output)
        operator = "" if plain_domain(node.domain) else node.op_type or ""
        if children and operator in self._rules.bodies:
            return self._rules.bodies[operator](call, children)
        if operator in self._rules.refused:
            raise self._rules.refused[operator]
        if operator not in self._rules.nodes:
            shown = operator or f"{node.domain}:{node.op_type}"
            raise BlockedError(f"the effect of {visible(shown)} on that dimension is not known")
        outputs = self._rules.nodes[operator](call)
        call.refuse_others()
        return outputs

    def _is_concerned(self, call: Call) -> bool:
        """Whether a node gets the batch from its inputs or from a shape."""
        for slot, name in enumerate(call.node.input):
            if name and self.has_batch(call.scope, name):
                return True
            if any([isinstance(each.value, tuple) and has_batch(each.value) for each in call.elements(slot) or ()]):
                return True
        return False

    def _completed(
        self, name: str, axes: Sequence[Axis | None], sizes: Sequence[int | str | None] | None
    ) -> tuple[Axis, ...]:
        """Fill in the sizes that onnx infers."""
        if sizes is None or len(sizes) != len(axes):
            sizes = (None,) * len(axes)
        complete: list[Axis] = []
        for place, (axis, known) in enumerate(zip(axes, sizes, strict=True)):
            computed = None if axis is None else size(axis, self.batch)
            if isinstance(known, int) and computed is not None and computed != known:
                raise BlockedError(f"axis {place} has {known} elements where {computed} were expected")
            if axis is None or (isinstance(known, int) and _is_unknown(axis) and not has_batch(axis)):
                # An unknown size gets a new name.
                axis = axis_of([known]) if isinstance(known, int) else (known or f"\0{name}.{place}",)
            complete.append(axis)
        return tuple(complete)

    def elements(self, scope: Scope, name: str, use: NodeInput) -> list[ShapeElement] | None:
        """Return the elements of a shape that the input `use` consumes; None if they are not known."""
        constant = integer_constant(scope, name)
        if constant is not None:
            return [ShapeElement(value, (use, index)) for index, value in enumerate(constant)]
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None or name not in defining_scope.producers:
            return None
        key = (defining_scope, name)
        if key not in self._elements:
            self._elements[key] = None
            if self._depth < _DEEPEST:
                self._depth += 1
                self._elements[key] = self._computed_elements(
                    Call(self, NodeRef(defining_scope, defining_scope.producers[name][0]))
                )
                self._depth -= 1
        return self._elements[key]

    def _computed_elements(self, call: Call) -> list[ShapeElement] | None:
        rule = None if plain_domain(call.node.domain) else self._rules.elements.get(call.node.op_type or "")
        try:
            elements = None if rule is None else rule(call)
        except BlockedError:
            return None
        return None if elements is None or len(elements) > MOST_ELEMENTS else elements


def _is_unknown(axis: Axis) -> bool:
    return any([isinstance(factor, str) and factor.startswith("\0") for factor in axis])
