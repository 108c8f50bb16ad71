"""Edits by native code of onnx: convert-opset and inline-functions; and stamp-opset, which only states a version."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role
from onnxjson.editing.sandbox import Counts, check, reconcile, worker
from onnxjson.editing.workspace import NewModel, Workspace
from onnxjson.model import operators
from onnxjson.model.addresses import find_element
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.errors import EditError, Finding, WorkerError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operator_checks import check_operators
from onnxjson.model.walking import rebuild, replace_records, with_nodes
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.light_model import LightModel
from onnxjson.running.opset_conversion import NEWER_VALUES

_NO_ADAPTER: Final = re.compile(r"No Adapter From Version \$?(\d+) for (\w+)|No Previous Version of (\w+)")
_NODE_ADDRESS: Final = re.compile(r".*/node/[0-9]+")
_SHOWN: Final = 6


def imported_version(imports: Sequence[OperatorSetId], domain: str) -> int | None:
    """Return the imported version of a domain; None if it is not imported.

    Raises:
        EditError: it is imported in two versions.
    """
    versions = {each.version for each in imports if operators.plain_domain(each.domain) == domain}
    if len(versions) > 1:
        both = " and ".join(sorted(map(str, versions)))
        raise EditError(f"the model imports {domain_text(domain)} as {both}; keep one of the entries", "/opset_import")
    return next(iter(versions), None)


def with_version(model: Model, domain: str, version: int) -> Model:
    """Return `model` with another version of one domain in opset_import, added if missing; nothing else changes."""
    imports = [
        replace(each, version=version) if operators.plain_domain(each.domain) == domain else each
        for each in model.opset_import
    ]
    if not any(operators.plain_domain(each.domain) == domain for each in imports):
        imports.append(OperatorSetId(domain=domain, version=version))
    return replace(model, opset_import=tuple(imports))


def domain_text(domain: str) -> str:
    """Describe a domain in a sentence."""
    return f'the domain "{visible(domain)}"' if domain else "the default domain"


def differing_nodes(index: Index, domain: str, old: int, new: int) -> list[NodeRef]:
    """Return the nodes whose operator differs between two versions, or is missing in one; not calls of functions."""
    functions = {each.name for each in index.model.functions if operators.plain_domain(each.domain) == domain}
    changed: dict[tuple[str | None, str | None], bool] = {}

    def is_other(node: Node) -> bool:
        key = node.domain, node.op_type
        if key not in changed:
            changed[key] = (
                operators.plain_domain(node.domain) == domain
                and node.op_type not in functions
                and operators.since_version(domain, node.op_type, old)
                != operators.since_version(domain, node.op_type, new)
            )
        return changed[key]

    return [ref for ref in index.nodes() if is_other(ref.node)]


def convert(model: Model, version: int, domain: str = "", folder: Path | None = None) -> NewModel:
    """Convert a model to another version of an operator set; ir_version and everything else stays if possible.

    Raises:
        EditError: the conversion is not possible; the message lists the operators that prevent it.
        WorkerError: the converter crashed or hung.
        MissingInputError, UntrustedError: a small constant is in a file that is missing, or outside the allowed folder.
    """
    old = imported_version(model.opset_import, domain)
    if old is None:
        known = ", ".join(domain_text(operators.plain_domain(each.domain)) for each in model.opset_import) or "none"
        raise EditError(f"the model does not import {domain_text(domain)}; it imports {known}", "/opset_import")
    if old == version:
        return NewModel(model, (f"{domain_text(domain)} is at version {version} already",))
    newest = operators.newest_version(domain)
    if newest is None:
        reason = f"onnx does not know the operators of {domain_text(domain)}, so it cannot convert them"
        raise EditError(f"{reason}; stamp-opset states another version without a conversion")
    if not 1 <= version <= newest:
        raise EditError(f"{domain_text(domain)} has versions 1 to {newest}; {version} is not one of them")
    index = Index(model)
    nodes = differing_nodes(index, domain, old, version)
    if not nodes:
        text = f"no operator of the model differs in version {version}; only opset_import changes"
        return NewModel(with_version(model, domain, version), (text,))
    _refuse_elsewhere(nodes, domain, old, version)
    return _converted(model, index, nodes, version, folder)


def _refuse_elsewhere(nodes: Sequence[NodeRef], domain: str, old: int, version: int) -> None:
    """Raise unless the converter reaches all of the nodes."""
    change = f"between versions {old} and {version}"
    if domain:
        raise EditError(
            f"{_operators(nodes)} of {domain_text(domain)} changed {change}, and onnx converts the default domain only",
            nodes[0].address,
        )
    for kind, words, advice in (
        ("function", "bodies of functions", "inline them first (inline-functions)"),
        ("training", "training steps", "convert a model without training_info"),
    ):
        inside = [ref for ref in nodes if ref.scope.root.kind == kind]
        if inside:
            reason = f"{_operators(inside)} changed {change}, in {words}, which the converter ignores"
            raise EditError(f"{reason}; {advice}", inside[0].address)


def _operators(nodes: Sequence[NodeRef], most: int | None = None) -> str:
    counts = Counter(visible(ref.node.op_type or "") for ref in nodes)
    return listed([f"{name} ({count:,})" for name, count in counts.most_common()], most or len(counts))


def _converted(model: Model, index: Index, nodes: Sequence[NodeRef], version: int, folder: Path | None) -> NewModel:
    for ref in nodes:
        values = [each.s for each in ref.node.attribute if NEWER_VALUES.get((ref.node.op_type, each.s), 0) > version]
        if values and values[0]:
            name = f"{visible(ref.node.op_type or '')} with {visible(values[0].decode())}"
            raise EditError(f"version {version} of the operators has no {name}", ref.address)
    shown = LightModel(model, folder)
    try:
        after = shown.read(worker().convert_version(shown.data, version))
    except WorkerError as error:
        missing = _without_adapter(model, nodes, version, folder, str(error))
        if missing:
            raise EditError(
                f"operators without an adapter to version {version}: {_operators(missing)}; "
                "the converter of onnx cannot convert them",
                missing[0].address,
            ) from error
        raise
    assert model.graph is not None
    if after.graph is None:
        raise EditError("the converter of onnx returned a model without a graph")
    old = imported_version(model.opset_import, "")
    converted = replace_records(after.graph, Node, lambda node: _without_old(node, old, version))
    merged = Counts()
    graph = reconcile(model.graph, converted, merged)
    result = with_version(replace(model, graph=graph), "", version)
    _refuse_wrong_nodes(model, result, version)
    check_not_worse(model, result, "the converter of onnx")
    counts = "no node needed changes"
    if merged.total():
        changed = counted(merged["changed"], "node")
        counts = f"{changed} changed, {merged['added']:,} added, {merged['removed']:,} removed"
    return NewModel(result, (f"{counts}; redefined by opset {version}: {_operators(nodes, _SHOWN)}",))


def _refuse_wrong_nodes(before: Model, after: Model, version: int) -> None:
    """Raise if nodes use more than their operators have in another version."""
    found = check_operators(after)
    if found and not check_operators(before):
        address = _NODE_ADDRESS.findall(found[0].address)[0]
        node = find_element(after, address).value
        assert isinstance(node, Node)
        raise EditError(
            f'version {version} of the operators cannot express the node of "{visible(node.output[0])}": '
            f"{found[0].message}"
        )


def _without_old(node: Node, old: int | None, new: int) -> Node:
    """Remove attributes that the operator no longer has, if they have their former default.

    The converter keeps them, such as ``noop_with_empty_axes`` of ReduceMean, and the checker then refuses the model.
    """
    if operators.plain_domain(node.domain) or not node.attribute:
        return node
    known = operators.known_attributes(node.domain, node.op_type, new)
    defaults = operators.attribute_defaults(node.domain, node.op_type, old)
    if known is None or all(each.name in known for each in node.attribute):
        return node
    kept = [each for each in node.attribute if each.name in known or each != defaults.get(each.name or "")]
    return replace(node, attribute=tuple(kept))


def _without_adapter(
    model: Model, nodes: Sequence[NodeRef], version: int, folder: Path | None, first: str
) -> list[NodeRef]:
    """Return all nodes that the converter cannot convert, found by trying each kind of node alone."""
    match = _NO_ADAPTER.search(first)
    if match is None:
        return []
    named = match[2] or match[3]
    kinds = {named: True}
    types = InferredTypes(Index(model), worker(), folder)
    for ref in nodes:
        name = ref.node.op_type or ""
        if name not in kinds:
            kinds[name] = _lacks_adapter(model, ref, types, version)
    return [ref for ref in nodes if kinds[ref.node.op_type or ""]]


def _lacks_adapter(model: Model, ref: NodeRef, types: InferredTypes, version: int) -> bool:
    """Whether the converter has no adapter for a node alone in a model."""
    node = ref.node
    inputs: list[ValueInfo] = []
    constants: list[Tensor] = []
    for name in dict.fromkeys(filter(None, node.input)):
        defining_scope = Index.defining_scope(ref.scope, name)
        constant = defining_scope.initializer(name) if defining_scope is not None else None
        if isinstance(constant, Tensor):
            constants.append(constant)
        else:
            inputs.append(ValueInfo(name=name, type=types.type_of(ref.scope, name)))
    alone = Graph(
        name="alone",
        node=(node,),
        input=tuple(inputs),
        output=tuple([ValueInfo(name=name) for name in node.output if name]),
        initializer=tuple(constants),
    )
    whole = Model(ir_version=model.ir_version, graph=alone, opset_import=model.opset_import)
    try:
        worker().convert_version(LightModel(whole, None).data, version)
    except WorkerError as error:
        return _NO_ADAPTER.search(str(error)) is not None
    return False


def check_not_worse(before: Model, after: Model, who: str) -> None:
    """Raise if the checker of onnx finds errors in `after` but none in `before`.

    Raises:
        EditError: `who` produced an invalid model.
    """
    found = _errors(after)
    if found and not _errors(before):
        raise EditError(f"{who} produces an invalid model: {found[0].message}")


def _errors(model: Model) -> list[Finding]:
    try:
        return [each for each in check(model) if each.severity == "error"]
    except WorkerError as error:
        return [Finding(severity="error", code="check-unfinished", message=str(error))]


class StampOpset(Edit, frozen=True, kw_only=True, eq=False, tag="stamp-opset"):
    """Change the version of an operator set that the model imports, without converting nodes.

    The operators of the nodes then have the meaning of that version, which may differ: the number of nodes whose
    operators differ is reported. To convert them, use convert-opset.
    """

    words = ("version",)
    examples = ('{"edit": "stamp-opset", "version": 17}',)

    version: Annotated[int, Meta(ge=1, description="The new version.")]
    domain: Annotated[
        str, Role("domain"), Meta(description="The domain of the operator set; by default that of ONNX itself.")
    ] = ""

    def change(self, workspace: Workspace) -> Outcome:
        domain = operators.plain_domain(self.domain)
        model = workspace.model
        old = imported_version(model.opset_import, domain)
        name = domain_text(domain)
        if old == self.version:
            return Outcome(1, (f"{name} is at version {old} already",))
        now = f"imported with version {self.version}" if old is None else f"version {old} became version {self.version}"
        notes = [f"{name}: {now}; no node is converted"]
        newest = operators.newest_version(domain)
        if newest is not None and self.version > newest:
            notes.append(f"the newest version that the installed onnx knows is {newest}")
        elif newest is not None and old is not None:
            count = len(differing_nodes(workspace.index, domain, old, self.version))
            if count:
                notes.append(f"{count:,} nodes have operators that differ in version {self.version}")
        workspace.replace_model(opset_import=with_version(model, domain, self.version).opset_import)
        return Outcome(1, tuple(notes))


class ConvertOpset(Edit, frozen=True, kw_only=True, eq=False, tag="convert-opset"):
    """Convert the model to another version of an operator set.

    The version converter of onnx changes the nodes whose operators differ. To an older version (from 13), nodes stay
    that mean the same there, and an operator that does not exist there is replaced by its definition. If a node cannot
    be converted, nothing is changed and all such operators are listed. If no operator differs, only opset_import
    changes. ir_version stays.
    """

    is_tried = True
    words = ("version",)
    examples = ('{"edit": "convert-opset", "version": 21}',)

    version: Annotated[int, Meta(ge=1, description="The new version.")]
    domain: Annotated[
        str, Role("domain"), Meta(description="The domain of the operator set; by default that of ONNX itself.")
    ] = ""

    def change(self, workspace: Workspace) -> Outcome:
        found = convert(workspace.model, self.version, operators.plain_domain(self.domain), workspace.model_folder)
        if found.model is not workspace.model:
            workspace.replace_model(found.model)
        return Outcome(1, found.notes)


class InlineFunctions(Edit, frozen=True, kw_only=True, eq=False, tag="inline-functions"):
    """Replace calls of the model's functions with the bodies of these functions.

    Nodes of the bodies keep their metadata; that of the calls is lost.
    """

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
