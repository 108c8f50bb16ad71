"""Changes of the values that nodes consume and produce, with the order of nodes, types and annotations that follow.

Runtimes refuse a model whose value_info or outputs state another dtype than its nodes produce, so dtypes are followed
from node to node before anything is changed. `inference` corrects shapes afterwards.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.editing.workspace import NodeChange, Workspace
from onnxjson.model import operator_checks as rules
from onnxjson.model import operators
from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Graph, Node, TensorAnnotation, ValueInfo
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope, Use
from onnxjson.model.types import format_data_type

Dtypes = Mapping[str, int]
"""Future data types of values, by name."""

Known = dict[tuple[Scope, str], int | None]
"""Data types that are already determined, None if unknown: the graph that defines a value, and its name."""

_FARTHEST: Final = 256
"""Maximum number of nodes through which a dtype is followed."""

Value = tuple[Scope, str]
"""The graph that defines a value, and its name."""


def check_node(workspace: Workspace, scope: Scope, node: Node, edit: str, address: str = "") -> None:
    """Raise unless a node is valid for its operator; `address` is its place in messages, or "".

    Raises:
        EditError: it is not; the message states what is allowed.
    """
    domain, op_type = operators.plain_domain(node.domain), node.op_type or ""
    shown = visible(op_type)
    key = operators.operator_key(node)
    function = next((each for each in workspace.model.functions if operators.function_key(each) == key), None)
    if function is not None:
        _raise_first(edit, address, rules.count_mistakes(shown, "input", len(node.input), 0, len(function.input)))
        _raise_first(edit, address, rules.count_mistakes(shown, "output", len(node.output), 0, len(function.output)))
        return
    opset = workspace.opset(scope, domain)
    if opset is None:
        which = f'the domain "{visible(domain)}"' if domain else "the default domain"
        newest = operators.newest_version(domain)
        option = f" --domain {visible(domain)}" if domain else ""
        hint = f"`stamp-opset {newest or 1}{option}` adds it"
        raise _at(edit, address, f"the model has no opset_import for {which}; {hint}")
    if not operators.known_operators(domain):
        return
    found = operators.operator_signature(domain, op_type, opset)
    mistakes = iter([rules.unknown_operator(node, opset)]) if found is None else rules.node_mistakes(node, found, opset)
    _raise_first(edit, address, mistakes)


def _raise_first(edit: str, address: str, mistakes: Iterator[rules.Mistake]) -> None:
    for mistake in mistakes:
        raise _at(edit, address, str(mistake))


def _at(edit: str, address: str, sentence: str) -> EditError:
    return EditError(f"{address}: {sentence}" if address else sentence, place=edit)


def dtype_of(workspace: Workspace, scope: Scope, name: str, known: Known | None = None) -> int | None:
    """Return the data type of a value, as the model states it or operators propagate it; None if unknown.

    `known` has results for the same model; new ones are added.
    """
    known = {} if known is None else known
    path: list[tuple[Scope, str]] = []
    dtype: int | None = None
    for _ in range(_FARTHEST):
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            break
        if (defining_scope, name) in known:
            dtype = known[defining_scope, name]
            break
        path.append((defining_scope, name))
        constant = defining_scope.initializer(name)
        stated = Index.type_of(defining_scope, name) if constant is None else type_of_constant(constant)
        dtype = rules.dtype_of_type(stated)
        producer = workspace.index.producer(defining_scope, name)
        if dtype is not None or producer is None:
            break
        scope, node = producer.scope, producer.node
        propagated = output_dtype(workspace, scope, node, node.output.index(name))
        if not isinstance(propagated, str):
            dtype = propagated
            break
        name = propagated
    else:
        # Values closer to the producer may still be determined.
        del path[1:]
    known.update(dict.fromkeys(path, dtype))
    return dtype


def output_dtype(workspace: Workspace, scope: Scope, node: Node, slot: int) -> int | str | None:
    """Return the dtype of a node's output, or the name of an input with the same dtype; None if neither is known."""
    return rules.produced_dtype(node, _signature(workspace, scope, node), slot)


def _signature(workspace: Workspace, scope: Scope, node: Node) -> operators.Signature | None:
    return operators.operator_signature(
        operators.plain_domain(node.domain), node.op_type, workspace.opset(scope, node.domain)
    )


def dtype_conflict(
    workspace: Workspace,
    scope: Scope,
    node: Node,
    dtypes: Dtypes | None = None,
    known: Known | None = None,
    called: Callable[[str], str] = rules.quoted,
) -> str | None:
    """Describe a conflict between the dtypes of a node's inputs; None if none is known.

    `dtypes` are future dtypes of some values; for `known` see `dtype_of`; `called` is what the message calls a value.
    """
    signature = _signature(workspace, scope, node)
    if signature is None:
        return None

    def dtype_after(name: str) -> int | None:
        return (dtypes or {}).get(name) or dtype_of(workspace, scope, name, known)

    mistake = rules.dtype_mistake(node, signature, dtype_after, called)
    return None if mistake is None else mistake.message


@dataclass
class GraphChanges:
    """Changes of one graph; names are those before the change."""

    nodes: dict[int, NodeChange] = field(default_factory=dict)
    inputs: dict[int, dict[int, str]] = field(default_factory=dict)
    """New names of inputs of nodes: position of the node -> slot -> name."""
    outputs: dict[int, dict[int, str]] = field(default_factory=dict)
    """New names of outputs of nodes."""
    results: dict[int, str] = field(default_factory=dict)
    """New names of the outputs of the graph, by position."""
    removed: set[str] = field(default_factory=set)
    """Removed values: their value_info is removed as well."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Renamed values: quantization annotations follow."""
    dtypes: dict[str, int] = field(default_factory=dict)
    """Values with a new dtype: outputs state it, and entries in value_info are removed."""


class Changes:
    """Changes of a model, collected before any of them is made."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._graphs: dict[Scope, GraphChanges] = {}

    def of(self, scope: Scope) -> GraphChanges:
        """Return the changes of one graph."""
        return self._graphs.setdefault(scope, GraphChanges())

    def take(self, use: Use, name: str) -> None:
        """Replace the value in one of its uses."""
        if use.position is None:
            self.of(use.scope).results[use.slot] = name
        else:
            self.of(use.scope).inputs.setdefault(use.position, {})[use.slot] = name

    def make(self) -> None:
        """Make all changes, in inner graphs first."""
        for scope in sorted(self._graphs, key=lambda each: each.address.count("/"), reverse=True):
            self._workspace.replace_graph(scope, _changed(scope.graph, self._graphs[scope]))


def _changed(graph: Graph | Function, changes: GraphChanges) -> Graph | Function:
    nodes = list(graph.node)
    for position in sorted({*changes.nodes, *changes.inputs, *changes.outputs}, reverse=True):
        node = nodes[position]
        if position in changes.inputs:
            node = with_inputs(node, _with(node.input, changes.inputs[position]))
        if position in changes.outputs:
            node = with_outputs(node, _with(node.output, changes.outputs[position]))
        new = changes.nodes.get(position, node)
        nodes[position : position + 1] = [new] if isinstance(new, Node) else new or ()
    fields: dict[str, Any] = {"value_info": _values(graph.value_info, changes)}
    if changes.nodes or changes.inputs or changes.outputs:
        fields["node"] = tuple(nodes)
    if isinstance(graph, Function):
        if changes.results:
            fields["output"] = _with(graph.output, changes.results)
        return replace(graph, **fields)
    if changes.results or changes.dtypes:
        fields["output"] = tuple(
            [
                _result(each, changes.results.get(position, each.name), changes.dtypes.get(each.name or ""))
                for position, each in enumerate(graph.output)
            ]
        )
    fields["quantization_annotation"] = _annotations(graph.quantization_annotation, changes)
    return replace(graph, **fields)


def with_inputs(node: Node, names: tuple[str, ...]) -> Node:
    """Return the node with other inputs; their sharding is that of the inputs that they replace."""
    return _sharded(replace(node, input=names), node.input, names)


def with_outputs(node: Node, names: tuple[str, ...]) -> Node:
    """Return the node with other outputs; their sharding follows."""
    return _sharded(replace(node, output=names), node.output, names)


def _sharded(node: Node, old: tuple[str, ...], new: tuple[str, ...]) -> Node:
    """Return the node with the sharding of its new inputs and outputs, once for each name."""
    if not node.device_configurations:
        return node
    there = {*node.input, *node.output}
    moved = {name: other for name, other in zip_longest(old, new, fillvalue="") if name and name not in there}
    if not moved:
        return node
    devices = []
    for device in node.device_configurations:
        taken = {each.tensor_name for each in device.sharding_spec}
        specs = []
        for sharding in device.sharding_spec:
            name = moved.get(sharding.tensor_name or "", sharding.tensor_name)
            if name == sharding.tensor_name:
                specs.append(sharding)
            elif name and name not in taken:
                taken.add(name)
                specs.append(replace(sharding, tensor_name=name))
        devices.append(replace(device, sharding_spec=tuple(specs)))
    return replace(node, device_configurations=tuple(devices))


def _with(names: tuple[str, ...], new: Mapping[int, str]) -> tuple[str, ...]:
    longest = max(len(names), *(slot + 1 for slot in new))
    return tuple([new.get(slot, names[slot] if slot < len(names) else "") for slot in range(longest)])


def _values(values: tuple[ValueInfo, ...], changes: GraphChanges) -> tuple[ValueInfo, ...]:
    if not changes.removed and not changes.dtypes:
        return values
    kept = tuple([each for each in values if each.name not in changes.removed and each.name not in changes.dtypes])
    return values if len(kept) == len(values) else kept


def _result(value: ValueInfo, name: str | None, dtype: int | None) -> ValueInfo:
    """Return an output of a graph with its new name, and its new dtype if there is one."""
    tensor = None if value.type is None else value.type.tensor_type
    if dtype is not None and value.type is not None and tensor is not None:
        tensor = replace(tensor, elem_type=dtype)
        value = replace(value, type=replace(value.type, tensor_type=tensor))
    return value if value.name == name else replace(value, name=name)


def _annotations(annotations: tuple[TensorAnnotation, ...], changes: GraphChanges) -> tuple[TensorAnnotation, ...]:
    if not annotations or not (changes.removed or changes.renamed):
        return annotations
    new = changes.renamed.get
    kept = []
    for annotation in annotations:
        if annotation.tensor_name not in changes.removed or annotation.tensor_name in changes.renamed:
            parameters = tuple(
                [
                    replace(entry, value=new(entry.value or "", entry.value))
                    for entry in annotation.quant_parameter_tensor_names
                ]
            )
            name = new(annotation.tensor_name or "", annotation.tensor_name)
            kept.append(replace(annotation, tensor_name=name, quant_parameter_tensor_names=parameters))
    return tuple(kept)


class ResultTypes:
    """Values whose dtype changes after changes of nodes, or because values get replacements of some dtypes.

    Raises:
        EditError: a node, or a subgraph, is known to need the old dtype.
    """

    def __init__(
        self,
        workspace: Workspace,
        edit: str,
        nodes: Mapping[Scope, Mapping[int, NodeChange]],
        values: Mapping[Value, int | None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._edit = edit
        self._nodes = nodes
        self._given = dict(values or {})
        self._dtypes: dict[Value, int] = {}
        self._known: Known = {}
        self._pending: deque[tuple[Scope, int]] = deque()
        self._consumers: dict[tuple[Scope, int], None] = {}
        self._times: Counter[Value] = Counter()
        # The dtype of an output comes from an input of the node, so it changes at most as often as there are causes.
        self._most_times = 1 + len(self._given) + sum(map(len, nodes.values()))
        for (scope, name), dtype in self._given.items():
            self._found(scope, name, dtype)
        self._pending.extend([(scope, position) for scope, changed in nodes.items() for position in changed])
        self._follow()
        self._check_consumers()

    def following(self) -> list[str]:
        """Return the names of other values whose dtype changes with the given ones."""
        return [name for scope, name in self._dtypes if (scope, name) not in self._given]

    def put(self, changes: Changes, *, without: Value | None = None) -> None:
        """Add the new dtypes to `changes`, except for the value `without`."""
        for (scope, name), dtype in self._dtypes.items():
            if (scope, name) != without:
                changes.of(scope).dtypes[name] = dtype

    def make(self, *, without: Value | None = None) -> None:
        """Change the stated dtypes of the values only; no node moves."""
        if self._dtypes:
            changes = Changes(self._workspace)
            self.put(changes, without=without)
            changes.make()

    def _follow(self) -> None:
        while self._pending:
            scope, position = self._pending.popleft()
            node = self._node(scope, position)
            for slot, name in enumerate(() if node is None else node.output):
                if name and node is not None and not self._is_as_before(scope, position, node, slot):
                    self._found(scope, name, self._made(scope, node, slot))

    def _node(self, scope: Scope, position: int) -> Node | None:
        node = self._nodes.get(scope, {}).get(position, scope.graph.node[position])
        return node if isinstance(node, Node) else None

    def _is_as_before(self, scope: Scope, position: int, node: Node, slot: int) -> bool:
        """Whether a changed node has the same output dtype as before; faster than determining it."""
        old = scope.graph.node[position]
        if node is old or self._dtypes:
            return False
        return output_dtype(self._workspace, scope, node, slot) == output_dtype(self._workspace, scope, old, slot)

    def _made(self, scope: Scope, node: Node, slot: int) -> int | None:
        dtype_or_name = output_dtype(self._workspace, scope, node, slot)
        if not isinstance(dtype_or_name, str):
            return dtype_or_name
        defining_scope = Index.defining_scope(scope, dtype_or_name)
        known = None if defining_scope is None else self._dtypes.get((defining_scope, dtype_or_name))
        return known or dtype_of(self._workspace, scope, dtype_or_name, self._known)

    def _found(self, scope: Scope, name: str, dtype: int | None) -> None:
        before = self._dtypes.get((scope, name)) or dtype_of(self._workspace, scope, name, self._known)
        if dtype is None or dtype == before:
            return
        self._times[scope, name] += 1
        if self._times[scope, name] > self._most_times:
            return  # a cycle of nodes, in an invalid model
        self._dtypes[scope, name] = dtype
        for use in self._workspace.index.consumers(scope, name):
            if use.position is None:
                self._check_result(use, name, before, dtype)
            else:
                self._pending.append((use.scope, use.position))
                self._consumers[use.scope, use.position] = None

    def _check_result(self, use: Use, name: str, before: int | None, dtype: int) -> None:
        if before is not None and use.scope.kind == "subgraph":
            raise self._refused(
                f'{visible(use.address)}: "{visible(name)}" would be {format_data_type(dtype)}, and the node around '
                f"this graph needs {format_data_type(before)}",
                use.address,
            )

    def _check_consumers(self) -> None:
        names = {name: dtype for (_, name), dtype in self._dtypes.items()}
        for scope, position in self._consumers:
            node = self._node(scope, position)
            if node is None:
                continue
            old = scope.graph.node[position]
            conflict = dtype_conflict(self._workspace, scope, node, names, self._known)
            if conflict is None or dtype_conflict(self._workspace, scope, old, None, self._known) is not None:
                continue
            place = f"{scope.address}/node/{position}"
            raise self._refused(f"{place}: {conflict}", place)

    def _refused(self, reason: str, address: str) -> EditError:
        return EditError(reason, address, place=self._edit, hint="add a Cast with add-node")


def replace_nodes(workspace: Workspace, changes: Mapping[Scope, Mapping[int, NodeChange]], edit: str) -> None:
    """Replace nodes, and correct the stated dtypes of their outputs.

    Raises:
        EditError: see `ResultTypes`.
    """
    made_of = {scope: scope.graph.node for scope in changes}
    ResultTypes(workspace, edit, changes).make()
    workspace.replace_nodes_in(changes, made_of)
