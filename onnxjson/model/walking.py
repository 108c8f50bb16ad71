"""Walk through the records of a model, and copy a model with other records in it.

The field table of `onnxjson.model.messages` states where records can be, so that a field which a later release of onnx
adds is not forgotten. A copy shares every unchanged record with the original. `rebuild` does the same for
graphs whose change depends on the graphs around them. `stored_tensors` has the addresses of all tensors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter, is_
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from onnxjson.model.addresses import attribute_segments, escape, parse_address, resolve
from onnxjson.model.document import Function, Graph, Model, Node, Record, SparseTensor, Tensor
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.index import Index, Scope
from onnxjson.model.messages import FIELDS
from onnxjson.model.operators import OperatorKey, function_key, operator_key
from onnxjson.model.tensors import is_external

Found = TypeVar("Found", bound=Record)
Whole = TypeVar("Whole", bound=Record)

Body = Graph | Function
"""A graph, or the body of a function."""

_TYPED_FIELDS: Final = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")

_OF_ATTRIBUTE: Final = ("t", "tensors", "sparse_tensor", "sparse_tensors")


def walk(record: Record, kind: type[Found]) -> Iterator[Found]:
    """Yield every record of a kind in `record`, itself included, the outer before the inner, in the order of fields."""
    pending: list[Record | Sequence[Found]] = [record]
    barren: dict[int, bool] = {}
    while pending:
        current = pending.pop()
        if not isinstance(current, Record):
            yield from current
            continue
        if isinstance(current, kind):
            yield current
        for name, repeated in reversed(fields_leading_to(type(current), kind)):
            value = getattr(current, name)
            if repeated and value and isinstance(value[0], kind) and not fields_leading_to(type(value[0]), kind):
                pending.append(value)
            elif repeated and value:
                pending += reversed(_fertile(value, kind, barren))
            elif not repeated and value is not None:
                pending.append(value)


def _fertile(members: Sequence[Record], kind: type[Record], barren: dict[int, bool]) -> Sequence[Record]:
    """Leave out members that cannot have a record of the kind, such as nodes whose attributes have no tensor.

    `barren` remembers lists by identity, since many nodes share their attributes.
    """
    fields = fields_leading_to(type(members[0]), kind)
    if isinstance(members[0], kind) or len(fields) != 1 or not fields[0][1]:
        return members
    fertile = []
    lists: Iterable[tuple[Record, ...]] = map(attrgetter(fields[0][0]), members)
    for member, inner in zip(members, lists, strict=True):
        if inner:
            is_barren = barren.get(id(inner))
            if is_barren is None:
                leading = [name for name, _ in fields_leading_to(type(inner[0]), kind)]
                is_kind = isinstance(inner[0], kind)
                has = any([getattr(each, name) for each in inner for name in leading])
                is_barren = barren[id(inner)] = not (is_kind or has)
            if not is_barren:
                fertile.append(member)
    return fertile


def tensors_of(record: Record) -> Iterator[Tensor]:
    """Yield every tensor in a record: initializers, parts of sparse tensors, attributes, in graphs and functions."""
    return walk(record, Tensor)


def replace_records(
    root: Whole, kind: type[Found] | tuple[type[Found], ...], change: Callable[[Found], Found], *, shared: bool = True
) -> Whole:
    """Return a record with `change` applied to every record of a kind in it, the inner before the outer.

    `change` returns the record itself where nothing changes, and so does this. It is called once for a record that
    several others share, unless `shared` is false.
    """
    kinds: tuple[type[Record], ...] = kind if isinstance(kind, tuple) else (kind,)
    # Identity represents the record or the list, and is stable because the root keeps all of them alive.
    done: dict[int, Any] = {}
    # No recursion: a subgraph may be nested deeper than Python's calls can.
    pending: list[tuple[Any, bool]] = [(root, False)]
    while pending:
        current, inner_are_done = pending.pop()
        if inner_are_done:
            new = _updated(current, kinds, done, shared)
            done[id(current)] = change(new) if isinstance(current, kinds) else new
        elif not (shared and id(current) in done):
            pending.append((current, True))
            pending += [(each, False) for each in reversed(_inner(current, kinds, shared))]
    result = done[id(root)]
    assert isinstance(result, type(root))
    return result


def _inner(current: Record | tuple[Record, ...], kinds: tuple[type[Record], ...], shared: bool) -> Sequence[Any]:
    """Return the members of a record, or of the records in a list, that can contain records of some kinds."""
    members = (current,) if isinstance(current, Record) else current
    if members is current and (not shared or isinstance(members[0], kinds)):
        return members
    names = _fields_leading_to_any(type(members[0]), kinds)
    if not names:
        return ()
    held: Iterable[Any] = map(attrgetter(*names), members)
    if len(names) > 1:
        held = [each for values in held for each in values]
    # Many records of a list share their members, such as the types of values and the attributes of nodes.
    return [*{id(each): each for each in held if each is not None and each != ()}.values()]


def _updated(
    current: Record | tuple[Record, ...], kinds: tuple[type[Record], ...], done: dict[int, Any], shared: bool
) -> Any:
    if isinstance(current, Record):
        return _with_updates(current, _fields_leading_to_any(type(current), kinds), done)
    if not shared or isinstance(current[0], kinds):
        new = [done[id(each)] for each in current]
    else:
        names = _fields_leading_to_any(type(current[0]), kinds)
        new = [_with_updates(each, names, done) for each in current]
    return current if all(map(is_, new, current)) else tuple(new)


def _with_updates(record: Record, names: Sequence[str], done: dict[int, Any]) -> Record:
    updates = {}
    for name in names:
        value = getattr(record, name)
        new = done.get(id(value), value)
        if new is not value:
            updates[name] = new
    return msgspec.structs.replace(record, **updates) if updates else record


def replace_at(model: Model, address: str, new: object) -> dict[str, Record]:
    """Return `new` and the records above it in a copy of `model` that has it at an address, by their addresses."""
    held: list[Any] = [model]
    keys: list[str | int] = []
    for segment in parse_address(address):
        owner = held[-1]
        if isinstance(owner, Record):
            keys.append(segment)
            held.append(getattr(owner, segment))
        else:
            is_by_name = isinstance(held[-2], Node) and keys[-1] == "attribute"
            position = attribute_segments(owner).index(segment) if is_by_name else int(segment)
            keys.append(position)
            held.append(owner[position])
    current: Any = new
    copies: dict[str, Record] = {}
    prefix = address
    for owner, key in zip(reversed(held[:-1]), reversed(keys), strict=True):
        if isinstance(current, Record):
            copies[prefix] = current
        if isinstance(owner, Record):
            current = msgspec.structs.replace(owner, **{str(key): current})
        else:
            assert isinstance(key, int)
            current = (*owner[:key], current, *owner[key + 1 :])
        prefix = prefix.rpartition("/")[0]
    copies[""] = current
    return copies


@cache
def _fields_leading_to_any(message: type[Record], kinds: tuple[type[Record], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for kind in kinds for name, _ in fields_leading_to(message, kind)))


@cache
def fields_leading_to(message: type[Record], kind: type[Record]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a message that can lead to a record of a kind: name, and whether it is repeated."""
    return tuple(
        (field.name, field.repeated)
        for field in FIELDS[message]
        if field.message is not None and kind in _reachable(field.message)
    )


@cache
def _reachable(message: type[Record]) -> frozenset[type[Record]]:
    reachable = {message}
    pending = [message]
    while pending:
        for field in FIELDS[pending.pop()]:
            if field.message is not None and field.message not in reachable:
                reachable.add(field.message)
                pending.append(field.message)
    return frozenset(reachable)


def rebuild(index: Index, change: Callable[[Scope, Body], Body]) -> Model:
    """Return the model of an index with `change` applied to all of its graphs and functions.

    Args:
        index: of the model, which stays as it is.
        change: is called with each graph, in which inner graphs are already changed and nodes have their old positions;
            it returns the graph itself where nothing changes.
    """
    model = index.model
    for scope in reversed(index.scopes):
        graph = resolve(model, scope.address)
        assert isinstance(graph, Body)
        new = change(scope, graph)
        if new is not graph:
            model = replace_at(model, scope.address, new)[""]  # type: ignore[assignment]
    return model


def with_nodes(graph: Body, change: Callable[[Node], Node]) -> Body:
    """Return the graph with `change` applied to its nodes, or itself where none changes."""
    nodes = tuple([change(node) for node in graph.node])
    if all([a is b for a, b in zip(nodes, graph.node, strict=True)]):
        return graph
    return msgspec.structs.replace(graph, node=nodes)


def called_functions(functions: tuple[Function, ...], roots: Iterable[Record]) -> tuple[Function, ...]:
    """Return the functions that nodes in some records call, directly or indirectly, in their order."""
    by_key = {function_key(each): each for each in functions}
    called: set[OperatorKey] = set()
    pending = list(roots) if functions else []
    while pending:
        for node in walk(pending.pop(), Node):
            key = operator_key(node)
            if key in by_key and key not in called:
                called.add(key)
                pending.append(by_key[key])
    return (
        functions if len(called) == len(functions) else tuple([each for key, each in by_key.items() if key in called])
    )


class StoredTensor(NamedTuple):
    """One tensor of a model."""

    address: str
    tensor: Tensor
    is_weight: bool


def stored_tensors(index: Index) -> Iterator[StoredTensor]:
    """Yield every tensor of the model."""
    for scope in index.scopes:
        graph = scope.graph
        if isinstance(graph, Graph):
            yield from _tensors_in(scope.address, graph, ("initializer", "sparse_initializer"), is_weight=True)
        else:
            for position, default in enumerate(graph.attribute_proto):
                yield from _tensors_in(f"{scope.address}/attribute_proto/{position}", default, ("t",), is_weight=False)
        plain: set[int] = set()  # attributes by identity, which many nodes share
        for position, node in enumerate(graph.node):
            if id(node.attribute) in plain:
                continue
            has = [each.t or each.tensors or each.sparse_tensor or each.sparse_tensors for each in node.attribute]
            if not any(has):
                plain.add(id(node.attribute))
            else:
                segments = map(escape, attribute_segments(node.attribute))
                for segment, attribute in zip(segments, node.attribute, strict=True):
                    at = f"{scope.address}/node/{position}/attribute/{segment}"
                    yield from _tensors_in(at, attribute, _OF_ATTRIBUTE, is_weight=False)


def _tensors_in(at: str, record: Record, fields: Sequence[str], *, is_weight: bool) -> Iterator[StoredTensor]:
    """Yield the tensors in some fields of a record, and those of sparse tensors."""
    for field in fields:
        value = getattr(record, field)
        is_many = isinstance(value, tuple)
        for position, member in enumerate(value if is_many else (value,)):
            place = f"{at}/{field}/{position}" if is_many else f"{at}/{field}"
            if isinstance(member, Tensor):
                yield StoredTensor(place, member, is_weight)
            elif isinstance(member, SparseTensor):
                yield from _tensors_in(place, member, ("values", "indices"), is_weight=is_weight)


def stored_bytes(tensor: Tensor) -> int:
    """Return the stored size of the elements; for external data its `length`, or the size of dtype and dims."""
    if is_external(tensor):
        declared = next((entry.value for entry in tensor.external_data if entry.key == "length"), None)
        if declared is not None and declared.isascii() and declared.isdigit() and len(declared) < 20:
            return int(declared)
        return byte_length(tensor.data_type or 0, element_count(tensor.dims)) or 0
    if tensor.raw_data is not None:
        return len(tensor.raw_data)
    return sum([len(getattr(tensor, field)) for field in _TYPED_FIELDS]) + sum(map(len, tensor.string_data))
