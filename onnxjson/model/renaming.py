"""Rename values, with everything that refers to them: nodes, subgraphs, annotations, training, sharding.

A name belongs to the graph that defines it. Uses in the graphs inside follow, up to a graph that defines the name
itself. Inputs of functions and of the bodies of loops are positional, so that a function and each body have names of
their own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from onnxjson.model.display import listed, visible
from onnxjson.model.document import (
    Function,
    Graph,
    Model,
    Node,
    NodeDeviceConfiguration,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TensorAnnotation,
    TrainingInfo,
    ValueInfo,
)
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.walking import Body, rebuild

Names = Mapping[Scope, Mapping[str, str]]
"""For each graph: names that it defines -> new names."""

_SHOWN: Final = 8


def renamed(index: Index, names: Names) -> Model:
    """Return the model of an index with values renamed; collisions are not checked (see `collisions`)."""
    effective = _effective(index, names)

    def change(scope: Scope, graph: Body) -> Body:
        mapping = effective[scope]
        return _graph(graph, mapping) if mapping else graph

    model = rebuild(index, change)
    return _training(index, model, effective)


def merged(index: Index, names: Names, added: Mapping[Scope, Sequence[Tensor]] | None = None) -> Model:
    """Return the model of an index without some constants, in whose place other values are used.

    Args:
        index: of the model, which stays as it is.
        names: by graph: names of initializers of it -> names that are known there.
        added: by graph: constants that it gets.
    """
    effective = _effective(index, names)

    def change(scope: Scope, graph: Body) -> Body:
        gone = names.get(scope)
        if gone and isinstance(graph, Graph):
            graph = msgspec.structs.replace(
                graph,
                initializer=tuple([tensor for tensor in graph.initializer if tensor.name not in gone]),
                value_info=tuple([value for value in graph.value_info if value.name not in gone]),
            )
        graph = _graph(graph, effective[scope]) if effective[scope] else graph
        new = (added or {}).get(scope)
        if new and isinstance(graph, Graph):
            graph = msgspec.structs.replace(graph, initializer=(*graph.initializer, *new))
        return graph

    return rebuild(index, change)


def collisions(index: Index, names: Names) -> list[str]:
    """Return what is wrong with a renaming, as sentences: values that get one name, names that hide others."""
    known = {scope: scope.defined_names for scope in index.scopes} if names else {}
    olds = {scope: _by_new_name(mapping) for scope, mapping in names.items()}
    wrong: dict[str, None] = {}

    def owners(scope: Scope, name: str) -> list[str]:
        """Return the present names of the values of a graph that will have a name."""
        changing = olds.get(scope, {}).get(name, [])
        stays = name in known[scope] and name not in names.get(scope, {})
        return [*changing, *([name] if stays else [])]

    for scope, mapping in names.items():
        others = [each for each in scope.chain() if each is not scope]
        within = list(inside(index, scope))
        loose = _loose_names(index, [scope, *within], set(mapping.values()))
        for old, new in mapping.items():
            if old == new:
                continue
            if not new:
                wrong[f'"{visible(old)}" would have no name'] = None
            same = owners(scope, new)
            if len(same) > 1:
                both = " and ".join([f'"{visible(each)}"' for each in same[:3]])
                wrong[f'{both} of {scope.address} would both be "{visible(new)}"'] = None
            for other in (*others, *within):
                for each in owners(other, new):
                    text = f'"{visible(old)}" of {scope.address} would be "{visible(new)}", as "{visible(each)}" of '
                    wrong[f"{text}{other.address} is"] = None
            if new in loose:
                wrong[f'"{visible(new)}" is used and not defined; "{visible(old)}" would take its place'] = None
    return list(wrong)


def _by_new_name(mapping: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for old, new in mapping.items():
        found.setdefault(new, []).append(old)
    return found


def _loose_names(index: Index, scopes: Sequence[Scope], names: set[str]) -> set[str]:
    """Return the names among `names` that graphs use although they are undefined."""
    found: set[str] = set()
    for scope in scopes:
        used = {name for node in scope.graph.node if not names.isdisjoint(node.input) for name in node.input}
        used.update([name for name in scope.output_names if name])
        found |= {name for name in names & used if index.defining_scope(scope, name) is None}
    return found


def refuse_collisions(index: Index, names: Names) -> None:
    """Raise unless different values keep different names.

    Raises:
        EditError: with the list of what would collide.
    """
    wrong = collisions(index, names)
    if wrong:
        raise collision_error(wrong)


def collision_error(wrong: Sequence[str]) -> EditError:
    """Return the error for a list of collisions."""
    return EditError(f"names would collide: {listed(wrong, _SHOWN, '; ')}; choose names that are not used")


def inside(index: Index, scope: Scope) -> Iterator[Scope]:
    """Yield the graphs in which the names of a graph are visible, except the graph itself."""
    pending = list(scope.children)
    if scope.kind == "main":
        pending += [each for each in index.scopes if each.kind == "training"]
    while pending:
        inner = pending.pop()
        yield inner
        pending += inner.children


def _effective(index: Index, names: Names) -> dict[Scope, dict[str, str]]:
    """Return all names that change in each graph, including those of the graphs around it."""
    effective: dict[Scope, dict[str, str]] = {}
    for scope in index.scopes:
        around = effective[scope.outer] if scope.outer is not None else {}
        inherited = {old: new for old, new in around.items() if not scope.defines(old)} if around else {}
        effective[scope] = inherited | dict(names.get(scope, {}))
    return effective


def _graph(graph: Body, mapping: Mapping[str, str]) -> Body:
    changing = mapping.keys()
    nodes = tuple(
        [
            node
            if changing.isdisjoint(node.input) and changing.isdisjoint(node.output) and not node.device_configurations
            else _node(node, mapping)
            for node in graph.node
        ]
    )
    values = _values(graph.value_info, mapping)
    if isinstance(graph, Function):
        return msgspec.structs.replace(
            graph,
            node=nodes,
            value_info=values,
            input=_names(graph.input, mapping),
            output=_names(graph.output, mapping),
        )
    return msgspec.structs.replace(
        graph,
        node=nodes,
        value_info=values,
        input=_values(graph.input, mapping),
        output=_values(graph.output, mapping),
        initializer=tuple(
            [
                msgspec.structs.replace(each, name=mapping[each.name or ""]) if each.name in mapping else each
                for each in graph.initializer
            ]
        ),
        sparse_initializer=tuple([_sparse(each, mapping) for each in graph.sparse_initializer]),
        quantization_annotation=tuple([_annotation(each, mapping) for each in graph.quantization_annotation]),
    )


def _names(names: tuple[str, ...], mapping: Mapping[str, str]) -> tuple[str, ...]:
    return names if mapping.keys().isdisjoint(names) else tuple([mapping.get(name, name) for name in names])


def _node(node: Node, mapping: Mapping[str, str]) -> Node:
    inputs, outputs = _names(node.input, mapping), _names(node.output, mapping)
    devices = node.device_configurations
    if devices:
        devices = tuple([_device(each, mapping) for each in devices])
    if inputs is node.input and outputs is node.output and devices == node.device_configurations:
        return node
    return msgspec.structs.replace(node, input=inputs, output=outputs, device_configurations=devices)


def _device(device: NodeDeviceConfiguration, mapping: Mapping[str, str]) -> NodeDeviceConfiguration:
    specs = tuple(
        [
            msgspec.structs.replace(each, tensor_name=mapping[each.tensor_name or ""])
            if each.tensor_name in mapping
            else each
            for each in device.sharding_spec
        ]
    )
    return device if specs == device.sharding_spec else msgspec.structs.replace(device, sharding_spec=specs)


def _values(values: tuple[ValueInfo, ...], mapping: Mapping[str, str]) -> tuple[ValueInfo, ...]:
    return tuple(
        [
            msgspec.structs.replace(each, name=mapping[each.name or ""]) if each.name in mapping else each
            for each in values
        ]
    )


def _sparse(sparse: SparseTensor, mapping: Mapping[str, str]) -> SparseTensor:
    values = sparse.values
    if values is None or values.name not in mapping:
        return sparse
    return msgspec.structs.replace(sparse, values=msgspec.structs.replace(values, name=mapping[values.name or ""]))


def _annotation(annotation: TensorAnnotation, mapping: Mapping[str, str]) -> TensorAnnotation:
    name = annotation.tensor_name
    parameters = tuple([_entry(each, str, mapping.get) for each in annotation.quant_parameter_tensor_names])
    if name not in mapping and parameters == annotation.quant_parameter_tensor_names:
        return annotation
    new = mapping.get(name, name) if name is not None else None
    return msgspec.structs.replace(annotation, tensor_name=new, quant_parameter_tensor_names=parameters)


def _entry(
    entry: StringStringEntry, key: Callable[[str], str | None], value: Callable[[str], str | None]
) -> StringStringEntry:
    new_key = entry.key if entry.key is None else key(entry.key) or entry.key
    new_value = entry.value if entry.value is None else value(entry.value) or entry.value
    if new_key == entry.key and new_value == entry.value:
        return entry
    return msgspec.structs.replace(entry, key=new_key, value=new_value)


def _training(index: Index, model: Model, effective: Mapping[Scope, Mapping[str, str]]) -> Model:
    """Rename the bindings of training steps: keys are values of the graphs, values are outputs of the steps."""
    if not any([step.initialization_binding or step.update_binding for step in model.training_info]):
        return model
    scopes = index.by_address
    main: Mapping[str, str] = effective[scopes["/graph"]] if "/graph" in scopes else {}

    def bound(step: TrainingInfo, position: int) -> TrainingInfo:
        algorithm, initialization = [
            effective[scopes[at]] if (at := f"/training_info/{position}/{field}") in scopes else {}
            for field in ("algorithm", "initialization")
        ]

        def key(name: str) -> str | None:
            return algorithm.get(name) or main.get(name)

        return msgspec.structs.replace(
            step,
            initialization_binding=tuple(
                [_entry(each, key, initialization.get) for each in step.initialization_binding]
            ),
            update_binding=tuple([_entry(each, key, algorithm.get) for each in step.update_binding]),
        )

    steps = tuple([bound(step, position) for position, step in enumerate(model.training_info)])
    return model if steps == model.training_info else msgspec.structs.replace(model, training_info=steps)
