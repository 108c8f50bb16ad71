"""Edits of doc strings and metadata: set-doc and set-metadata."""

from typing import Annotated, ClassVar, Final, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role
from onnxjson.editing.workspace import Workspace
from onnxjson.model.addresses import find_element
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    Record,
    SparseTensor,
    StringStringEntry,
    Tensor,
    ValueInfo,
)
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.model.selectors import TensorRef

DescribedTensor = Annotated[
    str | None,
    Role("tensor"),
    Meta(description="The constant, or the value that is listed in the inputs, outputs or value_info."),
]
"""Parameter of an edit that annotates a tensor."""

DescribedGraph = Annotated[
    str | None,
    Role("graph"),
    Meta(description="The address of the graph or function, such as /graph or /functions/0."),
]
"""Parameter of an edit that annotates a graph."""


def annotated_record(ref: TensorRef, what: str) -> tuple[str, Tensor | ValueInfo]:
    """Return the record with the metadata and doc string of a tensor, and its address.

    For a sparse constant this is the tensor of its values; for a value, the first entry with its name in the inputs,
    outputs and value_info of its graph.

    Args:
        ref: the result of a selector.
        what: what is to be stored there, such as "metadata", for the message.

    Raises:
        EditError: the graph has no entry for the value.
    """
    if isinstance(ref.tensor, Tensor):
        return ref.address, ref.tensor
    if isinstance(ref.tensor, SparseTensor):
        return f"{ref.address}/values", ref.tensor.values or Tensor()
    assert ref.scope is not None
    graph = ref.scope.graph
    fields = ("value_info",) if isinstance(graph, Function) else ("input", "output", "value_info")
    for field in fields:
        for position, value in enumerate(getattr(graph, field)):
            if isinstance(value, ValueInfo) and value.name == ref.name:
                return f"{ref.scope.address}/{field}/{position}", value
    raise EditError(
        f'"{visible(ref.name)}" has no value_info that could hold {what}; infer-shapes adds one',
        ref.address,
    )


Documented = Model | Graph | Function | Node | Attribute | Tensor | ValueInfo
"""Records that have a doc string."""

AnyDocumented = TypeVar("AnyDocumented", bound=Documented)

_NOTHING: Final = "there is no doc string to remove"


class SetDoc(Edit, frozen=True, kw_only=True, eq=False, tag="set-doc"):
    """Set the doc string of the model, or of an element of it.

    Select nodes, tensors and graphs by their own parameters, any other element by its address. An empty text removes
    the doc string.
    """

    words: ClassVar = ("text",)
    examples: ClassVar = (
        '{"edit": "set-doc", "text": "Trained on digits."}',
        '{"edit": "set-doc", "text": "first layer", "node": "op:Conv"}',
        '{"edit": "set-doc", "text": "Pixels from 0 to 1.", "address": "/graph/input/0"}',
    )

    text: Annotated[str, Role("text"), Meta(description='The doc string; "" removes it.')]
    node: Annotated[str | None, Role("nodes"), Meta(description="The nodes to change; the model by default.")] = None
    tensor: DescribedTensor = None
    graph: DescribedGraph = None
    address: Annotated[
        str | None,
        Role("address"),
        Meta(description="The address of any element that has a doc string, such as /graph/output/0."),
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        places = [each for each in (self.node, self.tensor, self.graph, self.address) if each is not None]
        if len(places) > 1:
            raise EditError("node, tensor, graph and address each select an element; give at most one of them")
        if self.node is not None:
            return self._nodes(workspace, self.node)
        if self.tensor is not None:
            return self._put(workspace, *annotated_record(workspace.tensor(self.tensor), "a doc string"))
        address = self.address or ""
        if self.graph is not None:
            address = workspace.scope(self.graph.removeprefix("@")).address
        found = find_element(workspace.model, address.removeprefix("@"))
        if not isinstance(found.value, Documented):
            kinds = "a graph, function, node, attribute, tensor or value"
            raise EditError(f"{visible(found.address, 200)} has no doc string; name {kinds} by its address", address)
        return self._put(workspace, found.address, found.value)

    def _nodes(self, workspace: Workspace, selector: str) -> Outcome:
        by_scope: dict[Scope, list[int]] = {}
        for ref in workspace.select(selector):
            if self.text or ref.node.doc_string is not None:
                by_scope.setdefault(ref.scope, []).append(ref.position)
        for scope, positions in by_scope.items():
            nodes = scope.graph.node
            workspace.replace_nodes(scope, {each: self._with(nodes[each]) for each in positions})
        count = sum(map(len, by_scope.values()))
        return Outcome(count, () if count else (_NOTHING,))

    def _put(self, workspace: Workspace, address: str, record: Documented) -> Outcome:
        if not self.text and record.doc_string is None:
            return Outcome(0, (_NOTHING,))
        new: Documented = self._with(record)
        if isinstance(new, Model):
            workspace.replace_model(doc_string=new.doc_string)
        elif isinstance(new, Graph | Function):
            workspace.replace_graph(workspace.scope(address), new)
        elif isinstance(new, Node):
            owner, _, position = address.rpartition("/node/")
            workspace.replace_nodes(workspace.scope(owner), {int(position): new})
        else:
            workspace.replace_record(address, new)
        return Outcome(1)

    def _with(self, record: AnyDocumented) -> AnyDocumented:
        return replace(record, doc_string=self.text or None)


AnyRecord = TypeVar("AnyRecord", bound=Record)


class SetMetadata(Edit, frozen=True, kw_only=True, eq=False, tag="set-metadata"):
    """Set or remove an entry in the metadata of the model, of a graph, of nodes or of a tensor.

    An existing entry with the key keeps its position; a new entry is added at the end.
    """

    words = ("key", "value")
    examples = (
        '{"edit": "set-metadata", "key": "author", "value": "Ada"}',
        '{"edit": "set-metadata", "key": "stage", "value": "2", "node": "op:Conv"}',
    )

    key: Annotated[str, Role("metadata"), Meta(description="The key of the entry.")]
    value: Annotated[str | None, Meta(description="Its value.")] = None
    node: Annotated[str | None, Role("nodes"), Meta(description="The nodes to change; the model by default.")] = None
    tensor: DescribedTensor = None
    graph: DescribedGraph = None
    remove: Annotated[bool, Meta(description="Remove the entry.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        places = [each for each in (self.node, self.tensor, self.graph) if each is not None]
        if len(places) > 1:
            raise EditError("node, tensor and graph each select an element; give at most one of them")
        if self.remove == (self.value is not None):
            raise EditError("give either value or remove")
        if self.node is not None:
            return self._nodes(workspace, self.node)
        if self.tensor is not None:
            return self._tensor(workspace, workspace.tensor(self.tensor))
        if self.graph is not None:
            scope = workspace.scope(self.graph)
            workspace.replace_graph(scope, self._set(scope.graph, scope.address))
            return Outcome(1)
        workspace.replace_model(metadata_props=self._set(workspace.model, "the model").metadata_props)
        return Outcome(1)

    def _nodes(self, workspace: Workspace, selector: str) -> Outcome:
        refs = workspace.select(selector)
        by_scope: dict[Scope, list[int]] = {}
        for ref in refs:
            if not self.remove or self._has(ref.node):
                by_scope.setdefault(ref.scope, []).append(ref.position)
        if not by_scope:
            raise EditError(f'none of {len(refs):,} nodes has metadata "{visible(self.key)}"', refs[0].address)
        for scope, positions in by_scope.items():
            nodes = scope.graph.node
            changes = {each: self._set(nodes[each], f"{scope.address}/node/{each}") for each in positions}
            workspace.replace_nodes(scope, changes)
        return Outcome(sum(map(len, by_scope.values())))

    def _tensor(self, workspace: Workspace, ref: TensorRef) -> Outcome:
        address, record = annotated_record(ref, "metadata")
        workspace.replace_record(address, self._set(record, ref.address))
        return Outcome(1)

    def _has(self, record: Record) -> bool:
        return any(each.key == self.key for each in _entries(record))

    def _set(self, record: AnyRecord, place: str) -> AnyRecord:
        """Return the record with the entry, or without it if it is to be removed.

        Raises:
            EditError: the entry to remove does not exist.
        """
        if self.remove:
            if not self._has(record):
                keys = [each.key or "" for each in _entries(record)]
                hint = suggest(self.key, keys) or f"there are {listed([visible(key) for key in keys], 8) or 'none'}"
                raise EditError(f'{place} has no metadata "{visible(self.key)}"; {hint}', place)
            entries = tuple([each for each in _entries(record) if each.key != self.key])
        else:
            entries = tuple(
                [
                    msgspec.structs.replace(each, value=self.value) if each.key == self.key else each
                    for each in _entries(record)
                ]
            )
            if not self._has(record):
                entries = (*entries, StringStringEntry(key=self.key, value=self.value))
        return msgspec.structs.replace(record, metadata_props=entries)


def _entries(record: Record) -> tuple[StringStringEntry, ...]:
    entries: tuple[StringStringEntry, ...] = record.metadata_props  # type: ignore[attr-defined]
    return entries
