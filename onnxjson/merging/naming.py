"""Names of values and functions in what stands in a conflict, which is a part of a model and has no model around it."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeVar

from onnxjson import document as d
from onnxjson.addresses import attribute_segments, escape
from onnxjson.conflicts import Slot
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.renaming import defined, renamed
from onnxjson.index import Index, Scope
from onnxjson.merging.sides import FunctionKey, Side, with_function_names, with_node_names

Name = TypeVar("Name", str, str | None)

_VALUES: Final[frozenset[tuple[type[d.Record], str]]] = frozenset(
    {
        (d.Node, "input"),
        (d.Node, "output"),
        (d.Function, "input"),
        (d.Function, "output"),
        (d.ValueInfo, "name"),
        (d.Tensor, "name"),
        (d.TensorAnnotation, "tensor_name"),
    }
)
"""Fields whose strings are names of values."""


def by_address(index: Index) -> dict[str, Scope]:
    """All graphs of a model by their addresses."""
    return {scope.address: scope for scope in index.scopes}


def scope_around(scopes: Mapping[str, Scope], address: str) -> Scope | None:
    """Of graphs by their addresses the innermost one that has a slot, or is it; None outside of graphs."""
    while address and address not in scopes:
        address = address.rpartition("/")[0]
    return scopes.get(address)


def is_name_of_value(scope: Scope, at: str, name: Any) -> bool:
    """Whether the slot at an address is where a graph defines the value of a name."""
    return isinstance(name, str) and scope.defines(name) and scope.address + place_of(scope, name) == at


def place_of(scope: Scope, name: str) -> str:
    """Where a graph defines a value, below the address of the graph: the slot of its name."""
    if name in scope.inputs:
        return f"/input/{scope.inputs[name]}" + ("" if isinstance(scope.graph, d.Function) else "/name")
    if name in scope.initializers:
        return f"/initializer/{scope.initializers[name]}/name"
    if name in scope.sparse_initializers:
        return f"/sparse_initializer/{scope.sparse_initializers[name]}/values/name"
    position, slot = scope.makers[name]
    return f"/node/{position}/output/{slot}"


def with_names(value: Any, slot: Slot, names: Mapping[str, str], functions: Mapping[FunctionKey, FunctionKey]) -> Any:
    """What a side has in a slot, with other names of values and functions.

    Args:
        value: a record, or the value of a field as a record holds it.
        slot: where it stands.
        names: of values that are seen there -> their new names.
        functions: domain, name and overload of functions -> the new ones.
    """
    if isinstance(value, tuple):
        return tuple([with_names(each, slot, names, functions) for each in value])
    if isinstance(value, str):
        return names.get(value, value) if (slot.message, slot.name) in _VALUES else value
    wrapped = _wrapped(value, slot)
    if wrapped is None:
        return value
    model, place, unwrap = wrapped
    if functions:
        model = rebuilt(Index(model), lambda _, body: with_node_names(body, {}, functions))
        model = with_function_names(model, functions)
    if names:
        index = Index(model)
        # A graph knows its own names, too; what stands around it here is made up.
        model = renamed(index, {by_address(index).get(place, index.scopes[0]): names})
    return unwrap(model)


def with_inner_names(
    value: Any, slot: Slot, address: str | None, sides: tuple[Side, Side], around: AbstractSet[str]
) -> Any:
    """What stands in a slot, with the merged names of nodes, and of the values of graphs inside it.

    Args:
        value: with names of the base.
        slot: where it stands.
        address: of what it is in the base; None for what is new.
        sides: ours and theirs.
        around: names that the graphs around it have; none within may be the same.
    """
    wrapped = _wrapped(value, slot)
    if wrapped is None:
        return value
    model, place, unwrap = wrapped
    bases = by_address(sides[0].alignment.base)

    def base_of(scope: Scope) -> Scope | None:
        if address is None:
            return None
        if f"{scope.address}/".startswith(f"{place}/"):
            return bases.get(f"{address}{scope.address[len(place) :]}")
        return bases.get(address.rpartition("/node/")[0]) if isinstance(value, d.Node) else None

    def with_nodes(scope: Scope, graph: Body) -> Body:
        base = base_of(scope)
        if base is None:
            return graph
        found: dict[int, str | None] = {}
        for position, node in enumerate(graph.node):
            maker = base.makers.get(node.output[0]) if node.output else None
            if maker is not None:
                at = f"{base.address}/node/{maker[0]}"
                found[position] = _merged(node.name, *[side.nodes.get(at, node.name) for side in sides])
        return with_node_names(graph, found, {})

    if any(side.nodes for side in sides):
        model = rebuilt(Index(model), with_nodes)
    index = Index(model)
    fresh = sides[0].fresh | sides[1].fresh
    names: dict[Scope, dict[str, str]] = {}
    for scope in index.scopes:
        if f"{scope.address}/".startswith(f"{place}/"):
            base = base_of(scope)
            known = [{} if base is None else side.values.get(base.address, {}) for side in sides]
            names[scope] = {}
            for name in defined(scope):
                new = fresh.get(name, _merged(name, *[each.get(name, name) for each in known]))
                if (new := free(new, around)) != name:
                    names[scope][name] = new
    return unwrap(renamed(index, names) if any(names.values()) else model)


def free(name: str, taken: AbstractSet[str]) -> str:
    """The name, with a number behind it where it is taken."""
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _merged(old: Name, ours: Name, theirs: Name) -> Name:
    return theirs if ours == old else ours


def _wrapped(value: Any, slot: Slot) -> tuple[d.Model, str, Callable[[Any], Any]] | None:
    """A model around a record that holds names, the address of the record there, and what takes it out again."""
    match value:
        case d.Function():
            return d.Model(functions=(value,)), "/functions/0", lambda model: model.functions[0]
        case d.TrainingInfo():
            model = d.Model(graph=d.Graph(), training_info=(value,))
            return model, "/training_info/0", lambda model: model.training_info[0]
        case d.Node():
            return _in_graph(d.Graph(node=(value,)), "/node/0", lambda graph: graph.node[0])
        case d.Tensor():
            return _in_graph(d.Graph(initializer=(value,)), "/initializer/0", lambda graph: graph.initializer[0])
        case d.SparseTensor():
            around = d.Graph(sparse_initializer=(value,))
            return _in_graph(around, "/sparse_initializer/0", lambda graph: graph.sparse_initializer[0])
        case d.ValueInfo():
            return _in_graph(d.Graph(value_info=(value,)), "/value_info/0", lambda graph: graph.value_info[0])
        case d.TensorAnnotation():
            around = d.Graph(quantization_annotation=(value,))
            return _in_graph(around, "/quantization_annotation/0", lambda graph: graph.quantization_annotation[0])
        case d.StringStringEntry() if slot.message is d.TensorAnnotation:
            annotation = d.TensorAnnotation(quant_parameter_tensor_names=(value,))
            return _in_graph(
                d.Graph(quantization_annotation=(annotation,)),
                "/quantization_annotation/0/quant_parameter_tensor_names/0",
                lambda graph: graph.quantization_annotation[0].quant_parameter_tensor_names[0],
            )
        case d.Attribute():
            around = d.Graph(node=(d.Node(attribute=(value,)),))
            at = f"/node/0/attribute/{escape(attribute_segments((value,))[0])}"
            return _in_graph(around, at, lambda graph: graph.node[0].attribute[0])
        case d.Graph():
            node = d.Node(attribute=(d.Attribute(name="g", g=value),))
            return _in_graph(d.Graph(node=(node,)), "/node/0/attribute/g/g", lambda graph: graph.node[0].attribute[0].g)
    return None


def _in_graph(graph: d.Graph, at: str, unwrap: Callable[[Any], Any]) -> tuple[d.Model, str, Callable[[Any], Any]]:
    return d.Model(graph=graph), f"/graph{at}", lambda model: unwrap(model.graph)
