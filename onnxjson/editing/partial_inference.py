"""Inference of the types of some values of a model from the types around them.

A part is some nodes of the main graph and what they need: constants, and the types of the values that they consume. The
producers of values whose type is not known, or that may be a shape, belong to it too, since the inference computes with
shapes. A part of 20 nodes of a big model takes 5 ms. `size_conflict` compares what the inference of onnx does not.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from onnxjson.editing.sandbox import worker
from onnxjson.editing.tensor_values import integer_constant
from onnxjson.editing.type_relations import Dims, dims_of, is_enough, without_invented_names, without_shape
from onnxjson.model.attribute_values import perm_mistake
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.dimensions import IDENTIFIER, dimension_names, substitute, with_dimension_names
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Graph, Model, Node, Record, SparseTensor, Tensor, Type, ValueInfo
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.model.walking import Body, rebuild
from onnxjson.running.inferred_types import inferred_scopes

_NODE: Final = re.compile(r"\(op_type:[^,)]*, node name: (?P<address>[^)]*)\)")
_NEWEST_RULES: Final = 10
"""The IR version of parts: initializers need not be inputs, and functions are known."""
_FOLLOWING: Final = "Inference error(s)"
"""End of messages about nodes around the wrong node."""
_UNKNOWN: Final = "expected to have type but instead is null"
"""End of messages about nodes after the wrong node, and after operators whose types onnx cannot infer."""
_HARMLESS: Final = re.compile("Data for input [0-9]+ already exists")
"""A message of the strict inference about subgraphs that are inferred twice."""

_COMPARED: Final = ("Reshape", "Gemm", "Conv", "LSTM", "GRU", "RNN")
"""Operators that `size_conflict` checks."""

Sized = TypeVar("Sized", bound=Record)
Values = Mapping[str, Mapping[str, Type]]
"""Types by address of a graph and name of a value."""
Names = Mapping[str, Collection[str]]
"""Names of values by address of their graph."""


class InferredPart(NamedTuple):
    """Types that onnx infers for a part."""

    types: dict[str, dict[str, Type]]
    """Types by address of the graph and name of the value; dimensions without a name or size are unknown."""
    complaints: dict[str, str]
    """Mistakes by address of the node."""
    alike: Collection[int] = ()
    """Positions of nodes that are like others in which onnx found no mistakes."""


class Sizes(dict[str, int]):
    """Sizes that represent names of dimensions, one for each name."""

    def put_in(self, record: Sized) -> Sized:
        """Return a record with sizes instead of the names of its dimensions."""
        for text in dimension_names(record):
            for name in IDENTIFIER.findall(text):
                self._add(name)
            if not isinstance(substitute(text, self), int):
                self._add(text)
        return with_dimension_names(record, self)

    def _add(self, name: str) -> None:
        # Multiples of many numbers: a size that is divided by a constant is usually a multiple of it.
        self.setdefault(name, 240 * (len(self) + 1))


class Part:
    """Nodes of the main graph of a model, and what the inference of their types needs.

    `known` are types that are not those in the model; None if nothing is known.
    """

    def __init__(self, index: Index, positions: Iterable[int], known: Mapping[str, Type | None]) -> None:
        assert index.main is not None
        self._index = index
        self._scope: Scope = index.main
        self._known = known
        self._positions = set(positions)
        # The producers of values that their inference needs belong to the part, too.
        self._given: dict[str, Type] = {}
        self._constants: dict[str, None] = {}
        scope, nodes = self._scope, self._scope.graph.node
        producers, inputs = scope.producers, scope.inputs
        inside = self._positions
        pending = list(inside)
        while pending:
            for name in consumed_names(nodes[pending.pop()]):
                place = producers.get(name)
                if place is None or name in inputs:
                    if name in inputs and (stated := self._type(name)) is not None:
                        self._given[name] = stated
                    if name in scope.initializers or name in scope.sparse_initializers:
                        self._constants[name] = None
                elif place[0] not in inside:
                    stated = self._type(name)
                    if stated is not None and is_enough(stated):
                        self._given[name] = stated
                    elif name not in self._known or stated is not None:
                        inside.add(place[0])
                        pending.append(place[0])

    def _type(self, name: str) -> Type | None:
        return self._known[name] if name in self._known else self._scope.types.get(name)

    def infer(self, cleared: Names, opened: Values, folder: Path | None, sizes: Sizes | None = None) -> InferredPart:
        """Infer the types of the part.

        Args:
            cleared: values whose stated types are ignored.
            opened: other types of inputs of subgraphs.
            folder: the folder of small external data.
            sizes: what the names of dimensions are replaced by.

        Raises:
            WorkerError: the inference crashed, hung or refused the part.
            EditError, UntrustedError: see `LightModel`.
        """
        model = self._model(cleared, opened)
        if sizes is not None:
            model = sizes.put_in(model)
        scopes, findings = inferred_scopes(model, folder, worker())
        return InferredPart(_by_address(scopes.values()), _complaints([each.message for each in findings]))

    def _model(self, cleared: Names, opened: Values) -> Model:
        """Return a model of the part; the names of its nodes are their addresses."""
        scope, model = self._scope, self._index.model
        graph = scope.graph
        assert isinstance(graph, Graph)
        positions = sorted(self._positions)
        light = self._without(cleared, opened).graph if len(self._index.scopes) > 1 else graph
        assert light is not None
        produced = {name for position in positions for name in graph.node[position].output if name}
        without = cleared.get(scope.address, ())
        stated = {name: self._type(name) for name in produced if name not in without}
        infos = [ValueInfo(name=name, type=each) for name, each in stated.items() if each is not None]
        given = [ValueInfo(name=name, type=each) for name, each in self._given.items() if name not in produced]
        constants = [scope.initializer(name) for name in self._constants]
        part = Graph(
            name="part",
            node=tuple([_named(light.node[place], f"{scope.address}/node/{place}") for place in positions]),
            input=tuple(given),
            value_info=tuple(infos),
            initializer=tuple([each for each in constants if isinstance(each, Tensor)]),
            sparse_initializer=tuple([each for each in constants if isinstance(each, SparseTensor)]),
        )
        version = max(model.ir_version or 0, _NEWEST_RULES)
        return Model(ir_version=version, opset_import=model.opset_import, graph=part, functions=model.functions)

    def _without(self, cleared: Names, opened: Values) -> Model:
        """Return the model with the types of subgraphs that are not to be ignored, and the addresses of their nodes."""

        def change(scope: Scope, graph: Body) -> Body:
            if scope.kind != "subgraph" or isinstance(graph, Function):
                return graph
            without = cleared.get(scope.address, ())
            types = opened.get(scope.address, {})
            return replace(
                graph,
                node=tuple([_named(node, f"{scope.address}/node/{place}") for place, node in enumerate(graph.node)]),
                input=tuple([replace(each, type=types.get(each.name or "", each.type)) for each in graph.input]),
                output=tuple([without_shape(each) if each.name in without else each for each in graph.output]),
                value_info=tuple([each for each in graph.value_info if each.name not in without]),
            )

        return rebuild(self._index, change)


def _named(node: Node, address: str) -> Node:
    return replace(node, name=address, metadata_props=(), doc_string=None)


def _by_address(scopes: Iterable[Scope]) -> dict[str, dict[str, Type]]:
    """Return the types of a part by the addresses of its graphs in the whole model."""

    types_of: dict[str, dict[str, Type]] = {}
    for scope in scopes:
        address = scope.address
        if scope.owner is not None:
            address = (scope.owner.node.name or "") + address.removeprefix(scope.owner.address)
        types_of[address] = {name: without_invented_names(each) for name, each in scope.types.items()}
    return types_of


def _complaints(messages: Iterable[str]) -> dict[str, str]:
    complaints: dict[str, str] = {}
    following: dict[str, str] = {}
    for message in messages:
        place = _NODE.match(message)
        if _HARMLESS.search(message):
            return {}
        if place is not None:
            text = message[place.end() :].split("(op_type:")[0].strip(" :,")
            if not text.endswith(_UNKNOWN):
                (following if text.endswith(_FOLLOWING) else complaints).setdefault(place["address"], text)
    return complaints or following


def complaint(inferred: InferredPart, ref: NodeRef) -> str | None:
    """Return why a node cannot have its inputs, by onnx, by `size_conflict` or by `perm_mistake`."""
    if not inferred.complaints and ref.node.op_type not in (*_COMPARED, "Transpose"):
        return None
    if ref.node.op_type == "Transpose" and not plain_domain(ref.node.domain) and ref.node.input:
        perm = next((each.ints for each in ref.node.attribute if each.name == "perm"), ())
        dims = inferred_dims(ref.scope, ref.node.input[0], inferred.types)
        if perm and (mistake := perm_mistake(perm, None if dims is None else len(dims))):
            return mistake
    conflict = size_conflict(ref.scope, ref.node, lambda name: inferred_dims(ref.scope, name, inferred.types))
    return inferred.complaints.get(ref.address) or conflict


def inferred_dims(scope: Scope, name: str, types: Values) -> Dims | None:
    """Return the dims of a value that is used in a graph; None if its rank is not known."""
    defining_scope = Index.defining_scope(scope, name)
    if defining_scope is None:
        return None
    constant = defining_scope.initializer(name) if name not in defining_scope.inputs else None
    inferred = types.get(defining_scope.address, {}).get(name)
    return dims_of(inferred) if constant is None else tuple(constant.dims)


def size_conflict(scope: Scope, node: Node, dims: Callable[[str], Dims | None]) -> str | None:
    """Describe sizes of inputs that do not fit each other and that onnx does not compare; None if there are none."""
    if node.op_type not in _COMPARED or plain_domain(node.domain) or len(node.input) < 2:
        return None
    first = dims(node.input[0])
    numbers = {each.name: each.i for each in node.attribute}
    if node.op_type == "Reshape":
        constant = integer_constant(scope, node.input[1])
        return None if first is None or constant is None else _reshape(first, constant, bool(numbers.get("allowzero")))
    second = dims(node.input[1])
    if first is None or second is None:
        return None
    if node.op_type == "Gemm" and len(first) == len(second) == 2:
        sides = (first[0 if numbers.get("transA") else 1], second[1 if numbers.get("transB") else 0])
        if _differ(*sides):
            return f"it multiplies {_text(first)} by {_text(second)}, {sides[0]} elements by {sides[1]}"
    if node.op_type == "Conv" and len(first) > 2 and len(second) > 2:
        group = numbers.get("group") or 1
        weights = second[1]
        if isinstance(weights, int) and _differ(first[1], weights * group):
            return f"it expects {weights * group} channels, but its input has {first[1]}"
    if node.op_type in ("LSTM", "GRU", "RNN") and len(first) == len(second) == 3 and _differ(first[2], second[2]):
        return f"it expects {second[2]} features, but its input has {first[2]}"
    return None


def _reshape(given: Dims, constant: tuple[int, ...], keeps_zero: bool) -> str | None:
    target: list[int | str | None] = list(constant)
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


def _differ(one: int | str | None, other: int | str | None) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one != other


def _text(dims: Dims) -> str:
    return "[" + ",".join(["?" if each is None else visible(str(each)) for each in dims]) + "]"
