"""The edit inline-functions, by native code of onnx."""

from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.opsets import check_not_worse
from onnxjson.editing.sandbox import Counts, reconcile, worker
from onnxjson.editing.workspace import Workspace
from onnxjson.model import operators
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Graph, Model, Node, OperatorSetId
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index
from onnxjson.model.walking import rebuild, with_nodes
from onnxjson.running.light_model import LightModel

__all__ = ["InlineFunctions"]


class InlineFunctions(Edit, frozen=True, kw_only=True, eq=False, tag="inline-functions"):
    """Replace calls of the model's functions with their bodies.

    Nodes of the bodies keep their metadata; the metadata of the calls is lost.
    """

    group: ClassVar = "nodes"
    examples = ('{"edit": "inline-functions"}',)

    def change(self, workspace: Workspace) -> Outcome:
        before = workspace.model
        if not before.functions:
            return Outcome(0, ("the model has no functions",))
        if before.graph is None:
            raise EditError("the model has no graph")
        after = _inlined(before, workspace.model_folder)
        left = {operators.function_key(each) for each in after.functions}
        explicit = _with_defaults(before, left)
        if explicit is not before:
            after = _inlined(explicit, workspace.model_folder)
        assert after.graph is not None
        functions = tuple([each for each in before.functions if operators.function_key(each) in left])
        merged = Counts()
        graph = reconcile(before.graph, after.graph, merged)
        graph = _with_value_info(graph, after.graph)
        result = replace(before, graph=graph, functions=functions, opset_import=_imports(before, after))
        check_not_worse(before, result, "the inliner of onnx")
        workspace.replace_model(result)
        notes = [f"{merged['removed']:,} calls were replaced by {merged['added']:,} nodes"]
        if functions:
            names = listed([visible(name) for name in sorted({each.name or "" for each in functions})], 5)
            notes.append(f"{len(functions):,} functions stay, since they import other versions than the model: {names}")
        return Outcome(len(before.functions) - len(functions), tuple(notes))


def _inlined(model: Model, folder: Path | None) -> Model:
    shown = LightModel(model, folder)
    return shown.read(worker().inline_functions(shown.data))


def _with_defaults(model: Model, left: set[operators.OperatorKey]) -> Model:
    """Add defaults of attributes to calls of functions not in `left`; the inliner ignores them (seen in onnx 1.23)."""
    keys = {operators.function_key(each): each.attribute_proto for each in model.functions}
    defaults = {key: values for key, values in keys.items() if values and key not in left}
    if not defaults:
        return model

    def explicit(node: Node) -> Node:
        values = defaults.get(operators.operator_key(node), ())
        given = {each.name for each in node.attribute}
        more = tuple([each for each in values if each.name not in given])
        return replace(node, attribute=(*node.attribute, *more)) if more else node

    return rebuild(Index(model), lambda _, graph: with_nodes(graph, explicit))


def _imports(before: Model, after: Model) -> tuple[OperatorSetId, ...]:
    there = {operators.plain_domain(each.domain) for each in before.opset_import}
    more = [each for each in after.opset_import if operators.plain_domain(each.domain) not in there]
    return (*before.opset_import, *more)


def _with_value_info(graph: Graph, after: Graph) -> Graph:
    """Add the value_info of the bodies of functions."""
    known = {each.name for each in (*graph.value_info, *graph.input, *graph.output)}
    made = {name for node in graph.node for name in node.output}
    more = tuple([each for each in after.value_info if each.name in made and each.name not in known])
    return replace(graph, value_info=(*graph.value_info, *more)) if more else graph
