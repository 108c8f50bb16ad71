"""All names of a model replaced, consistently, so that nothing can be told from them."""

import random
from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TensorAnnotation,
    TrainingInfo,
    ValueInfo,
)

Name = TypeVar("Name", str, str | None)


def renamed(model: Model, seed: int, *, interface: bool = True) -> Model:
    """`model` with other names of values, initializers and nodes, in all its graphs; "" and absent names stay.

    A name becomes the same name wherever it stands, so what a subgraph takes from outside stays what it is. Names of
    operators, functions, attributes and dimensions stay; so do those of the main graph's inputs and outputs unless
    `interface`.
    """
    numbers = random.Random(seed)
    nodes = list(_nodes(model))
    values = sorted({name for node in nodes for name in (*node.input, *node.output)} | set(_declared(model)))
    kept: set[str | None] = {"", None}
    if not interface and model.graph is not None:
        kept |= {value.name for value in (*model.graph.input, *model.graph.output)}
    places = list(range(len(values)))
    numbers.shuffle(places)
    mark = f"{numbers.getrandbits(24):x}"
    new = {name: name if name in kept else f"t{mark}_{place}" for name, place in zip(values, places, strict=True)}
    node_names = sorted({node.name for node in nodes if node.name})
    places = list(range(len(node_names)))
    numbers.shuffle(places)
    return _Renaming(new, {name: f"n{mark}_{place}" for name, place in zip(node_names, places, strict=True)}).model(
        model
    )


class _Renaming:
    def __init__(self, values: dict[str, str], nodes: dict[str, str]) -> None:
        self._values = values
        self._nodes = nodes

    def _name(self, name: Name) -> Name:
        return self._values.get(name, name) if name else name

    def model(self, model: Model) -> Model:
        return replace(
            model,
            graph=None if model.graph is None else self._graph(model.graph),
            functions=tuple([self._function(function) for function in model.functions]),
            training_info=tuple([self._training(step) for step in model.training_info]),
        )

    def _graph(self, graph: Graph) -> Graph:
        return replace(
            graph,
            node=tuple([self._node(node) for node in graph.node]),
            initializer=tuple([self._tensor(tensor) for tensor in graph.initializer]),
            sparse_initializer=tuple([self._sparse(tensor) for tensor in graph.sparse_initializer]),
            input=self._infos(graph.input),
            output=self._infos(graph.output),
            value_info=self._infos(graph.value_info),
            quantization_annotation=tuple([self._annotation(each) for each in graph.quantization_annotation]),
        )

    def _function(self, function: Function) -> Function:
        return replace(
            function,
            input=tuple([self._name(name) for name in function.input]),
            output=tuple([self._name(name) for name in function.output]),
            node=tuple([self._node(node) for node in function.node]),
            value_info=self._infos(function.value_info),
        )

    def _training(self, step: TrainingInfo) -> TrainingInfo:
        return replace(
            step,
            initialization=None if step.initialization is None else self._graph(step.initialization),
            algorithm=None if step.algorithm is None else self._graph(step.algorithm),
            initialization_binding=self._entries(step.initialization_binding, keys=True),
            update_binding=self._entries(step.update_binding, keys=True),
        )

    def _node(self, node: Node) -> Node:
        values = self._values
        attributes = node.attribute
        if any([each.g is not None or each.graphs for each in attributes]):
            attributes = tuple([self._attribute(each) for each in attributes])
        configurations = node.device_configurations
        if configurations:
            configurations = tuple(
                [
                    replace(
                        each,
                        sharding_spec=tuple(
                            [replace(spec, tensor_name=self._name(spec.tensor_name)) for spec in each.sharding_spec]
                        ),
                    )
                    for each in configurations
                ]
            )
        return Node(
            tuple([values[name] for name in node.input]),
            tuple([values[name] for name in node.output]),
            self._nodes[node.name] if node.name else node.name,
            node.op_type,
            attributes,
            node.doc_string,
            node.domain,
            node.overload,
            node.metadata_props,
            configurations,
            unknown_fields=node.unknown_fields,
        )

    def _attribute(self, attribute: Attribute) -> Attribute:
        return replace(
            attribute,
            g=None if attribute.g is None else self._graph(attribute.g),
            graphs=tuple([self._graph(graph) for graph in attribute.graphs]),
        )

    def _tensor(self, tensor: Tensor) -> Tensor:
        return replace(tensor, name=self._name(tensor.name))

    def _sparse(self, tensor: SparseTensor) -> SparseTensor:
        return tensor if tensor.values is None else replace(tensor, values=self._tensor(tensor.values))

    def _infos(self, infos: tuple[ValueInfo, ...]) -> tuple[ValueInfo, ...]:
        return tuple([replace(info, name=self._name(info.name)) for info in infos])

    def _annotation(self, annotation: TensorAnnotation) -> TensorAnnotation:
        return replace(
            annotation,
            tensor_name=self._name(annotation.tensor_name),
            quant_parameter_tensor_names=self._entries(annotation.quant_parameter_tensor_names, keys=False),
        )

    def _entries(self, entries: tuple[StringStringEntry, ...], *, keys: bool) -> tuple[StringStringEntry, ...]:
        return tuple(
            [
                replace(entry, key=self._name(entry.key) if keys else entry.key, value=self._name(entry.value))
                for entry in entries
            ]
        )


def bodies(model: Model) -> Iterator[Graph | Function]:
    """Every graph and function of a model, the outer before the inner."""
    pending: list[Graph | Function] = [*model.functions] if model.graph is None else [model.graph, *model.functions]
    for step in model.training_info:
        pending += [graph for graph in (step.initialization, step.algorithm) if graph is not None]
    while pending:
        body = pending.pop()
        yield body
        for node in body.node:
            for attribute in node.attribute:
                if attribute.g is not None:
                    pending.append(attribute.g)
                pending += attribute.graphs


def _nodes(model: Model) -> Iterator[Node]:
    for body in bodies(model):
        yield from body.node


def _declared(model: Model) -> Iterator[str]:
    """Names that stand elsewhere than in nodes."""
    for body in bodies(model):
        infos = list(body.value_info)
        if isinstance(body, Function):
            yield from (*body.input, *body.output)
        else:
            infos += [*body.input, *body.output]
            yield from [tensor.name for tensor in body.initializer if tensor.name]
            yield from [each.values.name for each in body.sparse_initializer if each.values and each.values.name]
        yield from [info.name for info in infos if info.name]
