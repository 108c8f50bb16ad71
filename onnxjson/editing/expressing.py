"""Express the difference between two models as edits: a script that applies to the next version as well.

The edits are applied one after the other to the base, so each of them is known to work, and the result is compared
with the target. A difference that edits cannot express needs a patch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from onnxjson.diffing.difference import diff
from onnxjson.diffing.matching.alignment import Alignment, GraphPair
from onnxjson.editing.annotations import SetDoc, SetMetadata
from onnxjson.editing.applying import new_findings
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute
from onnxjson.editing.cleaning import Prune
from onnxjson.editing.declaration import Edit
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.expressing_nodes import (
    InexpressibleError,
    doc_edits,
    find_bypasses,
    find_counterpart,
    inputs_may_differ,
    is_same_attribute,
    main_graph,
    name_edits,
    pair_nodes,
    selector_of,
    shape_of,
    type_text,
    values_of_attributes,
)
from onnxjson.editing.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.editing.names import Rename
from onnxjson.editing.nodes import AddNode, ReplaceNode, Rewire
from onnxjson.editing.opsets import StampOpset
from onnxjson.editing.shapes import SetShape
from onnxjson.editing.tensor_values import SetTensor
from onnxjson.editing.values import record_value
from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Node, StringStringEntry, Tensor, ValueInfo
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.limits import EXPRESSED_EDITS
from onnxjson.model.operators import plain_domain

BIGGEST_TENSOR: Final = 1 << 20
"""Maximum size in bytes of a tensor in a script."""

_HARMLESS: Final = {"reordered", "value-info-changed"}
"""Events that a script may omit, since they do not affect the computation; they are reported."""


class Expressed(NamedTuple):
    """A difference as edits, or the reason why it cannot be expressed."""

    edits: tuple[Edit, ...]
    reason: str = ""
    """Reason why edits cannot express the difference; "" if they can."""
    left_out: tuple[str, ...] = ()
    """Kinds of events that the edits omit, and that do not affect the computation."""


def express(base: Model, target: Model, alignment: Alignment) -> Expressed:
    """Express the difference between two models as edits; the alignment is that of `onnxjson.diff(base, target)`."""
    writer = _Writer(base, target, alignment)
    try:
        writer.write()
    except InexpressibleError as error:
        return Expressed((), str(error))
    except OnnxJsonError as error:
        return Expressed((), f"a necessary edit is refused: {error}")
    found = writer.workspace.model
    edits = tuple(writer.edits)
    if found == target:
        return Expressed(edits)
    if new_findings(base, found):
        return Expressed((), "the edits would leave an invalid model")
    left = diff(found, target)
    others = [event for event in left.events if event.kind not in _HARMLESS]
    if others or left.incomplete:
        what = f"{others[0].kind}: {others[0].pattern}" if others else left.incomplete[0]
        return Expressed((), f"no edit expresses this part: {visible(what, 100)}")
    return Expressed(edits, "", tuple(dict.fromkeys(event.kind for event in left.events)))


class _Writer:
    """Applies edits to the base, in an order in which each of them is possible."""

    def __init__(self, base: Model, target: Model, alignment: Alignment) -> None:
        self.base = base
        self.target = target
        self.alignment = alignment
        self.workspace = Workspace(base)
        self.edits: list[Edit] = []
        self.target_of: dict[str, list[int]] = {}
        """Counterpart of each node, -1 for none, by address of a graph of the base."""
        self.base_of: dict[str, list[int]] = {}
        for pair in alignment.graphs:
            self.target_of[pair.base.address], self.base_of[pair.base.address] = pair_nodes(pair)
        self.bypassed: set[tuple[str, int]] = set()
        """Nodes of the base that are deleted already: address of the graph and position."""

    def add(self, edit: Edit) -> None:
        if len(self.edits) >= EXPRESSED_EDITS:
            raise InexpressibleError(f"it needs more than {EXPRESSED_EDITS:,} edits")
        edit.change(self.workspace)
        self.edits.append(edit)

    def write(self) -> None:
        pairs = [pair for pair in self.alignment.graphs if pair.base.kind != "training"]
        self._versions()
        self._metadata(self.base.metadata_props, self.target.metadata_props)
        if (self.base.doc_string or "") != (self.target.doc_string or ""):
            self.add(SetDoc(text=self.target.doc_string or ""))
        # Nodes are compared as long as positions and names are those of the base.
        bypassing = {pair.base.address: find_bypasses(pair, self.target_of[pair.base.address]) for pair in pairs}
        phases = (
            self._contents,
            lambda pair: self._delete_bypassed(pair, bypassing[pair.base.address]),
            self._rename,
            self._inputs,
            self._add_nodes,
            self._rewire,
            self._outputs,
            self._delete_rest,
        )
        for phase in phases:
            for pair in pairs:
                phase(pair)
        self._prune()
        self._types()
        for pair in pairs:
            self._docs(pair)

    # Changes outside graphs

    def _versions(self) -> None:
        before = {plain_domain(each.domain): each.version for each in self.base.opset_import}
        for each in self.target.opset_import:
            domain = plain_domain(each.domain)
            if each.version is not None and before.get(domain) != each.version:
                self.add(StampOpset(version=each.version, domain=domain))

    def _metadata(self, before: Sequence[StringStringEntry], after: Sequence[StringStringEntry], **where: Any) -> None:
        if before == after:
            return
        old = {each.key: each.value for each in before}
        new = {each.key: each.value for each in after}
        for key, value in new.items():
            if key and value is not None and old.get(key) != value:
                self.add(SetMetadata(key=key, value=value, **where))
        for key in old:
            if key and key not in new:
                self.add(SetMetadata(key=key, remove=True, **where))

    # Changes in place

    def _contents(self, pair: GraphPair) -> None:
        """Change attributes, operators, metadata and constants of elements that stay."""
        for position, place in enumerate(self.target_of[pair.base.address]):
            if place >= 0:
                old, new = pair.base.graph.node[position], pair.target.graph.node[place]
                if old is not new and old != new:
                    self._node(pair.base, position, old, new)
        base, target = pair.base.graph, pair.target.graph
        self._metadata(base.metadata_props, target.metadata_props, graph=pair.base.address)
        for name, other in pair.values.items():
            before, after = pair.base.initializer(name), pair.target.initializer(other)
            if isinstance(before, Tensor) and isinstance(after, Tensor) and before != after:
                self._constant(name, before, after)

    def _node(self, scope: Scope, position: int, old: Node, new: Node) -> None:
        ref = NodeRef(self.workspace.scope(scope.address), position)
        operator = (plain_domain(old.domain), old.op_type, old.overload or "")
        if operator != (plain_domain(new.domain), new.op_type, new.overload or ""):
            domain, attributes = new.domain or None, values_of_attributes(new)
            self.add(
                ReplaceNode(node=self.selector(ref), op_type=new.op_type or "", attribute=attributes, domain=domain)
            )
        elif old.attribute != new.attribute:
            self._attributes(ref, old, new)
        if old.metadata_props != new.metadata_props:
            self._metadata(old.metadata_props, new.metadata_props, node=self.selector(ref))

    def _attributes(self, ref: NodeRef, old: Node, new: Node) -> None:
        before = {each.name: each for each in old.attribute}
        changed = {
            each.name
            for each in new.attribute
            if not is_same_attribute(before.get(each.name), each) and not (each.g is not None and each.name in before)
        }
        if changed:
            values = values_of_attributes(new)
            for each in new.attribute:
                if each.name and each.name in changed:
                    self.add(SetAttribute(node=self.selector(ref), attribute=each.name, value=values[each.name]))
        for name in before:
            if name and name not in {each.name for each in new.attribute}:
                self.add(RemoveAttribute(node=self.selector(ref), attribute=name))

    def _constant(self, name: str, before: Tensor, after: Tensor) -> None:
        self._metadata(before.metadata_props, after.metadata_props, tensor=name)
        same = {"name": before.name, "doc_string": before.doc_string, "metadata_props": before.metadata_props}
        if replace(after, **same) == before:
            # Only the name differs: the script must not carry these elements to the next version of the model.
            return
        if len(after.raw_data or b"") > BIGGEST_TENSOR or after.external_data:
            raise InexpressibleError(f'the constant "{visible(name)}" changed, and is too big for a script')
        tree = record_value(after)
        kind = tree.get("type") if (before.dims, before.data_type) != (after.dims, after.data_type) else None
        if "values" in tree:
            self.add(SetTensor(tensor=name, value=tree["values"], type=kind))
        elif "base64" in tree:
            self.add(SetTensor(tensor=name, base64=tree["base64"], type=kind))
        elif before.dims != after.dims or before.data_type != after.data_type:
            raise InexpressibleError(f'the constant "{visible(name)}" has elements that a script cannot contain')

    # Deleted nodes that are bypassed

    def _delete_bypassed(self, pair: GraphPair, bypasses: Mapping[int, int]) -> None:
        nodes = pair.base.graph.node
        for position in sorted(bypasses, reverse=True):
            scope = self.workspace.scope(pair.base.address)
            ref = find_counterpart(scope, nodes[position])
            if ref is None:
                raise InexpressibleError("a deleted node cannot be selected")
            several = sum(1 for name in nodes[position].input if name) > 1
            self.add(DeleteNode(node=self.selector(ref), bypass=bypasses[position] if several else None))
            self.bypassed.add((pair.base.address, position))

    # Names

    def _rename(self, pair: GraphPair) -> None:
        scope = self._scope(pair)
        here = {*scope.inputs, *scope.initializers, *scope.sparse_initializers, *scope.producers}
        names = {old: new for old, new in pair.values.items() if old != new and old in here}
        if names:
            self.add(Rename(kind="tensor", names=names, within=scope.address))
        nodes = []
        scope = self._scope(pair)
        for place in [place for place in self.target_of[pair.base.address] if place >= 0]:
            node = pair.target.graph.node[place]
            if (ref := find_counterpart(scope, node)) is not None:
                nodes.append((ref, node.name or ""))
        for edit in name_edits(self.workspace, scope, nodes):
            self.add(edit)

    def _scope(self, pair: GraphPair) -> Scope:
        """Return the current graph of a pair, found by the outputs of the nodes around it."""
        if pair.base.owner is None:
            for scope in self.workspace.index.scopes:
                if scope.address == pair.base.address and scope.owner is None:
                    return scope
            raise InexpressibleError(f"{pair.base.address} no longer exists")
        around = self.alignment.by_base[pair.base.owner.scope.address]
        outer = self._scope(around)
        place = self.target_of[around.base.address][pair.base.owner.position]
        ref = find_counterpart(outer, around.target.graph.node[place]) or find_counterpart(outer, pair.base.owner.node)
        if ref is None:
            raise InexpressibleError(f"{pair.base.address} can no longer be found")
        return self.workspace.scope(ref.address + pair.base.address[len(pair.base.owner.address) :])

    # Added nodes, and inputs

    def _add_nodes(self, pair: GraphPair) -> None:
        for position, before in enumerate(self.base_of[pair.base.address]):
            if before >= 0:
                continue
            node = pair.target.graph.node[position]
            scope = self._scope(pair)
            self._require(pair, scope, node)
            self.add(
                AddNode(
                    op_type=node.op_type or "",
                    input=node.input,
                    output=node.output,
                    attribute=values_of_attributes(node),
                    name=node.name or None,
                    domain=node.domain or None,
                    graph=scope.address,
                )
            )
            if node.metadata_props and (ref := find_counterpart(self._scope(pair), node)) is not None:
                self._metadata((), node.metadata_props, node=self.selector(ref))

    def _require(self, pair: GraphPair, scope: Scope, node: Node) -> None:
        for name in node.input:
            if name and Index.defining_scope(scope, name) is None and pair.target.initializer(name) is not None:
                raise InexpressibleError(f'the constant "{visible(name)}" is new, and no edit adds constants')

    def _rewire(self, pair: GraphPair) -> None:
        for position, place in enumerate(self.target_of[pair.base.address]):
            if place < 0:
                continue
            wanted = pair.target.graph.node[place]
            if not inputs_may_differ(pair, position, place):
                continue
            scope = self._scope(pair)
            ref = find_counterpart(scope, wanted)
            if ref is None:
                raise InexpressibleError("a node with other inputs cannot be selected")
            for slot, name in enumerate(wanted.input):
                now = ref.node.input
                if slot < len(now) and now[slot] == name:
                    continue
                if slot >= len(now) or not name:
                    raise InexpressibleError("a node has more or fewer inputs than before")
                self.add(Rewire(node=self.selector(ref), input=slot, tensor=name))
                ref = find_counterpart(self._scope(pair), wanted) or ref

    def _delete_rest(self, pair: GraphPair) -> None:
        address = pair.base.address
        for position, place in reversed(list(enumerate(self.target_of[address]))):
            if place < 0 and (address, position) not in self.bypassed:
                ref = find_counterpart(self._scope(pair), pair.base.graph.node[position])
                if ref is not None:
                    self.add(DeleteNode(node=self.selector(ref)))

    # Inputs and outputs of the model

    def _inputs(self, pair: GraphPair) -> None:
        if pair.base.kind != "main":
            return
        now = {each.name for each in self.workspace.graph.input}
        for value in main_graph(pair.target).input:
            if value.name and value.name not in now:
                self.add(AddInput(tensor=value.name, type=type_text(value)))

    def _outputs(self, pair: GraphPair) -> None:
        if pair.base.kind != "main":
            return
        target = main_graph(pair.target)
        now = [each.name for each in self.workspace.graph.output]
        for value in target.output:
            if value.name and value.name not in now:
                self.add(AddOutput(tensor=value.name, type=type_text(value)))
        wanted = {each.name for each in target.output}
        for name in now:
            if name and name not in wanted:
                self.add(RemoveOutput(tensor=name))

    def _prune(self) -> None:
        target, graph = self.target.graph, self.workspace.graph
        if target is None:
            return
        left = {each.name for each in graph.initializer} - {each.name for each in target.initializer}
        if left and not any(name in self.workspace.main.consumers for name in left if name):
            self.add(Prune(what=("initializers",)))
        wanted = {each.name for each in target.input}
        for name in [each.name for each in self.workspace.graph.input]:
            if name and name not in wanted:
                self.add(RemoveInput(tensor=name))

    def _types(self) -> None:
        """Change the shapes of inputs and outputs."""
        target = self.target.graph
        if target is None:
            return
        for field in ("input", "output"):
            wanted: dict[str | None, ValueInfo] = {each.name: each for each in getattr(target, field)}
            for value in getattr(self.workspace.graph, field):
                there = wanted.get(value.name)
                if there is None or value.name is None or value.type == there.type:
                    continue
                shape = shape_of(there.type)
                if shape is None:
                    raise InexpressibleError(f'the type of "{visible(value.name)}" changed')
                self.add(SetShape(tensor=value.name, shape=shape, propagate=False))

    # Doc strings

    def _docs(self, pair: GraphPair) -> None:
        try:
            scope = self._scope(pair)
        except InexpressibleError:
            return  # It cannot be found by its outputs; the final comparison shows whether that matters.
        for edit in list(doc_edits(self.workspace, scope, pair.target.graph)):
            self.add(edit)

    def selector(self, ref: NodeRef) -> str:
        """Return a selector of the node at a position that also works in the next version of the model."""
        return selector_of(self.workspace, NodeRef(self.workspace.scope(ref.scope.address), ref.position))
