"""Combine two models: connect values of the first to inputs of the second, resolve name conflicts, unite the rest."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from onnxjson.editing.opsets import convert, domain_text, imported_version
from onnxjson.editing.sandbox import worker
from onnxjson.editing.type_relations import refine_type
from onnxjson.editing.workspace import NewModel, main_scope
from onnxjson.model.constants import constant_nodes
from onnxjson.model.dimensions import dimension_names, size_of, with_dimension_names
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Dimension, Graph, Model, Node, Record, SparseTensor, Tensor
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import OperatorKey, function_key, operator_key, plain_domain
from onnxjson.model.renaming import free_name, renamed
from onnxjson.model.tensors import is_external
from onnxjson.model.types import shown_type
from onnxjson.model.walking import Body, rebuild, with_nodes
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.storage.external_files import internalize

_SHOWN: Final = 8

Kind = TypeVar("Kind", bound=Record)


def combine(
    first: Model,
    second: Model,
    joins: Mapping[str, str],
    *,
    prefix: str,
    folders: tuple[Path | None, Path | None] = (None, None),
) -> NewModel:
    """Append `second` to `first`, with values of `first` instead of some of its inputs.

    Args:
        first: is not modified, and keeps its names.
        second: is not modified.
        joins: inputs of `second` -> the values of the main graph of `first` that replace them.
        prefix: the prefix of names of `second` that `first` has already.
        folders: the folders of their external data.

    Raises:
        EditError: the models cannot be combined.
        WorkerError: the version converter crashed or hung.
    """
    if second.training_info:
        raise EditError("the second model has training_info, which belongs to that model alone; remove it first")
    first, second, notes = _same_versions(first, second, folders)
    second, more = _own_functions(first, second, prefix)
    notes += more
    ones, others = Index(first), Index(second)
    main, other_main = main_scope(ones, "the first model"), main_scope(others, "the second model")
    sizes = _joined_types(ones, other_main, joins, folders[0], notes)
    first, second, more = _same_sizes(first, second, sizes)
    notes += more
    if more:
        ones, others = Index(first), Index(second)
        main, other_main = main_scope(ones), main_scope(others)
    shared = _shared(main, other_main, joins, folders[0])
    second, more = _own_names(ones, others, joins, shared, prefix)
    notes += more
    second, more = _own_node_names(ones, second, prefix, shared)
    notes += more
    model, more = _joined(first, second, joins, shared)
    return NewModel(model, (*notes, *more))


def _same_versions(
    first: Model, second: Model, folders: tuple[Path | None, Path | None]
) -> tuple[Model, Model, list[str]]:
    """Convert both models to the newer of their versions of every operator set."""
    notes = []
    for domain in dict.fromkeys(plain_domain(each.domain) for each in (*first.opset_import, *second.opset_import)):
        one, other = [imported_version(each.opset_import, domain) for each in (first, second)]
        if one is None or other is None or one == other:
            continue
        newer = max(one, other)
        which = "first" if one < newer else "second"
        reason = f"the models import {domain_text(domain)} as {one} and {other}"
        older, folder = (first, folders[0]) if which == "first" else (second, folders[1])
        try:
            converted = convert(older, newer, domain, folder)
        except EditError as error:
            raise EditError(f"{reason}, and the {which} cannot be converted to {newer}: {error}") from error
        first, second = (converted.model, second) if which == "first" else (first, converted.model)
        notes.append(f"{reason}; the {which} was converted to {newer}: {'; '.join(converted.notes)}")
    return first, second, notes


def _own_functions(first: Model, second: Model, prefix: str) -> tuple[Model, list[str]]:
    """Rename functions of `second` that `first` has with another body."""
    of_first = {function_key(each): each for each in first.functions}
    taken = {key[1] for key in of_first} | {each.name or "" for each in second.functions}
    new: dict[OperatorKey, str] = {}
    for function in second.functions:
        key = function_key(function)
        if key in of_first and of_first[key] != function:
            name = free_name(prefix + key[1], taken.__contains__, 2)
            taken.add(name)
            new[key] = name
    if not new:
        return second, []

    def call(node: Node) -> Node:
        name = new.get(operator_key(node))
        return node if name is None else replace(node, op_type=name)

    changed = rebuild(Index(second), lambda _, graph: with_nodes(graph, call))
    functions = tuple(
        [
            replace(each, name=new[function_key(old)]) if function_key(old) in new else each
            for old, each in zip(second.functions, changed.functions, strict=True)
        ]
    )
    renames = {key[1]: name for key, name in new.items()}
    return replace(changed, functions=functions), [
        f"functions of the second model renamed, because the first has others with these names: {_map(renames)}"
    ]


def _joined_types(
    first: Index, second: Scope, joins: Mapping[str, str], folder: Path | None, notes: list[str]
) -> list[tuple[Dimension, Dimension]]:
    """Raise unless every value fits the type of the input that it replaces; return the dimensions that become one."""
    main, types = main_scope(first), InferredTypes(first, worker(), folder)
    sizes: list[tuple[Dimension, Dimension]] = []
    for name, source in joins.items():
        wanted = second.types.get(name)
        given = None if wanted is None else types.type_of(main, source)
        if wanted is None or given is None:
            notes.append(f'it is not known whether "{visible(source)}" has the type of "{visible(name)}"')
        elif refine_type(given, wanted) is None:
            texts = [visible(shown_type(each)) for each in (given, wanted)]
            raise EditError(
                f'"{visible(source)}" of the first model is {texts[0]}, and "{visible(name)}" of the second needs '
                f"{texts[1]}"
            )
        else:
            dims = [
                each.tensor_type.shape.dim if each.tensor_type and each.tensor_type.shape else ()
                for each in (given, wanted)
            ]
            sizes += zip(*dims, strict=False)
    return sizes


def _same_sizes(
    first: Model, second: Model, pairs: Sequence[tuple[Dimension, Dimension]]
) -> tuple[Model, Model, list[str]]:
    """Give dimensions of joined values the same size or name everywhere in both models.

    Raises:
        EditError: a dimension would have two sizes.
    """
    of_first: dict[str, int | str] = {}
    of_second: dict[str, int | str] = {}
    for one, other in pairs:
        size, wanted = size_of(one), size_of(other)
        if size is None or wanted is None:
            continue
        size = of_first.get(size, size) if isinstance(size, str) else size
        bound = of_second.setdefault(wanted, size) if isinstance(wanted, str) else wanted
        if isinstance(size, int) and isinstance(bound, int) and size != bound:
            raise EditError(f'the dimension "{visible(str(wanted))}" of the second model would be {bound} and {size}')
        for name, value in ((size, bound), (bound, size)):
            if isinstance(name, str) and isinstance(value, int):
                of_first[name] = value
                of_second |= {each: value for each, known in of_second.items() if known == name}
    # Other dimensions of the second that have such a name are not the same.
    names = dimension_names(second)
    taken = {*dimension_names(first), *names}
    bound_to = set(of_second.values())
    of_second |= {
        name: free_name(name, taken.__contains__, 2) for name in names if name in bound_to and name not in of_second
    }
    notes = []
    models = []
    for which, model, sizes in (("first", first, of_first), ("second", second, of_second)):
        changed = {name: size for name, size in sizes.items() if name != size}
        models.append(with_dimension_names(model, changed) if changed else model)
        if changed:
            texts = [f'"{visible(name)}" is now {visible(str(size))}' for name, size in changed.items()]
            notes.append(f"dimensions of the {which}: {listed(texts, _SHOWN)}")
    return models[0], models[1], notes


def _shared(main: Scope, other: Scope, joins: Mapping[str, str], folder: Path | None) -> set[str]:
    """Return the names of constants that both models have with the same dtype, dims and elements.

    Results of nodes that both have and that compute only with such constants are among them.
    """
    shared = {
        name
        for name in other.initializers
        if name in main.initializers
        and not (name in joins or name in other.inputs or name in main.inputs)
        and _inside(main.initializer(name), folder) == other.initializer(name)
    }
    constant_of = {node.output: node for node in [main.graph.node[position] for position in constant_nodes(main)]}
    for position in sorted(constant_nodes(other)):
        node = other.graph.node[position]
        if constant_of.get(node.output) == node and shared.issuperset([name for name in node.input if name]):
            shared.update(node.output)
    return shared


def _inside(constant: Tensor | SparseTensor | None, folder: Path | None) -> Tensor | SparseTensor | None:
    """Return a constant with its elements; those in other files are read when they are compared."""
    if not isinstance(constant, Tensor) or not is_external(constant) or folder is None:
        return constant
    taken = internalize(Model(graph=Graph(initializer=(constant,))), folder).graph
    assert taken is not None
    return taken.initializer[0]


def _own_names(
    ones: Index, others: Index, joins: Mapping[str, str], shared: set[str], prefix: str
) -> tuple[Model, list[str]]:
    """Rename joined inputs of the second model to the values that replace them, and values with names of the first."""
    scopes_of_first = [scope for scope in ones.scopes if scope.kind != "function"]
    everywhere = {name for scope in scopes_of_first for name in scope.defined_names}
    # Subgraphs may reuse names of other subgraphs, but not of a graph around them.
    around = {name for scope in scopes_of_first if scope.kind == "main" for name in scope.defined_names}
    free = everywhere | {name for scope in others.scopes if scope.kind != "function" for name in scope.defined_names}
    names: dict[Scope, dict[str, str]] = {}
    renames: dict[str, str] = {}
    for scope in others.scopes:
        if scope.kind == "function":
            continue
        mapping: dict[str, str] = {}
        taken = everywhere if scope.kind == "main" else around
        for name in scope.defined_names:
            if scope.kind == "main" and name in joins:
                mapping[name] = joins[name]
            elif name in taken and not (scope.kind == "main" and name in shared):
                mapping[name] = renames[name] = free_name(prefix + name, free.__contains__, 2)
                free.add(mapping[name])
        if changed := {old: new for old, new in mapping.items() if old != new}:
            names[scope] = changed
    model = renamed(others, names) if names else others.model
    note = f"values of the second model renamed, because the first has these names: {_map(renames)}"
    return model, [note] if renames else []


def _own_node_names(ones: Index, second: Model, prefix: str, shared: set[str]) -> tuple[Model, list[str]]:
    """Rename nodes of the second model that have names of nodes of the first."""
    taken = {ref.node.name for ref in ones.nodes() if ref.node.name and ref.scope.kind != "function"}
    index = Index(second)
    free = taken | {ref.node.name for ref in index.nodes() if ref.node.name}
    renames: dict[str, str] = {}

    def own(node: Node) -> Node:
        if not node.name or node.name not in taken or not shared.isdisjoint(node.output):
            return node
        if node.name not in renames:
            renames[node.name] = free_name(prefix + node.name, free.__contains__, 2)
            free.add(renames[node.name])
        return replace(node, name=renames[node.name])

    def change(scope: Scope, graph: Body) -> Body:
        # Every function has its own node names.
        return graph if scope.root.kind == "function" else with_nodes(graph, own)

    model = rebuild(index, change) if taken else second
    note = f"nodes of the second model renamed, because the first has these names: {_map(renames)}"
    return model, [note] if renames else []


def _map(names: Mapping[str, str]) -> str:
    return listed([f'"{visible(old)}" is now "{visible(new)}"' for old, new in names.items()], _SHOWN)


def _joined(first: Model, second: Model, joins: Mapping[str, str], shared: set[str]) -> tuple[Model, list[str]]:
    """Join the graphs and all other fields of two models without name conflicts."""
    one, other = first.graph, second.graph
    assert one is not None
    assert other is not None
    notes: list[str] = []
    sources = set(joins.values())
    outputs = [each for each in one.output if each.name not in sources]
    removed = [each for each in one.output if each.name in sources]
    new_outputs = (*outputs, *other.output)
    stated = {each.name for each in (*one.value_info, *one.input, *new_outputs)}
    infos = [*one.value_info, *[each for each in removed if each.name not in stated]]
    known = {each.name for each in (*infos, *one.input)} | {each.name for each in new_outputs}
    constants = [each for each in other.initializer if each.name not in shared and each.name not in sources]
    graph = replace(
        one,
        node=(*one.node, *[each for each in other.node if shared.isdisjoint(each.output)]),
        initializer=(*one.initializer, *constants),
        input=(*one.input, *[each for each in other.input if each.name not in sources]),
        output=new_outputs,
        value_info=(*infos, *[each for each in other.value_info if each.name not in known]),
        quantization_annotation=_union(
            one.quantization_annotation,
            other.quantization_annotation,
            lambda each: each.tensor_name,
            "quantization of",
            notes,
        ),
        sparse_initializer=(
            *one.sparse_initializer,
            *[each for each in other.sparse_initializer if not each.values or each.values.name not in sources],
        ),
        metadata_props=_union(
            one.metadata_props, other.metadata_props, lambda each: each.key, "metadata of the graph:", notes
        ),
    )
    for what, kept, dropped in (
        ("doc_string of the model", first.doc_string, second.doc_string),
        ("doc_string of the graph", one.doc_string, other.doc_string),
        ("unknown fields of the model", first.unknown_fields, second.unknown_fields),
        ("unknown fields of the graph", one.unknown_fields, other.unknown_fields),
    ):
        if dropped and dropped != kept:
            notes.append(f"the models differ in {what}; that of the first is kept")
    newest = max(first.ir_version or 0, second.ir_version or 0)
    if newest != (first.ir_version or 0):
        notes.append(f"ir_version is {newest}, that of the second model, which may need it")
    model = replace(
        first,
        ir_version=newest or None,
        graph=graph,
        opset_import=_union(
            first.opset_import, second.opset_import, lambda each: plain_domain(each.domain), "operator set", notes
        ),
        metadata_props=_union(
            first.metadata_props, second.metadata_props, lambda each: each.key, "metadata of the model:", notes
        ),
        functions=_union(first.functions, second.functions, function_key, "function", notes),
        configuration=_union(first.configuration, second.configuration, lambda each: each.name, "devices", notes),
    )
    return model, notes


def _union(
    first: tuple[Kind, ...], second: tuple[Kind, ...], key: Callable[[Kind], Any], what: str, notes: list[str]
) -> tuple[Kind, ...]:
    """Return the entries of the first, then those that only the second has; conflicting entries are reported."""
    known = {key(each): each for each in first}
    more = []
    for entry in second:
        known_entry = known.get(key(entry))
        if known_entry is None:
            more.append(entry)
        elif known_entry != entry and what != "operator set":
            name = visible(str(key(entry)))
            notes.append(f'{what} "{name}" differs; that of the first model is kept')
    return (*first, *more)
