"""Follow another dimension than the batch: elements along it, such as tokens, may be computed from each other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from onnxjson.editing.batch_tracing import NodeInput, Tracer
from onnxjson.editing.tensor_values import constant_tensor
from onnxjson.editing.type_relations import dims_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import visible
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.index import Scope
from onnxjson.model.tensors import raw_bytes, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COUNTING: Final = (DATA_TYPES["int32"], DATA_TYPES["int64"])
_FEWEST: Final = 3
"""Least number of places that are recognized: 0 and 1 have other meanings."""
_MOST: Final = 1 << 24


def start_at_places(tracer: Tracer, scope: Scope) -> None:
    """Start at constants that count places along the dimension, such as the positions of tokens."""
    for name in (*scope.initializers, *scope.producers):
        found = constant_tensor(scope, name)
        if found is None or found[1].data_type not in _COUNTING or element_count(found[1].dims) > _MOST:
            continue
        if tracer.batch < _FEWEST or tracer.batch not in found[1].dims or raw_bytes(found[1]) is None:
            continue
        places = to_numpy(found[1])
        for axis in [each for each, length in enumerate(places.shape) if length == tracer.batch]:
            if _is_counted(places, axis):
                tracer.start(scope, name, axis)
                for use in _uses(tracer, scope, name):
                    tracer.requests.rows.setdefault(use, {})[axis] = False


def _is_counted(places: "NDArray[Any]", axis: int) -> bool:
    """Whether the elements along an axis are 0, 1, 2 ..., or equal in some of the lines, as for other coordinates."""
    import numpy

    steps, first = numpy.diff(places, axis=axis), places.take([0], axis)
    step = steps.take([0], axis)
    return bool((steps == step).all() and step.any() and ((step == 0) | ((step == 1) & (first == 0))).all())


def _uses(tracer: Tracer, scope: Scope, name: str) -> Iterator[NodeInput]:
    for use in tracer.inference.index.consumers(scope, name):
        if use.position is not None:
            given = use.scope.graph.node[use.position].input
            yield from [(use.scope, use.position, slot) for slot, each in enumerate(given) if each == name]


def inputs_alike(workspace: Workspace, name: str, axis: int) -> dict[str, int]:
    """Return the inputs that have the same size at an axis as one of them, that one first, and the axis."""
    sizes = {each.name or "": dims_of(each.type) or () for each in workspace.graph.input}
    size, constants = sizes[name][axis], workspace.main.initializers
    alike = [each for each, dims in sizes.items() if each not in constants and dims[axis : axis + 1] == (size,)]
    return dict.fromkeys([name, *alike], axis)


def divisors(workspace: Workspace, size: int) -> Iterator[str]:
    """Yield remarks about numbers that may be the old size, such as the divisor of a mean."""
    for ref in workspace.index.nodes():
        for name in ref.node.input if ref.node.op_type in ("Div", "Mul") else ():
            found = constant_tensor(ref.scope, name)
            if found is None or element_count(found[1].dims) != 1 or found[1].data_type not in BITS:
                continue
            value = float(to_numpy(found[1]).reshape(-1)[0].real) if raw_bytes(found[1]) is not None else 0.0
            if value == size or abs(value * size - 1) < 1e-6:
                yield f'"{visible(name)}" in {ref.address} stays {value:g}; is it the old size, {size}?'
