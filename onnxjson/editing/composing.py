"""Edits that take models apart and join them: extract and combine; and split, which writes pieces to combine again."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.combining import combine
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.extraction import Extraction
from onnxjson.editing.parameters import Role
from onnxjson.editing.workspace import Workspace, main_scope
from onnxjson.model.constants import constant_nodes
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Graph, Model, Node, SparseTensor, Tensor, ValueInfo
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Index, Scope
from onnxjson.model.tensors import is_external, needed_bytes
from onnxjson.model.walking import stored_bytes, tensors_of
from onnxjson.patterns.selectors import select_tensor


class Extract(Edit, frozen=True, kw_only=True, eq=False, tag="extract"):
    """Keep only the part of the model between some values.

    The model then has exactly the named inputs and outputs, in this order. An input may be any value: the nodes that
    produce it are left out. Outputs in a subgraph are extracted from there; the values that it uses from around it
    become inputs. Constants are included. Types that the model does not state are inferred.
    """

    words = ()
    examples = (
        '{"edit": "extract", "outputs": ["features"]}',
        '{"edit": "extract", "inputs": ["features"], "outputs": ["scores", "boxes"]}',
    )

    inputs: Annotated[
        tuple[str, ...] | None,
        Role("tensor"),
        Meta(description="The values that become inputs; by default the inputs of the model that the outputs need."),
    ] = None
    outputs: Annotated[
        tuple[str, ...], Role("tensor"), Meta(min_length=1, description="The values that become outputs.")
    ]

    def change(self, workspace: Workspace) -> Outcome:
        outputs = [workspace.value(each) for each in self.outputs]
        inputs = None if self.inputs is None else [workspace.value(each) for each in self.inputs]
        extraction = Extraction(workspace.model, workspace.index, workspace.model_folder)
        part = extraction.between(inputs, outputs)
        before, after = len(outputs[0][0].graph.node), len(part.model.graph.node if part.model.graph else ())
        workspace.replace_model(part.model)
        return Outcome(len(outputs), (f"{after:,} of {before:,} nodes are kept", *part.notes))


class Combine(Edit, frozen=True, kw_only=True, eq=False, tag="combine"):
    """Append another model to this one.

    Each join OUT=IN connects the value OUT of this model (an output, an input, or any value in between) to the input IN
    of the other. By default, inputs are connected to outputs of the same names. A connected output is no longer an
    output, unless `outputs` names it. If the models import an operator set in two versions, the older model is
    converted. Names of the other model that exist already get a prefix, equal constants are merged, and functions and
    metadata are united. All differences are reported.
    """

    words = ("with",)
    examples = (
        '{"edit": "combine", "with": "head.onnx", "join": ["features=x"]}',
        '{"edit": "combine", "with": "postprocess.onnx.json", "join": ["scores=s", "boxes=b"], "prefix": "post/"}',
    )

    with_: Annotated[
        str, Role("file"), Meta(min_length=1, description="The other model; in a script, a file next to it.")
    ] = msgspec.field(name="with")
    join: Annotated[
        tuple[str, ...] | None,
        Role("join"),
        Meta(description="Values of this model and inputs of the other, as OUT=IN; an empty list joins nothing."),
    ] = None
    prefix: Annotated[
        str | None,
        Meta(description="The prefix of names that exist already; by default the name of the other file and a slash."),
    ] = None
    outputs: Annotated[
        tuple[str, ...],
        Role("tensor"),
        Meta(description="The outputs of the result, in order; by default those of both that are not joined."),
    ] = ()
    inputs: Annotated[
        tuple[str, ...],
        Role("tensor"),
        Meta(description="The order of the inputs; by default those of this model, then those of the other."),
    ] = ()

    def change(self, workspace: Workspace) -> Outcome:
        from onnxjson.storage import files
        from onnxjson.storage.external_files import internalize

        path = workspace.file(self.with_)
        other = files.load(path).model
        # External data is found next to the other model; the result may be saved elsewhere.
        other = internalize(other, path.parent, model_file=path)
        joins = self._joins(workspace.model, other)
        prefix = self.prefix if self.prefix is not None else f"{files.stem_and_ending(path)[0]}/"
        combined = combine(workspace.model, other, joins, prefix=prefix, folders=(workspace.model_folder, path.parent))
        model = _arranged(combined.model, workspace.graph, self.inputs, self.outputs)
        workspace.replace_model(model)
        return Outcome(len(joins), combined.notes)

    def _joins(self, first: Model, second: Model) -> dict[str, str]:
        if first.graph is None or second.graph is None:
            raise EditError("one of the models has no graph")
        main = main_scope(Index(first))
        values = list(main.defined_names)
        inputs = [each.name or "" for each in second.graph.input]
        joins: dict[str, str] = {}
        for text in self.join or ():
            source, name = _pair(text, values, inputs)
            if name in joins:
                raise EditError(f'the input "{visible(name)}" of the other model is joined twice')
            joins[name] = source
        if self.join is None:
            outputs = {each.name for each in first.graph.output}
            joins = {name: name for name in inputs if name in outputs}
            if not joins:
                shown = [
                    listed([f'"{visible(each)}"' for each in names], 5) for names in (sorted(map(str, outputs)), inputs)
                ]
                raise EditError(
                    f"no input of the other model has the name of an output of this one; give join OUT=IN: "
                    f"this one has the outputs {shown[0]}, the other the inputs {shown[1]}"
                )
        return joins


def _pair(text: str, values: Sequence[str], inputs: Sequence[str]) -> tuple[str, str]:
    """Split a join into a value of the first model and an input of the second; names may contain equals signs."""
    places = [place for place, character in enumerate(text) if character == "="]
    if not places:
        raise EditError(
            f'"{visible(text)}" is not a join; a join is OUT=IN, a value of this model and an input of the other'
        )
    known_values, known_inputs = set(values), set(inputs)
    pairs = [(text[:place], text[place + 1 :]) for place in places]
    fitting = [pair for pair in pairs if pair[0] in known_values and pair[1] in known_inputs]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise EditError(f'"{visible(text)}" can be read in {len(fitting)} ways; rename one of the values first')
    source, name = next((pair for pair in pairs if pair[0] in known_values), pairs[0])
    if source not in known_values:
        hint = suggest(source, values) or f"its outputs and inputs are among {len(values):,} values"
        raise SelectorError(f'this model has no value "{visible(source)}"; {hint}')
    hint = suggest(name, inputs) or f"there are {listed([visible(each) for each in inputs], 8) or 'nothing'}"
    raise SelectorError(f'the other model has no input "{visible(name)}"; {hint}')


def _arranged(model: Model, before: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    graph = model.graph
    assert graph is not None
    fields: dict[str, tuple[ValueInfo, ...]] = {}
    if outputs:
        known = {each.name: each for each in (*before.output, *graph.output)}
        fields["output"] = _ordered(outputs, known, "output")
        names = {each.name for each in fields["output"]}
        left = [each for each in graph.output if each.name not in names]
        fields["value_info"] = (*[each for each in graph.value_info if each.name not in names], *left)
    if inputs:
        given = {each.name: each for each in graph.input}
        fields["input"] = _ordered(inputs, given, "input")
        if missing := [name or "" for name in given if name not in set(inputs)]:
            raise EditError(f'inputs does not name "{visible(missing[0])}", an input of the result')
    return replace(model, graph=replace(graph, **fields)) if fields else model


def _ordered(names: Sequence[str], known: dict[str | None, ValueInfo], kind: str) -> tuple[ValueInfo, ...]:
    for name in names:
        if name not in known:
            texts = [each for each in known if each]
            hint = suggest(name, texts) or f"there are {listed([visible(each) for each in texts], 8)}"
            raise SelectorError(f'the result has no {kind} "{visible(name)}"; {hint}')
    return tuple([known[name] for name in names])


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

    Values of the main graph are given by names or selectors; `folder` is that of small external data, for the inference
    of types.

    Raises:
        SelectorError: there is no such value.
        EditError: a piece would have no nodes, or the type of a value between pieces is not known.
    """
    index = Index(model)
    main = main_scope(index)
    names = []
    for value in values:
        found = select_tensor(model, index, value)
        if found.scope is not main or found.name not in main.producers:
            raise EditError(f'"{visible(value)}" is not the output of a node of the main graph')
        names.append(found.name)
    constant = constant_nodes(main)
    ancestors = [Index.ancestors(main, [name]) - constant for name in names]
    groups: list[list[int]] = []
    taken: set[int] = set()
    for place in sorted(range(len(names)), key=lambda each: len(ancestors[each])):
        group = ancestors[place] - taken
        if not group:
            raise EditError(f'the piece that ends at "{visible(names[place])}" would have only constant nodes')
        groups.append(sorted(group))
        taken |= group
    rest = [position for position in range(len(main.graph.node)) if position not in taken | constant]
    if not rest:
        raise EditError(f'no node is left after "{visible(names[-1])}"; split at values that other nodes use')
    return _pieces(model, index, main, [*groups, rest], constant, folder)


def split_by_size(model: Model, size: int, folder: Path | None = None) -> Pieces:
    """Split a model into sequences of nodes whose constants have at most `size` bytes, if possible.

    Raises:
        EditError: the nodes are not sorted, or the type of a value between pieces is not known.
    """
    index = Index(model)
    main = main_scope(index)
    constant = constant_nodes(main)
    groups: list[list[int]] = [[]]
    held: set[str | int] = set()
    filled = 0
    notes = []
    for position in range(len(main.graph.node)):
        if position in constant:
            continue
        needed = _constant_sizes(main, {position, *_needed(main, [position], constant)})
        new = sum([needed[each] for each in needed.keys() - held])
        if groups[-1] and filled + new > size:
            groups.append([])
            held, filled = set(), 0
            new = sum(needed.values())
        if new > size:
            notes.append(f"node {position} alone has constants of {new:,} bytes")
        groups[-1].append(position)
        held |= needed.keys()
        filled += new
    found = _pieces(model, index, main, groups, constant, folder)
    return found._replace(notes=(*found.notes, *notes))


def _needed(main: Scope, group: Iterable[int], constant: Collection[int]) -> set[int]:
    """Return the constant nodes whose results the nodes of a group need."""
    return Index.ancestors(main, [name for name in _used(main, group) if main.producer_position(name) in constant])


def _constant_sizes(main: Scope, positions: Iterable[int]) -> dict[str | int, int]:
    sizes: dict[str | int, int] = {}
    for position in positions:
        node = main.graph.node[position]
        holder = Model(graph=Graph(node=(Node(attribute=node.attribute),)))
        sizes[position] = sum(_bytes(each) for each in tensors_of(holder))
        sizes |= {name: _bytes(main.initializer(name)) for name in consumed_names(node)}
    return sizes


def _pieces(
    model: Model, index: Index, main: Scope, groups: list[list[int]], constant: set[int], folder: Path | None
) -> Pieces:
    if model.training_info:
        raise EditError("training_info belongs to the whole model; remove it first")
    wanted = [name for name in main.output_names if name]
    groups = _with_outputs(main, groups, wanted)
    group_of = {name: number for number, group in enumerate(groups) for name in _made(main, group)}
    everywhere = set().union(*[_needed(main, group, constant) for group in groups])
    whole = [
        sorted({*group, *_needed(main, group, constant), *(() if number else constant - everywhere)})
        for number, group in enumerate(groups)
    ]
    uses = [dict.fromkeys(_used(main, group)) for group in whole]
    used = {name for each in uses for name in each}
    constants = (*main.initializers, *main.sparse_initializers)
    given = [name for name in main.inputs if main.initializer(name) is None]
    extraction = Extraction(model, index, folder)
    pieces, notes = [], []
    last = len(groups) - 1
    for number, group in enumerate(groups):
        late = [name for name in uses[number] if group_of.get(name, -1) > number]
        if late:
            raise EditError(f'"{visible(late[0])}" is used before its producer; sort the nodes first')
        inputs = [name for name in given if name in uses[number] or (number == 0 and name not in used)]
        inputs += [name for name in uses[number] if group_of.get(name, number) < number]
        later = {name for each in uses[number + 1 :] for name in each}
        outputs = [name for name in dict.fromkeys(_made(main, group)) if name in later or name in wanted]
        passed = [name for name in wanted if name not in group_of] if number == last else []
        inputs += [name for name in passed if name in given and name not in inputs]
        spare = [name for name in constants if name not in used] if number == 0 else []
        part = extraction.part(main, whole[number], inputs, [*outputs, *passed], spare=spare, with_defaults=True)
        notes += [note for note in part.notes if note not in notes]
        assert part.model.graph is not None
        size = sum(_bytes(each) for each in tensors_of(part.model))
        all_inputs = tuple([each.name or "" for each in part.model.graph.input])
        pieces.append(Piece(part.model, all_inputs, (*outputs, *passed), size))
    return Pieces(tuple(pieces), tuple(main.inputs), tuple(wanted), tuple(notes))


def _with_outputs(main: Scope, groups: list[list[int]], wanted: Collection[str]) -> list[list[int]]:
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


def _bytes(constant: Tensor | SparseTensor | None) -> int:
    if constant is None:
        return 0
    if isinstance(constant, SparseTensor):
        return _bytes(constant.values) + _bytes(constant.indices)
    return stored_bytes(constant) if not is_external(constant) else needed_bytes(constant) or 0
