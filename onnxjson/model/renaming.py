"""Rename values, with everything that refers to them: nodes, subgraphs, annotations, training, sharding.

A name belongs to the graph that defines it. Uses in the graphs inside follow, up to a graph that defines the name
itself. Inputs of functions and of the bodies of loops are positional, so a function and each body have their own
names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final, TypeVar

import msgspec

from onnxjson.model import document as d
from onnxjson.model.display import listed, visible
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, Scope
from onnxjson.model.walking import Body, rebuild

Names = Mapping[Scope, Mapping[str, str]]
"""For each graph: names that it defines -> new names."""

_SHOWN: Final = 8

Part = TypeVar("Part", bound=d.Record)

_NAMES: Final[Mapping[type[d.Record], tuple[str, ...]]] = {
    d.Function: ("input", "output"), d.Node: ("input", "output"), d.ValueInfo: ("name",), d.Tensor: ("name",),
    d.TensorAnnotation: ("tensor_name",), d.ShardingSpec: ("tensor_name",), d.StringStringEntry: ("value",),
}  # fmt: skip
"""The fields that have the name of a value, or several names."""

_INSIDE: Final[Mapping[type[d.Record], tuple[str, ...]]] = {
    d.Graph: ("node", "value_info", "input", "output", "initializer", "sparse_initializer", "quantization_annotation"),
    d.Function: ("node", "value_info"),
    d.Node: ("device_configurations",),
    d.NodeDeviceConfiguration: ("sharding_spec",),
    d.SparseTensor: ("values",),
    d.TensorAnnotation: ("quant_parameter_tensor_names",),
}
"""The fields that have records with names of values of the same graph."""


def free_name(wanted: str, is_taken: Callable[[str], object], first: int = 1) -> str:
    """Return `wanted`, or `wanted` with the first number, from `first`, that makes it a name that is not taken."""
    numbered = (f"{wanted}_{number}" for number in count(first))
    return next(name for name in chain([wanted], numbered) if not is_taken(name))


def fresh_name(index: Index, wanted: str, taken: Iterable[str] = ()) -> str:
    """Return `free_name` for a value: no value of any graph has the name, and it is not one of `taken`."""
    others = set(taken)
    scopes = index.scopes
    return free_name(
        wanted, lambda name: name in others or any([each.defines(name) or name in each.consumers for each in scopes])
    )


def renamed(index: Index, names: Names) -> d.Model:
    """Return the model of an index with values renamed; collisions are not checked (see `collisions`)."""
    effective = _effective(index, names)

    def change(scope: Scope, graph: Body) -> Body:
        mapping = effective[scope]
        return _with_names(graph, mapping) if mapping else graph

    model = rebuild(index, change)
    return _training(index, model, effective)


def merged(index: Index, names: Names, added: Mapping[Scope, Sequence[d.Tensor]] | None = None) -> d.Model:
    """Return a model with constants (`names` by graph) replaced by other values, and with new ones (`added`)."""
    effective = _effective(index, names)

    def change(scope: Scope, graph: Body) -> Body:
        removed = names.get(scope)
        if removed and isinstance(graph, d.Graph):
            graph = msgspec.structs.replace(
                graph,
                initializer=tuple([tensor for tensor in graph.initializer if tensor.name not in removed]),
                value_info=tuple([value for value in graph.value_info if value.name not in removed]),
            )
        graph = _with_names(graph, effective[scope]) if effective[scope] else graph
        new = (added or {}).get(scope)
        if new and isinstance(graph, d.Graph):
            graph = msgspec.structs.replace(graph, initializer=(*graph.initializer, *new))
        return graph

    return rebuild(index, change)


def collisions(index: Index, names: Names) -> list[str]:
    """Return what is wrong with a renaming, as sentences: values that get one name, names that hide others."""
    known = {scope: scope.defined_names for scope in index.scopes} if names else {}
    olds = {scope: _by_new_name(mapping) for scope, mapping in names.items()}
    wrong: dict[str, None] = {}

    def owners(scope: Scope, name: str) -> list[str]:
        """Return the present names of the values of a graph that will have a name."""
        changing = olds.get(scope, {}).get(name, [])
        stays = name in known[scope] and name not in names.get(scope, {})
        return [*changing, *([name] if stays else [])]

    for scope, mapping in names.items():
        others = [each for each in scope.chain() if each is not scope]
        within = list(inside(index, scope))
        undefined = _undefined_names(index, [scope, *within], set(mapping.values()))
        for old, new in mapping.items():
            if old == new:
                continue
            if not new:
                wrong[f'"{visible(old)}" would have no name'] = None
            same = owners(scope, new)
            if len(same) > 1:
                both = " and ".join([f'"{visible(each)}"' for each in same[:3]])
                wrong[f'{both} of {scope.address} would both be "{visible(new)}"'] = None
            for other in (*others, *within):
                for each in owners(other, new):
                    text = f'"{visible(old)}" of {scope.address} would be "{visible(new)}", as "{visible(each)}" of '
                    wrong[f"{text}{other.address} is"] = None
            if new in undefined:
                wrong[f'"{visible(new)}" is used and not defined; "{visible(old)}" would take its place'] = None
    return list(wrong)


def _by_new_name(mapping: Mapping[str, str]) -> dict[str, list[str]]:
    old_names: dict[str, list[str]] = {}
    for old, new in mapping.items():
        old_names.setdefault(new, []).append(old)
    return old_names


def _undefined_names(index: Index, scopes: Sequence[Scope], names: set[str]) -> set[str]:
    undefined: set[str] = set()
    for scope in scopes:
        used = {name for node in scope.graph.node if not names.isdisjoint(node.input) for name in node.input}
        used.update([name for name in scope.output_names if name])
        undefined |= {name for name in names & used if index.defining_scope(scope, name) is None}
    return undefined


def refuse_collisions(index: Index, names: Names) -> None:
    """Raise EditError, with the list of what would collide, unless different values keep different names."""
    wrong = collisions(index, names)
    if wrong:
        raise collision_error(wrong)


def collision_error(wrong: Sequence[str]) -> EditError:
    """Return the error for a list of collisions."""
    return EditError(f"names would collide: {listed(wrong, _SHOWN, '; ')}; choose names that are not used")


def inside(index: Index, scope: Scope) -> Iterator[Scope]:
    """Yield the graphs in which the names of a graph are visible, except the graph itself."""
    pending = list(scope.children)
    if scope.kind == "main":
        pending += [each for each in index.scopes if each.kind == "training"]
    while pending:
        inner = pending.pop()
        yield inner
        pending += inner.children


def _effective(index: Index, names: Names) -> dict[Scope, dict[str, str]]:
    """Return all names that change in each graph, including those of the graphs around it."""
    effective: dict[Scope, dict[str, str]] = {}
    for scope in index.scopes:
        around = effective[scope.outer] if scope.outer is not None else {}
        inherited = {old: new for old, new in around.items() if not scope.defines(old)} if around else {}
        effective[scope] = inherited | dict(names.get(scope, {}))
    return effective


def _with_names(record: Part, mapping: Mapping[str, str]) -> Part:
    """Return a graph, or a record of it, with values renamed; graphs inside it stay as they are."""
    kind = type(record)
    updates: dict[str, Any] = {}
    for field in _NAMES.get(kind, ()):
        value = getattr(record, field)
        if isinstance(value, tuple):
            if not mapping.keys().isdisjoint(value):
                updates[field] = tuple([mapping.get(name, name) for name in value])
        elif value in mapping:
            updates[field] = mapping[value]
    for field in _INSIDE.get(kind, ()):
        value = getattr(record, field)
        if not value:
            continue
        if isinstance(value, tuple):
            new = tuple([_with_names(each, mapping) for each in value])
            if any([one is not other for one, other in zip(new, value, strict=True)]):
                updates[field] = new
        elif (changed := _with_names(value, mapping)) is not value:
            updates[field] = changed
    return msgspec.structs.replace(record, **updates) if updates else record


def _entry(
    entry: d.StringStringEntry, key: Callable[[str], str | None], value: Callable[[str], str | None]
) -> d.StringStringEntry:
    new_key = entry.key if entry.key is None else key(entry.key) or entry.key
    new_value = entry.value if entry.value is None else value(entry.value) or entry.value
    if new_key == entry.key and new_value == entry.value:
        return entry
    return msgspec.structs.replace(entry, key=new_key, value=new_value)


def _training(index: Index, model: d.Model, effective: Mapping[Scope, Mapping[str, str]]) -> d.Model:
    """Rename the bindings of training steps: keys are values of the graphs, values are outputs of the steps."""
    if not any([step.initialization_binding or step.update_binding for step in model.training_info]):
        return model
    scopes = index.by_address
    main: Mapping[str, str] = effective[scopes["/graph"]] if "/graph" in scopes else {}

    def bound(step: d.TrainingInfo, position: int) -> d.TrainingInfo:
        algorithm, initialization = [
            effective[scopes[at]] if (at := f"/training_info/{position}/{field}") in scopes else {}
            for field in ("algorithm", "initialization")
        ]

        def key(name: str) -> str | None:
            return algorithm.get(name) or main.get(name)

        return msgspec.structs.replace(
            step,
            initialization_binding=tuple(
                [_entry(each, key, initialization.get) for each in step.initialization_binding]
            ),
            update_binding=tuple([_entry(each, key, algorithm.get) for each in step.update_binding]),
        )

    steps = tuple([bound(step, position) for position, step in enumerate(model.training_info)])
    return model if steps == model.training_info else msgspec.structs.replace(model, training_info=steps)
