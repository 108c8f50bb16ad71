"""Where the batch is: from the inputs through every node, as far as operators are known.

`Tracer` holds for each value its axes, with the batch among their factors, and for small integer values (shapes) what
their elements are: numbers, which may stand in a constant that can be changed, or sizes of axes. The rules of the
operators are in `batch_rules`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.document import Attribute, Node
from onnxjson.edits.batch_axes import BATCH, Axes, Axis, axis_of, has_batch, size
from onnxjson.edits.constant_values import Constant, constant_tensor, integer_constant
from onnxjson.edits.propagation import Inference, dims_of
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.operators import plain_domain
from onnxjson.payloads import whole
from onnxjson.tensors import raw_bytes

_DEEPEST: Final = 60
"""Nodes that one after another compute a shape."""


MIXED: Final = "it puts samples together"


class BlockedError(Exception):
    """A node cannot be followed, or cannot take another batch; the text says why."""


class Origin(NamedTuple):
    """Where the number in a shape stands, and which input takes it from there."""

    scope: Scope
    """The graph of the node that takes the constant."""
    position: int
    slot: int
    constant: Constant
    at: int


class Element(NamedTuple):
    """One number of a shape."""

    value: int | Axis | None
    """A number; the size of an axis; None where nobody knows."""
    origin: Origin | None = None


@dataclass
class Requests:
    """What must change for another batch."""

    numbers: dict[tuple[Scope, int, int], dict[int, int]] = field(default_factory=dict)
    """By the input that takes a constant: new numbers by their index."""
    rows: dict[tuple[Scope, int, int], int] = field(default_factory=dict)
    """By the input that takes a constant: the axis along which it is to have rows for all samples."""
    single: dict[tuple[Scope, int, int], int] = field(default_factory=dict)
    """By the input that takes a constant: the axis along which one row is enough, since it is stretched."""
    dropped: set[tuple[Scope, int, int]] = field(default_factory=set)
    """Inputs that are left out, since their constant is what counts where nothing is given."""


class Call:
    """One node, as its rule sees it."""

    def __init__(self, tracer: "Tracer", ref: NodeRef) -> None:
        self.tracer = tracer
        self.ref = ref
        self.node: Node = ref.node
        self.scope = ref.scope

    @property
    def batch(self) -> int:
        """The batch before."""
        return self.tracer.batch

    @property
    def opset(self) -> int:
        """The version of the operators."""
        return self.tracer.opset

    def axes(self, slot: int) -> Axes | None:
        """The axes of an input; None where it is left out or its rank is not known."""
        if slot >= len(self.node.input) or not self.node.input[slot]:
            return None
        return self.tracer.axes(self.scope, self.node.input[slot])

    def needed(self, slot: int) -> Axes:
        """The axes of an input.

        Raises:
            BlockedError: its rank is not known.
        """
        found = self.axes(slot)
        if found is None:
            raise BlockedError("the shape of an input is not known")
        return found

    def has(self, slot: int) -> bool:
        """Whether an input is given."""
        return slot < len(self.node.input) and bool(self.node.input[slot])

    def elements(self, slot: int) -> list[Element] | None:
        """The elements of an input that is a shape."""
        if not self.has(slot):
            return None
        return self.tracer.elements(self.scope, self.node.input[slot], (self.scope, self.ref.position, slot))

    def numbers(self, slot: int, attribute: str) -> list[int] | None:
        """Numbers that are an attribute or, in later versions, an input; None where they are left out.

        Raises:
            BlockedError: they are computed.
        """
        found = self._attributes.get(attribute)
        if found is not None:
            return list(found.ints) if found.ints else [found.i or 0]
        if not self.has(slot):
            return None
        elements = self.elements(slot)
        if elements is None or not all([isinstance(each.value, int) for each in elements]):
            raise BlockedError(f"its {attribute} are computed")
        return [each.value for each in elements if isinstance(each.value, int)]

    def number(self, attribute: str, default: int) -> int:
        """A number in an attribute."""
        found = self._attributes.get(attribute)
        return default if found is None or found.i is None else found.i

    def list_of(self, attribute: str) -> tuple[int, ...] | None:
        """Numbers in an attribute."""
        found = self._attributes.get(attribute)
        return None if found is None else found.ints

    def text(self, attribute: str, default: str) -> str:
        """A text in an attribute."""
        found = self._attributes.get(attribute)
        return default if found is None or found.s is None else found.s.decode(errors="replace")

    @cached_property
    def _attributes(self) -> dict[str, Attribute]:
        return {each.name or "": each for each in self.node.attribute}

    def out_sizes(self, slot: int = 0) -> list[int | str | None] | None:
        """The sizes that an output had."""
        if slot >= len(self.node.output):
            return None
        found = self.tracer.sizes(self.scope, self.node.output[slot])
        return None if found is None else list(found)

    def set_number(self, element: Element, new: int, what: str) -> None:
        """Has a number in a constant changed.

        Raises:
            BlockedError: it is computed, and nobody can say of what.
        """
        if element.origin is None:
            raise BlockedError(f"{what} is computed")
        origin = element.origin
        place = (origin.scope, origin.position, origin.slot)
        numbers = self.tracer.requests.numbers.setdefault(place, {})
        if numbers.setdefault(origin.at, new) != new:
            raise BlockedError(f"{what} would have to be two numbers at once")

    def new_size(self, what: str) -> int:
        """The new batch as a number.

        Raises:
            BlockedError: it is a name.
        """
        if isinstance(self.tracer.new, str):
            raise BlockedError(f"{what} must be a number, and the batch is to have a name")
        return self.tracer.new

    def stretch(self, slot: int, place: int, axis: Axis) -> None:
        """Has an input that is stretched to the shape of others follow the batch; arguments as of `give_rows`.

        Raises:
            BlockedError: it is no constant that could have one row for all samples.
        """
        name = self.node.input[slot]
        constant = constant_tensor(self.scope, name)
        if axis == (BATCH,) and constant is not None:
            self.tracer.requests.single[(self.scope, self.ref.position, slot)] = place % len(constant[1].dims)
        else:
            self.give_rows(slot, place, axis)

    def drop_zeros(self, slot: int) -> bool:
        """Leaves an input out if it is a constant that is all zeros."""
        constant = constant_tensor(self.scope, self.node.input[slot])
        stored = None if constant is None else raw_bytes(constant[1])
        if stored is None or any(whole(stored[0])):
            return False
        self.tracer.requests.dropped.add((self.scope, self.ref.position, slot))
        return True

    def give_rows(self, slot: int, place: int, axis: Axis) -> None:
        """Has an input that does not follow the batch follow it: a constant, or what is filled with one.

        Args:
            slot: of the input.
            place: which of its axes.
            axis: what that is to be like.

        Raises:
            BlockedError: it is another value, or the batch is to have a name.
        """
        name = self.node.input[slot]
        what = f'"{visible(name)}", which has the batch of before,'
        if axis[0] != BATCH or (axis[1:] and self.batch != 1):
            raise BlockedError(f"{what} does not follow it")
        constant = constant_tensor(self.scope, name)
        if constant is not None:
            self.new_size(what)
            rank = len(constant[1].dims)
            self.tracer.requests.rows[(self.scope, self.ref.position, slot)] = place % rank
            return
        maker = Index.home(self.scope, name)
        if maker is self.scope and name in maker.makers and len(maker.takers.get(name, ())) == 1:
            source = Call(self.tracer, NodeRef(maker, maker.makers[name][0]))
            slots = {"ConstantOfShape": 0, "Expand": 1}
            if source.node.op_type in slots and not plain_domain(source.node.domain):
                elements = source.elements(slots[source.node.op_type])
                known = source.out_sizes()
                new = size(axis, self.new_size(what))
                if elements is not None and known is not None and len(known) == len(elements) and new is not None:
                    source.set_number(elements[place], new, f"a size of {what}")
                    return
        raise BlockedError(f"{what} does not follow it")


Result = Sequence[Sequence[Axis | None] | None]
"""By output of a node: its axes, None for those whose size has nothing to do with the batch."""

Rule = Callable[[Call], Result]


class Tracer:
    """Follows the batch through a model.

    Args:
        inference: the shapes that the model has now.
        batch: the size that the batch has now.
        new: the size or name that it gets.
        opset: the version of the operators.
    """

    def __init__(self, inference: Inference, batch: int, new: int | str, opset: int) -> None:
        self.inference = inference
        self.batch = batch
        self.new = new
        self.opset = opset
        self.found: dict[Scope, dict[str, Axes | None]] = {}
        """The values that have the batch, by graph; None where it was lost."""
        self.problems: dict[str, str] = {}
        """By the address of a node: why it was not followed or cannot take another batch."""
        self.requests = Requests()
        self._resolved: dict[Scope, dict[str, Axes]] = {}
        """Values without the batch of which more is known than onnx finds out."""
        self._elements: dict[tuple[Scope, str], list[Element] | None] = {}
        self._depth = 0

    def start(self, scope: Scope, name: str, axis: int) -> None:
        """Says that the batch runs along an axis of an input."""
        sizes = self.sizes(scope, name)
        assert sizes is not None
        plain = [self._plain(each, name, place) for place, each in enumerate(sizes)]
        plain[axis] = (BATCH,)
        self.found.setdefault(scope, {})[name] = tuple(plain)

    def sizes(self, scope: Scope, name: str) -> tuple[int | str | None, ...] | None:
        """The shape that a value has now, as onnx finds out or the model says."""
        home = Index.home(scope, name)
        if home is None:
            return None
        found = self.inference.dims(home, name)
        said = dims_of(home.types.get(name))
        if found is None or said is None or len(found) != len(said):
            return said if found is None else found
        return tuple([a if a is not None else b for a, b in zip(found, said, strict=True)])

    def axes(self, scope: Scope, name: str) -> Axes | None:
        """The axes of a value; None where its rank is not known."""
        home = Index.home(scope, name)
        if home is None:
            return None
        traced = self.found.get(home, {})
        if name in traced:
            return traced[name]
        resolved = self._resolved.get(home, {})
        if name in resolved:
            return resolved[name]
        sizes = self.sizes(home, name)
        if sizes is None:
            return None
        return tuple([self._plain(each, name, place) for place, each in enumerate(sizes)])

    def has_batch(self, scope: Scope, name: str) -> bool:
        """Whether a value has the batch, or may have it."""
        home = Index.home(scope, name)
        return home is not None and name in self.found.get(home, {})

    @staticmethod
    def _plain(size_or_name: int | str | None, name: str, place: int) -> Axis:
        if isinstance(size_or_name, int):
            return axis_of([size_or_name])
        return (size_or_name,) if size_or_name else (f"\0{name}.{place}",)

    def trace(self, scope: Scope, rules: Mapping[str, Rule], shape_takers: Mapping[str, int]) -> None:
        """Goes through the nodes of a graph in their order.

        Args:
            scope: the graph.
            rules: by operator of the default domain.
            shape_takers: operators whose output may have the batch through a shape alone -> the input that is it.
        """
        found = self.found.setdefault(scope, {})
        resolved = self._resolved.setdefault(scope, {})
        inner: dict[int, list[Scope]] = {}
        for child in scope.children:
            if child.owner is not None:
                inner.setdefault(child.owner.position, []).append(child)
        for position, node in enumerate(scope.graph.node):
            children = inner.get(position, [])
            touched = any([name and (self.has_batch(scope, name) or name in resolved) for name in node.input])
            if not touched:
                captured = {name for child in children for name in child.takers if not child.defines(name)}
                touched = any([self.has_batch(scope, name) for name in captured])
            slot = shape_takers.get(node.op_type or "")
            if not touched and slot is not None and slot < len(node.input):
                touched = node.input[slot] in scope.makers
            if touched:
                self._follow(NodeRef(scope, position), children, found, rules, shape_takers)

    def _follow(
        self,
        ref: NodeRef,
        children: list[Scope],
        found: dict[str, Axes | None],
        rules: Mapping[str, Rule],
        shape_takers: Mapping[str, int],
    ) -> None:
        node = ref.node
        from onnxjson.edits.batch_subgraphs import SUBGRAPH_RULES

        given = [name for name in node.input if name]
        is_lost = any([self.has_batch(ref.scope, name) and self.axes(ref.scope, name) is None for name in given])
        rule = rules.get(node.op_type or "") if not plain_domain(node.domain) else None
        try:
            if is_lost:
                outputs: Result = [None] * len(node.output)
            elif children and node.op_type in SUBGRAPH_RULES and not plain_domain(node.domain):
                inner = SUBGRAPH_RULES[node.op_type]
                outputs = inner(Call(self, ref), children, lambda body: self.trace(body, rules, shape_takers))
            elif rule is None:
                raise BlockedError(self._unknown(node))
            else:
                outputs = rule(Call(self, ref))
            for slot, name in enumerate(node.output):
                if not name:
                    continue
                axes = self._completed(ref.scope, name, outputs[slot]) if slot < len(outputs) else None
                if slot >= len(outputs):
                    continue
                if axes is None or any(map(has_batch, axes)):
                    found[name] = axes
                elif None in (self.sizes(ref.scope, name) or (None,)) and not any(map(_is_unknown, axes)):
                    self._resolved[ref.scope][name] = axes
        except BlockedError as blocked:
            if not (children or self._is_concerned(ref)):
                return
            self.problems[ref.address] = str(blocked)
            for name in node.output:
                if name:
                    found[name] = None

    def _is_concerned(self, ref: NodeRef) -> bool:
        """Whether a node is given the batch, by its inputs or by a shape."""
        call = Call(self, ref)
        for slot, name in enumerate(ref.node.input):
            if name and self.has_batch(ref.scope, name):
                return True
            elements = call.elements(slot) if name else None
            if any([isinstance(each.value, tuple) and has_batch(each.value) for each in elements or ()]):
                return True
        return False

    @staticmethod
    def _unknown(node: Node) -> str:
        operator = f"{node.domain}:{node.op_type}" if plain_domain(node.domain) else node.op_type or ""
        return f"nobody knows what {visible(operator)} does with the batch"

    def _completed(self, scope: Scope, name: str, axes: Sequence[Axis | None] | None) -> Axes | None:
        if axes is None:
            return None
        sizes = self.sizes(scope, name)
        if sizes is None or len(sizes) != len(axes):
            sizes = (None,) * len(axes)
        complete: list[Axis] = []
        for place, (axis, known) in enumerate(zip(axes, sizes, strict=True)):
            if axis is None:
                complete.append(self._plain(known, name, place))
                continue
            computed = size(axis, self.batch)
            if isinstance(known, int) and computed is not None and computed != known:
                raise BlockedError(f"axis {place} has {known} elements where {computed} were expected")
            complete.append(axis)
        return tuple(complete)

    def elements(self, scope: Scope, name: str, use: tuple[Scope, int, int]) -> list[Element] | None:
        """The elements of a value that is a shape; None where it is none, or nobody knows.

        Args:
            scope: the graph in which it is used.
            name: the value.
            use: the input that takes it: graph, position and slot.
        """
        constant = integer_constant(scope, name)
        if constant is not None:
            return [Element(value, Origin(*use, constant, index)) for index, value in enumerate(constant.values)]
        home = Index.home(scope, name)
        if home is None or name not in home.makers:
            return None
        key = (home, name)
        if key not in self._elements:
            self._elements[key] = None
            if self._depth < _DEEPEST:
                from onnxjson.edits.batch_shapes import computed_elements

                self._depth += 1
                self._elements[key] = computed_elements(Call(self, NodeRef(home, home.makers[name][0])))
                self._depth -= 1
        return self._elements[key]


def _is_unknown(axis: Axis) -> bool:
    return any([isinstance(factor, str) and factor.startswith("\0") for factor in axis])


def without(axes: Axes, gone: set[int], *, keep: bool) -> list[Axis | None]:
    """The axes without some, or with these at size 1."""
    if keep:
        return [() if place in gone else axis for place, axis in enumerate(axes)]
    return [axis for place, axis in enumerate(axes) if place not in gone]
