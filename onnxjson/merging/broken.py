"""What is wrong with the names, the order and the declared types of one model."""

from collections import Counter
from collections.abc import Iterator

from onnxjson import document as d
from onnxjson.index import Index, Scope
from onnxjson.merging.sorting import stuck


class Broken:
    """What is wrong with the names, the order and the declared types of a model; by name, first graph only."""

    def __init__(self, index: Index) -> None:
        self.undefined: dict[str, tuple[Scope, str]] = {}
        self.duplicates: dict[str, tuple[Scope, str]] = {}
        self.disputed: dict[str, tuple[Scope, str]] = {}
        self.rings: list[tuple[Scope, list[int]]] = []
        for scope in index.scopes:
            for name in scope.takers:
                if not scope.defines(name) and (scope.outer is None or index.home(scope.outer, name) is None):
                    self.undefined.setdefault(name, (scope, name))
            for name in _duplicates(scope):
                self.duplicates.setdefault(name, (scope, name))
            for name in _disputed(scope):
                self.disputed.setdefault(name, (scope, name))
            if ring := stuck(scope.graph.node):
                self.rings.append((scope, ring))

    @property
    def has_cycle(self) -> bool:
        """Whether nodes need each other."""
        return bool(self.rings)


def _duplicates(scope: Scope) -> Iterator[str]:
    graph = scope.graph
    seen: set[str] = set()
    if isinstance(graph, d.Graph):
        for name in (
            *[each.name for each in graph.initializer],
            *[each.values and each.values.name for each in graph.sparse_initializer],
        ):
            if name in seen and name:
                yield name
            seen.add(name or "")
        inputs = [each.name or "" for each in graph.input]
    else:
        inputs = list(graph.input)
    if len(set(inputs)) < len(inputs):
        yield from [name for name, count in Counter(inputs).items() if name and count > 1]
    seen.update(inputs)
    for node in graph.node:
        for name in node.output:
            if name and name in seen:
                yield name
            seen.add(name)


def _disputed(scope: Scope) -> Iterator[str]:
    """Values of which two declarations say what cannot both be so."""
    graph = scope.graph
    if isinstance(graph, d.Function):
        return
    known: dict[str, tuple[int | None, tuple[int | None, ...] | None]] = {}
    for tensor in graph.initializer:
        if tensor.name:
            known[tensor.name] = (tensor.data_type, tensor.dims)
    for info in (*graph.input, *graph.output, *graph.value_info):
        if not info.name or info.type is None or info.type.tensor_type is None:
            continue
        type_ = info.type.tensor_type
        dims = None if type_.shape is None else tuple([each.dim_value for each in type_.shape.dim])
        before = known.setdefault(info.name, (type_.elem_type, dims))
        if not _agree(before, (type_.elem_type, dims)):
            yield info.name


def _agree(
    one: tuple[int | None, tuple[int | None, ...] | None], other: tuple[int | None, tuple[int | None, ...] | None]
) -> bool:
    if one[0] and other[0] and one[0] != other[0]:
        return False
    if one[1] is None or other[1] is None:
        return True
    return len(one[1]) == len(other[1]) and all(
        [a is None or b is None or a == b for a, b in zip(one[1], other[1], strict=True)]
    )
