"""Names put in the place of others wherever a value is taken, and what was said of values that are gone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec

from onnxjson.document import Function, Graph, Node, TensorAnnotation, ValueInfo
from onnxjson.edits.workspace import NodeChange, Workspace
from onnxjson.index import Index, Scope, Use


@dataclass
class GraphChanges:
    """What is to change in one graph; names are those before the change."""

    nodes: dict[int, NodeChange] = field(default_factory=dict)
    inputs: dict[int, dict[int, str]] = field(default_factory=dict)
    """New names for inputs of nodes: position of the node -> slot -> name."""
    outputs: dict[int, dict[int, str]] = field(default_factory=dict)
    """New names for outputs of nodes."""
    results: dict[int, str] = field(default_factory=dict)
    """New names for the outputs of the graph, by position."""
    gone: set[str] = field(default_factory=set)
    """Values that are there no more: what is said of their types goes with them."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Values that have another name now; what is said of their quantization follows."""
    dtypes: dict[str, int] = field(default_factory=dict)
    """Values that have another dtype now; outputs say it, and value_info says nothing of them any more."""


class Changes:
    """What is to change in a model, gathered before anything does."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._graphs: dict[Scope, GraphChanges] = {}

    def of(self, scope: Scope) -> GraphChanges:
        """The changes of one graph."""
        return self._graphs.setdefault(scope, GraphChanges())

    def take(self, use: Use, name: str) -> None:
        """Has a place that takes a value take another one."""
        if use.position is None:
            self.of(use.scope).results[use.slot] = name
        else:
            self.of(use.scope).inputs.setdefault(use.position, {})[use.slot] = name

    def make(self) -> None:
        """Makes all changes, in the inner graphs before the outer."""
        for scope in sorted(self._graphs, key=lambda each: each.address.count("/"), reverse=True):
            self._workspace.replace_graph(scope, _changed(scope.graph, self._graphs[scope]))


def _changed(graph: Graph | Function, changes: GraphChanges) -> Graph | Function:
    nodes = list(graph.node)
    for position in sorted({*changes.nodes, *changes.inputs, *changes.outputs}, reverse=True):
        node = nodes[position]
        if position in changes.inputs:
            node = taking(node, _with(node.input, changes.inputs[position]))
        if position in changes.outputs:
            node = making(node, _with(node.output, changes.outputs[position]))
        new = changes.nodes.get(position, node)
        nodes[position : position + 1] = [new] if isinstance(new, Node) else new or ()
    is_moving = bool(changes.nodes or changes.inputs or changes.outputs)
    new_nodes = tuple(nodes) if is_moving else graph.node
    fields: dict[str, object] = {"node": new_nodes, "value_info": _values(graph.value_info, changes)}
    if isinstance(graph, Function):
        if changes.results:
            fields["output"] = _with(graph.output, changes.results)
    else:
        if changes.results or changes.dtypes:
            fields["output"] = tuple(
                [
                    _result(each, changes.results.get(position, each.name), changes.dtypes.get(each.name or ""))
                    for position, each in enumerate(graph.output)
                ]
            )
        fields["quantization_annotation"] = _annotations(graph.quantization_annotation, changes)
    return msgspec.structs.replace(graph, **fields)


def taking(node: Node, names: tuple[str, ...]) -> Node:
    """The node with other inputs; what is said of their sharding is said of those that stand in their places."""
    return _sharded(msgspec.structs.replace(node, input=names), node.input, names)


def making(node: Node, names: tuple[str, ...]) -> Node:
    """The node with other outputs; what is said of their sharding follows."""
    return _sharded(msgspec.structs.replace(node, output=names), node.output, names)


def _sharded(node: Node, old: tuple[str, ...], new: tuple[str, ...]) -> Node:
    """The node with the sharding of what it takes and makes now; of each name that is said once."""
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
        for each in device.sharding_spec:
            name = moved.get(each.tensor_name or "", each.tensor_name)
            if name == each.tensor_name:
                specs.append(each)
            elif name and name not in taken:
                taken.add(name)
                specs.append(msgspec.structs.replace(each, tensor_name=name))
        devices.append(msgspec.structs.replace(device, sharding_spec=tuple(specs)))
    return msgspec.structs.replace(node, device_configurations=tuple(devices))


def _with(names: tuple[str, ...], new: Mapping[int, str]) -> tuple[str, ...]:
    longest = max(len(names), *(slot + 1 for slot in new))
    return tuple([new.get(slot, names[slot] if slot < len(names) else "") for slot in range(longest)])


def _values(values: tuple[ValueInfo, ...], changes: GraphChanges) -> tuple[ValueInfo, ...]:
    if not changes.gone and not changes.dtypes:
        return values
    kept = tuple([each for each in values if each.name not in changes.gone and each.name not in changes.dtypes])
    return values if len(kept) == len(values) else kept


def _result(value: ValueInfo, name: str | None, dtype: int | None) -> ValueInfo:
    """An output of a graph with its new name, and its new dtype where it has one."""
    tensor = None if value.type is None else value.type.tensor_type
    if dtype is not None and value.type is not None and tensor is not None:
        tensor = msgspec.structs.replace(tensor, elem_type=dtype)
        value = msgspec.structs.replace(value, type=msgspec.structs.replace(value.type, tensor_type=tensor))
    return value if value.name == name else msgspec.structs.replace(value, name=name)


def _annotations(annotations: tuple[TensorAnnotation, ...], changes: GraphChanges) -> tuple[TensorAnnotation, ...]:
    if not annotations or not (changes.gone or changes.renamed):
        return annotations
    return tuple(
        [
            msgspec.structs.replace(
                each,
                tensor_name=changes.renamed.get(each.tensor_name or "", each.tensor_name),
                quant_parameter_tensor_names=tuple(
                    [
                        msgspec.structs.replace(entry, value=changes.renamed.get(entry.value or "", entry.value))
                        for entry in each.quant_parameter_tensor_names
                    ]
                ),
            )
            for each in annotations
            if each.tensor_name not in changes.gone or each.tensor_name in changes.renamed
        ]
    )


def uses(index: Index, scope: Scope, name: str, without: Iterable[tuple[Scope, int]] = ()) -> tuple[Use, ...]:
    """Every place that takes a value, but for those of some nodes."""
    left_out = set(without)
    return tuple([use for use in index.consumers(scope, name) if (use.scope, use.position) not in left_out])
