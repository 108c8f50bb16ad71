"""Which input and output of one graph is which of the other: by name, else by type in their order."""

from collections.abc import Hashable, Sequence

from onnxjson.document import Function, Type
from onnxjson.index import Scope


def pair_inputs(base: Scope, target: Scope) -> dict[int, int]:
    """Positions of the inputs of `base` -> those of their counterparts in `target`."""
    return _pair(_inputs(base), _inputs(target))


def pair_outputs(base: Scope, target: Scope) -> dict[int, int]:
    """Positions of the outputs of `base` -> those of their counterparts in `target`."""
    return _pair(_outputs(base), _outputs(target))


_Value = tuple[str, Type | None]


def _inputs(scope: Scope) -> list[_Value]:
    """Name and type of each input; an initializer that is listed among them has no name here, and no counterpart."""
    graph = scope.graph
    if isinstance(graph, Function):
        return [(name, None) for name in graph.input]
    names = {each.name for each in graph.input}
    constants = {each.name for each in graph.initializer if each.name in names}
    return [("" if each.name in constants else each.name or "", each.type) for each in graph.input]


def _outputs(scope: Scope) -> list[_Value]:
    graph = scope.graph
    if isinstance(graph, Function):
        return [(name, None) for name in graph.output]
    return [(each.name or "", each.type) for each in graph.output]


def _pair(base: Sequence[_Value], target: Sequence[_Value]) -> dict[int, int]:
    by_name = {name: position for position, (name, _) in reversed(list(enumerate(target))) if name}
    pairs = {}
    taken = set()
    for position, (name, _) in enumerate(base):
        there = by_name.get(name) if name else None
        if there is not None and there not in taken:
            pairs[position] = there
            taken.add(there)
    for alike in (_type, _data_type, _any):
        open_there: dict[Hashable, list[int]] = {}
        for position, (name, type_) in enumerate(target):
            if name and position not in taken:
                open_there.setdefault(alike(type_), []).append(position)
        for position, (name, type_) in enumerate(base):
            fitting = open_there.get(alike(type_))
            if name and position not in pairs and fitting:
                pairs[position] = fitting.pop(0)
                taken.add(pairs[position])
    return dict(sorted(pairs.items()))


def _type(type_: Type | None) -> Hashable:
    if type_ is None or type_.tensor_type is None or type_.tensor_type.shape is None:
        return type_
    shape = type_.tensor_type.shape
    return (type_.tensor_type.elem_type, tuple([each.dim_value for each in shape.dim]))


def _data_type(type_: Type | None) -> Hashable:
    return None if type_ is None or type_.tensor_type is None else type_.tensor_type.elem_type


def _any(type_: Type | None) -> Hashable:
    return None
