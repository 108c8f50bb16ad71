"""Regions of a diff, as models of their own, and grown by adjacent nodes.

A rewrite may be correct only for the outputs of its producers. Examples are an Abs of an Abs, a Relu of a Softmax, or a
factor that moved into the next node: alone the two sides differ, together with adjacent nodes they do not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from onnxjson.diffing.changes import Region
from onnxjson.diffing.matching.alignment import Alignment, GraphPair
from onnxjson.model import document as d
from onnxjson.model.constants import RANDOM, copied_constant, is_constant_node, value_of_node
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import visible
from onnxjson.model.index import Index, Scope
from onnxjson.model.limits import PART_CONSTANT_BYTES
from onnxjson.model.operators import operator_key, plain_domain
from onnxjson.model.payloads import Data, Digest, whole
from onnxjson.model.tensors import is_external, raw_bytes
from onnxjson.model.walking import called_functions, replace_records, walk

IR_VERSION: Final = 10
"""IR version of parts: new enough for every operator set, old enough for every engine."""

_PAYLOADS: Final = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")

Elements = Callable[[d.Tensor], Data | None]
"""Function that reads the elements of a tensor from an external file; None if that is impossible."""

KnownType = tuple[int, int | None]

MAX_NODES: Final = 64
"""Maximum number of nodes of a region, on each side."""

MAX_DERIVATION: Final = 24
"""Maximum number of nodes that compute one input of a region from others."""


class NotRunError(Exception):
    """A part cannot be evaluated; the message has the reason, made visible."""


class UnsettledError(NotRunError):
    """A part cannot be evaluated alone, but perhaps together with adjacent nodes."""


class ModelPart(NamedTuple):
    """Some nodes as a model."""

    model: d.Model
    inputs: tuple[str, ...]
    """Names of the values that it consumes as inputs."""
    outputs: tuple[str, ...]
    """New names of the requested outputs, in their order."""
    requested: tuple[str, ...]
    """Names of these outputs in the graph."""


def extract_part(
    model: d.Model,
    scope: Scope,
    positions: Sequence[int],
    inputs: Mapping[str, KnownType],
    outputs: Sequence[str],
    elements: Elements,
) -> ModelPart:
    """Extract some nodes of a graph as a model.

    Raises:
        NotRunError: the part cannot be evaluated on its own.
    """
    cut = _Cut(scope, [scope.graph.node[position] for position in positions], inputs)
    for name in outputs:
        cut.need(name)
    fresh = _fresh_names(cut.nodes, len(outputs))
    copies = [
        d.Node(op_type="Identity", input=(name,), output=(new,)) for name, new in zip(outputs, fresh, strict=True)
    ]
    functions = called_functions(model.functions, cut.nodes)
    opsets = _opsets(model, scope)
    inner = [node for outer in cut.nodes for node in walk(outer, d.Node)]
    for attribute in [attribute for node in inner for attribute in node.attribute if attribute.ref_attr_name]:
        name = visible(attribute.name or "")
        raise NotRunError(f'attribute "{name}" refers to one of the function around it, so it has no value here')
    called = [node for function in functions for node in walk(function, d.Node)]
    default = next((each.version or 0 for each in opsets if plain_domain(each.domain) == ""), 0)
    _require_deterministic([*inner, *called], default, cut.all_constants())
    bare = {"metadata_props": (), "doc_string": None, "device_configurations": ()}
    graph = d.Graph(
        name="part",
        node=(*[msgspec.structs.replace(node, **bare) for node in cut.nodes], *copies),
        initializer=tuple(cut.constants),
        sparse_initializer=tuple(cut.sparse_constants),
        input=tuple([_value(name, inputs[name]) for name in cut.consumed_inputs]),
        output=tuple([d.ValueInfo(name=name) for name in fresh]),
    )
    made = d.Model(ir_version=IR_VERSION, opset_import=opsets, graph=graph, functions=functions)
    return ModelPart(_with_elements(made, elements), tuple(cut.consumed_inputs), tuple(fresh), tuple(outputs))


class _Cut:
    def __init__(self, scope: Scope, nodes: Sequence[d.Node], inputs: Mapping[str, KnownType]) -> None:
        self._scope = scope
        self._inputs = inputs
        self._made = {name for node in nodes for name in node.output if name}
        self.nodes: list[d.Node] = []
        self.constants: list[d.Tensor] = []
        self.sparse_constants: list[d.SparseTensor] = []
        self.consumed_inputs: dict[str, None] = {}
        self._known: set[str] = set()
        for node in nodes:
            for name in consumed_names(node):
                self.need(name)
        self.nodes += nodes

    def need(self, name: str) -> None:
        """Add the source of a value that is not an output of the nodes."""
        # Identity nodes may form long chains.
        sources: list[d.Node] = []
        while name not in self._made and name not in self._known:
            self._known.add(name)
            if name in self._inputs:
                self.consumed_inputs[name] = None
                break
            node = self._constant_or_alias(name)
            if node is None:
                break
            sources.append(node)
            if not node.input:
                break
            name = node.input[0]
        self.nodes += reversed(sources)

    def all_constants(self) -> dict[str, d.Tensor]:
        constants = {tensor.name or "": tensor for tensor in self.constants}
        values = [
            (node.output[0], value_of_node(node)) for node in self.nodes if is_constant_node(node) and node.output
        ]
        return constants | {name: value for name, value in values if isinstance(value, d.Tensor)}

    def _constant_or_alias(self, name: str) -> d.Node | None:
        """Record an initializer, or return the Constant or Identity node that outputs a value."""
        defining = Index.defining_scope(self._scope, name)
        if defining is not None:
            constant = defining.initializer(name)
            if isinstance(constant, d.Tensor):
                self.constants.append(msgspec.structs.replace(constant, metadata_props=(), doc_string=None))
                return None
            if constant is not None:
                self.sparse_constants.append(constant)
                return None
            producer = defining.producer(name)
            if producer is not None and operator_key(producer.node)[:2] in {("", "Constant"), ("", "Identity")}:
                return producer.node
        raise UnsettledError(f'its input "{visible(name)}" is not defined around it')


def _value(name: str, known: KnownType) -> d.ValueInfo:
    data_type, rank = known
    shape = None if rank is None else d.TensorShape(dim=(d.Dimension(),) * rank)
    return d.ValueInfo(name=name, type=d.Type(tensor_type=d.TensorType(elem_type=data_type, shape=shape)))


def _fresh_names(nodes: Sequence[d.Node], count: int) -> list[str]:
    used = {name for each in nodes for node in walk(each, d.Node) for name in (*node.input, *node.output)}
    names = (f"result_{number}" for number in range(len(used) + count))
    return [name for name in names if name not in used][:count]


def _opsets(model: d.Model, scope: Scope) -> tuple[d.OperatorSetId, ...]:
    """Return the operator sets of a graph; those of a function override those of the model."""
    graph = scope.root.graph
    own = graph.opset_import if isinstance(graph, d.Function) else ()
    known = {plain_domain(each.domain) for each in own}
    return (*own, *[each for each in model.opset_import if plain_domain(each.domain) not in known])


def _require_deterministic(nodes: Iterable[d.Node], opset: int, constants: Mapping[str, d.Tensor]) -> None:
    """Raise NotRunError if the results of a node are random."""
    for node in nodes:
        if plain_domain(node.domain) == "" and (
            node.op_type in RANDOM or (node.op_type == "Dropout" and _is_training(node, opset, constants))
        ):
            raise NotRunError(f"{visible(node.op_type or '')} returns random results")


def _is_training(dropout: d.Node, opset: int, constants: Mapping[str, d.Tensor]) -> bool:
    """Whether a Dropout drops elements, or may do so."""
    if opset < 7:
        is_test = next((each.i for each in dropout.attribute if each.name == "is_test"), None)
        return not is_test
    mode = dropout.input[2] if len(dropout.input) > 2 else ""
    if opset < 12 or not mode:
        return False
    stored = raw_bytes(constants[mode]) if mode in constants else None
    return stored is None or whole(stored[0]) != b"\0"


def _with_elements(model: d.Model, elements: Elements) -> d.Model:
    total = 0

    def with_elements(tensor: d.Tensor) -> d.Tensor:
        nonlocal total
        name = f'"{visible(tensor.name)}"' if tensor.name else "a constant"
        if is_external(tensor):
            data = elements(tensor)
            if data is None:
                raise NotRunError(f"the elements of {name} are in an external file that cannot be read")
            tensor = msgspec.structs.replace(tensor, raw_data=data, external_data=(), data_location=None)
        payloads = [getattr(tensor, field) or b"" for field in _PAYLOADS]
        if any(isinstance(each, Digest) for each in payloads):
            raise NotRunError(f"only the sha256 of {name} is stored")
        total += sum(map(len, payloads))
        if total > PART_CONSTANT_BYTES:
            raise NotRunError(f"its constants have more than {PART_CONSTANT_BYTES >> 20} MiB")
        return tensor

    return replace_records(model, d.Tensor, with_elements)


class Surroundings:
    """Adjacent nodes of regions, in the graphs of two models."""

    def __init__(self, alignment: Alignment, regions: Iterable[Region]) -> None:
        self._alignment = alignment
        self._indices = alignment.base, alignment.target
        self._paired_outputs: dict[str, dict[tuple[str, str], None]] = {}
        self._regions: dict[tuple[str, int, int], Region] = {}
        for region in regions:
            address = region.pair.base.address
            self._paired_outputs.setdefault(address, {}).update(dict.fromkeys(region.outputs))
            for side, positions in enumerate((region.base, region.target)):
                self._regions.update({(address, side, position): region for position in positions})
        self._known: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def _values(self, pair: GraphPair) -> tuple[dict[str, str], dict[str, str]]:
        """Map the names of all values visible in a graph to their counterparts, for the base and for the target."""
        address = pair.base.address
        if address not in self._known:
            around = None if pair.base.outer is None else self._alignment.by_base.get(pair.base.outer.address)
            outer = ({}, {}) if around is None else self._values(around)
            forth, back = outer[0] | dict(pair.values), outer[1] | {new: old for old, new in pair.values.items()}
            for old, new in self._paired_outputs.get(address, ()):
                forth.setdefault(old, new)
                back.setdefault(new, old)
            self._known[address] = forth, back
        return self._known[address]

    def widen(self, region: Region) -> Region | None:
        """Return the region with the producers of its inputs and the consumers of its outputs; None if it cannot grow.

        Paired nodes are added on both sides, other nodes with the whole region that they are in.
        """
        pair = region.pair
        near: list[list[int]] = []
        for side, scope, inside in ((0, pair.base, region.base), (1, pair.target, region.target)):
            names = [name for each in region.inputs if (name := each[side])]
            near.append([scope.producers[name][0] for name in names if name in scope.producers])
            made = _outputs_of(scope, inside)
            for name in [each[side] for each in region.outputs if each[side] in made]:
                places = self._indices[side].consuming_nodes(scope, name)
                near[side] += [place for place in places if place is not None]
        return self._grow(region, near)

    def include_derivations(self, region: Region) -> Region | None:
        """Return the region with the nodes that derive its inputs from each other, constants or shapes; else None.

        Random values for such inputs would contradict each other.
        """
        near = []
        for side, scope in enumerate((region.pair.base, region.pair.target)):
            given = {name for each in region.inputs if (name := each[side])}
            near.append([position for name in sorted(given) for position in _derivation(scope, name, given)])
        return self._grow(region, near)

    def _grow(self, region: Region, near: Sequence[Sequence[int]]) -> Region | None:
        """Return the region with further nodes of the base and of the target, and their counterparts or regions."""
        pair = region.pair
        base, target = set(region.base), set(region.target)
        outputs = dict.fromkeys(region.outputs)
        for side, counterparts in enumerate((pair.target_of, pair.base_of)):
            for position in near[side]:
                if (counterpart := counterparts[position]) >= 0:
                    (base, target)[side].add(position)
                    (target, base)[side].add(counterpart)
                elif (other := self._regions.get((pair.base.address, side, position))) is not None:
                    base.update(other.base)
                    target.update(other.target)
                    outputs.update(dict.fromkeys(other.outputs))
        grown = len(base) > len(region.base) or len(target) > len(region.target)
        if not grown or max(len(base), len(target)) > MAX_NODES:
            return None
        joined = msgspec.structs.replace(region, outputs=tuple(outputs))
        return self._region(joined, sorted(base), sorted(target))

    def _region(self, region: Region, base: Sequence[int], target: Sequence[int]) -> Region:
        pair = region.pair
        outputs = tuple(dict.fromkeys(self._outputs(region, base, target)))
        known = [each for each in region.inputs if each[0] and each[1]]
        counterparts = dict(known), {new: old for old, new in known}
        values = self._values(pair)
        inputs: dict[tuple[str | None, str | None], None] = {}
        for side, scope, positions, aliases in (
            (0, pair.base, base, pair.base_aliases),
            (1, pair.target, target, pair.target_aliases),
        ):
            computed = _outputs_of(scope, positions)
            consumed = [name for place in positions for name in consumed_names(scope.graph.node[place])]
            for name in dict.fromkeys([*consumed, *[each[side] for each in outputs]]):
                if name not in computed and copied_constant(scope, name) is None:
                    other = (
                        counterparts[side].get(name)
                        or values[side].get(name)
                        or values[side].get(aliases.get(name, name))
                    )
                    inputs[(name, other) if side == 0 else (other, name)] = None
        return Region(pair, tuple(base), tuple(target), tuple(inputs), outputs, (), ())

    def _outputs(self, region: Region, base: Sequence[int], target: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Yield paired outputs that are consumed outside: of added nodes, and of the region before."""
        pair, inside, its_inside = region.pair, set(base), set(target)
        for old, new in region.outputs:
            if self._consumed_outside(pair, old, new, inside):
                yield old, new
        for position in base:
            place = pair.target_of[position]
            if place < 0 or position in region.base:
                continue
            outputs = pair.base.graph.node[position].output, pair.target.graph.node[place].output
            for old, new in zip(*outputs, strict=False):
                ours = set(self._indices[0].consuming_nodes(pair.base, old)) if old and new else set()
                theirs = set(self._indices[1].consuming_nodes(pair.target, new)) if old and new else set()
                if not ours <= inside or not theirs <= its_inside:
                    yield old, new

    def _consumed_outside(self, pair: GraphPair, old: str, new: str, base: set[int]) -> bool:
        """Whether paired nodes outside, or outputs of the graphs, consume these two values."""
        target_consumers = set(self._indices[1].consuming_nodes(pair.target, new))
        for position in self._indices[0].consuming_nodes(pair.base, old):
            if position is None:
                if None in target_consumers:
                    return True
            elif position not in base and (
                pair.target_of[position] in target_consumers or pair.target_of[position] < 0
            ):
                return True
        return False


def _derivation(scope: Scope, name: str, given: Collection[str]) -> list[int]:
    """Return the nodes that derive a value from only `given` values, constants and shapes; none if that fails."""
    derivation: dict[int, None] = {}
    pending = [name]
    while pending:
        derived = pending.pop()
        if (derived != name and derived in given) or copied_constant(scope, derived) is not None:
            continue
        if derived in scope.inputs or derived not in scope.producers:
            return []
        position = scope.producers[derived][0]
        if position in derivation:
            continue
        derivation[position] = None
        node = scope.graph.node[position]
        if len(derivation) > MAX_DERIVATION or node.op_type in RANDOM:
            return []
        if node.op_type not in {"Shape", "Size"}:
            pending += consumed_names(node)
    return list(derivation)


def _outputs_of(scope: Scope, positions: Iterable[int]) -> set[str]:
    return {name for position in positions for name in scope.graph.node[position].output if name}
