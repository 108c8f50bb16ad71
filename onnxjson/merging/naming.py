"""Names of values and functions in what stands in a conflict, which is a part of a model and has no model around it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from onnxjson import document as d
from onnxjson.conflicts import Slot
from onnxjson.edits.rebuilding import rebuilt
from onnxjson.edits.renaming import renamed
from onnxjson.index import Index, Scope
from onnxjson.merging.sides import FunctionKey, with_function_names, with_node_names

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
    model, unwrap = wrapped
    if functions:
        model = rebuilt(Index(model), lambda _, body: with_node_names(body, {}, functions))
        model = with_function_names(model, functions)
    if names:
        index = Index(model)
        # A graph knows its own names, too; what stands around it here is made up.
        model = renamed(index, {index.scopes[1 if isinstance(value, d.Graph) else 0]: names})
    return unwrap(model)


def _wrapped(value: Any, slot: Slot) -> tuple[d.Model, Callable[[Any], Any]] | None:
    """A model around a record that holds names, and what takes the record out again."""
    match value:
        case d.Function():
            return d.Model(functions=(value,)), lambda model: model.functions[0]
        case d.TrainingInfo():
            return d.Model(graph=d.Graph(), training_info=(value,)), lambda model: model.training_info[0]
        case d.Node():
            return _in_graph(d.Graph(node=(value,)), lambda graph: graph.node[0])
        case d.Tensor():
            return _in_graph(d.Graph(initializer=(value,)), lambda graph: graph.initializer[0])
        case d.SparseTensor():
            return _in_graph(d.Graph(sparse_initializer=(value,)), lambda graph: graph.sparse_initializer[0])
        case d.ValueInfo():
            return _in_graph(d.Graph(value_info=(value,)), lambda graph: graph.value_info[0])
        case d.TensorAnnotation():
            return _in_graph(d.Graph(quantization_annotation=(value,)), lambda graph: graph.quantization_annotation[0])
        case d.StringStringEntry() if slot.message is d.TensorAnnotation:
            annotation = d.TensorAnnotation(quant_parameter_tensor_names=(value,))
            return _in_graph(
                d.Graph(quantization_annotation=(annotation,)),
                lambda graph: graph.quantization_annotation[0].quant_parameter_tensor_names[0],
            )
        case d.Attribute():
            node = d.Node(attribute=(value,))
            return _in_graph(d.Graph(node=(node,)), lambda graph: graph.node[0].attribute[0])
        case d.Graph():
            node = d.Node(attribute=(d.Attribute(name="g", g=value),))
            return _in_graph(d.Graph(node=(node,)), lambda graph: graph.node[0].attribute[0].g)
    return None


def _in_graph(graph: d.Graph, unwrap: Callable[[Any], Any]) -> tuple[d.Model, Callable[[Any], Any]]:
    return d.Model(graph=graph), lambda model: unwrap(model.graph)
