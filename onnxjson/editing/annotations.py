"""Edits of doc strings and metadata: set-doc and set-metadata."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role
from onnxjson.editing.workspace import NodeChange, Workspace
from onnxjson.model import document as d
from onnxjson.model.addresses import find_element
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.patterns.selectors import TensorRef

DescribedTensor = Annotated[
    str | None,
    Role("tensor"),
    Meta(description="The constant, or the value that is listed in the inputs, outputs or value_info."),
]
"""Parameter of an edit that annotates a tensor."""

DescribedGraph = Annotated[
    str | None, Role("graph"), Meta(description="The address of the graph or function, such as /graph or /functions/0.")
]
"""Parameter of an edit that annotates a graph."""


def annotated_record(ref: TensorRef, what: str) -> tuple[str, d.Tensor | d.ValueInfo]:
    """Return the record with the metadata and doc string of a tensor, and its address.

    For a sparse constant this is the tensor of its values; for a value, the first entry with its name in the inputs,
    outputs and value_info of its graph.

    Raises:
        EditError: the graph has no entry for the value.
    """
    if isinstance(ref.tensor, d.Tensor):
        return ref.address, ref.tensor
    if isinstance(ref.tensor, d.SparseTensor):
        return f"{ref.address}/values", ref.tensor.values or d.Tensor()
    assert ref.scope is not None
    graph = ref.scope.graph
    fields = ("value_info",) if isinstance(graph, d.Function) else ("input", "output", "value_info")
    for field in fields:
        for position, value in enumerate(getattr(graph, field)):
            if isinstance(value, d.ValueInfo) and value.name == ref.name:
                return f"{ref.scope.address}/{field}/{position}", value
    raise EditError(
        f'"{visible(ref.name)}" has no value_info that could store {what}; infer-shapes adds one', ref.address
    )


Documented = d.Model | d.Graph | d.Function | d.Node | d.Attribute | d.Tensor | d.ValueInfo
"""Records that have a doc string."""


def _selected(
    workspace: Workspace, edit: "SetDoc | SetMetadata", what: str, address: str = ""
) -> dict[str, Documented]:
    """Return the records that an edit selects by their addresses: one at `address` by default."""
    if edit.node is not None:
        return {ref.address: ref.node for ref in workspace.select(edit.node)}
    if edit.tensor is not None:
        return dict([annotated_record(workspace.tensor(edit.tensor), what)])
    if edit.graph is not None:
        address = workspace.scope(edit.graph.removeprefix("@")).address
    found = find_element(workspace.model, address.removeprefix("@"))
    if not isinstance(found.value, Documented):
        kinds = "a graph, function, node, attribute, tensor or value"
        raise EditError(f"{visible(found.address, 200)} has no doc string; name {kinds} by its address", address)
    return {found.address: found.value}


def _put(workspace: Workspace, changes: Mapping[str, d.Record]) -> None:
    nodes: dict[Scope, dict[int, NodeChange]] = {}
    for address, new in changes.items():
        if isinstance(new, d.Node):
            owner, _, position = address.rpartition("/node/")
            nodes.setdefault(workspace.scope(owner), {})[int(position)] = new
        elif isinstance(new, d.Model):
            workspace.replace_model(doc_string=new.doc_string, metadata_props=new.metadata_props)
        elif isinstance(new, d.Graph | d.Function):
            workspace.replace_graph(workspace.scope(address), new)
        else:
            workspace.replace_record(address, new)
    workspace.replace_nodes_in(nodes)


class SetDoc(Edit, frozen=True, kw_only=True, eq=False, tag="set-doc"):
    """Set the doc string of the model, or of an element of it.

    Select nodes, tensors and graphs by their own parameters, any other element by its address. An empty text removes
    the doc string.
    """

    reads_shapes = False
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
        changes = {
            address: replace(record, doc_string=self.text or None)
            for address, record in _selected(workspace, self, "a doc string", self.address or "").items()
            if self.text or record.doc_string is not None
        }
        _put(workspace, changes)
        return Outcome(len(changes), () if changes else ("there is no doc string to remove",))


class SetMetadata(Edit, frozen=True, kw_only=True, eq=False, tag="set-metadata"):
    """Set or remove an entry in the metadata of the model, of a graph, of nodes or of a tensor.

    An existing entry with the key keeps its position; a new entry is added at the end.
    """

    reads_shapes = False
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
        selected = _selected(workspace, self, "metadata")
        if self.node is not None and self.remove:
            having = {address: record for address, record in selected.items() if self._has(record)}
            if not having:
                text = f'none of {len(selected):,} nodes has metadata "{visible(self.key)}"'
                raise EditError(text, next(iter(selected)))
            selected = having
        _put(workspace, {address: self._set(record, address or "the model") for address, record in selected.items()})
        return Outcome(len(selected))

    def _has(self, record: Documented) -> bool:
        return any(each.key == self.key for each in _entries(record))

    def _set(self, record: Documented, place: str) -> Documented:
        """Return the record with the entry, or without it if it is to be removed."""
        entries = list(_entries(record))
        at = next((position for position, each in enumerate(entries) if each.key == self.key), None)
        if self.remove:
            if at is None:
                keys = [each.key or "" for each in entries]
                hint = suggest(self.key, keys) or f"there are {listed([visible(key) for key in keys], 8) or 'none'}"
                raise EditError(f'{place} has no metadata "{visible(self.key)}"; {hint}', place)
            entries = [each for each in entries if each.key != self.key]
        elif at is None:
            entries.append(d.StringStringEntry(key=self.key, value=self.value))
        else:
            entries = [replace(each, value=self.value) if each.key == self.key else each for each in entries]
        fields: dict[str, Any] = {"metadata_props": tuple(entries)}
        return replace(record, **fields)


def _entries(record: Documented) -> tuple[d.StringStringEntry, ...]:
    entries: tuple[d.StringStringEntry, ...] = getattr(record, "metadata_props", ())
    return entries
