"""Constants that stand several times, kept once."""

import hashlib
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.document import Function, Model, ShardingSpec, Tensor
from onnxjson.edits.declaration import Edit
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.renaming import inside, merged
from onnxjson.edits.workspace import Workspace
from onnxjson.elements import byte_length, element_count
from onnxjson.errors import OnnxJsonError
from onnxjson.external import Resolver
from onnxjson.index import Scope
from onnxjson.names import STRING
from onnxjson.payloads import Data, Payload
from onnxjson.tensors import is_external, raw_bytes
from onnxjson.walking import walk

_HELD: Final = 64
"""Bytes up to which contents are compared as they are and not by their hash."""

_SHOWN: Final = 5

Content = tuple[int | None, tuple[int, ...], object]
"""Dtype, dims, and something that is equal only for equal bytes."""


class DeduplicateInitializers(Edit, frozen=True, kw_only=True, eq=False, tag="deduplicate-initializers"):
    """Keep one of several constants with the same dtype, shape and bytes; all that used the others uses that one.

    Constants are compared bit by bit: -0.0 is not 0.0, and a NaN equals itself. One that can be replaced from outside
    (an input with a default), that is an output, is trained or is annotated stays. A constant of a subgraph gives way
    to an equal one of a graph around it; equal ones of several subgraphs move there. Nodes Constant are not looked at:
    constants-to-initializers comes before.
    """

    examples: ClassVar = ('{"edit": "deduplicate-initializers"}',)

    least_bytes: Annotated[int, Meta(ge=0, description="Smaller constants stay.")] = 0

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        finder = _Finder(workspace, self.least_bytes)
        names = finder.find()
        notes = []
        if finder.unread:
            shown = ", ".join([f'"{visible(name)}"' for name in finder.unread[:_SHOWN]])
            notes.append(f"{len(finder.unread):,} constants cannot be read and stay, such as {shown}")
        count = sum(map(len, names.values())) - sum(map(len, finder.moved.values()))
        if not count:
            return Outcome(0, (*notes, f"no two of {finder.seen:,} constants are equal"))
        workspace.replace_model(merged(workspace.index, names, finder.moved))
        notes.append(f"{count:,} of {finder.seen:,} constants are gone, with {finder.saved:,} bytes")
        return Outcome(count, tuple(notes))


class _Constant(NamedTuple):
    """A constant that may go."""

    scope: Scope
    name: str
    tensor: Tensor
    size: int
    """Bytes."""
    stays: bool
    """Whether others may give way to it, but not it to others."""


class _Finder:
    """Looks for constants that another one can stand for."""

    def __init__(self, workspace: Workspace, least: int) -> None:
        self._workspace = workspace
        self._index = workspace.index
        folder = workspace.model_folder
        self._resolver = None if folder is None else Resolver(folder)
        self.moved: dict[Scope, list[Tensor]] = {}
        """By graph: constants of graphs inside it that it gets, since several of them have the same."""
        self._least = least
        self.seen = 0
        """Constants that were looked at."""
        self.saved = 0
        """Bytes of those that go."""
        self.unread: list[str] = []
        """Constants whose bytes are not here."""

    def find(self) -> dict[Scope, dict[str, str]]:
        """By graph: constants that go -> those that stand for them."""
        alike: dict[tuple[int | None, tuple[int, ...]], list[_Constant]] = {}
        for constant in self._constants():
            self.seen += 1
            alike.setdefault((constant.tensor.data_type, constant.tensor.dims), []).append(constant)
        names: dict[Scope, dict[str, str]] = {}
        for constants in alike.values():
            if len(constants) > 1:
                self._among(constants, names)
        return names

    def _among(self, constants: list[_Constant], names: dict[Scope, dict[str, str]]) -> None:
        """What can go of constants of one dtype and shape, those of outer graphs first."""
        equal: dict[Content, list[_Constant]] = {}
        for constant in constants:
            content = self._content(constant.tensor)
            if content is not None:
                equal.setdefault(content, []).append(constant)
        for several in equal.values():
            kept: dict[Scope, str] = {}
            # One that must stay is the one that others give way to.
            for constant in sorted(several, key=lambda each: not each.stays):
                if constant.stays:
                    kept.setdefault(constant.scope, constant.name)
            for constant in several:
                standing = next((scope for scope in constant.scope.chain() if scope in kept), None)
                if standing is None:
                    kept[constant.scope] = constant.name
                elif constant.stays or kept[standing] == constant.name:
                    continue
                elif self._is_visible(standing, kept[standing], constant.scope):
                    names.setdefault(constant.scope, {})[constant.name] = kept[standing]
                    self.saved += constant.size
            self._share([each for each in several if kept.get(each.scope) == each.name], names)

    def _share(self, left: list[_Constant], names: dict[Scope, dict[str, str]]) -> None:
        """Moves one of equal constants of subgraphs that lie side by side to the graph around all of them."""
        tops: dict[Scope, list[_Constant]] = {}
        for constant in left:
            if constant.scope.kind == "subgraph" and not constant.stays:
                tops.setdefault([*constant.scope.chain()][-1], []).append(constant)
        for several in tops.values():
            if len(several) < 2:
                continue
            chains = [[*each.scope.chain()] for each in several]
            around = next((scope for scope in chains[0][1:] if all([scope in chain[1:] for chain in chains])), None)
            if around is None or isinstance(around.graph, Function):
                continue
            taken = [tensor.name or "" for tensors in self.moved.values() for tensor in tensors]
            name = self._workspace.fresh_name(several[0].name, taken)
            self.moved.setdefault(around, []).append(replace(several[0].tensor, name=name))
            for constant in several:
                # Others gave way to this one already, and follow.
                for scope, mapping in names.items():
                    if constant.scope in scope.chain():
                        mapping.update({old: name for old, new in mapping.items() if new == constant.name})
                names.setdefault(constant.scope, {})[constant.name] = name
            self.saved += sum([each.size for each in several[1:]])

    def _is_visible(self, standing: Scope, name: str, scope: Scope) -> bool:
        """Whether a name of one graph means the same in another one and in all graphs inside that."""
        for each in (*scope.chain(), *inside(self._index, scope)):
            if each is standing:
                continue
            if each.defines(name):
                return False
        return True

    def _constants(self) -> Iterator[_Constant]:
        """The constants that have names of their own, those of outer graphs first."""
        model = self._index.model
        bound = _bound_names(model)
        for scope in self._index.scopes:
            if isinstance(scope.graph, Function):
                continue
            annotated = {each.tensor_name for each in scope.graph.quantization_annotation}
            outputs = set(scope.output_names)
            positions = scope.initializers
            for position, tensor in enumerate(scope.graph.initializer):
                name = tensor.name
                if not name or positions[name] != position or name in scope.inputs or name in scope.makers:
                    continue
                if name in annotated or name in bound or name in scope.sparse_initializers:
                    continue
                size = _size(tensor)
                if size >= self._least:
                    yield _Constant(scope, name, tensor, size, name in outputs)

    def _content(self, tensor: Tensor) -> Content | None:
        """None where the bytes are not what dtype and dims need, or are not here."""
        plain = replace(tensor, name=None, doc_string=None, metadata_props=())
        if is_external(tensor):
            return self._external_content(tensor)
        if tensor.data_type == STRING:
            return tensor.data_type, tensor.dims, replace(plain, unknown_fields=b"").string_data
        stored = raw_bytes(plain)
        if stored is None or tensor.unknown_fields:
            return None
        return tensor.data_type, tensor.dims, _key(stored[0])

    def _external_content(self, tensor: Tensor) -> Content | None:
        needed = None
        if tensor.data_type is not None and all([dim >= 0 for dim in tensor.dims]):
            needed = byte_length(tensor.data_type, element_count(tensor.dims))
        if self._resolver is None or needed is None:
            # The same place in the same file holds the same bytes, even where nobody can look.
            place = tuple([(each.key, each.value) for each in tensor.external_data if each.key != "checksum"])
            return tensor.data_type, tensor.dims, place
        try:
            data = self._resolver.resolve(tensor.external_data, needed, tensor=tensor.name or "")
            return tensor.data_type, tensor.dims, _key(data)
        except OnnxJsonError:
            self.unread.append(tensor.name or "")
            return None


def _key(data: Data) -> object:
    if len(data) <= _HELD:
        return data if isinstance(data, bytes) else data.read()
    return (len(data), data.sha256 if isinstance(data, Payload) else hashlib.sha256(data).hexdigest())


def _size(tensor: Tensor) -> int:
    if tensor.data_type == STRING:
        return sum(map(len, tensor.string_data))
    if tensor.data_type is None or any([dim < 0 for dim in tensor.dims]):
        return 0
    return byte_length(tensor.data_type, element_count(tensor.dims)) or 0


def _bound_names(model: Model) -> set[str | None]:
    """Names that training assigns to, and names with a sharding of their own."""
    names: set[str | None] = set()
    for step in model.training_info:
        names.update([each.key for each in (*step.initialization_binding, *step.update_binding)])
    if model.configuration:
        names.update([spec.tensor_name for spec in walk(model, ShardingSpec)])
    return names
