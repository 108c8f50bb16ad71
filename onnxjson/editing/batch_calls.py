"""One node on the way of the batch: what its rule can ask, and the constants that it can ask to change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from onnxjson.editing.batch_axes import (
    BATCH,
    MIXED,
    UNKNOWN_SHAPE,
    Axes,
    Axis,
    BlockedError,
    MixedError,
    has_batch,
    refuse_batch,
    size,
)
from onnxjson.editing.inference import LooseInference
from onnxjson.editing.tensor_values import constant_tensor
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import visible
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import raw_bytes

_PRODUCTS: Final = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"})

_ALIGNED: Final = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Where", "And", "Or", "Xor", "Not", "Neg", "Cast", "Equal"}
    | {"Greater", "Less", "GreaterOrEqual", "LessOrEqual"}
)
"""Operators that broadcast their inputs."""

NodeInput = tuple[Scope, int, int]
"""An input of a node: its graph, its position and the slot."""

Outputs = Sequence[Sequence[Axis | None] | None]
"""Axes of each output of a node; None for an axis whose size is independent of the batch."""


class ShapeElement(NamedTuple):
    """One number of a shape."""

    value: int | Axis | None
    """A number; the size of an axis; None if unknown."""
    origin: tuple[NodeInput, int] | None = None
    """The node input that uses the constant with the number, and the index of the number there."""


@dataclass
class Requests:
    """Constants that must change for another batch."""

    numbers: dict[NodeInput, dict[int, int | Axis]] = field(default_factory=dict)
    """New numbers in constants, or axes whose size is computed, by node input and index."""
    rows: dict[NodeInput, dict[int, bool]] = field(default_factory=dict)
    """Axes along which a constant needs rows for all samples, and whether one row is enough, by node input."""
    shapes: dict[NodeInput, list[int | Axis | None]] = field(default_factory=dict)
    """Shapes of their own: numbers, and axes whose size is computed, by node input."""
    samples: dict[NodeInput, tuple[int, int, list[int]]] = field(default_factory=dict)
    """Indices that must count the samples, too, by node input: the axis of the samples, the number of axes, and what is
    added for each sample: elements of a sample, or coordinates, of which the first is the sample."""
    repeated: dict[NodeInput, tuple[int, int]] = field(default_factory=dict)
    """Node inputs whose value is repeated for each sample -> axis, counted from the end, and rank."""
    dropped: dict[NodeInput, None] = field(default_factory=dict)
    """Node inputs to leave out, since their constant equals the default of the operator."""


class Tracing(Protocol):
    """What a call asks of `onnxjson.editing.batch_tracing.Tracer`, which documents it."""

    batch: int
    new: int | str
    opset: int
    mixes: bool
    joins_later: bool
    inference: LooseInference
    requests: Requests
    found: dict[Scope, dict[str, Axes | None]]

    def sizes(self, scope: Scope, name: str) -> tuple[int | str | None, ...] | None: ...
    def axes(self, scope: Scope, name: str) -> Axes | None: ...
    def has_batch(self, scope: Scope, name: str) -> bool: ...
    def elements(self, scope: Scope, name: str, use: NodeInput) -> list[ShapeElement] | None: ...
    def trace(self, scope: Scope) -> None: ...


class Call:
    """One node, with the information that its rule needs."""

    def __init__(self, tracer: Tracing, ref: NodeRef) -> None:
        self.tracer = tracer
        self.ref = ref
        self.node = ref.node
        self.scope = ref.scope
        self.batch = tracer.batch
        """Size of the batch before."""
        self.opset = tracer.opset
        self._attributes = {each.name or "": each for each in ref.node.attribute}
        self._asked: set[int] = set()

    def axes(self, slot: int) -> Axes | None:
        """Return the axes of an input; None if it is left out or its rank is not known."""
        self._asked.add(slot)
        return self.tracer.axes(self.scope, self.node.input[slot]) if self.has(slot) else None

    def needed(self, slot: int) -> Axes:
        """Return the axes of an input; a `BlockedError` if its rank is not known."""
        axes = self.axes(slot)
        if axes is None:
            raise BlockedError(UNKNOWN_SHAPE)
        return axes

    def refuse_others(self) -> None:
        """Raise `MixedError` if an input has the batch of which the rule did not ask the axes, such as weights."""
        for slot in range(len(self.node.input)):
            if slot not in self._asked and any(map(has_batch, self.axes(slot) or ())):
                raise MixedError(f"its input {slot} is the same for all samples, but has that dimension")

    def inputs_behind(self, name: str) -> list[str]:
        """Return the inputs of the model from which a value is computed, apart from their sizes."""
        sources = self._sources(name)
        return [
            name for scope, name, is_size in sources if not is_size and scope.owner is None and name in scope.inputs
        ]

    def is_foldable(self, slot: int) -> bool:
        """Whether an input is computed, in a way that cannot be followed, from constants and known sizes alone."""
        elements = self.elements(slot) if self.has(slot) else []
        if elements is not None and all([each.value is not None for each in elements]):
            return False
        sources = self._sources(self.node.input[slot])
        sizes = [self.tracer.sizes(scope, name) if is_size else None for scope, name, is_size in sources]
        return all([each is not None and all([isinstance(size, int) for size in each]) for each in sizes])

    def _sources(self, name: str) -> Iterator[tuple[Scope, str, bool]]:
        """Yield the values from which a value is computed, apart from constants, and whether only their sizes are."""
        waiting, seen = [(self.scope, name)], {name}
        while waiting:
            scope, name = waiting.pop()
            around = Index.defining_scope(scope, name)
            if around is None or constant_tensor(scope, name) is not None:
                continue
            if name not in around.producers:
                yield around, name, False
                continue
            node = around.graph.node[around.producers[name][0]]
            if node.op_type in ("Shape", "Size"):
                yield around, node.input[0], True
                continue
            new = [each for each in consumed_names(node) if each not in seen]
            waiting += [(around, each) for each in new]
            seen.update(new)

    def has(self, slot: int) -> bool:
        """Whether an input is given."""
        return slot < len(self.node.input) and bool(self.node.input[slot])

    def elements(self, slot: int) -> list[ShapeElement] | None:
        """Return the elements of an input that is a shape; None if they are not known."""
        if not self.has(slot):
            return None
        return self.tracer.elements(self.scope, self.node.input[slot], self.place(slot))

    def place(self, slot: int) -> NodeInput:
        """Return the place of an input in the model."""
        return (self.scope, self.ref.position, slot)

    def numbers(self, slot: int, attribute: str) -> list[int] | None:
        """Return numbers that are an attribute or, in later versions, an input; None if they are left out.

        Raises:
            BlockedError: they are computed.
        """
        found = self._attributes.get(attribute)
        if found is not None:
            return list(found.ints) if found.ints else [found.i or 0]
        if not self.has(slot):
            return None
        elements = self.elements(slot)
        numbers = [each.value for each in elements or () if isinstance(each.value, int)]
        if elements is None or len(numbers) < len(elements):
            raise BlockedError(f"its {attribute} are computed")
        return numbers

    def number(self, attribute: str, default: int) -> int:
        """Return the number in an attribute."""
        found = self._attributes.get(attribute)
        return default if found is None or found.i is None else found.i

    def refuse_mixing(self, axes: Sequence[Axis], reason: str = MIXED) -> None:
        """Raise `BlockedError` if the batch runs along one of some axes, or what may be mixed along only one."""
        if not self.tracer.mixes or (self.node.op_type in _PRODUCTS and len({*map(has_batch, axes)}) > 1):
            refuse_batch(axes, reason if not self.tracer.mixes else "the other matrix does not follow it")

    def list_of(self, attribute: str) -> tuple[int, ...] | None:
        """Return the numbers in an attribute; None if it is left out."""
        found = self._attributes.get(attribute)
        return None if found is None else found.ints

    def text(self, attribute: str) -> str:
        """Return the string in an attribute; "" if it is left out."""
        found = self._attributes.get(attribute)
        return "" if found is None or found.s is None else found.s.decode(errors="replace")

    def out_sizes(self, slot: int = 0) -> list[int | str | None] | None:
        """Return the sizes of an output before the change; None if its rank is not known."""
        if slot >= len(self.node.output):
            return None
        found = self.tracer.sizes(self.scope, self.node.output[slot])
        return None if found is None else list(found)

    def set_number(self, slot: int, index: int, new: int | Axis, what: str) -> None:
        """Request another number in a shape; `what` names it in messages.

        A constant is changed where no other node computes with it; otherwise this node gets a shape of its own.

        Raises:
            BlockedError: the shape is computed in a way that cannot be followed.
        """
        elements = self.elements(slot) or []
        origin = elements[index].origin if elements else None
        place, requests = self.place(slot), self.tracer.requests
        if origin is not None and place not in requests.shapes and self._is_alone(origin[0]):
            requests.numbers.setdefault(origin[0], {})[origin[1]] = new
            return
        values = [each.value for each in elements]
        shape = requests.shapes.get(place) or [
            each if each is None or isinstance(each, int) else self.new_size(each, what) for each in values
        ]
        shape[index] = new
        if not elements or None in shape:
            raise BlockedError(f"{what} is computed")
        requests.shapes[place] = shape

    def _is_alone(self, use: NodeInput) -> bool:
        """Whether what a node computes from an input is consumed, in the end, by this node only."""
        scope, position, _ = use
        while (scope, position) != (self.scope, self.ref.position):
            names = [name for name in scope.graph.node[position].output if name]
            consumers = [each for name in names for each in self.tracer.inference.index.consumers(scope, name)]
            if len(consumers) != 1 or consumers[0].position is None:
                return False
            scope, position = consumers[0].scope, consumers[0].position
        return True

    def new_size(self, axis: Axis, what: str) -> int | Axis:
        """Return the new size of an axis with the batch: a number, or the axis itself if nodes must compute it.

        Raises:
            BlockedError: nodes cannot compute it, since it is known by name only or used in a function.
        """
        if any([isinstance(each, str) and each != BATCH for each in axis]):
            raise BlockedError(f"{what} is known by name only")
        if isinstance(self.tracer.new, int):
            return size(axis, self.tracer.new) or 0
        if any([scope.kind == "function" for scope in self.scope.chain()]):
            raise BlockedError(f"{what} must be a number in a function, and the new batch is a name")
        return axis

    def stretch(self, slot: int, axis_at: int, axis: Axis) -> None:
        """Request that an input that is broadcast follows the batch; arguments as of `give_rows`."""
        constant = constant_tensor(self.scope, self.node.input[slot])
        if axis == (BATCH,) and constant is not None:
            self.tracer.requests.rows.setdefault(self.place(slot), {})[axis_at % len(constant[1].dims)] = True
        else:
            self.give_rows(slot, axis_at, axis)

    def drop_zeros(self, slot: int) -> bool:
        """Request that an input is left out if it is a constant of zeros; return whether it is."""
        constant = constant_tensor(self.scope, self.node.input[slot])
        stored = None if constant is None else raw_bytes(constant[1])
        if stored is None or any(whole(stored[0])):
            return False
        self.tracer.requests.dropped[self.place(slot)] = None
        return True

    def is_fixed(self, name: str, axis_at: int | None = None) -> bool:
        """Whether a value, or at least what it is along an axis counted from the end, is computed from constants."""
        waiting, seen = [(self.scope, name, axis_at)], {(name, axis_at)}
        while waiting:
            scope, name, place = waiting.pop()
            axes = None if place is None else self.tracer.axes(scope, name)
            if axes is not None and place is not None and (-place > len(axes) or not axes[place]):
                continue
            if constant_tensor(scope, name) is not None:
                continue
            defining = Index.defining_scope(scope, name)
            if defining is None or name not in defining.producers:
                return False
            node = defining.graph.node[defining.producers[name][0]]
            if any([each.g is not None or each.graphs for each in node.attribute]):
                return False
            inner = place if node.op_type in _ALIGNED else None
            new = [each for each in node.input if each and (each, inner) not in seen]
            waiting += [(defining, each, inner) for each in new]
            seen.update([(each, inner) for each in new])
        return True

    def give_rows(self, slot: int, axis_at: int, axis: Axis) -> None:
        """Request that an input without the batch gets it at an axis, which must become `axis`.

        Raises:
            BlockedError: it is another value, or `new_size` does.
        """
        name = self.node.input[slot]
        what = f'"{visible(name)}", which has the old batch,'
        axis_at = axis_at if axis_at < 0 else axis_at - len(self.axes(slot) or ())
        if self.tracer.mixes and axis == (BATCH,) and self.is_fixed(name, axis_at):
            if isinstance(self.tracer.new, int) and self.tracer.new > self.batch:
                raise BlockedError(f"{what} has elements for {self.batch}")
            self.new_size(axis, what)
            self.tracer.requests.rows.setdefault(self.place(slot), {})[axis_at % len(self.needed(slot))] = False
            return
        if axis[0] != BATCH or (axis[1:] and self.batch != 1):
            raise BlockedError(f"{what} does not follow it")
        constant = constant_tensor(self.scope, name)
        if constant is not None:
            self.new_size(axis, what)
            self.tracer.requests.rows.setdefault(self.place(slot), {})[axis_at % len(constant[1].dims)] = False
            return
        if name in self.scope.producers and len(self.scope.consumers.get(name, ())) == 1:
            source = Call(self.tracer, NodeRef(self.scope, self.scope.producers[name][0]))
            shape_at = {"ConstantOfShape": 0, "Expand": 1}.get(source.node.op_type or "")
            if shape_at is not None and not plain_domain(source.node.domain):
                elements, known = source.elements(shape_at), source.out_sizes()
                new = self.new_size(axis, what)
                if elements is not None and known is not None and len(known) == len(elements):
                    source.set_number(shape_at, axis_at % len(elements), new, f"a size of {what}")
                    return
        if self.batch != 1:
            raise BlockedError(f"{what} does not follow it")
        self.new_size(axis, what)
        self.tracer.requests.repeated[self.place(slot)] = (axis_at, len(self.needed(slot)))
