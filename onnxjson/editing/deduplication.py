"""deduplicate-initializers, the edit that merges equal constants."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec.structs import replace

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import about
from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Model, ShardingSpec, Tensor
from onnxjson.model.dtypes import STRING
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Scope
from onnxjson.model.payloads import Data
from onnxjson.model.renaming import inside, merged
from onnxjson.model.tensors import is_external, needed_bytes, raw_bytes
from onnxjson.model.walking import walk
from onnxjson.storage.external import Resolver

__all__ = ["DeduplicateInitializers"]

_HELD: Final = 64
"""Size up to which contents are compared directly and not by their hash."""

_SHOWN: Final = 5

Content = tuple[int | None, tuple[int, ...], object]
"""Dtype, dims, and a value that is equal only for equal bytes."""


class DeduplicateInitializers(Edit, frozen=True, kw_only=True, eq=False, tag="deduplicate-initializers"):
    """Merge constants that have the same dtype, shape and bytes into one.

    Constants are compared bit by bit: -0.0 differs from 0.0, and a NaN equals itself. Constants stay if the caller can
    replace them (inputs with a default), or if they are outputs, trained or annotated. A constant of a subgraph is
    replaced by an equal one of an enclosing graph; equal constants of several subgraphs move to the enclosing graph.
    Constant nodes are not considered; run constants-to-initializers first.
    """

    group: ClassVar = "constants"
    examples: ClassVar = ('{"edit": "deduplicate-initializers"}',)

    least_bytes: Annotated[int, about("Constants with fewer bytes stay.", ge=0)] = 0

    def change(self, workspace: Workspace) -> Outcome:
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
        notes.append(f"{count:,} of {finder.seen:,} constants removed, {finder.saved:,} bytes saved")
        return Outcome(count, tuple(notes))


class _Constant(NamedTuple):
    scope: Scope
    name: str
    tensor: Tensor
    size: int
    """Bytes."""
    stays: bool
    """Whether it must be kept; others may be replaced by it."""


class _Finder:
    def __init__(self, workspace: Workspace, least: int) -> None:
        self._workspace = workspace
        self._index = workspace.index
        folder = workspace.model_folder
        self._resolver = None if folder is None else Resolver(folder)
        self.moved: dict[Scope, list[Tensor]] = {}
        """Constants that move to a graph from its subgraphs, several of which have the same one, by graph."""
        self._least = least
        self.seen = 0
        """Number of compared constants."""
        self.saved = 0
        """Bytes of the removed constants."""
        self.unread: list[str] = []
        """Names of constants whose bytes cannot be read."""

    def find(self) -> dict[Scope, dict[str, str]]:
        """Return by graph: removed constants -> those that replace them."""
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
        """Find removable constants among those of one dtype and shape, those of outer graphs first."""
        equal: dict[Content, list[_Constant]] = {}
        for constant in constants:
            content = self._content(constant.tensor)
            if content is not None:
                equal.setdefault(content, []).append(constant)
        for several in equal.values():
            kept: dict[Scope, str] = {}
            # A constant that must be kept is the one that replaces the others.
            for constant in several:
                if constant.stays:
                    kept.setdefault(constant.scope, constant.name)
            for constant in several:
                kept_in = next((scope for scope in constant.scope.chain() if scope in kept), None)
                if kept_in is None:
                    kept[constant.scope] = constant.name
                elif constant.stays or kept[kept_in] == constant.name:
                    continue
                elif self._is_visible(kept_in, kept[kept_in], constant.scope):
                    names.setdefault(constant.scope, {})[constant.name] = kept[kept_in]
                    self.saved += constant.size
            self._share([each for each in several if kept.get(each.scope) == each.name], names)

    def _share(self, left: list[_Constant], names: dict[Scope, dict[str, str]]) -> None:
        """Move one of equal constants of sibling subgraphs to the graph around all of them."""
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
                # Constants that this one replaces follow.
                for scope, mapping in names.items():
                    if constant.scope in scope.chain():
                        mapping.update({old: name for old, new in mapping.items() if new == constant.name})
                names.setdefault(constant.scope, {})[constant.name] = name
            self.saved += sum([each.size for each in several[1:]])

    def _is_visible(self, kept_in: Scope, name: str, scope: Scope) -> bool:
        """Whether a name of one graph means the same in another graph and in all of its subgraphs."""
        around = [*scope.chain(), *inside(self._index, scope)]
        return not any([each.defines(name) for each in around if each is not kept_in])

    def _constants(self) -> Iterator[_Constant]:
        """Yield constants with unambiguous names, those of outer graphs first."""
        model = self._index.model
        bound = _bound_names(model)
        for scope in self._index.scopes:
            if isinstance(scope.graph, Function):
                continue
            annotated = {each.tensor_name for each in scope.graph.quantization_annotation}
            taken = annotated | bound | scope.inputs.keys() | scope.producers.keys() | scope.sparse_initializers.keys()
            outputs = set(scope.output_names)
            for position, tensor in enumerate(scope.graph.initializer):
                name = tensor.name
                size = sum(map(len, tensor.string_data)) if tensor.data_type == STRING else needed_bytes(tensor) or 0
                if name and scope.initializers[name] == position and name not in taken and size >= self._least:
                    yield _Constant(scope, name, tensor, size, name in outputs)

    def _content(self, tensor: Tensor) -> Content | None:
        """Return the content to compare; None if the bytes are missing or do not fit dtype and dims."""
        if is_external(tensor):
            return self._external_content(tensor)
        if tensor.data_type == STRING:
            return tensor.data_type, tensor.dims, tensor.string_data
        stored = raw_bytes(tensor)
        if stored is None or tensor.unknown_fields:
            return None
        return tensor.data_type, tensor.dims, _key(stored[0])

    def _external_content(self, tensor: Tensor) -> Content | None:
        needed = needed_bytes(tensor)
        if self._resolver is None or needed is None:
            # The same range of the same file has the same bytes, even if it cannot be read.
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
    return len(data), sha256_of(data)


def _bound_names(model: Model) -> set[str | None]:
    """Return names that training assigns to, and names with their own sharding."""
    names: set[str | None] = set()
    for step in model.training_info:
        names.update([each.key for each in (*step.initialization_binding, *step.update_binding)])
    if model.configuration:
        names.update([spec.tensor_name for spec in walk(model, ShardingSpec)])
    return names
