"""What changed between two models, said in edits: a script that makes the change again, on the next version too.

The edits are made one after the other on the model before, so each is known to work, and the result is compared with
the model after. Where they do not lead there, the change is for a patch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.diffing.difference import diff
from onnxjson.display import visible
from onnxjson.document import Attribute, Function, Graph, Model, Node, StringStringEntry, Tensor, Type, ValueInfo
from onnxjson.edits.applying import new_findings
from onnxjson.edits.attributes import RemoveAttribute, SetAttribute
from onnxjson.edits.dead_code import Prune
from onnxjson.edits.declaration import Edit
from onnxjson.edits.deletion import DeleteNode
from onnxjson.edits.doc_strings import SetDoc
from onnxjson.edits.expressing_texts import Named, doc_edits, name_edits
from onnxjson.edits.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.edits.names import Rename
from onnxjson.edits.nodes import AddNode, ReplaceNode, Rewire
from onnxjson.edits.referring import maker_of, selector_of
from onnxjson.edits.shapes import SetShape
from onnxjson.edits.tensor_values import SetTensor
from onnxjson.edits.values import attribute_values, record_value
from onnxjson.edits.versions import SetMetadata, StampOpset
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import OnnxJsonError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.matching.alignment import Alignment, GraphPair
from onnxjson.operators import plain_domain
from onnxjson.types import format_type

MOST_EDITS: Final = 1000
"""Edits of a script; a change that needs more is for a patch."""

BIGGEST_TENSOR: Final = 1 << 20
"""Bytes of elements that a script holds."""

_HARMLESS: Final = {"reordered", "value-info-changed"}
"""Events that a script may leave out, since they change nothing that is computed; they are said."""


class Expressed(NamedTuple):
    """A change in edits, or why it is none."""

    edits: tuple[Edit, ...]
    reason: str = ""
    """Why the change cannot be said in edits; "" where it can."""
    left_out: tuple[str, ...] = ()
    """What the edits do not do, and nobody computes with."""


class _InexpressibleError(Exception):
    """The edits have no words for something."""


def express(base: Model, target: Model, alignment: Alignment) -> Expressed:
    """The edits that lead from one model to the other.

    Args:
        base: the model before.
        target: the model after.
        alignment: which node is which (`onnxjson.diff(base, target).alignment`).
    """
    writer = _Writer(base, target, alignment)
    try:
        writer.write()
    except _InexpressibleError as error:
        return Expressed((), str(error))
    except OnnxJsonError as error:
        return Expressed((), f"an edit that would be needed is refused: {error}")
    found = writer.workspace.model
    edits = tuple(writer.edits)
    if found == target:
        return Expressed(edits)
    if new_findings(base, found):
        return Expressed((), "the edits would leave a model that does not hang together")
    left = diff(found, target)
    others = [event for event in left.events if event.kind not in _HARMLESS]
    if others or left.incomplete:
        what = f"{others[0].kind}: {others[0].pattern}" if others else left.incomplete[0]
        return Expressed((), f"no edits are known for all of it ({visible(what, 100)})")
    return Expressed(edits, "", tuple(dict.fromkeys(event.kind for event in left.events)))


class _Writer:
    """Makes edits on the model before, in an order in which each finds what it needs."""

    def __init__(self, base: Model, target: Model, alignment: Alignment) -> None:
        self.base = base
        self.target = target
        self.alignment = alignment
        self.workspace = Workspace(base)
        self.edits: list[Edit] = []
        self.target_of: dict[str, list[int]] = {}
        """For each node of a graph of the base its counterpart, by the graph's address."""
        self.base_of: dict[str, list[int]] = {}
        for pair in alignment.graphs:
            self._pair_replaced(pair)
        self.bypassed: set[tuple[str, int]] = set()
        """Nodes of the base that are deleted already, by address of the graph and position."""

    def _pair_replaced(self, pair: GraphPair) -> None:
        """Nodes without a counterpart that make values of the same names, in the same places, are counterparts too."""
        target_of, base_of = list(pair.target_of), list(pair.base_of)
        new = {pair.target.graph.node[place].output: place for place, here in enumerate(base_of) if here < 0}
        for position, place in enumerate(target_of):
            output = pair.base.graph.node[position].output
            if place < 0 and output in new:
                target_of[position] = new[output]
                base_of[new.pop(output)] = position
        self.target_of[pair.base.address], self.base_of[pair.base.address] = target_of, base_of

    def make(self, edit: Edit) -> None:
        if len(self.edits) >= MOST_EDITS:
            raise _InexpressibleError(f"it would take more than {MOST_EDITS:,} edits")
        edit.change(self.workspace)
        self.edits.append(edit)

    def write(self) -> None:
        pairs = [pair for pair in self.alignment.graphs if pair.base.kind != "training"]
        self._versions()
        self._metadata(self.base.metadata_props, self.target.metadata_props)
        if (self.base.doc_string or "") != (self.target.doc_string or ""):
            self.make(SetDoc(text=self.target.doc_string or ""))
        bypassing = {pair.base.address: self._bypasses(pair) for pair in pairs}
        for pair in pairs:
            # While positions and names are those of the base.
            self._contents(pair)
        for pair in pairs:
            self._delete_bypassed(pair, bypassing[pair.base.address])
        for pair in pairs:
            self._rename(pair)
        for pair in pairs:
            if pair.base.kind == "main":
                self._inputs(pair)
        for pair in pairs:
            self._add_nodes(pair)
        for pair in pairs:
            self._rewire(pair)
        for pair in pairs:
            if pair.base.kind == "main":
                self._outputs(pair)
        for pair in pairs:
            self._delete_rest(pair)
        self._prune()
        self._types()
        for pair in pairs:
            self._docs(pair)

    # What stands in no graph

    def _versions(self) -> None:
        before = {plain_domain(each.domain): each.version for each in self.base.opset_import}
        for each in self.target.opset_import:
            domain = plain_domain(each.domain)
            if each.version is not None and before.get(domain) != each.version:
                self.make(StampOpset(version=each.version, domain=domain))

    def _metadata(
        self,
        before: Sequence[StringStringEntry],
        after: Sequence[StringStringEntry],
        *,
        node: str | None = None,
        tensor: str | None = None,
        graph: str | None = None,
    ) -> None:
        if before == after:
            return
        old = {each.key: each.value for each in before}
        new = {each.key: each.value for each in after}
        for key, value in new.items():
            if key and value is not None and old.get(key) != value:
                self.make(SetMetadata(key=key, value=value, node=node, tensor=tensor, graph=graph))
        for key in old:
            if key and key not in new:
                self.make(SetMetadata(key=key, remove=True, node=node, tensor=tensor, graph=graph))

    # What changes where it stands

    def _contents(self, pair: GraphPair) -> None:
        """Attributes, operators, metadata and constants of what stays."""
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
            attributes = _attribute_values(new)
            domain = new.domain or None
            selector = self.selector(ref)
            self.make(ReplaceNode(node=selector, op_type=new.op_type or "", attribute=attributes, domain=domain))
        elif old.attribute != new.attribute:
            self._attributes(ref, old, new)
        if old.metadata_props != new.metadata_props:
            selector = self.selector(NodeRef(self.workspace.scope(scope.address), position))
            self._metadata(old.metadata_props, new.metadata_props, node=selector)

    def _attributes(self, ref: NodeRef, old: Node, new: Node) -> None:
        before = {each.name: each for each in old.attribute}
        changed = {
            each.name
            for each in new.attribute
            if not _is_same(before.get(each.name), each) and not (each.g is not None and each.name in before)
        }
        if changed:
            values = _attribute_values(new)
            for name in [each.name for each in new.attribute if each.name in changed]:
                if name:
                    self.make(SetAttribute(node=self.selector(ref), attribute=name, value=values[name]))
                    ref = NodeRef(self.workspace.scope(ref.scope.address), ref.position)
        for name in before:
            if name and name not in {each.name for each in new.attribute}:
                self.make(RemoveAttribute(node=self.selector(ref), attribute=name))
                ref = NodeRef(self.workspace.scope(ref.scope.address), ref.position)

    def _constant(self, name: str, before: Tensor, after: Tensor) -> None:
        self._metadata(before.metadata_props, after.metadata_props, tensor=name)
        same = {"name": before.name, "doc_string": before.doc_string, "metadata_props": before.metadata_props}
        if msgspec.structs.replace(after, **same) == before:
            # Only its name is another one: the script must not bring these elements to the next version of the model.
            return
        size = len(after.raw_data) if after.raw_data is not None else 0
        if size > BIGGEST_TENSOR or after.external_data:
            raise _InexpressibleError(f'the constant "{visible(name)}" changed, and is too big for a script')
        tree = record_value(after)
        kind = tree.get("type") if (before.dims, before.data_type) != (after.dims, after.data_type) else None
        if "values" in tree:
            self.make(SetTensor(tensor=name, value=tree["values"], type=kind))
        elif "base64" in tree:
            self.make(SetTensor(tensor=name, base64=tree["base64"], type=kind))
        elif before.dims != after.dims or before.data_type != after.data_type:
            raise _InexpressibleError(f'the constant "{visible(name)}" has elements that a script cannot hold')

    # Nodes that go and let others through

    def _bypasses(self, pair: GraphPair) -> dict[int, int]:
        """Nodes that go -> the input that whoever took their output takes now."""
        base = pair.base
        gone = {position for position, place in enumerate(self.target_of[pair.base.address]) if place < 0}
        if not gone:
            return {}
        back = {there: here for here, there in pair.values.items()}
        found: dict[int, int] = {}
        for name, uses in base.takers.items():
            made = base.makers.get(name)
            if made is None or made[0] not in gone:
                continue
            now = {
                self._taken_now(pair, position, slot) for position, slot in uses if not self._is_gone(gone, position)
            }
            now.discard(None)
            if len(now) != 1:
                continue
            wanted = back.get(now.pop() or "")
            path = _path(base, gone, made[0], wanted) if wanted is not None else None
            if path is not None:
                found.update(path)
        return found

    @staticmethod
    def _is_gone(gone: set[int], position: int | None) -> bool:
        return position is not None and position in gone

    def _taken_now(self, pair: GraphPair, position: int | None, slot: int) -> str | None:
        """What the counterpart of a use takes in the target."""
        if position is None:
            outputs = pair.target.output_names
            return outputs[slot] if slot < len(outputs) else None
        inputs = pair.target.graph.node[self.target_of[pair.base.address][position]].input
        return inputs[slot] if slot < len(inputs) else None

    def _delete_bypassed(self, pair: GraphPair, bypasses: Mapping[int, int]) -> None:
        nodes = pair.base.graph.node
        for position in sorted(bypasses, reverse=True):
            scope = self.workspace.scope(pair.base.address)
            ref = maker_of(scope, nodes[position])
            if ref is None:
                raise _InexpressibleError("a node that goes cannot be named")
            several = sum(1 for name in nodes[position].input if name) > 1
            self.make(DeleteNode(node=self.selector(ref), bypass=bypasses[position] if several else None))
            self.bypassed.add((pair.base.address, position))

    # Names

    def _rename(self, pair: GraphPair) -> None:
        scope = self._scope(pair)
        here = {*scope.inputs, *scope.initializers, *scope.sparse_initializers, *scope.makers}
        names = {old: new for old, new in pair.values.items() if old != new and old in here}
        if names:
            self.make(Rename(kind="tensor", names=names, within=scope.address))
        nodes = []
        scope = self._scope(pair)
        for place in self.target_of[pair.base.address]:
            node = pair.target.graph.node[place] if place >= 0 else None
            ref = None if node is None else maker_of(scope, node)
            if node is not None and ref is not None:
                nodes.append(Named(ref, node.name or ""))
        for edit in name_edits(self.workspace, scope, nodes):
            self.make(edit)

    def _scope(self, pair: GraphPair) -> Scope:
        """The graph of a pair as it is now; it stands in a node that makes what it made."""
        for scope in self.workspace.index.scopes:
            if scope.address == pair.base.address and scope.owner is None:
                return scope
        if pair.base.owner is None:
            raise _InexpressibleError(f"{pair.base.address} is not there any more")
        outer = self._scope(self.alignment.by_base[pair.base.owner.scope.address])
        owner = self.alignment.by_base[pair.base.owner.scope.address]
        place = self.target_of[owner.base.address][pair.base.owner.position]
        ref = maker_of(outer, owner.target.graph.node[place]) or maker_of(outer, pair.base.owner.node)
        if ref is None:
            raise _InexpressibleError(f"{pair.base.address} cannot be found any more")
        address = ref.address + pair.base.address[len(pair.base.owner.address) :]
        return self.workspace.scope(address)

    # Nodes that come, and what is taken

    def _add_nodes(self, pair: GraphPair) -> None:
        for position, before in enumerate(self.base_of[pair.base.address]):
            if before >= 0:
                continue
            node = pair.target.graph.node[position]
            scope = self._scope(pair)
            self._require(pair, scope, node)
            self.make(
                AddNode(
                    op_type=node.op_type or "",
                    input=node.input,
                    output=node.output,
                    attribute=_attribute_values(node),
                    name=node.name or None,
                    domain=node.domain or None,
                    graph=scope.address,
                )
            )
            if node.metadata_props:
                ref = maker_of(self._scope(pair), node)
                if ref is not None:
                    self._metadata((), node.metadata_props, node=self.selector(ref))

    def _require(self, pair: GraphPair, scope: Scope, node: Node) -> None:
        for name in node.input:
            if name and Index.home(scope, name) is None and pair.target.initializer(name) is not None:
                raise _InexpressibleError(f'the constant "{visible(name)}" is new, and no edit adds constants')

    def _rewire(self, pair: GraphPair) -> None:
        for position, place in enumerate(self.target_of[pair.base.address]):
            if place < 0:
                continue
            wanted = pair.target.graph.node[place]
            if not _may_differ(pair, position, place):
                continue
            scope = self._scope(pair)
            ref = maker_of(scope, wanted)
            if ref is None:
                raise _InexpressibleError("a node that takes something else cannot be named")
            for slot, name in enumerate(wanted.input):
                now = ref.node.input
                if slot < len(now) and now[slot] == name:
                    continue
                if slot >= len(now) or not name:
                    raise _InexpressibleError("a node takes more or fewer inputs than before")
                self.make(Rewire(node=self.selector(ref), input=slot, tensor=name))
                again = maker_of(self._scope(pair), wanted)
                assert again is not None
                ref = again

    def _delete_rest(self, pair: GraphPair) -> None:
        gone = [
            position
            for position, place in enumerate(self.target_of[pair.base.address])
            if place < 0 and (pair.base.address, position) not in self.bypassed
        ]
        for position in reversed(gone):
            ref = maker_of(self._scope(pair), pair.base.graph.node[position])
            if ref is not None:
                self.make(DeleteNode(node=self.selector(ref)))

    # What the model takes and gives

    def _inputs(self, pair: GraphPair) -> None:
        graph, target = self.workspace.graph, _graph(pair.target)
        now = {each.name: each for each in graph.input}
        wanted = {each.name: each for each in target.input}
        for name, value in wanted.items():
            if name and name not in now:
                self.make(AddInput(tensor=name, type=_type_text(value)))

    def _outputs(self, pair: GraphPair) -> None:
        target = _graph(pair.target)
        now = [each.name for each in self.workspace.graph.output]
        for value in target.output:
            if value.name and value.name not in now:
                self.make(AddOutput(tensor=value.name, type=_type_text(value)))
        wanted = {each.name for each in target.output}
        for name in now:
            if name and name not in wanted:
                self.make(RemoveOutput(tensor=name))

    def _prune(self) -> None:
        target, graph = self.target.graph, self.workspace.graph
        if target is None:
            return
        left = {each.name for each in graph.initializer} - {each.name for each in target.initializer}
        if left and not any(name in self.workspace.main.takers for name in left if name):
            self.make(Prune(what=("initializers",)))
        now = {each.name for each in self.workspace.graph.input}
        for name in [each.name for each in graph.input]:
            if name and name in now and name not in {each.name for each in target.input}:
                self.make(RemoveInput(tensor=name))

    def _types(self) -> None:
        """Shapes of inputs and outputs."""
        target = self.target.graph
        if target is None:
            return
        for field in ("input", "output"):
            wanted: dict[str | None, ValueInfo] = {each.name: each for each in getattr(target, field)}
            for value in getattr(self.workspace.graph, field):
                there = wanted.get(value.name)
                if there is None or value.name is None or value.type == there.type:
                    continue
                shape = _shape(there.type)
                if shape is None:
                    raise _InexpressibleError(f'the type of "{visible(value.name)}" changed')
                self.make(SetShape(tensor=value.name, shape=shape, propagate=False))

    # What is said beside

    def _docs(self, pair: GraphPair) -> None:
        try:
            scope = self._scope(pair)
        except _InexpressibleError:
            return  # It cannot be found by what it makes; whether that matters is seen in the end.
        for edit in list(doc_edits(self.workspace, scope, pair.target.graph)):
            self.make(edit)

    def selector(self, ref: NodeRef) -> str:
        """How a person would name a node, so that it is found in the next version of the model too."""
        return selector_of(self.workspace, ref)


def _path(scope: Scope, gone: set[int], position: int, wanted: str) -> dict[int, int] | None:
    """The nodes, from one that goes up to a value, that are bypassed: node -> input."""
    for slot, name in enumerate(scope.graph.node[position].input):
        if name == wanted:
            return {position: slot}
        made = scope.makers.get(name)
        if made is not None and made[0] in gone:
            rest = _path(scope, gone, made[0], wanted)
            if rest is not None:
                return {position: slot, **rest}
    return None


def _is_same(old: Attribute | None, new: Attribute) -> bool:
    """Whether an attribute says the same; its doc string is another matter."""
    return old is not None and msgspec.structs.replace(old, doc_string=new.doc_string) == new


def _may_differ(pair: GraphPair, position: int, place: int) -> bool:
    """Whether a node takes something else than its counterpart, up to names."""
    get = pair.values.get
    old, new = pair.base.graph.node[position].input, pair.target.graph.node[place].input
    return len(old) != len(new) or any(get(a, a) != b for a, b in zip(old, new, strict=True))


def _attribute_values(node: Node) -> dict[str, Any]:
    found = attribute_values(node)
    if found is None:
        raise _InexpressibleError(f"attributes of {visible(node.op_type or '')} stand in a form that edits do not have")
    return found


def _graph(scope: Scope) -> Graph:
    graph = scope.graph
    assert not isinstance(graph, Function)
    return graph


def _type_text(value: ValueInfo) -> str:
    text = None if value.type is None else format_type(value.type)
    if text is None:
        raise _InexpressibleError(f'"{visible(value.name or "")}" has a type that a text cannot say')
    return text


def _shape(value: Type | None) -> tuple[int | str, ...] | None:
    """The dimensions of a tensor type that a script can say."""
    if value is None or value.tensor_type is None or value.tensor_type.shape is None:
        return None
    dims: list[int | str] = []
    for dim in value.tensor_type.shape.dim:
        if dim.dim_value is not None:
            dims.append(dim.dim_value)
        else:
            dims.append(dim.dim_param or "?")
    return tuple(dims)
