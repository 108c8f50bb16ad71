"""From one version of an operator set to another: what would change, and the change."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.edits.guarded import Shown, check, worker
from onnxjson.edits.inference import inferred_types
from onnxjson.edits.rebuilding import replace_records
from onnxjson.edits.reconciling import reconcile
from onnxjson.errors import EditError, WorkerError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.operators import attribute_defaults, known_attributes, newest_version, plain_domain, since_version

_NO_ADAPTER: Final = re.compile(r"No Adapter From Version \$?(\d+) for (\w+)|No Previous Version of (\w+)")
_SHOWN: Final = 6


class Converted(NamedTuple):
    """A model for another version of an operator set."""

    model: Model
    notes: tuple[str, ...]


def imported_version(imports: Sequence[OperatorSetId], domain: str) -> int | None:
    """The version of a domain that is imported; None where it is not.

    Raises:
        EditError: it is imported twice, in two versions.
    """
    versions = {each.version for each in imports if plain_domain(each.domain) == domain}
    if len(versions) > 1:
        both = " and ".join(sorted(map(str, versions)))
        raise EditError(f"the model imports {domain_text(domain)} as {both}; keep one of the entries", "/opset_import")
    return next(iter(versions), None)


def with_version(model: Model, domain: str, version: int) -> Model:
    """`model` with another version of one domain in its opset_import, added where it is missing; nothing else."""
    imports = [
        msgspec.structs.replace(each, version=version) if plain_domain(each.domain) == domain else each
        for each in model.opset_import
    ]
    if not any(plain_domain(each.domain) == domain for each in imports):
        imports.append(OperatorSetId(domain=domain, version=version))
    return msgspec.structs.replace(model, opset_import=tuple(imports))


def domain_text(domain: str) -> str:
    """A domain in a sentence."""
    return f'the domain "{visible(domain)}"' if domain else "the default domain"


def affected(index: Index, domain: str, old: int, new: int) -> list[NodeRef]:
    """The nodes whose operator is another one, or none, in the other version; calls of functions are none."""
    functions = {each.name for each in index.model.functions if plain_domain(each.domain) == domain}
    changed: dict[tuple[str | None, str | None], bool] = {}

    def is_other(node: Node) -> bool:
        key = node.domain, node.op_type
        if key not in changed:
            changed[key] = (
                plain_domain(node.domain) == domain
                and node.op_type not in functions
                and since_version(domain, node.op_type, old) != since_version(domain, node.op_type, new)
            )
        return changed[key]

    return [
        NodeRef(scope, position)
        for scope in index.scopes
        for position, node in enumerate(scope.graph.node)
        if is_other(node)
    ]


def convert(model: Model, version: int, domain: str = "", folder: Path | None = None) -> Converted:
    """`model` for another version of an operator set; ir_version and all that need not change stay as they are.

    Args:
        model: stays as it is.
        version: the version that is wanted.
        domain: of the operator set, "" for the default one.
        folder: where small external data is looked for.

    Raises:
        EditError: it cannot be converted without damage; the message lists the operators that are in the way.
        WorkerError: the converter crashed or hung.
        MissingInputError, UntrustedError: a small constant stands in a file that is not there, or that a model has no
            business with.
    """
    old = imported_version(model.opset_import, domain)
    if old is None:
        known = ", ".join(domain_text(plain_domain(each.domain)) for each in model.opset_import) or "none"
        raise EditError(f"the model does not import {domain_text(domain)}; it imports {known}", "/opset_import")
    if old == version:
        return Converted(model, (f"{domain_text(domain)} is at version {version} already",))
    newest = newest_version(domain)
    if newest is None:
        reason = f"onnx does not know the operators of {domain_text(domain)}, so nothing can convert them"
        raise EditError(f"{reason}; stamp-opset writes another version and converts nothing")
    if not 1 <= version <= newest:
        raise EditError(f"{domain_text(domain)} has versions 1 to {newest}; {version} is none of them")
    index = Index(model)
    nodes = affected(index, domain, old, version)
    if not nodes:
        text = f"no operator of the model is another one in version {version}; only opset_import changes"
        return Converted(with_version(model, domain, version), (text,))
    _refuse_elsewhere(nodes, domain, old, version)
    return _converted(model, index, nodes, version, folder)


def _refuse_elsewhere(nodes: Sequence[NodeRef], domain: str, old: int, version: int) -> None:
    """Do nothing if the converter reaches all of the nodes.

    Raises:
        EditError: some are of another domain, or in functions or training steps, where it does not look.
    """
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
        inside = [ref for ref in nodes if _outermost(ref.scope).kind == kind]
        if inside:
            reason = f"{_operators(inside)} changed {change}, in {words}, where the converter does not look"
            raise EditError(f"{reason}; {advice}", inside[0].address)


def _outermost(scope: Scope) -> Scope:
    # A training step sees the main graph, but is no part of it.
    return next(each for each in scope.chain() if each.kind != "subgraph")


def _operators(nodes: Sequence[NodeRef], most: int | None = None) -> str:
    """Operators with how often they stand, the `most` frequent ones."""
    counts = Counter(visible(ref.node.op_type or "") for ref in nodes)
    shown = [f"{name} ({count:,})" for name, count in counts.most_common(most)]
    return ", ".join(shown) + (f" and {len(counts) - len(shown):,} more" if len(counts) > len(shown) else "")


def _converted(model: Model, index: Index, nodes: Sequence[NodeRef], version: int, folder: Path | None) -> Converted:
    shown = Shown(model, folder)
    try:
        after = shown.read(worker().convert_version(shown.data, version))
    except WorkerError as error:
        missing = _without_adapter(model, index, nodes, version, folder, str(error))
        if missing:
            raise EditError(
                f"operators without an adapter to version {version}: {_operators(missing)}; "
                "the converter of onnx cannot bring them there",
                missing[0].address,
            ) from error
        raise
    assert model.graph is not None
    if after.graph is None:
        raise EditError("the converter of onnx gave a model without a graph")
    old = imported_version(model.opset_import, "")
    merged = reconcile(model.graph, replace_records(after.graph, Node, lambda node: _without_old(node, old, version)))
    result = with_version(msgspec.structs.replace(model, graph=merged.graph), "", version)
    refuse_worse(model, result, "the converter of onnx")
    counts = "no node had to change"
    if merged.changed or merged.added or merged.removed:
        counts = f"{merged.changed:,} nodes changed, {merged.added:,} came, {merged.removed:,} went"
    return Converted(result, (f"{counts}; other operators in version {version}: {_operators(nodes, _SHOWN)}",))


def _without_old(node: Node, old: int | None, new: int) -> Node:
    """A node without attributes that its operator does not have any more, where they say what is so without them.

    The converter leaves them, such as ``noop_with_empty_axes`` of ReduceMean, and the checker then refuses the model.
    """
    if plain_domain(node.domain) or not node.attribute:
        return node
    known = known_attributes(node.domain, node.op_type, new)
    defaults = attribute_defaults(node.domain, node.op_type, old)
    if known is None or all(each.name in known for each in node.attribute):
        return node
    kept = [each for each in node.attribute if each.name in known or each != defaults.get(each.name or "")]
    return msgspec.structs.replace(node, attribute=tuple(kept))


def _without_adapter(
    model: Model, index: Index, nodes: Sequence[NodeRef], version: int, folder: Path | None, first: str
) -> list[NodeRef]:
    """All nodes that the converter cannot bring there, found by asking for each kind of node alone."""
    match = _NO_ADAPTER.search(first)
    if match is None:
        return []
    named = match[2] or match[3]
    kinds = {named: True}
    types = {scope.address: scope for scope in Index(inferred_types(model, folder)).scopes}
    for ref in nodes:
        name = ref.node.op_type or ""
        if name not in kinds:
            kinds[name] = _lacks_adapter(model, ref, types.get(ref.scope.address), version)
    return [ref for ref in nodes if kinds[ref.node.op_type or ""]]


def _lacks_adapter(model: Model, ref: NodeRef, typed: Scope | None, version: int) -> bool:
    """Whether the converter knows no way for a node that stands alone in a model."""
    node = ref.node
    inputs: list[ValueInfo] = []
    constants: list[Tensor] = []
    for name in dict.fromkeys(filter(None, node.input)):
        home = Index.home(ref.scope, name)
        constant = home.initializer(name) if home is not None else None
        if isinstance(constant, Tensor):
            constants.append(constant)
        else:
            inputs.append(ValueInfo(name=name, type=None if typed is None else Index.type_of(typed, name)))
    alone = Graph(
        name="alone",
        node=(node,),
        input=tuple(inputs),
        output=tuple([ValueInfo(name=name) for name in node.output if name]),
        initializer=tuple(constants),
    )
    whole = Model(ir_version=model.ir_version, graph=alone, opset_import=model.opset_import)
    try:
        worker().convert_version(Shown(whole, None).data, version)
    except WorkerError as error:
        return _NO_ADAPTER.search(str(error)) is not None
    return False


def refuse_worse(before: Model, after: Model, who: str) -> None:
    """Do nothing if the checker of onnx finds nothing in `after` that it did not find in `before`.

    Raises:
        EditError: `who` made something that is not valid.
    """
    found = _errors(after)
    if found and not _errors(before):
        raise EditError(f"{who} makes a model that is not valid: {found[0].message}")


def _errors(model: Model) -> list[Finding]:
    try:
        return [each for each in check(model) if each.severity == "error"]
    except WorkerError as error:
        return [Finding(severity="error", code="check-unfinished", message=str(error))]
