"""Edits of versions: convert-opset, by native code of onnx; and stamp-opset, which only states a version."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.sandbox import Counts, check, reconcile, worker
from onnxjson.editing.workspace import NewModel, Workspace
from onnxjson.model import operators
from onnxjson.model.addresses import find_element
from onnxjson.model.constants import RANDOM
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.errors import EditError, Finding, OnnxJsonError, WorkerError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operator_checks import check_operators
from onnxjson.model.walking import replace_records
from onnxjson.running.equivalence import require_same_results
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.light_model import LightModel
from onnxjson.running.opset_conversion import NEWER_VALUES

__all__ = ["ConvertOpset", "StampOpset"]

_NO_ADAPTER: Final = re.compile(r"No Adapter (?:From|To) Version |No Previous Version of ")
_REJECTED: Final = "the version converter of onnx rejects this model"
_COMPUTED: Final = "No initializer or constant input to node found"
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
        return NewModel(model, (f"{domain_text(domain)} is already at version {version}",))
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
        for value in [each.s for each in ref.node.attribute if each.s]:
            needed = NEWER_VALUES.get((ref.node.op_type, value), 0)
            if needed > version:
                name = f"{visible(ref.node.op_type or '')} with {visible(value.decode())}"
                text = f"version {version} of the operators has no {name} ({ref.address}); {_advice(needed)}"
                raise EditError(text, ref.address)
    merged = Counts()
    try:
        result = _by_converter(model, version, folder, merged)
    except (WorkerError, EditError) as error:
        raise _Refusal(model, nodes, version, folder).of(error) from error
    counts = "no node needed changes"
    if merged.total():
        changed = counted(merged["changed"], "node")
        counts = f"{changed} changed, {merged['added']:,} added, {merged['removed']:,} removed"
    doubts = require_same_results(model, result, folder, worker())
    return NewModel(result, (f"{counts}; redefined by opset {version}: {_operators(nodes, _SHOWN)}", *doubts))


def _by_converter(model: Model, version: int, folder: Path | None, merged: Counts) -> Model:
    """Convert with onnx; see `_refuse_wrong_nodes`, `check_not_worse` and `Worker.convert_version` for the errors."""
    shown = LightModel(model, folder)
    after = shown.read(worker().convert_version(shown.data, version))
    assert model.graph is not None
    if after.graph is None:
        raise EditError("the converter of onnx returned a model without a graph")
    old = imported_version(model.opset_import, "")
    converted = replace_records(after.graph, Node, lambda node: _without_old(node, old, version))
    graph = reconcile(model.graph, converted, merged)
    result = with_version(replace(model, graph=graph), "", version)
    _refuse_wrong_nodes(model, result)
    check_not_worse(model, result, "the converter of onnx")
    return result


def _refuse_wrong_nodes(before: Model, after: Model) -> None:
    """Raise if nodes use more than their operators have in another version; with the addresses of the nodes before."""
    mistakes = check_operators(after, is_joined=False)
    if not mistakes or check_operators(before):
        return
    message = mistakes[0].message
    places = {ref.node.output[:1]: ref.address for ref in Index(before).nodes()}
    addresses = []
    for mistake in mistakes:
        if mistake.message == message:
            node = find_element(after, _NODE_ADDRESS.findall(mistake.address)[0]).value
            assert isinstance(node, Node)
            addresses.append(places.get(node.output[:1], ""))
    where = f", at {len(addresses):,} nodes ({listed(list(filter(None, addresses)))})" if len(addresses) > 1 else ""
    raise EditError(f"{message}{where}", next(filter(None, addresses), ""))


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


class _Refusal:
    """Why a model cannot be converted: found by converting nodes alone."""

    def __init__(self, model: Model, nodes: Sequence[NodeRef], version: int, folder: Path | None) -> None:
        self._model, self._nodes, self._version, self._folder = model, nodes, version, folder
        self._types = InferredTypes(Index(model), worker(), folder)

    def of(self, error: OnnxJsonError) -> EditError:
        """Return the error for what a conversion raised: the nodes at fault, and the version that they need."""
        address = error.address if isinstance(error, EditError) else ""
        named = [ref for ref in self._nodes if ref.address == address]
        reasons = {ref.node.op_type: str(error) for ref in named} or self._reasons()
        at_fault = named or [ref for ref in self._nodes if ref.node.op_type in reasons]
        if not at_fault:
            return EditError(f"the converter of onnx cannot convert the model to version {self._version}: {error}")
        first = at_fault[0]
        needed = {ref.node.op_type: self._needed(ref) for ref in reversed(at_fault)}
        output = visible(first.node.output[0] if first.node.output else "")
        reason = self._reason(first, reasons[first.node.op_type])
        node = f'the node of "{output}" ({first.address})'
        text = f"version {self._version} of the operators cannot express {node}: {reason}"
        if len(at_fault) > 1:
            counts = Counter(ref.node.op_type for ref in at_fault)
            kinds = [f"{visible(name or '')} ({counts[name]:,}) needs version {needed[name]}" for name in counts]
            text += f"; {listed(kinds, len(kinds))}"
        return EditError(f"{text}; {_advice(max(needed.values()))}", first.address)

    def _reason(self, ref: NodeRef, message: str) -> str:
        name = visible(ref.node.op_type or "")
        if ref.node.op_type in RANDOM and operators.since_version("", ref.node.op_type, self._version) is None:
            return f"it has no {name}, and the definition of {name} would draw other random numbers"
        if _NO_ADAPTER.search(message) is not None:
            return f"onnx has no conversion of {name} to it"
        if _COMPUTED in message:
            return f"{name} has an attribute there instead of this input, which is not a known constant"
        if _REJECTED in message:
            return f"onnx cannot convert {name} to it ({message.rpartition(': ')[2]})"
        return message if name in message else f"the definition of {name}: {message}"

    def _reasons(self) -> dict[str | None, str]:
        """Return the operators that cannot be converted, with the message for the first node of each."""
        first = {ref.node.op_type: ref for ref in reversed(self._nodes)}
        tried = {name: self._alone(ref, self._version) for name, ref in first.items()}
        reasons = {name: message for name, message in tried.items() if message}
        # A node fails with what is inside it.
        around = {
            scope.owner.address
            for ref in self._nodes
            if ref.node.op_type in reasons
            for scope in ref.scope.chain()
            if scope.owner is not None
        }
        return {name: message for name, message in reasons.items() if first[name].address not in around}

    def _needed(self, ref: NodeRef) -> int:
        """Return the oldest version that can express a node."""
        old = imported_version(self._model.opset_import, "") or self._version
        between = range(self._version + 1, old)
        return next((version for version in between if not self._alone(ref, version)), old)

    def _alone(self, ref: NodeRef, version: int) -> str:
        """Return the message for a node alone in a model; "" if it can be converted."""
        node = ref.node
        inputs: list[ValueInfo] = []
        constants: list[Tensor] = []
        for name in dict.fromkeys(filter(None, consumed_names(node))):
            defining_scope = Index.defining_scope(ref.scope, name)
            constant = defining_scope.initializer(name) if defining_scope is not None else None
            if isinstance(constant, Tensor):
                constants.append(constant)
            else:
                inputs.append(ValueInfo(name=name, type=self._types.type_of(ref.scope, name)))
        outputs = [ValueInfo(name=name, type=self._types.type_of(ref.scope, name)) for name in node.output if name]
        alone = Graph(
            name="alone", node=(node,), input=tuple(inputs), output=tuple(outputs), initializer=tuple(constants)
        )
        model = replace(self._model, graph=alone, functions=(), training_info=())
        try:
            _by_converter(model, version, self._folder, Counts())
        except (EditError, WorkerError) as error:
            return str(error)
        return ""


def _advice(version: int) -> str:
    return f"convert to version {version} or newer, or replace the node first"


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

    group: ClassVar = "model"
    words = ("version",)
    examples = ('{"edit": "stamp-opset", "version": 17}',)

    version: Annotated[int, about("The new version.", ge=1)]
    domain: Annotated[str, Role("domain"), about("The domain of the operator set; by default that of ONNX itself.")] = (
        ""
    )

    def change(self, workspace: Workspace) -> Outcome:
        domain = operators.plain_domain(self.domain)
        model = workspace.model
        old = imported_version(model.opset_import, domain)
        name = domain_text(domain)
        if old == self.version:
            return Outcome(1, (f"{name} is already at version {old}",))
        now = f"imported with version {self.version}" if old is None else f"version {old} became version {self.version}"
        notes = [f"{name}: {now}; nodes are not converted"]
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

    The version converter of onnx changes the nodes whose operators differ. When downgrading (to 13 or later), it keeps
    nodes whose meaning is the same, and replaces operators that the older version lacks with their definitions. If a
    node cannot be converted, nothing is changed and all such operators are listed. If no operator differs, only
    opset_import changes. ir_version stays. Models that run quickly are compared on random inputs: a result with other
    outputs is refused; a note reports models that were not compared.
    """

    group: ClassVar = "model"
    words = ("version",)
    examples = ('{"edit": "convert-opset", "version": 21}',)

    version: Annotated[int, about("The new version.", ge=1)]
    domain: Annotated[str, Role("domain"), about("The domain of the operator set; by default that of ONNX itself.")] = (
        ""
    )

    def change(self, workspace: Workspace) -> Outcome:
        converted = convert(workspace.model, self.version, operators.plain_domain(self.domain), workspace.model_folder)
        if converted.model is not workspace.model:
            is_typed = workspace.typed is workspace.model
            workspace.replace_model(converted.model)
            if is_typed:  # All values that are still there have the types that they had.
                workspace.keep_types()
        return Outcome(1, converted.notes)
