"""Edits of what describes a model: set-doc, set-metadata and set-ir-version."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.opsets import domain_text
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.pinned_addresses import unpinned
from onnxjson.editing.workspace import NodeChange, Workspace
from onnxjson.model import document as d
from onnxjson.model.addresses import find_element
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.model.operators import ir_version_for, plain_domain
from onnxjson.model.walking import walk
from onnxjson.patterns.names import TensorRef

__all__ = ["SetDoc", "SetIrVersion", "SetMetadata"]

DescribedTensor = Annotated[
    str | None, Role("tensor"), about("The constant, or the value that is listed in the inputs, outputs or value_info.")
]
"""Parameter of an edit that annotates a tensor."""

DescribedGraph = Annotated[
    str | None, Role("graph"), about("The address of the graph or function, such as /graph or /functions/0.")
]
"""Parameter of an edit that annotates a graph."""

Documented = d.Model | d.Graph | d.Function | d.Node | d.Attribute | d.Tensor | d.ValueInfo
"""Records that have a doc string."""

_NEWER_FIELDS: Final[tuple[tuple[int, type[d.Record], str], ...]] = (
    (5, d.Graph, "quantization_annotation"),
    (6, d.Graph, "sparse_initializer"),
    (6, d.Attribute, "sparse_tensor"),
    (6, d.Attribute, "sparse_tensors"),
    (7, d.Model, "training_info"),
    (8, d.Model, "functions"),
    (8, d.Type, "optional_type"),
    (8, d.Type, "sparse_tensor_type"),
    (9, d.Function, "attribute_proto"),
    *((10, record, "metadata_props") for record in (d.Graph, d.Node, d.Function, d.Tensor, d.ValueInfo)),
    *((10, record, "overload") for record in (d.Node, d.Function)),
    (10, d.Function, "value_info"),
    (11, d.Model, "configuration"),
    (11, d.Node, "device_configurations"),
)
"""Fields of records with the version that introduced them (comments of onnx.proto)."""

_APART: Final = 4
"""The version from which an initializer need not be an input."""

_SHOWN: Final = 6


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
    element = find_element(workspace.model, unpinned(workspace.model, address).removeprefix("@"))
    if not isinstance(element.value, Documented):
        kinds = "a graph, function, node, attribute, tensor or value"
        raise EditError(f"{visible(element.address, 200)} has no doc string; name {kinds} by its address", address)
    return {element.address: element.value}


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
    """Set the doc string of the model or of one of its elements.

    Select nodes, tensors and graphs by their own parameters, any other element by its address. An empty text removes
    the doc string.
    """

    group: ClassVar = "names"
    reads_shapes = False
    words: ClassVar = ("text",)
    examples: ClassVar = (
        '{"edit": "set-doc", "text": "Trained on digits."}',
        '{"edit": "set-doc", "text": "first layer", "node": "op:Conv"}',
        '{"edit": "set-doc", "text": "Pixels from 0 to 1.", "address": "/graph/input/0"}',
    )

    text: Annotated[str, Role("text"), about('The doc string; "" removes it.')]
    node: Annotated[str | None, Role("nodes"), about("The nodes to change; the model by default.")] = None
    tensor: DescribedTensor = None
    graph: DescribedGraph = None
    address: Annotated[
        str | None, Role("address"), about("The address of any element that has a doc string, such as /graph/output/0.")
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
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

    group: ClassVar = "names"
    reads_shapes = False
    words = ("key", "value")
    examples = (
        '{"edit": "set-metadata", "key": "author", "value": "Ada"}',
        '{"edit": "set-metadata", "key": "stage", "value": "2", "node": "op:Conv"}',
    )

    key: Annotated[str, Role("metadata"), about("The key of the entry.")]
    value: Annotated[str | None, about("Its value.")] = None
    node: Annotated[str | None, Role("nodes"), about("The nodes to change; the model by default.")] = None
    tensor: DescribedTensor = None
    graph: DescribedGraph = None
    remove: Annotated[bool, about("Remove the entry.")] = False

    def change(self, workspace: Workspace) -> Outcome:
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


def needs_of(model: d.Model) -> list[tuple[int, str]]:
    """Return what of a model needs which version, the highest first, such as ``(10, "uint4 (2)")``."""
    counts = Counter(_needs(model))
    found = [(version, text if number == 1 else f"{text} ({number:,})") for (version, text), number in counts.items()]
    return sorted(found, key=lambda each: -each[0])


def _needs(model: d.Model) -> Iterator[tuple[int, str]]:
    for each in model.opset_import:
        if each.version is not None and (version := ir_version_for(each.domain or "", each.version)) > 1:
            yield version, f"version {each.version} of {domain_text(plain_domain(each.domain))}"
    for version, kind, field in _NEWER_FIELDS:
        for record in walk(model, kind):
            if getattr(record, field):
                yield version, f"{field} of a {kind.__name__}"
    numbers = [each.data_type for each in walk(model, d.Tensor)]
    numbers += [each.elem_type for each in walk(model, d.TensorType)]
    numbers += [each.elem_type for each in walk(model, d.SparseTensorType)]
    for number in numbers:
        dtype = DTYPES.get(number or 0)
        if dtype is not None and dtype.ir_version > 1:
            yield dtype.ir_version, dtype.name
    for graph in walk(model, d.Graph):
        inputs = {each.name for each in graph.input}
        for tensor in graph.initializer:
            if tensor.name not in inputs:
                yield _APART, "an initializer that is not an input"


class SetIrVersion(Edit, frozen=True, kw_only=True, eq=False, tag="set-ir-version"):
    """Set ir_version, the version of the ONNX format; convert nothing.

    A version that is too old for something in the model is refused, with a list of what needs a newer one.
    """

    group: ClassVar = "model"
    reads_shapes = False
    words: ClassVar = ("version",)
    examples: ClassVar = ('{"edit": "set-ir-version", "version": 10}',)

    version: Annotated[int, about("The new version.", ge=1)]
    anyway: Annotated[bool, about("Set the version even if it is too old; only report what needs a newer one.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        old = workspace.model.ir_version
        if old == self.version:
            return Outcome(1, (f"ir_version is already {old}",))
        needs = [(version, text) for version, text in needs_of(workspace.model) if version > self.version]
        notes = [f"ir_version: {old or 'nothing'} became {self.version}"]
        if needs and (old is None or self.version < old):
            shown = listed([f"{text} needs {version}" for version, text in needs], _SHOWN)
            problem = f"ir_version {self.version} is too old: {shown}"
            if not self.anyway:
                raise EditError(f"{problem}; the oldest possible is {needs[0][0]}")
            notes.append(problem)
        workspace.replace_model(ir_version=self.version)
        return Outcome(1, tuple(notes))
