"""A model in pieces that run one after the other, and the script that makes one model of them again."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.diffing.regions import taken_names
from onnxjson.display import visible
from onnxjson.document import Model, SparseTensor, Tensor
from onnxjson.edits.composing import Combine
from onnxjson.edits.extraction import Extraction
from onnxjson.elements import byte_length, element_count
from onnxjson.errors import EditError
from onnxjson.index import Index, Scope
from onnxjson.selectors import select_tensor
from onnxjson.tensors import is_external
from onnxjson.walking import walk

_TYPED: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


class Piece(NamedTuple):
    """One piece of a model."""

    model: Model
    inputs: tuple[str, ...]
    """What it takes: inputs of the whole, and values of earlier pieces."""
    outputs: tuple[str, ...]
    """What later pieces take, and outputs of the whole."""
    size: int
    """Bytes of its constants."""


class Pieces(NamedTuple):
    """A model in pieces."""

    pieces: tuple[Piece, ...]
    inputs: tuple[str, ...]
    """The inputs of the whole, in their order."""
    outputs: tuple[str, ...]
    notes: tuple[str, ...]

    def script(self, names: Sequence[str]) -> tuple[Combine, ...]:
        """The edits that make one model of the first piece and all others, which stand in files of these names."""
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
    """The model cut at values: a piece for all that each of them needs, and one for the rest.

    Args:
        model: stays as it is.
        values: names or selectors of values of the main graph.
        folder: where small external data is looked for when types are to be found out.

    Raises:
        SelectorError: there is no such value.
        EditError: a piece would have no nodes; a value that leaves a piece has no known type.
    """
    index = Index(model)
    main = _main(index)
    names = [_cut(model, index, main, value) for value in values]
    ancestors = [_ancestors(main, name) for name in names]
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
        raise EditError(f'nothing comes after "{visible(names[-1])}"; cut at values that other nodes take')
    return _pieces(model, index, main, [*groups, rest], folder)


def split_by_size(model: Model, size: int, folder: Path | None = None) -> Pieces:
    """The model cut into runs of nodes whose constants have at most `size` bytes together, where that can be.

    Raises:
        EditError: the nodes are not in the order of their use; a value that leaves a piece has no known type.
    """
    index = Index(model)
    main = _main(index)
    groups: list[list[int]] = [[]]
    held: set[str] = set()
    filled = 0
    notes = []
    for position, node in enumerate(main.graph.node):
        names = {name for name in taken_names(node) if main.initializer(name) is not None}
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
    """The tensors in attributes of a node, those of its subgraphs too."""
    from onnxjson.document import Attribute, Graph, Node

    holder = Model(
        graph=Graph(node=(Node(attribute=tuple(each for each in attributes if isinstance(each, Attribute))),))
    )
    return walk(holder, Tensor)


def _main(index: Index) -> Scope:
    for scope in index.scopes:
        if scope.kind == "main":
            return scope
    raise EditError("the model has no graph")


def _cut(model: Model, index: Index, main: Scope, value: str) -> str:
    found = select_tensor(model, index, value)
    if found.scope is not main or found.name not in main.makers:
        raise EditError(f'"{visible(value)}" is made by no node of the main graph; a model is cut at such values')
    return found.name


def _ancestors(main: Scope, name: str) -> set[int]:
    """The nodes that a value needs."""
    found: set[int] = set()
    pending = [name]
    while pending:
        made = main.makers.get(pending.pop())
        if made is not None and made[0] not in found:
            found.add(made[0])
            pending += taken_names(main.graph.node[made[0]])
    return found


def _pieces(model: Model, index: Index, main: Scope, groups: list[list[int]], folder: Path | None) -> Pieces:
    if model.training_info:
        raise EditError("training_info is about the whole model, which cannot be taken apart; strip it first")
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
            raise EditError(f'"{visible(late[0])}" is used before it is made; the nodes must stand in their order')
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
        size = sum(_bytes(each) for each in walk(part.model, Tensor))
        all_inputs = tuple([each.name or "" for each in part.model.graph.input])
        pieces.append(Piece(part.model, all_inputs, (*outputs, *passed), size))
    return Pieces(tuple(pieces), tuple(main.inputs), tuple(wanted), tuple(notes))


def _with_outputs(
    main: Scope, groups: list[list[int]], home: dict[str, int], wanted: Collection[str]
) -> list[list[int]]:
    """Groups that each give something to a later one or to the whole; one that does not joins its neighbour."""
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
    return [name for position in group for name in taken_names(main.graph.node[position])]


def _is_used(name: str, uses: Sequence[dict[str, None]]) -> bool:
    return any(name in each for each in uses)


def _constants(main: Scope) -> list[str]:
    return [*main.initializers, *main.sparse_initializers]


def _bytes(constant: Tensor | SparseTensor | None) -> int:
    """Bytes of a constant, wherever it stands."""
    if constant is None:
        return 0
    if isinstance(constant, SparseTensor):
        return _bytes(constant.values) + _bytes(constant.indices)
    if is_external(constant):
        return byte_length(constant.data_type or 0, element_count(constant.dims)) or 0
    held = len(constant.raw_data) if constant.raw_data is not None else 0
    return held + sum(len(getattr(constant, field)) for field in _TYPED)
