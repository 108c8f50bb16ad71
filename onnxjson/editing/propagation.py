"""Propagate changed shapes of inputs: adapt types, drop unknown ones, and find nodes that cannot have the new shapes.

Both models, before and after, go through the shape inference of onnx without the types that it would otherwise accept
instead of inferring them. Results that differ between the two are effects of the change.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from onnxjson.editing.inference import INVENTED
from onnxjson.editing.sandbox import LightModel, worker
from onnxjson.editing.tensor_values import integer_constant
from onnxjson.model.dimensions import with_dimension
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Dimension, Function, Graph, Model, Node, TensorShape, Type, ValueInfo
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.model.walking import Body, rebuild

_SHOWN: Final = 6
_FOLLOWING: Final = ("Inference error(s)", "expected to have type but instead is null")
"""Messages of the inference about a node when another node is the cause."""

_PLACE: Final = re.compile(r"\(op_type:(?P<op>[^,)]*)(?:, node name: (?P<name>[^)]*))?\)")

Dims = tuple[int | str | None, ...]
"""Sizes, names, or None for unknown."""


class Propagated(NamedTuple):
    """A model with propagated types, and remarks for the user."""

    model: Model
    notes: tuple[str, ...]


class Inference:
    """Types that onnx infers from the types of the inputs alone.

    Raises:
        WorkerError: the inference crashed, hung or refused the model.
        EditError, MissingInputError, UntrustedError: see `sandbox.LightModel`.
    """

    def __init__(self, index: Index, folder: Path | None) -> None:
        from onnxjson.codecs import serde

        self.index = index
        data = LightModel(_loose(self.index), folder).data
        inferred = Index(serde.parse(worker().infer_shapes(data)).model)
        self._types = {scope.address: scope.types for scope in inferred.scopes}
        self._data = data

    def type_of(self, scope: Scope, name: str) -> Type | None:
        """Return the inferred type of a value that a graph defines."""
        return self._types.get(scope.address, {}).get(name)

    def dims(self, scope: Scope, name: str) -> Dims | None:
        """Return the dims of a value that is used in a graph; None if its rank is not known."""
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            return None
        constant = defining_scope.initializer(name)
        if constant is not None and name not in defining_scope.inputs:
            return tuple(constant.dims)
        return dims_of(self.type_of(defining_scope, name))

    def complaints(self) -> dict[str, str]:
        """Return mistakes by node: those of the strict inference, and sizes that it does not compare."""
        found: dict[str, str] = {}
        following: dict[str, str] = {}
        for finding in worker().check_shapes(self._data):
            place = _PLACE.search(finding.message)
            if finding.code == "check-shapes" and place is not None:
                who = f'{place["op"]} "{place["name"]}"' if place["name"] else place["op"]
                text = finding.message[place.end() :].split("(op_type:")[0].strip(" :,")
                # Messages about nodes around the wrong node, and after it, are only consequences.
                kind = following if text.endswith(_FOLLOWING) else found
                kind.setdefault(f"{place['op']}/{place['name']}", f"{who}: {text}")
        found = found or following
        for scope in self.index.scopes:
            if scope.kind == "function":
                continue
            for position, node in enumerate(scope.graph.node):
                if (mismatch := self._mismatch(scope, node)) is not None:
                    name = f' "{visible(node.name)}"' if node.name else ""
                    found[f"{node.op_type}/{node.name}"] = (
                        f"{node.op_type}{name} ({scope.address}/node/{position}): {mismatch}"
                    )
        return found

    def _mismatch(self, scope: Scope, node: Node) -> str | None:
        """Describe sizes of a node's inputs that do not fit each other."""
        if plain_domain(node.domain) or len(node.input) < 2:
            return None
        if node.op_type == "Reshape":
            return self._reshape(scope, node)
        first, second = self.dims(scope, node.input[0]), self.dims(scope, node.input[1])
        if first is None or second is None:
            return None
        numbers = {each.name: each.i for each in node.attribute}
        if node.op_type == "Gemm" and len(first) == len(second) == 2:
            sides = (first[0 if numbers.get("transA") else 1], second[1 if numbers.get("transB") else 0])
            if _differ(*sides):
                return f"it multiplies {_text(first)} by {_text(second)}, {sides[0]} elements by {sides[1]}"
        if node.op_type == "Conv" and len(first) > 2 and len(second) > 2:
            group = numbers.get("group") or 1
            weights = second[1]
            if isinstance(weights, int) and _differ(first[1], weights * group):
                return f"it expects {weights * group} channels, and its input has {first[1]}"
        return None

    def _reshape(self, scope: Scope, node: Node) -> str | None:
        given = self.dims(scope, node.input[0])
        constant = integer_constant(scope, node.input[1])
        if given is None or constant is None:
            return None
        target: list[int | str | None] = list(constant)
        keeps_zero = any([each.name == "allowzero" and each.i for each in node.attribute])
        if not keeps_zero:
            target = [given[axis] if dim == 0 and axis < len(given) else dim for axis, dim in enumerate(target)]
        if None in given or None in target:
            return None
        one, other = _product(given), _product(tuple(target))
        is_open = -1 in target
        if one[1] == other[1]:
            fits = one[0] == other[0] if not is_open else not one[0] % max(1, abs(other[0]))
        else:
            # Names on one side only fit only into a -1.
            fits = is_open and all([other[1].count(name) <= one[1].count(name) for name in other[1]])
        return None if fits else f"its constant shape {list(constant)} does not have the elements of {_text(given)}"


def _product(dims: Dims) -> tuple[int, list[str]]:
    """Return the product of the sizes without -1, and the names."""
    sizes = [each for each in dims if isinstance(each, int) and each != -1]
    return math.prod(sizes), sorted([each for each in dims if isinstance(each, str)])


def propagate_shapes(
    before: Model, after: Model, folder: Path | None, *, force: bool = False, is_trusted: bool = False
) -> Propagated:
    """Return `after` with types that follow from those of its inputs.

    Args:
        before: the model with the old shapes.
        after: the same model with other shapes of inputs.
        folder: the folder of small external data.
        force: report nodes that cannot have the shapes as notes instead of an error.
        is_trusted: whether shapes that `after` states are right if nothing better is known.

    Raises:
        EditError: nodes cannot have the shapes; all of them are named.
        WorkerError, MissingInputError, UntrustedError: see `Inference`.
    """
    old, new = Inference(Index(before), folder), Inference(Index(after), folder)
    blocked = new_complaints(old, new)
    if blocked and not force:
        shown = listed([visible(text, 400) for text in blocked], _SHOWN, "; ")
        raise EditError(f"these nodes cannot have the shapes: {shown}")
    follower = _Propagation(old, new, is_trusted=is_trusted)
    model = rebuild(new.index, follower.change)
    return Propagated(
        model, (*[visible(f"cannot have the shapes: {text}", 400) for text in blocked], *follower.notes())
    )


def new_complaints(old: Inference, new: Inference) -> list[str]:
    """Return mistakes of a model that were not there before."""
    found = new.complaints()
    known = old.complaints() if found else {}
    return [text for place, text in found.items() if place not in known]


class _Propagation:
    """Sets the types that follow from the inputs."""

    def __init__(self, old: Inference, new: Inference, *, is_trusted: bool) -> None:
        self._is_trusted = is_trusted
        self._old = old
        self._new = new
        self._old_scopes = old.index.by_address
        self._affected: dict[Scope, set[str]] = {}
        for scope in new.index.scopes:
            self._affected[scope] = self._affected_in(scope)
        self._opened: list[str] = []
        self._dropped = 0

    def notes(self) -> Iterator[str]:
        """Yield remarks for the user."""
        yield from self._opened[:_SHOWN]
        if len(self._opened) > _SHOWN:
            yield f"{len(self._opened) - _SHOWN:,} more outputs have shapes that are no longer known"
        if self._dropped:
            yield f"{self._dropped:,} stale entries of value_info are removed"

    def _affected_in(self, scope: Scope) -> set[str]:
        """Return the values of a graph that may have another shape than before."""
        affected: set[str] = set()
        around = self._affected[scope.outer] if scope.outer is not None else set()
        if scope.kind == "function":
            return affected
        if isinstance(scope.graph, Graph):
            for position, value in enumerate(scope.graph.input):
                if self._is_other_input(scope, position, value):
                    affected.add(value.name or "")
        inner: dict[int, set[str]] = {}
        for child in scope.children:
            if child.owner is not None:
                inner.setdefault(child.owner.position, set()).update(child.consumers)
        for position, node in enumerate(scope.graph.node):
            used = {*node.input, *inner.get(position, ())}
            if not affected.isdisjoint(used) or not around.isdisjoint(used):
                affected.update([name for name in node.output if name and not self._is_same(scope, name)])
        return affected

    def _is_other_input(self, scope: Scope, position: int, value: ValueInfo) -> bool:
        if scope.owner is None:
            there = self._old_scopes.get(scope.address)
            graph = there.graph if there is not None else None
            return not isinstance(graph, Graph) or position >= len(graph.input) or graph.input[position] != value
        # The inputs of the bodies of Loop and Scan correspond to those of the node, one by one.
        owner, outer = scope.owner.node, scope.outer
        assert outer is not None
        if position >= len(owner.input):
            return False
        return any([owner.input[position] in self._affected[each] for each in outer.chain()])

    def _is_same(self, scope: Scope, name: str) -> bool:
        """Whether a value is known to have its old shape."""
        there = self._old_scopes.get(scope.address)
        if there is None:
            return False
        old, new = dims_of(self._old.type_of(there, name)), dims_of(self._new.type_of(scope, name))
        return old is not None and old == new and None not in new

    def change(self, scope: Scope, graph: Body) -> Body:
        """Return the graph with types that follow from the inputs."""
        affected = self._affected[scope]
        if isinstance(graph, Function) or not affected:
            return graph
        updates: dict[str, Any] = {}
        outputs = tuple([self._output(scope, each) if each.name in affected else each for each in graph.output])
        if outputs != graph.output:
            updates["output"] = outputs
        if scope.owner is not None:
            inputs = [_opened(each) if each.name in affected else each for each in graph.input]
            updates["input"] = tuple(inputs)
        infos = []
        for each in graph.value_info:
            if each.name not in affected:
                infos.append(each)
            elif (dims := self._known(scope, each)) is not None:
                infos.append(_with_dims(each, dims))
            else:
                self._dropped += 1
        updates["value_info"] = tuple(infos)
        return replace(graph, **updates)

    def _known(self, scope: Scope, value: ValueInfo) -> Dims | None:
        """Return the dims of a value, as inferred or stated by name; None if not even the rank is known."""
        found = dims_of(self._new.type_of(scope, value.name or ""))
        stated = dims_of(value.type)
        if found is None:
            return stated if self._is_trusted else None
        if stated is None or len(stated) != len(found):
            return found
        pairs = zip(found, stated, strict=True)
        return tuple([b if a is None and (self._is_trusted or isinstance(b, str)) else a for a, b in pairs])

    def _output(self, scope: Scope, value: ValueInfo) -> ValueInfo:
        dims, stated = self._known(scope, value), dims_of(value.type)
        if dims is None and stated is not None:
            dims = tuple([each if isinstance(each, str) else None for each in stated])
        if dims is None:
            return value
        if stated is not None and any([a is None and isinstance(b, int) for a, b in zip(dims, stated, strict=False)]):
            where = _first_unknown(self._new, scope, value.name or "")
            self._opened.append(f'the shape of "{visible(value.name or "")}" is no longer known{where}')
        return _with_dims(value, dims)


def _first_unknown(inference: Inference, scope: Scope, name: str) -> str:
    """Find the first node after which shapes are unknown, going back from a value."""
    seen: set[str] = set()
    found = ""
    while name in scope.producers and name not in seen:
        seen.add(name)
        position = scope.producers[name][0]
        node = scope.graph.node[position]
        found = f" after {visible(node.op_type or '')} @{scope.address}/node/{position}"
        dims = {each: inference.dims(scope, each) for each in node.input if each}
        unknown = [each for each, sizes in dims.items() if sizes is not None and None in sizes]
        unknown += [each for each, sizes in dims.items() if sizes is None]
        if not unknown:
            break
        name = unknown[0]
    return found


def dims_of(value: Type | None) -> Dims | None:
    """Return the dims of a type; names that the inference invented count as unknown."""
    tensor = None if value is None else value.tensor_type or value.sparse_tensor_type
    if tensor is None or tensor.shape is None:
        return None
    return tuple(
        [
            (each.dim_param if not each.dim_param.startswith(INVENTED) else None) if each.dim_param else each.dim_value
            for each in tensor.shape.dim
        ]
    )


def _with_dims(value: ValueInfo, dims: Dims) -> ValueInfo:
    """Return the value with other dims, or itself if they are the same."""
    if value.type is None or value.type.tensor_type is None or dims_of(value.type) == dims:
        return value
    tensor = value.type.tensor_type
    shape = tensor.shape or TensorShape()
    old = shape.dim if len(shape.dim) == len(dims) else (Dimension(),) * len(dims)
    shape = replace(shape, dim=tuple([with_dimension(each, size) for each, size in zip(old, dims, strict=True)]))
    return replace(value, type=replace(value.type, tensor_type=replace(tensor, shape=shape)))


def _opened(value: ValueInfo) -> ValueInfo:
    """Return the value with names only as its dims."""
    dims = dims_of(value.type) or ()
    return _with_dims(value, tuple([each if isinstance(each, str) else None for each in dims])) if dims else value


def _loose(index: Index) -> Model:
    """Return the model without types that follow from others."""

    def change(scope: Scope, graph: Body) -> Body:
        if isinstance(graph, Function):
            return graph
        updates: dict[str, Any] = {"value_info": (), "output": tuple([_without_shape(each) for each in graph.output])}
        if scope.owner is not None:
            updates["input"] = tuple([_without_shape(each) for each in graph.input])
        return replace(graph, **updates)

    return rebuild(index, change)


def _without_shape(value: ValueInfo) -> ValueInfo:
    tensor = value.type.tensor_type if value.type is not None else None
    if value.type is None or tensor is None or tensor.shape is None:
        return value
    return replace(value, type=replace(value.type, tensor_type=replace(tensor, shape=None)))


def _differ(one: int | str | None, other: int | str | None) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _text(dims: Dims) -> str:
    return "[" + ",".join(["?" if each is None else visible(str(each)) for each in dims]) + "]"
