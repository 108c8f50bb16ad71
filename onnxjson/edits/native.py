"""Edits that native code of onnx makes in the guarded process; a model keeps all that they are not about."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from onnxjson.document import Graph, Model, Node, OperatorSetId
from onnxjson.edits.conversion import convert, refuse_worse
from onnxjson.edits.declaration import Edit
from onnxjson.edits.guarded import Shown, worker
from onnxjson.edits.inference import infer
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.reconciling import reconcile
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.index import Index, Scope
from onnxjson.operators import plain_domain

__all__ = ["ConvertOpset", "InferShapes", "InlineFunctions"]

_SHOWN = 5


class InferShapes(Edit, frozen=True, kw_only=True, eq=False, tag="infer-shapes"):
    """Find out types and shapes of values, and write them down.

    Outputs and value_info get what the shape inference of onnx finds; what the model says already stays, with the gaps
    filled. Where it says something that cannot be, it is left as it is and reported.
    """

    examples = ('{"edit": "infer-shapes"}',)

    overwrite: Annotated[
        bool, Meta(description="Let what is inferred take the place of what the model says and cannot be.")
    ] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        found = infer(workspace.model, workspace.model_folder, overwrite=self.overwrite)
        workspace.replace_model(found.model)
        share = f"{found.now:,} of {found.values:,} values have a type and a rank now, {found.before:,} had before"
        what = "replaced" if self.overwrite else "left as it is; overwrite takes what is inferred"
        wrong = [f"{conflict}; {what}" for conflict in found.conflicts[:_SHOWN]]
        more = len(found.conflicts) - len(wrong)
        return Outcome(found.values, (share, *wrong, *([f"{more:,} more conflicts"] if more else [])))


class InlineFunctions(Edit, frozen=True, kw_only=True, eq=False, tag="inline-functions"):
    """Put the bodies of the model's functions in the place of their calls.

    Nodes of the bodies keep their metadata; that of the calls goes with them.
    """

    examples = ('{"edit": "inline-functions"}',)

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        before = workspace.model
        if not before.functions:
            return Outcome(0, ("the model has no functions",))
        if before.graph is None:
            raise EditError("the model has no graph")
        after = _inlined(before, workspace.model_folder)
        left = {_key(each.domain, each.name, each.overload) for each in after.functions}
        explicit = _with_defaults(before, left)
        if explicit is not before:
            after = _inlined(explicit, workspace.model_folder)
        assert after.graph is not None
        functions = tuple([each for each in before.functions if _key(each.domain, each.name, each.overload) in left])
        merged = reconcile(before.graph, after.graph)
        graph = _with_value_info(merged.graph, after.graph)
        result = msgspec.structs.replace(before, graph=graph, functions=functions, opset_import=_imports(before, after))
        refuse_worse(before, result, "the inliner of onnx")
        workspace.replace_model(result)
        notes = [f"{merged.removed:,} calls gave way to {merged.added:,} nodes"]
        if functions:
            names = ", ".join(sorted({each.name or "" for each in functions})[:_SHOWN])
            notes.append(f"{len(functions):,} functions stay, which import other versions than the model: {names}")
        return Outcome(len(before.functions) - len(functions), tuple(notes))


def _inlined(model: Model, folder: Path | None) -> Model:
    shown = Shown(model, folder)
    return shown.read(worker().inline_functions(shown.data))


def _with_defaults(model: Model, left: set[tuple[str, str, str]]) -> Model:
    """`model` with the defaults of attributes at the calls of functions, which the inliner forgets (seen in onnx 1.23).

    Args:
        model: stays as it is.
        left: functions whose calls stay what they are.
    """
    keys = {_key(each.domain, each.name, each.overload): each.attribute_proto for each in model.functions}
    defaults = {key: values for key, values in keys.items() if values and key not in left}
    if not defaults:
        return model

    def explicit(node: Node) -> Node:
        values = defaults.get(_key(node.domain, node.op_type, node.overload), ())
        given = {each.name for each in node.attribute}
        more = tuple([each for each in values if each.name not in given])
        return msgspec.structs.replace(node, attribute=(*node.attribute, *more)) if more else node

    def change(_: Scope, graph: Body) -> Body:
        return msgspec.structs.replace(graph, node=tuple([explicit(node) for node in graph.node]))

    return rebuilt(Index(model), change)


def _key(domain: str | None, name: str | None, overload: str | None) -> tuple[str, str, str]:
    return plain_domain(domain), name or "", overload or ""


def _imports(before: Model, after: Model) -> tuple[OperatorSetId, ...]:
    there = {plain_domain(each.domain) for each in before.opset_import}
    return (
        *before.opset_import,
        *[each for each in after.opset_import if plain_domain(each.domain) not in there],
    )


def _with_value_info(graph: Graph, after: Graph) -> Graph:
    """With what the bodies of functions said of their values."""
    known = {each.name for each in (*graph.value_info, *graph.input, *graph.output)}
    made = {name for node in graph.node for name in node.output}
    more = tuple([each for each in after.value_info if each.name in made and each.name not in known])
    return msgspec.structs.replace(graph, value_info=(*graph.value_info, *more)) if more else graph


class ConvertOpset(Edit, frozen=True, kw_only=True, eq=False, tag="convert-opset"):
    """Convert the model to another version of an operator set.

    The version converter of onnx changes the nodes whose operators became others; operators that it has no adapter for
    are listed, and nothing is changed. Where no operator of the model differs, only opset_import does. ir_version
    stays.
    """

    words = ("version",)
    examples = ('{"edit": "convert-opset", "version": 21}',)

    version: Annotated[int, Meta(ge=1, description="The version that is wanted.")]
    domain: Annotated[
        str, Role("domain"), Meta(description="The domain of the operator set; the default one if it is left out.")
    ] = ""

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        found = convert(workspace.model, self.version, plain_domain(self.domain), workspace.model_folder)
        if found.model is not workspace.model:
            workspace.replace_model(found.model)
        return Outcome(1, found.notes)
