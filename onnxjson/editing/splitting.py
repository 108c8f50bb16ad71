"""Split a model into pieces that run one after the other, and write the script that combines them again."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.editing.composing import Combine
from onnxjson.editing.extraction import Extraction
from onnxjson.editing.workspace import main_scope
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import visible
from onnxjson.model.document import Model, SparseTensor, Tensor
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.selectors import select_tensor
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of

_TYPED: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


class Piece(NamedTuple):
    """One piece of a model."""

    model: Model
    inputs: tuple[str, ...]
    """Its inputs: inputs of the whole model, and values of earlier pieces."""
    outputs: tuple[str, ...]
    """Its outputs: values that later pieces use, and outputs of the whole model."""
    size: int
    """Size of its constants in bytes."""


class Pieces(NamedTuple):
    """A model in pieces, with remarks for the user."""

    pieces: tuple[Piece, ...]
    inputs: tuple[str, ...]
    """Inputs of the whole model, in their order."""
    outputs: tuple[str, ...]
    notes: tuple[str, ...]

    def script(self, names: Sequence[str]) -> tuple[Combine, ...]:
        """Return the edits that combine the first piece with the others, which are in files of these names."""
        edits = []
        known = set(self.pieces[0].inputs) | set(self.pieces[0].outputs)
        for number, (piece, name) in enumerate(zip(self.pieces[1:], names[1:], strict=True), 1):
            joins = tuple([f"{each}={each}" for each in piece.inputs if each in known])
            known |= set(piece.inputs) | set(piece.outputs)
            is_last = number == len(self.pieces) - 1
            outputs = tuple([each for each in self.outputs if each in known])
            inputs = self.inputs if is_last else ()
            edits.append(Combine(with_=name, join=joins, outputs=outputs, inputs=inputs))
        return tuple(edits)


def split_at(model: Model, values: Sequence[str], folder: Path | None = None) -> Pieces:
    """Split a model at values: a piece with everything that each value depends on, and one for the rest.

    Args:
        model: is not modified.
        values: names or selectors of values of the main graph.
        folder: the folder of small external data, for the inference of types.

    Raises:
        SelectorError: there is no such value.
        EditError: a piece would have no nodes, or the type of a value between pieces is not known.
    """
    index = Index(model)
    main = main_scope(index)
    names = [_cut(model, index, main, value) for value in values]
    ancestors = [Index.ancestors(main, [name]) for name in names]
    groups: list[list[int]] = []
    taken: set[int] = set()
    for place in sorted(range(len(names)), key=lambda each: len(ancestors[each])):
        group = ancestors[place] - taken
        if not group:
            raise EditError(f'the piece that ends at "{visible(names[place])}" would have no nodes')
        groups.append(sorted(group))
        taken |= group
    rest = [position for position in range(len(main.graph.node)) if position not in taken]
    if not rest:
        raise EditError(f'no node is left after "{visible(names[-1])}"; split at values that other nodes use')
    return _pieces(model, index, main, [*groups, rest], folder)


def split_by_size(model: Model, size: int, folder: Path | None = None) -> Pieces:
    """Split a model into sequences of nodes whose constants have at most `size` bytes, if possible.

    Raises:
        EditError: the nodes are not sorted, or the type of a value between pieces is not known.
    """
    index = Index(model)
    main = main_scope(index)
    groups: list[list[int]] = [[]]
    held: set[str] = set()
    filled = 0
    notes = []
    for position, node in enumerate(main.graph.node):
        names = {name for name in consumed_names(node) if main.initializer(name) is not None}
        own = sum(_bytes(each) for each in walk_constants(node.attribute))
        new = own + sum(_bytes(main.initializer(name)) for name in names - held)
        if groups[-1] and filled + new > size:
            groups.append([])
            held, filled = set(), 0
            new = own + sum(_bytes(main.initializer(name)) for name in names)
        if new > size:
            notes.append(f"node {position} alone has constants of {new:,} bytes")
        groups[-1].append(position)
        held |= names
        filled += new
    found = _pieces(model, index, main, groups, folder)
    return found._replace(notes=(*found.notes, *notes))


def walk_constants(attributes: Iterable[object]) -> Iterable[Tensor]:
    """Return the tensors in attributes of a node, including its subgraphs."""
    from onnxjson.model.document import Attribute, Graph, Node

    holder = Model(
        graph=Graph(node=(Node(attribute=tuple(each for each in attributes if isinstance(each, Attribute))),))
    )
    return tensors_of(holder)


def _cut(model: Model, index: Index, main: Scope, value: str) -> str:
    found = select_tensor(model, index, value)
    if found.scope is not main or found.name not in main.producers:
        raise EditError(f'"{visible(value)}" is not the output of a node of the main graph')
    return found.name


def _pieces(model: Model, index: Index, main: Scope, groups: list[list[int]], folder: Path | None) -> Pieces:
    if model.training_info:
        raise EditError("training_info belongs to the whole model; remove it first")
    home = {name: number for number, group in enumerate(groups) for name in _made(main, group)}
    wanted = [name for name in main.output_names if name]
    groups = _with_outputs(main, groups, home, wanted)
    home = {name: number for number, group in enumerate(groups) for name in _made(main, group)}
    uses = [dict.fromkeys(_used(main, group)) for group in groups]
    given = [name for name in main.inputs if main.initializer(name) is None]
    extraction = Extraction(model, index, folder)
    pieces, notes = [], []
    last = len(groups) - 1
    for number, group in enumerate(groups):
        late = [name for name in uses[number] if home.get(name, -1) > number]
        if late:
            raise EditError(f'"{visible(late[0])}" is used before its producer; sort the nodes first')
        inputs = [name for name in given if name in uses[number] or (number == 0 and not _is_used(name, uses))]
        inputs += [name for name in uses[number] if home.get(name, number) < number]
        later = {name for each in uses[number + 1 :] for name in each}
        outputs = [name for name in dict.fromkeys(_made(main, group)) if name in later or name in wanted]
        passed = [name for name in wanted if name not in home] if number == last else []
        inputs += [name for name in passed if name in given and name not in inputs]
        spare = [name for name in _constants(main) if not _is_used(name, uses)] if number == 0 else []
        part = extraction.part(main, group, inputs, [*outputs, *passed], spare=spare, with_defaults=True)
        notes += [note for note in part.notes if note not in notes]
        assert part.model.graph is not None
        size = sum(_bytes(each) for each in tensors_of(part.model))
        all_inputs = tuple([each.name or "" for each in part.model.graph.input])
        pieces.append(Piece(part.model, all_inputs, (*outputs, *passed), size))
    return Pieces(tuple(pieces), tuple(main.inputs), tuple(wanted), tuple(notes))


def _with_outputs(
    main: Scope, groups: list[list[int]], home: dict[str, int], wanted: Collection[str]
) -> list[list[int]]:
    """Merge groups without outputs that are used later into their neighbours."""
    merged: list[list[int]] = []
    used_after: list[set[str]] = [set() for _ in groups]
    later: set[str] = set()
    for number in range(len(groups) - 1, -1, -1):
        used_after[number] = set(later)
        later |= set(_used(main, groups[number]))
    waiting: list[int] = []
    for number, group in enumerate(groups):
        waiting = [*waiting, *group]
        if any(name in used_after[number] or name in wanted for name in _made(main, waiting)):
            merged.append(waiting)
            waiting = []
    if waiting:
        merged[-1:] = [[*(merged[-1] if merged else []), *waiting]]
    return merged


def _made(main: Scope, group: Iterable[int]) -> list[str]:
    return [name for position in group for name in main.graph.node[position].output if name]


def _used(main: Scope, group: Iterable[int]) -> list[str]:
    return [name for position in group for name in consumed_names(main.graph.node[position])]


def _is_used(name: str, uses: Sequence[dict[str, None]]) -> bool:
    return any(name in each for each in uses)


def _constants(main: Scope) -> list[str]:
    return [*main.initializers, *main.sparse_initializers]


def _bytes(constant: Tensor | SparseTensor | None) -> int:
    """Return the size of a constant in bytes, inline or external."""
    if constant is None:
        return 0
    if isinstance(constant, SparseTensor):
        return _bytes(constant.values) + _bytes(constant.indices)
    if is_external(constant):
        return byte_length(constant.data_type or 0, element_count(constant.dims)) or 0
    held = len(constant.raw_data) if constant.raw_data is not None else 0
    return held + sum(len(getattr(constant, field)) for field in _TYPED)
