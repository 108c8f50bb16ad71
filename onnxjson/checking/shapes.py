"""The shapes of the values of a model, for its cost: stated, inferred, or formulas found by inferring them for sizes.

Where a shape is computed while the model runs, from dimensions that have only a name, inference knows nothing. It then
runs with several sizes for these names; a size of a value that follows a sum of products of names for all of them is
that formula.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product as combinations
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.checking.amounts import Size, named, value_at
from onnxjson.model.constants import is_constant_node
from onnxjson.model.dimensions import INVENTED, names_of, size_of, substitute, with_dimension, with_dimension_names
from onnxjson.model.document import Dimension, Function, Model, Type, ValueInfo
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, Scope, index_of
from onnxjson.model.walking import Body, rebuild, replace_records

Sizes = tuple[Size | None, ...]
"""Sizes of a value; None for those that are not known."""

_SIZES: Final = ((4, 7), (6, 11), (5, 9))
"""Sizes of the first, second and third name for which a formula is found."""

_NAMELESS: Final = (None, "", "?")
"""What exporters write for a size that is not known."""

_EXAMPLE: Final = 64
"""Size for which an expression is tried."""

_CHECKS: Final = ((10, 13, 17), (131, 163, 193))
"""Sizes for which a formula must hold, too; the large ones show what is rounded to a multiple, or limited."""


class Typed(NamedTuple):
    """A model with the types of its values."""

    model: Model
    """Without functions, if types had to be inferred."""
    notes: tuple[str, ...] = ()
    """What kept types from being inferred."""
    formulas: Mapping[tuple[str, str], Sizes] = {}
    """Shapes that were found by inferring them for sizes, by address of the graph and name."""
    names: frozenset[str] = frozenset()
    """Names of dimensions of the inputs."""


def typed(model: Model, folder: Path | None) -> Typed:
    """Infer what a model does not state."""
    known, notes = _with_types(model, folder)
    open_values = {} if notes else _open_values(known)
    stated = _input_names(model)
    names = [*dict.fromkeys(name for text in stated for name in names_of(text))]
    if not open_values or not 1 <= len(names) <= len(_SIZES):
        return Typed(known, tuple(notes), names=stated)
    return Typed(known, (), _formulas(model, folder, names, open_values), stated)


def with_input_names(model: Model) -> Model:
    """Name the dimensions of inputs that have neither a size nor a name after their places, such as ``x:0``."""
    if model.graph is None:
        return model
    inputs = tuple([_with_names(each) for each in model.graph.input])
    return model if inputs == model.graph.input else replace(model, graph=replace(model.graph, input=inputs))


def _with_names(value: ValueInfo) -> ValueInfo:
    shape = value.shape
    if shape is None or all([isinstance(each, int) and each >= 0 for each in shape]):
        return value
    axis = iter(range(len(shape)))

    def change(dimension: Dimension) -> Dimension:
        place = f"{value.name}:{next(axis)}"
        return with_dimension(dimension, place) if size_of(dimension) in _NAMELESS else dimension

    return replace_records(value, Dimension, change)


def sizes_of(stated: Type | None, names: frozenset[str]) -> Sizes | None:
    """Return the sizes in a type; None if its rank is not known.

    Args:
        stated: the type.
        names: names that are no inventions of the inference, even if they look so.
    """
    dims = None if stated is None else stated.shape
    return None if dims is None else _sizes(tuple(dims), names)


def produced(scope: Scope) -> Iterator[str]:
    """Yield the values that the nodes of a graph compute."""
    nodes = scope.graph.node
    return (name for name, (position, _) in scope.producers.items() if not is_constant_node(nodes[position]))


@lru_cache(4096)
def _sizes(dims: tuple[int | str | None, ...], names: frozenset[str]) -> Sizes:
    return tuple([_size(each, names) for each in dims])


def _size(dim: int | str | None, names: frozenset[str]) -> Size | None:
    if isinstance(dim, int):
        return dim if dim >= 0 else None
    is_unknown = dim is None or dim in _NAMELESS or (dim.startswith(INVENTED) and dim not in names)
    return None if is_unknown or dim is None else named(dim)


def _with_types(model: Model, folder: Path | None) -> tuple[Model, list[str]]:
    """Return the model with the types of its values, and what kept them from being inferred."""
    if model.graph is None or not (model.functions or _open_values(model)):
        return model, []
    from onnxjson.editing.applying import apply
    from onnxjson.editing.inlining import InlineFunctions

    try:
        if model.functions:
            model = apply(model, InlineFunctions(), model_folder=folder)
        if not _open_values(model):
            return model, []
        return _with_inferred_types(model, folder), []
    except OnnxJsonError as error:
        return model, [f"types were not inferred: {error}"]


def _input_names(model: Model) -> frozenset[str]:
    """Return the texts of the dimensions of the inputs."""
    inputs = () if model.graph is None else model.graph.input
    return frozenset([size for value in inputs for size in value.shape or () if isinstance(size, str)])


def _is_closed(shape: Sequence[int | str | None] | None, names: frozenset[str]) -> bool:
    """Whether all sizes of a shape follow from the dimensions of inputs."""
    return shape is not None and all([isinstance(each, int) or _follows(each, names) for each in shape])


@lru_cache(4096)
def _follows(dim: str | None, names: frozenset[str]) -> bool:
    """Whether a dimension is one of the names, or an expression of them."""
    if dim is None or dim in names:
        return dim is not None
    parts = {part for name in names for part in names_of(name)}
    return not dim.isidentifier() and isinstance(substitute(dim, dict.fromkeys(parts, _EXAMPLE)), int)


def _open_values(model: Model) -> dict[tuple[str, str], Scope]:
    """Return the computed values with a size that is not known, or has a name that no input has."""
    names = _input_names(model)
    open_values = {}
    for scope in index_of(model).scopes:
        if scope.kind in ("main", "subgraph"):
            for name in produced(scope):
                stated = scope.types.get(name)
                if not _is_closed(None if stated is None else stated.shape, names):
                    open_values[scope.address, name] = scope
    return open_values


def _with_inferred_types(model: Model, folder: Path | None) -> Model:
    """Return the model with the inferred shapes of its values, and the stated ones of others."""
    from onnxjson.editing.alike_nodes import Inference

    index, open_values = Index(model), defaultdict[str, dict[str, None]](dict)  # whether a name is among them is asked
    for address, name in _open_values(model):
        open_values[address][name] = None
    nodes = model.graph.node if model.graph is not None else ()
    inferred = Inference(index, folder).infer(range(len(nodes)), {}, open_values).types

    def change(scope: Scope, graph: Body) -> Body:
        if isinstance(graph, Function) or scope.address not in inferred:
            return graph
        types = inferred[scope.address].items()
        # A data type without a shape is better than nothing, a stated shape better than none.
        known = {**dict(types), **scope.types, **{name: value for name, value in types if value.shape is not None}}
        outputs = [replace(each, type=known.get(each.name or "", each.type)) for each in graph.output]
        names = [name for name in scope.producers if name in known and name not in scope.output_names]
        infos = [ValueInfo(name=name, type=known[name]) for name in names]
        return replace(graph, output=tuple(outputs), value_info=tuple(infos))

    return rebuild(index, change)


def _formulas(
    model: Model, folder: Path | None, names: Sequence[str], values: Mapping[tuple[str, str], Scope]
) -> dict[tuple[str, str], Sizes]:
    """Return the shapes of values as formulas of names, where those found for some sizes hold for others."""
    grid = [dict(zip(names, sizes, strict=True)) for sizes in combinations(*_SIZES[: len(names)])]
    shapes: dict[tuple[str, str], list[Sizes]] = {key: [] for key in values}
    for point in grid:
        found = _inferred(model, folder, point) if shapes else {}
        shapes = {key: [*known, found[key]] for key, known in shapes.items() if key in found}
    formulas = {
        key: [_fitted(sizes, names) for sizes in zip(*known, strict=True)]
        for key, known in shapes.items()
        if len({len(each) for each in known}) == 1
    }
    for sizes in _CHECKS if formulas else ():
        point = dict(zip(names, sizes, strict=False))
        for key, shape in _inferred(model, folder, point).items():
            for axis, (formula, size) in enumerate(zip(formulas.get(key, ()), shape, strict=False)):
                if size is not None and formula is not None and value_at(formula, point) != size:
                    formulas[key][axis] = None
    return {key: tuple(shape) for key, shape in formulas.items()}


def _inferred(model: Model, folder: Path | None, sizes: Mapping[str, int]) -> dict[tuple[str, str], Sizes]:
    """Return the shapes of all computed values for sizes of names; none if the model cannot have them."""
    known, notes = _with_types(with_dimension_names(model, sizes), folder)
    scopes, names = () if notes else Index(known).scopes, _input_names(known)
    types = {(scope.address, name): scope.types.get(name) for scope in scopes for name in produced(scope)}
    return {key: shape for key, stated in types.items() if (shape := sizes_of(stated, names)) is not None}


def _fitted(sizes: Sequence[Size | None], names: Sequence[str]) -> Size | None:
    """Return the sum of products of names that has some values at `_SIZES`; None if its factors are not whole."""
    numbers = [each for each in sizes if isinstance(each, int)]
    return _interpolated(numbers, [*zip(names, _SIZES, strict=False)]) if len(numbers) == len(sizes) else None


def _interpolated(values: Sequence[int], names: Sequence[tuple[str, tuple[int, int]]]) -> Size | None:
    if len(set(values)) == 1:
        return values[0]
    (name, (low, high)), *others = names
    half = len(values) // 2
    slopes = [divmod(after - before, high - low) for before, after in zip(values[:half], values[half:], strict=True)]
    if any([rest for _, rest in slopes]):
        return None
    factors = [factor for factor, _ in slopes]
    starts = [value - factor * low for value, factor in zip(values[:half], factors, strict=True)]
    constant, factor = _interpolated(starts, others), _interpolated(factors, others)
    return None if constant is None or factor is None else constant + named(name) * factor
