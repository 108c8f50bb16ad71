"""Two models as one: the values of the first that the second takes, names that clash, and all that both carry."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from onnxjson.display import visible
from onnxjson.document import (
    Graph,
    Model,
    Node,
    OperatorSetId,
    Record,
    SparseTensor,
    StringStringEntry,
    Tensor,
)
from onnxjson.edits.constant_types import type_of_constant
from onnxjson.edits.conversion import convert, domain_text, imported_version
from onnxjson.edits.inference import inferred_types, refined
from onnxjson.edits.rebuilding import Body, rebuilt, with_nodes
from onnxjson.edits.renaming import renamed
from onnxjson.errors import EditError, WorkerError
from onnxjson.external_files import internalize
from onnxjson.index import Index, Scope
from onnxjson.operators import OperatorKey, function_key, operator_key, plain_domain
from onnxjson.tensors import is_external
from onnxjson.types import format_type

_SHOWN: Final = 8

Kind = TypeVar("Kind", bound=Record)


class Merged(NamedTuple):
    """A model made of two."""

    model: Model
    notes: tuple[str, ...]


def merge(
    first: Model,
    second: Model,
    joins: Mapping[str, str],
    *,
    prefix: str,
    folders: tuple[Path | None, Path | None] = (None, None),
) -> Merged:
    """`first` followed by `second`, which takes values of `first` in the place of some of its inputs.

    Args:
        first: stays as it is; its names stay too.
        second: stays as it is.
        joins: inputs of `second` -> the values of the main graph of `first` that they become.
        prefix: what is put before names of `second` that are taken.
        folders: where the external data of each stands.

    Raises:
        EditError: the two do not fit each other.
        WorkerError: the version converter crashed or hung.
    """
    if second.training_info:
        raise EditError("the second model has training_info, which is about a model of its own; strip it first")
    first, second, notes = _same_versions(first, second, folders)
    second, more = _own_functions(first, second, prefix)
    notes += more
    ones, others = Index(first), Index(second)
    main, its = _main(ones, "first"), _main(others, "second")
    _refuse_types(first, main, its, joins, folders[0], notes)
    shared = _shared(main, its, joins, folders[0])
    second, more = _own_names(ones, others, joins, shared, prefix)
    notes += more
    second, more = _own_node_names(ones, second, prefix)
    notes += more
    model, more = _joined(first, second, joins, shared)
    return Merged(model, (*notes, *more))


def _main(index: Index, which: str) -> Scope:
    for scope in index.scopes:
        if scope.kind == "main":
            return scope
    raise EditError(f"the {which} model has no graph")


def _same_versions(
    first: Model, second: Model, folders: tuple[Path | None, Path | None]
) -> tuple[Model, Model, list[str]]:
    """Both models for the newer of their versions of every operator set."""
    notes = []
    for domain in dict.fromkeys(plain_domain(each.domain) for each in (*first.opset_import, *second.opset_import)):
        mine, its = [imported_version(each.opset_import, domain) for each in (first, second)]
        if mine is None or its is None or mine == its:
            continue
        newer = max(mine, its)
        which = "first" if mine < newer else "second"
        reason = f"the models import {domain_text(domain)} as {mine} and {its}"
        try:
            if which == "first":
                converted = convert(first, newer, domain, folders[0])
                first = converted.model
            else:
                converted = convert(second, newer, domain, folders[1])
                second = converted.model
        except EditError as error:
            raise EditError(f"{reason}, and the {which} cannot be converted to {newer}: {error}") from error
        notes.append(f"{reason}; the {which} was converted to {newer}: {'; '.join(converted.notes)}")
    return first, second, notes


def _own_functions(first: Model, second: Model, prefix: str) -> tuple[Model, list[str]]:
    """`second` with other names for functions that `first` has with another body."""
    mine = {function_key(each): each for each in first.functions}
    taken = {key[1] for key in mine} | {each.name or "" for each in second.functions}
    new: dict[OperatorKey, str] = {}
    for function in second.functions:
        key = function_key(function)
        if key in mine and mine[key] != function:
            name = _fresh(prefix + key[1], taken)
            taken.add(name)
            new[key] = name
    if not new:
        return second, []

    def call(node: Node) -> Node:
        name = new.get(operator_key(node))
        return node if name is None else msgspec.structs.replace(node, op_type=name)

    def change(_: Scope, graph: Body) -> Body:
        return with_nodes(graph, call)

    changed = rebuilt(Index(second), change)
    functions = tuple(
        [
            msgspec.structs.replace(each, name=new[function_key(old)]) if function_key(old) in new else each
            for old, each in zip(second.functions, changed.functions, strict=True)
        ]
    )
    renames = {key[1]: name for key, name in new.items()}
    return msgspec.structs.replace(changed, functions=functions), [
        f"functions of both have one name and different bodies; in the second: {_map(renames)}"
    ]


def _refuse_types(
    first: Model, main: Scope, its: Scope, joins: Mapping[str, str], folder: Path | None, notes: list[str]
) -> None:
    """Do nothing if every value can be what the input that it becomes says.

    Raises:
        EditError: dtypes, ranks or sizes differ.
    """
    inferred: Scope | None = None
    for name, source in joins.items():
        wanted, found = its.types.get(name), main.types.get(source)
        constant = main.initializer(source)
        if found is None and constant is not None:
            found = type_of_constant(constant)
        if wanted is not None and found is None:
            inferred = inferred or _inferred(first, main, folder)
            found = inferred.types.get(source)
        if wanted is None or found is None:
            notes.append(f'nothing says whether "{visible(source)}" is what "{visible(name)}" takes')
        elif refined(found, wanted) is None:
            texts = [visible(format_type(each) or "a type") for each in (found, wanted)]
            raise EditError(
                f'"{visible(source)}" of the first model is {texts[0]}, and "{visible(name)}" of the second takes '
                f"{texts[1]}"
            )


def _inferred(model: Model, main: Scope, folder: Path | None) -> Scope:
    try:
        return _main(Index(inferred_types(model, folder)), "first")
    except WorkerError:
        return main


def _shared(main: Scope, its: Scope, joins: Mapping[str, str], folder: Path | None) -> set[str]:
    """Constants that both models have under one name, with the same dtype, dims and elements."""
    return {
        name
        for name in its.initializers
        if name in main.initializers
        and not (name in joins or name in its.inputs or name in main.inputs)
        and _inside(main.initializer(name), folder) == its.initializer(name)
    }


def _inside(constant: Tensor | SparseTensor | None, folder: Path | None) -> Tensor | SparseTensor | None:
    """A constant with its elements in it; those in other files are read when they are compared."""
    if not isinstance(constant, Tensor) or not is_external(constant) or folder is None:
        return constant
    taken = internalize(Model(graph=Graph(initializer=(constant,))), folder).graph
    assert taken is not None
    return taken.initializer[0]


def _own_names(
    ones: Index, others: Index, joins: Mapping[str, str], shared: set[str], prefix: str
) -> tuple[Model, list[str]]:
    """The second model with its joined inputs called as what they become, and with names that the first has not."""
    mine = [scope for scope in ones.scopes if scope.kind != "function"]
    everywhere = {name for scope in mine for name in _defined(scope)}
    # Names of subgraphs may be those of other subgraphs, and not those of a graph around them.
    around = {name for scope in mine if scope.kind == "main" for name in _defined(scope)}
    free = everywhere | {name for scope in others.scopes if scope.kind != "function" for name in _defined(scope)}
    names: dict[Scope, dict[str, str]] = {}
    told: dict[str, str] = {}
    for scope in others.scopes:
        if scope.kind == "function":
            continue
        mapping: dict[str, str] = {}
        taken = everywhere if scope.kind == "main" else around
        for name in _defined(scope):
            if scope.kind == "main" and name in joins:
                mapping[name] = joins[name]
            elif name in taken and not (scope.kind == "main" and name in shared):
                mapping[name] = told[name] = _fresh(prefix + name, free)
                free.add(mapping[name])
        if changed := {old: new for old, new in mapping.items() if old != new}:
            names[scope] = changed
    model = renamed(others, names) if names else others.model
    return model, [f"values of the second that have names of the first: {_map(told)}"] if told else []


def _own_node_names(ones: Index, second: Model, prefix: str) -> tuple[Model, list[str]]:
    """The second model with nodes that are not called like those of the first."""
    taken = {ref.node.name for ref in ones.nodes() if ref.node.name and ref.scope.kind != "function"}
    index = Index(second)
    free = taken | {ref.node.name for ref in index.nodes() if ref.node.name}
    told: dict[str, str] = {}

    def own(node: Node) -> Node:
        if not node.name or node.name not in taken:
            return node
        if node.name not in told:
            told[node.name] = _fresh(prefix + node.name, free)
            free.add(told[node.name])
        return msgspec.structs.replace(node, name=told[node.name])

    def change(scope: Scope, graph: Body) -> Body:
        # Names of nodes in functions stand for themselves.
        return graph if _outermost(scope).kind == "function" else with_nodes(graph, own)

    model = rebuilt(index, change) if taken else second
    return model, [f"nodes of the second that have names of the first: {_map(told)}"] if told else []


def _outermost(scope: Scope) -> Scope:
    return list(scope.chain())[-1]


def _defined(scope: Scope) -> dict[str, None]:
    return dict.fromkeys((*scope.inputs, *scope.initializers, *scope.sparse_initializers, *scope.makers))


def _fresh(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _map(names: Mapping[str, str]) -> str:
    """Renamings in a sentence."""
    shown = [f'"{visible(old)}" is now "{visible(new)}"' for old, new in list(names.items())[:_SHOWN]]
    return ", ".join(shown) + (f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def _joined(first: Model, second: Model, joins: Mapping[str, str], shared: set[str]) -> tuple[Model, list[str]]:
    """Both models as one, the second with names of its own."""
    one, other = first.graph, second.graph
    assert one is not None
    assert other is not None
    notes: list[str] = []
    sources = set(joins.values())
    outputs = [each for each in one.output if each.name not in sources]
    gone = [each for each in one.output if each.name in sources]
    new_outputs = (*outputs, *other.output)
    said = {each.name for each in (*one.value_info, *one.input, *new_outputs)}
    infos = [*one.value_info, *[each for each in gone if each.name not in said]]
    known = {each.name for each in (*infos, *one.input)} | {each.name for each in new_outputs}
    constants = [each for each in other.initializer if each.name not in shared and each.name not in sources]
    graph = msgspec.structs.replace(
        one,
        node=(*one.node, *other.node),
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
            *[each for each in other.sparse_initializer if _sparse_name(each) not in sources],
        ),
        metadata_props=_metadata(one.metadata_props, other.metadata_props, "the graph", notes),
    )
    for what, mine, its in (
        ("doc_string of the model", first.doc_string, second.doc_string),
        ("doc_string of the graph", one.doc_string, other.doc_string),
        ("unknown fields of the model", first.unknown_fields, second.unknown_fields),
        ("unknown fields of the graph", one.unknown_fields, other.unknown_fields),
    ):
        if its and its != mine:
            notes.append(f"the {what} is that of the first; the second has another")
    newest = max(first.ir_version or 0, second.ir_version or 0)
    if newest != (first.ir_version or 0):
        notes.append(f"ir_version is {newest}, that of the second, which may use what {first.ir_version} does not have")
    model = msgspec.structs.replace(
        first,
        ir_version=newest or None,
        graph=graph,
        opset_import=_union(first.opset_import, second.opset_import, _domain, "operator set", notes),
        metadata_props=_metadata(first.metadata_props, second.metadata_props, "the model", notes),
        functions=_union(first.functions, second.functions, function_key, "function", notes),
        configuration=_union(first.configuration, second.configuration, lambda each: each.name, "devices", notes),
    )
    return model, notes


def _domain(entry: OperatorSetId) -> str:
    return plain_domain(entry.domain)


def _sparse_name(sparse: SparseTensor) -> str | None:
    return None if sparse.values is None else sparse.values.name


def _metadata(
    mine: tuple[StringStringEntry, ...], its: tuple[StringStringEntry, ...], place: str, notes: list[str]
) -> tuple[StringStringEntry, ...]:
    return _union(mine, its, lambda each: each.key, f"metadata of {place}:", notes)


def _union(
    mine: tuple[Kind, ...], its: tuple[Kind, ...], key: Callable[[Kind], Any], what: str, notes: list[str]
) -> tuple[Kind, ...]:
    """What the first has, then what only the second has; where they differ, that of the first, and it is said."""
    known = {key(each): each for each in mine}
    more = []
    for each in its:
        there = known.get(key(each))
        if there is None:
            more.append(each)
        elif there != each and what != "operator set":
            name = visible(str(key(each)))
            notes.append(f'{what} "{name}" differs; that of the first stays')
    return (*mine, *more)
