"""Edits of what a model says about itself: versions of operator sets without a conversion, and metadata."""

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from onnxjson.display import visible
from onnxjson.document import Record, StringStringEntry
from onnxjson.edits.conversion import affected, domain_text, imported_version, with_version
from onnxjson.edits.declaration import Edit
from onnxjson.edits.described import DescribedGraph, DescribedTensor, described
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.index import Scope
from onnxjson.operators import newest_version, plain_domain
from onnxjson.selectors import TensorRef
from onnxjson.suggestions import suggest

__all__ = ["SetMetadata", "StampOpset"]

Kind = TypeVar("Kind", bound=Record)


class StampOpset(Edit, frozen=True, kw_only=True, eq=False, tag="stamp-opset"):
    """Write another version of an operator set into the model; no node is converted.

    The nodes then mean what their operators mean in that version, which may be something else: how many nodes that
    concerns is said. convert-opset converts them.
    """

    words = ("version",)
    examples = ('{"edit": "stamp-opset", "version": 17}',)

    version: Annotated[int, Meta(ge=1, description="The version that is to stand there.")]
    domain: Annotated[
        str, Role("domain"), Meta(description="The domain of the operator set; the default one if it is left out.")
    ] = ""

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        domain = plain_domain(self.domain)
        model = workspace.model
        old = imported_version(model.opset_import, domain)
        name = domain_text(domain)
        if old == self.version:
            return Outcome(1, (f"{name} is at version {old} already",))
        notes = [f"{name}: {'nothing' if old is None else f'version {old}'} became version {self.version}"]
        notes[0] += "; no node is converted"
        newest = newest_version(domain)
        if newest is not None and self.version > newest:
            notes.append(f"the newest version that the installed onnx knows is {newest}")
        elif newest is not None and old is not None:
            count = len(affected(workspace.index, domain, old, self.version))
            if count:
                notes.append(f"{count:,} nodes have operators that are others in version {self.version}")
        workspace.replace_model(opset_import=with_version(model, domain, self.version).opset_import)
        return Outcome(1, tuple(notes))


class SetMetadata(Edit, frozen=True, kw_only=True, eq=False, tag="set-metadata"):
    """Set an entry of the metadata of the model, of a graph, of nodes or of a tensor.

    An entry of that key gets the new value and keeps its place; a new one is put last. With `remove` it goes.
    """

    words = ("key", "value")
    examples = (
        '{"edit": "set-metadata", "key": "author", "value": "Ada"}',
        '{"edit": "set-metadata", "key": "stage", "value": "2", "node": "op:Conv"}',
    )

    key: Annotated[str, Role("metadata"), Meta(description="The key of the entry.")]
    value: Annotated[str | None, Meta(description="Its value.")] = None
    node: Annotated[
        str | None, Role("nodes"), Meta(description="The nodes whose metadata it is; else it is the model's.")
    ] = None
    tensor: DescribedTensor = None
    graph: DescribedGraph = None
    remove: Annotated[bool, Meta(description="Take the entry away.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        places = [each for each in (self.node, self.tensor, self.graph) if each is not None]
        if len(places) > 1:
            raise EditError("node, tensor and graph each say whose metadata it is; give at most one of them")
        if self.remove == (self.value is not None):
            raise EditError("give either value, the text of the entry, or remove, to take it away")
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
        address, record = described(ref, "metadata")
        workspace.replace_record(address, self._set(record, ref.address))
        return Outcome(1)

    def _has(self, record: Record) -> bool:
        return any(each.key == self.key for each in _entries(record))

    def _set(self, record: Kind, place: str) -> Kind:
        """The record with the entry, or without it.

        Raises:
            EditError: it is to go and is not there.
        """
        if self.remove:
            if not self._has(record):
                keys = [each.key or "" for each in _entries(record)]
                hint = suggest(self.key, keys) or f"there are {', '.join(map(visible, keys[:8])) or 'none'}"
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
