"""Extract a part of a model as a separate model: between values, or of given nodes."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from onnxjson.editing.sandbox import worker
from onnxjson.editing.type_relations import refine_type
from onnxjson.editing.workspace import NewModel
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Function, Graph, Model, SparseTensor, Tensor, TensorAnnotation, Type, ValueInfo
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.walking import called_functions
from onnxjson.running.inferred_types import InferredTypes

_SHOWN = 6
_INITIALIZERS_ARE_INPUTS = 3
"""Last IR version in which every initializer must be an input of the graph."""

Value = tuple[Scope, str]
"""A value: the graph that defines it, and its name there."""


class Extraction:
    """Extracts parts of one model; missing types are inferred once."""

    def __init__(self, model: Model, index: Index, folder: Path | None) -> None:
        self._model = model
        self._index = index
        self._types = InferredTypes(index, worker(), folder)

    def between(self, inputs: Sequence[Value] | None, outputs: Sequence[Value]) -> NewModel:
        """Extract the nodes between `inputs` and `outputs`, which become those of the part, in their order.

        Outputs are values of one graph, inputs of that graph or of graphs around it; None for those that it needs.

        Raises:
            EditError: the outputs need more inputs, there is no node in between, or a type is not known.
        """
        scope = self._one_graph(inputs or (), outputs)
        cut = {name for _, name in inputs or ()}
        positions, needed = self._upstream(scope, [name for _, name in outputs], cut)
        if not positions:
            raise EditError(f"there is no node between {_names(cut)} and {_names([name for _, name in outputs])}")
        captured = [name for name in needed if not scope.defines(name)]
        given = [name for name in needed if name in scope.inputs and name not in scope.initializers]
        notes = []
        if inputs is None:
            order = [name for name in scope.inputs if name in set(given)]
        else:
            order = [name for _, name in inputs]
            if missing := [name for name in given if name not in cut]:
                them = "it" if len(missing) == 1 else "them"
                raise EditError(
                    f"{_names([name for _, name in outputs])} also needs the input {_names(missing)} of the model; "
                    f"name {them} among the inputs, or cut at a value after {them}"
                )
            used = {name for position in positions for name in consumed_names(scope.graph.node[position])}
            used.update([name for _, name in outputs])
            if idle := [name for name in order if name not in used]:
                notes.append(f"{_names(idle)} is an input that no node needs")
        constants = [name for name in captured if self._constant(scope, name) is not None]
        outer = [name for name in captured if name not in constants and name not in order]
        if outer:
            notes.append(f"values of enclosing graphs, now inputs: {_names(outer)}")
        model, more = self._part(scope, positions, [*order, *outer], [name for _, name in outputs])
        return NewModel(model, (*notes, *more))

    def _part(
        self, scope: Scope, positions: Collection[int], inputs: Sequence[str], outputs: Sequence[str]
    ) -> NewModel:
        """Extract the nodes at `positions` of a graph, with their constants, as a model with these inputs and outputs.

        Inputs may be values of graphs around it.

        Raises:
            EditError: the type of an input or output is not known.
        """
        graph, model = scope.graph, self._model
        nodes = tuple([graph.node[position] for position in sorted(positions)])
        cut = set(inputs)
        used = dict.fromkeys([*(name for node in nodes for name in consumed_names(node)), *outputs])
        produced = {name for node in nodes for name in node.output if name}
        constants = [name for name in used if name not in cut and name not in produced]
        annotations, parameters, notes = self._annotations(scope, {*used, *produced, *cut}, cut | produced)
        constant_of = {name: self._constant(scope, name) for name in dict.fromkeys([*constants, *parameters])}
        # Constants have the order of the model, those of outer graphs are last.
        places, tensors = scope.initializers, [each for each in constant_of.values() if isinstance(each, Tensor)]
        dense = tuple(sorted(tensors, key=lambda each: places.get(each.name or "", len(places))))
        sparse = tuple([each for each in constant_of.values() if isinstance(each, SparseTensor)])
        input_values = [self._value(scope, name, "input") for name in inputs]
        if (model.ir_version or 0) <= _INITIALIZERS_ARE_INPUTS:
            named = [each.name or "" for each in dense if each.name not in cut]
            input_values += [self._value(scope, name, "input") for name in named if name in scope.inputs]
        output_values = [self._value(scope, name, "output") for name in outputs]
        stated = cut | set(outputs)
        # Outputs of a result are checked for all edits together.
        if flat := [each.name or "" for each in input_values if not _has_rank(each)]:
            notes.append(f"the rank of {_names(flat)} is not known; the checker of onnx requires it, runtimes do not")
        names = produced | constant_of.keys()
        new = Graph(
            node=nodes,
            name=graph.name,
            initializer=dense,
            doc_string=graph.doc_string,
            input=tuple(input_values),
            output=tuple(output_values),
            value_info=tuple([each for each in graph.value_info if each.name in names and each.name not in stated]),
            quantization_annotation=annotations,
            sparse_initializer=sparse,
            metadata_props=graph.metadata_props,
            unknown_fields=graph.unknown_fields,
        )
        if model.training_info:
            notes.append("training_info belongs to the whole model and is left out")
        functions = called_functions(model.functions, nodes)
        return NewModel(replace(model, graph=new, functions=functions, training_info=()), tuple(notes))

    def _one_graph(self, inputs: Iterable[Value], outputs: Sequence[Value]) -> Scope:
        scope = outputs[0][0]
        for other, name in outputs:
            if other is not scope:
                raise EditError(
                    f'"{visible(outputs[0][1])}" is in {scope.address} and "{visible(name)}" in {other.address}; '
                    "extract outputs of one graph"
                )
        for other, name in inputs:
            if other not in list(scope.chain()):
                raise EditError(f'"{visible(name)}" is in {other.address} and not visible in {scope.address}')
        if isinstance(scope.graph, Function):
            raise EditError(
                f"{scope.address} is the body of a function, which has no types; use inline-functions first"
            )
        for kind, names in (("input", [each for _, each in inputs]), ("output", [each for _, each in outputs])):
            if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
                raise EditError(f"{_names(twice)} is given twice as an {kind}")
        return scope

    def _upstream(self, scope: Scope, outputs: Sequence[str], cut: Collection[str]) -> tuple[set[int], list[str]]:
        """Return the nodes on which outputs depend, and the inputs and outer values that those need."""
        positions: set[int] = set()
        needed: dict[str, None] = {}
        pending = [name for name in outputs if name not in cut]
        seen = set(cut)
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            if name not in scope.producers:
                needed[name] = None
                continue
            position = scope.producers[name][0]
            if position not in positions:
                positions.add(position)
                pending += consumed_names(scope.graph.node[position])
        return positions, list(needed)

    @staticmethod
    def _constant(scope: Scope, name: str) -> Tensor | SparseTensor | None:
        defining_scope = Index.defining_scope(scope, name)
        return None if defining_scope is None else defining_scope.initializer(name)

    def _annotations(
        self, scope: Scope, names: set[str], available: set[str]
    ) -> tuple[tuple[TensorAnnotation, ...], list[str], list[str]]:
        """Return quantization annotations of values, the constants that they refer to, and remarks on lost ones."""
        graph = scope.graph
        if isinstance(graph, Function) or not graph.quantization_annotation:
            return (), [], []
        kept, constants, lost = [], [], []
        for annotation in graph.quantization_annotation:
            if annotation.tensor_name not in names:
                continue
            needed = [each.value or "" for each in annotation.quant_parameter_tensor_names]
            outside = [each for each in needed if each not in available and self._constant(scope, each) is None]
            if outside:
                lost.append(f'the quantization of "{visible(annotation.tensor_name)}" needs {_names(outside)}')
                continue
            kept.append(annotation)
            constants += [each for each in needed if each not in available]
        return tuple(kept), constants, [f"{text}; its annotation is left out" for text in lost]

    def _value(self, scope: Scope, name: str, kind: str) -> ValueInfo:
        """Return the type of a value in the form of an input or output of a graph."""
        defining_scope = Index.defining_scope(scope, name) or scope
        graph = defining_scope.graph
        stated: ValueInfo | None = None
        if not isinstance(graph, Function):
            places = (graph.output, graph.input) if kind == "output" else (graph.input, graph.output)
            stated = next((each for each in (*places[0], *places[1], *graph.value_info) if each.name == name), None)
        if stated is not None and stated.type is not None and _is_typed(stated.type):
            if _has_rank(stated) or name in defining_scope.inputs:
                return stated
            inferred = self._types.type_of(defining_scope, name)
            joined = None if inferred is None else refine_type(stated.type, inferred)
            return stated if joined is None else replace(stated, type=joined)
        following = self._types.type_of(defining_scope, name)
        if following is None or not _is_typed(following):
            raise EditError(
                f'the type of "{visible(name)}" is not known, which an {kind} must have; '
                "add it to value_info first, for example with onnxjson edit",
                defining_scope.address,
            )
        return ValueInfo(name=name, type=following) if stated is None else replace(stated, type=following)


def _is_typed(value: Type) -> bool:
    tensor = value.tensor_type or value.sparse_tensor_type
    return bool(tensor.elem_type) if tensor is not None else value != Type()


def _has_rank(value: ValueInfo) -> bool:
    tensor = None if value.type is None else value.type.tensor_type
    return tensor is None or tensor.shape is not None


def _names(names: Iterable[str]) -> str:
    return listed([f'"{visible(name)}"' for name in names], _SHOWN) or "nothing"
