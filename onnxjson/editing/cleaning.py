"""Edits that remove what is not needed: prune removes unused nodes, constants and functions, strip descriptions."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec.structs import replace

from onnxjson.codecs.wire_writing import message_size
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.pinned_addresses import unpinned
from onnxjson.editing.workspace import Workspace
from onnxjson.model.addresses import find_element
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, Record, Tensor, ValueInfo
from onnxjson.model.dtypes import DATA_TYPES, DTYPES
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.payloads import CHUNK, Payload
from onnxjson.model.tensors import needed_bytes, numpy_dtype
from onnxjson.model.walking import Body, called_functions, rebuild, replace_at, replace_records

__all__ = ["Prune", "Strip"]

Filling = Literal["zeros", "random"]

SMALLEST: Final = 64
"""Number of elements up to which a tensor stays: scales of a layer, axes, shapes."""

_KEPT: Final = {DATA_TYPES[name] for name in ("int32", "int64", "bool", "string")}
"""Dtypes of shapes, indices and masks, without which a model does not run."""
_LARGEST: Final = 0.1

Prunable = Literal["nodes", "initializers", "functions"]

Strippable = Literal["doc_strings", "metadata", "value_info", "names"]
Element = Literal["model", "graph", "node", "attribute", "tensor", "value", "function"]

_ELEMENTS: Final[dict[type[Record], Element]] = {
    Model: "model", Graph: "graph", Node: "node", Attribute: "attribute", Tensor: "tensor", ValueInfo: "value",
    Function: "function",
}  # fmt: skip

_FIELDS: Final[dict[Strippable, tuple[str, tuple[type[Record], ...]]]] = {
    "doc_strings": ("doc_string", tuple(_ELEMENTS)),
    "metadata": ("metadata_props", tuple([kind for kind in _ELEMENTS if kind is not Attribute])),
    "value_info": ("value_info", (Graph, Function)),
    "names": ("name", (Node,)),
}
"""What can be removed -> the field that has it, and the records with that field."""

_HOLDERS: Final[dict[str, Callable[[Any], Record]]] = {
    "doc_string": lambda text: Node(doc_string=text),
    "metadata_props": lambda entries: Node(metadata_props=entries),
    "value_info": lambda values: Graph(value_info=values),
    "name": lambda text: Node(name=text),
}
"""Messages that have nothing but one field."""


def without_weights(model: Model, filling: Filling, seed: int) -> tuple[Model, int]:
    """Return a model with other elements in its big tensors, and the number of these tensors; nothing is read."""
    count = 0

    def filled(tensor: Tensor) -> Tensor:
        nonlocal count
        length = needed_bytes(tensor)
        dtype = DTYPES.get(tensor.data_type or 0)
        if dtype is None or length is None or dtype.number in _KEPT or element_count(tensor.dims) <= SMALLEST:
            return tensor
        count += 1
        is_random = filling == "random"
        data = _Filled(length, dtype.number, f"{seed}:{count}") if is_random else _Zeros(length)
        blank = Tensor(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
        return replace(blank, doc_string=tensor.doc_string, metadata_props=tensor.metadata_props)

    return replace_records(model, Tensor, filled), count


class _Zeros(Payload):
    """Zeros."""

    __slots__ = ()

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, self.length, CHUNK):
            yield bytes(min(CHUNK, self.length - start))


class _Filled(Payload):
    """Random elements: floats from 0 to 0.1, so that scales and variances are valid; any bits of other dtypes."""

    __slots__ = ("_data_type", "_seed")

    def __init__(self, length: int, data_type: int, seed: str) -> None:
        super().__init__(length)
        self._data_type = data_type
        self._seed = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little")

    def chunks(self) -> Iterator[bytes]:
        import numpy

        numbers = numpy.random.default_rng(self._seed)
        is_float = DTYPES[self._data_type].kind == "float" and DTYPES[self._data_type].bits % 8 == 0
        for start in range(0, self.length, CHUNK):
            length = min(CHUNK, self.length - start)
            if is_float:
                dtype = numpy_dtype(self._data_type)
                yield (numbers.random(length // dtype.itemsize, numpy.float32) * _LARGEST).astype(dtype).tobytes()
            else:
                yield numbers.bytes(length)


class Prune(Edit, frozen=True, kw_only=True, eq=False, tag="prune"):
    """Remove nodes that no output depends on, constants that nothing uses, and the annotations of both.

    Inputs and outputs stay. Everything that training uses counts as used, and so do the scales and zero points of
    quantization annotations.
    """

    group: ClassVar = "model"
    examples: ClassVar = ('{"edit": "prune"}', '{"edit": "prune", "what": ["initializers"]}')

    what: Annotated[tuple[Prunable, ...], about("What to remove.", min_length=1)] = ("nodes", "initializers")

    def change(self, workspace: Workspace) -> Outcome:
        index = workspace.index
        pruner = _Pruner(index, self.what)
        model = rebuild(index, pruner.pruned)
        notes = []
        for count, kind in ((pruner.nodes, "node"), (pruner.constants, "constant")):
            if count:
                notes.append(f"{count:,} {kind}{'s' * (count != 1)} removed")
        if pruner.saved:
            notes[-1] += f", {pruner.saved:,} bytes saved"
        total = pruner.nodes + pruner.constants
        if "functions" in self.what:
            steps = [graph for step in model.training_info for graph in (step.initialization, step.algorithm)]
            roots = [graph for graph in (model.graph, *steps) if graph is not None]
            functions = called_functions(model.functions, roots)
            if removed := len(model.functions) - len(functions):
                notes.append(f"{removed:,} function{'s' * (removed != 1)} removed")
                total += removed
                model = replace(model, functions=functions)
        if not total:
            return Outcome(0, ("everything is used",))
        workspace.replace_model(model)
        return Outcome(total, tuple(notes))


def remove_newly_unused(workspace: Workspace, before: Index) -> tuple[str, ...]:
    """Remove what a model used before a change, and nothing uses after it; return a remark if there is something."""
    earlier = _Pruner(before, ("nodes", "initializers"))
    rebuild(before, earlier.pruned)
    pruner = _Pruner(workspace.index, ("nodes", "initializers"), earlier.removed)
    model = rebuild(workspace.index, pruner.pruned)
    if not pruner.removed:
        return ()
    workspace.replace_model(model)
    return (f"{counted(len(pruner.removed), 'value')} removed that nothing used afterwards",)


class _Pruner:
    """Removes unused elements from graphs, inner graphs first."""

    def __init__(self, index: Index, what: Iterable[Prunable], spared: AbstractSet[str] = frozenset()) -> None:
        self._what = set(what)
        self._spared = spared
        """Values that stay although nothing uses them."""
        self.removed: set[str] = set()
        """Values that are removed."""
        self._free: dict[Scope, set[str]] = {}
        """Names that a pruned graph uses from the graphs around it."""
        self._kept_by_training: set[str] = set()
        for step in index.model.training_info:
            for entry in (*step.initialization_binding, *step.update_binding):
                self._kept_by_training.update([name for name in (entry.key, entry.value) if name])
        self._training = [scope for scope in index.scopes if scope.kind == "training"]
        self.nodes = 0
        self.constants = 0
        self.saved = 0
        """Bytes of the removed constants."""

    def pruned(self, scope: Scope, graph: Body) -> Body:
        """Return the graph without unused elements."""
        used = {name for name in scope.output_names if name} | self._spared
        if scope.kind == "main":
            used |= self._kept_by_training
            for training in self._training:
                used |= self._free[training]
        elif scope.kind == "training":
            used |= self._kept_by_training
        inner: dict[int | None, set[str]] = {}
        for child in scope.children:
            inner.setdefault(child.owner.position if child.owner is not None else None, set()).update(self._free[child])
        used |= inner.get(None, set())
        for annotation in graph.quantization_annotation if isinstance(graph, Graph) else ():
            # Scales and zero points of annotated tensors.
            used.update([each.value for each in annotation.quant_parameter_tensor_names if each.value])
        live = _live_nodes(scope, used, inner) if "nodes" in self._what else range(len(graph.node))
        for position in live:
            used.update(graph.node[position].input)
            used |= inner.get(position, set())
        self._free[scope] = {name for name in used if name and not scope.defines(name)}
        if len(live) < len(graph.node):
            self.nodes += len(graph.node) - len(live)
            removed = {name for place in set(range(len(graph.node))) - set(live) for name in graph.node[place].output}
            self.removed |= removed
            graph = _without_values(replace(graph, node=tuple([graph.node[place] for place in live])), removed)
        return self._without_constants(graph, used, scope) if "initializers" in self._what else graph

    def _without_constants(self, graph: Body, used: set[str], scope: Scope) -> Body:
        if isinstance(graph, Function):
            return graph
        used = used | set(scope.inputs)
        dense = [tensor for tensor in graph.initializer if not tensor.name or tensor.name in used]
        sparse = [
            each
            for each in graph.sparse_initializer
            if each.values is None or not each.values.name or each.values.name in used
        ]
        removed = len(graph.initializer) + len(graph.sparse_initializer) - len(dense) - len(sparse)
        if not removed:
            return graph
        self.constants += removed
        kept = set(map(id, (*dense, *sparse)))
        names = set()
        for tensor in graph.initializer:
            if id(tensor) not in kept:
                names.add(tensor.name)
                if tensor.data_type is not None:
                    self.saved += byte_length(tensor.data_type, element_count(tensor.dims)) or 0
        names |= {each.values.name for each in graph.sparse_initializer if id(each) not in kept and each.values}
        graph = replace(graph, initializer=tuple(dense), sparse_initializer=tuple(sparse))
        self.removed |= (removed_names := {name for name in names if name})
        return _without_values(graph, removed_names)


def _live_nodes(scope: Scope, used: set[str], inner: dict[int | None, set[str]]) -> list[int]:
    """Return the positions of the nodes on which a used name depends, in any order of the nodes."""
    makers = scope.producers
    nodes = scope.graph.node
    live: set[int] = set()
    pending = [makers[name][0] for name in used if name in makers]
    while pending:
        position = pending.pop()
        if position in live:
            continue
        live.add(position)
        for name in nodes[position].input:
            if name in makers and makers[name][0] not in live:
                pending.append(makers[name][0])
        pending += [makers[name][0] for name in inner.get(position, ()) if name in makers]
    return sorted(live)


def _without_values(graph: Body, removed: set[str]) -> Body:
    kept = tuple([value for value in graph.value_info if value.name not in removed])
    if len(kept) < len(graph.value_info):
        graph = replace(graph, value_info=kept)
    if isinstance(graph, Graph) and any([each.tensor_name in removed for each in graph.quantization_annotation]):
        annotations = [each for each in graph.quantization_annotation if each.tensor_name not in removed]
        graph = replace(graph, quantization_annotation=tuple(annotations))
    return graph


class Strip(Edit, frozen=True, kw_only=True, eq=False, tag="strip"):
    """Remove doc strings, metadata, value_info or node names, or overwrite weights; report the bytes saved.

    With `weights`, tensors of more than 64 elements are overwritten, except strings and integers of 32 and 64 bits, so
    that a model can be profiled, or a problem reported, without revealing the weights.
    """

    group: ClassVar = "names"
    words: ClassVar = ("what",)
    examples: ClassVar = (
        '{"edit": "strip"}',
        '{"edit": "strip", "weights": "random", "seed": 1}',
        '{"edit": "strip", "what": ["metadata", "value_info"], "below": "/graph"}',
    )

    what: Annotated[
        tuple[Strippable, ...],
        about("What to remove; `names` are the names of nodes.", min_length=1),
    ] = ("doc_strings",)
    of: Annotated[
        tuple[Element, ...] | None,
        about("Elements that lose their doc strings and metadata; all by default.", min_length=1),
    ] = None
    below: Annotated[
        str | None,
        Role("address"),
        about("The address of the element to strip, with everything in it, such as /graph or /functions/0."),
    ] = None

    weights: Annotated[Filling | None, about("Also overwrite the elements of big tensors; the model still runs.")] = (
        None
    )
    seed: Annotated[int, about("Seed of the random weights.", ge=0)] = 0

    def change(self, workspace: Workspace) -> Outcome:
        if self.weights is not None:
            made, count = without_weights(workspace.model, self.weights, self.seed)
            workspace.replace_equivalent(made)
            outcome = self._stripped(workspace)
            texts = (f"{counted(count, 'tensor')} replaced by {self.weights}",)
            return Outcome(outcome.matches + count, (*texts, *(outcome.notes if outcome.matches else ())))
        return self._stripped(workspace)

    def _stripped(self, workspace: Workspace) -> Outcome:
        stripper = _Stripper(self.what, self.of)
        model = workspace.model
        if self.below is None:
            workspace.replace_equivalent(stripper.stripped(model))
        else:
            address = unpinned(workspace.model, self.below).removeprefix("@")
            element = find_element(model, address)
            if not isinstance(element.value, Record):
                raise EditError(
                    f"{visible(address, 200)} cannot be stripped; name a graph, node, tensor or the like", address
                )
            made = replace_at(model, element.address, stripper.stripped(element.value))[""]
            assert isinstance(made, Model)
            workspace.replace_equivalent(made)
        if not stripper.count:
            return Outcome(0, ("there is nothing to strip",))
        return Outcome(stripper.count, (f"{stripper.count:,} removed, {stripper.saved:,} bytes saved",))


class _Stripper:
    def __init__(self, what: tuple[Strippable, ...], of: tuple[Element, ...] | None) -> None:
        self._fields: dict[type[Record], list[str]] = {}
        for kind_of_text in what:
            field, kinds = _FIELDS[kind_of_text]
            for kind in kinds:
                if of is None or kind_of_text in ("value_info", "names") or _ELEMENTS[kind] in of:
                    self._fields.setdefault(kind, []).append(field)
        self.count = 0
        """Number of removed doc strings, metadata entries, value_info entries and names."""
        self.saved = 0
        """Bytes that they occupied."""

    def stripped(self, root: Record) -> Any:
        """Return the record without the elements to remove."""
        return replace_records(root, tuple(self._fields), self._change, shared=False)

    def _change(self, record: Any) -> Any:
        updates: dict[str, Any] = {}
        for field in self._fields[type(record)]:
            value = getattr(record, field)
            if value is not None and value != ():
                updates[field] = None if isinstance(value, str) else ()
                self.count += 1 if isinstance(value, str) else len(value)
                self.saved += message_size(_HOLDERS[field](value))
        return replace(record, **updates) if updates else record
