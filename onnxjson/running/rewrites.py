"""Prepare rewrites for evaluation: both sides of a region as models, with the same random values for both.

Random values almost never hit the bounds of a Clip or a value of a comparison. So some runs contain thresholds: the
small constants of both sides, and numbers close to them.
"""

import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.diffing.changes import Region
from onnxjson.model.display import visible
from onnxjson.model.document import Graph, Model
from onnxjson.model.dtypes import BITS, STRING, WIDE_FLOATS
from onnxjson.model.elements import element_count
from onnxjson.model.index import Scope
from onnxjson.model.limits import REWRITE_INPUT_ELEMENTS
from onnxjson.model.tensors import from_numpy, numpy_dtype, to_numpy
from onnxjson.running.inferred_types import AxisSizeOf, InferredTypes
from onnxjson.running.random_values import INDEX_TYPES, SPREADS, Spread, random_array, role_elements, role_of
from onnxjson.running.regions import Elements, ModelPart, NotRunError, UnsettledError, extract_part
from onnxjson.running.value_types import SIZES, AxisSize, Dimensions, tensor_type
from onnxjson.running.values import Values

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

_THRESHOLD_ELEMENTS: Final = 4
"""Maximum number of elements of a constant or attribute with thresholds; longer ones are weights."""

_GREATEST: Final = 1024.0
"""Maximum of a threshold. Greater numbers, such as those of masks, are not thresholds and cause overflows."""

_SHARE: Final = 0.5
"""Share of the elements that become thresholds or numbers close to one."""

_FACTORS: Final = (1.0, 0.75, 1.25)


class ModelSide(NamedTuple):
    """One of two models, with its types and elements."""

    model: Model
    types: InferredTypes
    elements: Elements


class RunFeeds(NamedTuple):
    """Input values of one run, for both sides."""

    sizes: int
    """Index in `onnxjson.running.value_types.SIZES` of the sizes of open dimensions."""
    base: Values
    target: Values


class Rewrite(NamedTuple):
    """Both sides of a region as models, with input values."""

    base: ModelPart
    target: ModelPart
    runs: tuple[RunFeeds, ...]
    alone: tuple[str, ...]
    """Names of inputs that only one side has; made visible."""


class _SharedValue(NamedTuple):
    """Value around a region: its names on both sides, data types and shape."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    data_types: tuple[int, int]
    shape: tuple[AxisSize, ...]


def rewrite(region: Region, base: ModelSide, target: ModelSide, seed: Sequence[int]) -> Rewrite:
    """Prepare a region for evaluation.

    Raises:
        NotRunError: the region cannot be evaluated alone.
    """
    sides, scopes = (base, target), (region.pair.base, region.pair.target)
    dimensions = Dimensions()
    shared = [_shared(names, sides, scopes, dimensions) for names in _joined(region.inputs)]
    parts = []
    for number, (side, scope, positions) in enumerate(zip(sides, scopes, (region.base, region.target), strict=True)):
        inputs = {name: (each.data_types[number], len(each.shape)) for each in shared for name in each.names[number]}
        outputs = [pair[number] for pair in region.outputs]
        parts.append(extract_part(side.model, scope, positions, inputs, outputs, side.elements))
    taken = [each for each in shared if any(set(each.names[number]) & set(parts[number].inputs) for number in (0, 1))]
    feeds = _Feeds(region, sides, dimensions, taken, parts)
    alone = tuple([visible(name) for each in taken if () in each.names for name in sum(each.names, ())])
    return Rewrite(parts[0], parts[1], feeds.runs(seed), alone)


def _joined(pairs: Sequence[tuple[str | None, str | None]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Group the names of each value on both sides; a value may have several names through Identity nodes."""
    groups: list[tuple[dict[str, None], dict[str, None]]] = []
    by_name: dict[tuple[int, str], int] = {}
    for pair in pairs:
        named = [(side, name) for side, name in enumerate(pair) if name]
        numbers = sorted({by_name[each] for each in named if each in by_name})
        if not numbers:
            numbers = [len(groups)]
            groups.append(({}, {}))
        group = numbers[0]
        for other in numbers[1:]:
            named += [(side, name) for side in (0, 1) for name in groups[other][side]]
            groups[other] = ({}, {})
        for side, name in named:
            groups[group][side][name] = None
            by_name[side, name] = group
    return [(tuple(base), tuple(target)) for base, target in groups if base or target]


def _shared(
    names: tuple[tuple[str, ...], tuple[str, ...]],
    sides: tuple[ModelSide, ModelSide],
    scopes: tuple[Scope, Scope],
    dimensions: Dimensions,
) -> _SharedValue:
    """Return data types and shape of a value, known from either model."""
    data_types: list[int | None] = [None, None]
    shape: tuple[AxisSize, ...] | None = None
    shown = next(f'"{visible(name)}"' for each in names for name in each)
    for number in (0, 1):
        for name in names[number]:
            declared = sides[number].types.type_of(scopes[number], name)
            data_type_and_shape = tensor_type(declared, number, name)
            if data_type_and_shape is None:
                if declared is not None and declared.tensor_type is None:
                    raise NotRunError(f"its input {shown} is not a tensor")
                continue
            data_types[number] = data_types[number] or data_type_and_shape[0]
            if data_type_and_shape[1] is None:
                continue
            if shape is None:
                shape = data_type_and_shape[1]
            elif len(shape) != len(data_type_and_shape[1]):
                raise UnsettledError(f"its input {shown} has {len(shape)} or {len(data_type_and_shape[1])} dimensions")
            for one, other in zip(shape, data_type_and_shape[1], strict=True):
                dimensions.join(one, other)
    one, other = data_types[0] or data_types[1], data_types[1] or data_types[0]
    if one is None or other is None:
        raise UnsettledError(f"the type of its input {shown} is unknown")
    if shape is None:
        raise UnsettledError(f"the shape of its input {shown} is unknown")
    return _SharedValue(names, (one, other), shape)


class _Feeds:
    def __init__(
        self,
        region: Region,
        sides: tuple[ModelSide, ModelSide],
        dimensions: Dimensions,
        taken: Sequence[_SharedValue],
        parts: Sequence[ModelPart],
    ) -> None:
        self._scopes = region.pair.base, region.pair.target
        self._nodes = [
            [scope.graph.node[position] for position in positions]
            for scope, positions in zip(self._scopes, (region.base, region.target), strict=True)
        ]
        self._sides = sides
        self._dimensions = dimensions
        self._taken = taken
        self._inputs = [set(each.inputs) for each in parts]
        self._thresholds = thresholds(*[each.model for each in parts])

    def runs(self, seed: Sequence[int]) -> tuple[RunFeeds, ...]:
        """Return one run per choice of sizes and distribution, and one with thresholds; a single run without inputs."""
        import numpy

        if not self._taken:
            return (RunFeeds(0, {}, {}),)
        open_dimensions = self._dimensions.open_in([each.shape for each in self._taken])
        kinds: list[tuple[Spread, tuple[float, ...]]] = [(spread, ()) for spread in SPREADS]
        if self._thresholds:
            kinds.append(("normal", self._thresholds))
        runs = []
        for number, sizes in enumerate(SIZES if open_dimensions else SIZES[:1]):
            given = {each: sizes[place % len(sizes)] for place, each in enumerate(open_dimensions)}
            for place, (spread, numbers) in enumerate(kinds):
                generator = numpy.random.default_rng([*seed, number, place])
                runs.append(self._run(number, given, spread, generator, numbers))
        return tuple(runs)

    def _run(
        self,
        number: int,
        given: Mapping[Hashable, int],
        spread: Spread,
        generator: "Generator",
        numbers: tuple[float, ...],
    ) -> RunFeeds:
        values: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        shapes = [self._dimensions.sized(each.shape, given) for each in self._taken]
        if sum(element_count(shape) for shape in shapes) > REWRITE_INPUT_ELEMENTS:
            raise NotRunError(f"its inputs have more than {REWRITE_INPUT_ELEMENTS:,} elements")
        for shared, shape in zip(self._taken, shapes, strict=True):
            array = insert_thresholds(self._array(shared, shape, given, spread, generator), numbers, generator)
            for side in (0, 1):
                names = [name for name in shared.names[side] if name in self._inputs[side]]
                if names:
                    tensor = from_numpy(_cast(array, shared.data_types[side]))
                    values[side].update(dict.fromkeys(names, tensor))
        return RunFeeds(number, *values)

    def _array(
        self,
        shared: _SharedValue,
        shape: tuple[int, ...],
        given: Mapping[Hashable, int],
        spread: Spread,
        generator: "Generator",
    ) -> "NDArray[Any]":
        # All values of the narrower dtype exist in the other one.
        data_type = min(shared.data_types, key=lambda number: BITS.get(number, 0))
        if data_type in INDEX_TYPES:
            for side in (0, 1):
                for name in shared.names[side]:
                    role = role_of(name, self._nodes[side], self._axis_size(side, given))
                    if role is not None:
                        return role_elements(*role, shape, generator)
        try:
            return random_array(data_type, shape, generator, spread=spread)
        except TypeError as error:
            raise NotRunError(str(error)) from None

    def _axis_size(self, side: int, given: Mapping[Hashable, int]) -> AxisSizeOf:
        size_of = partial(self._dimensions.size_of, given=given)
        return self._sides[side].types.axis_size(self._scopes[side], side, size_of)


def _cast(array: "NDArray[Any]", data_type: int) -> "NDArray[Any]":
    import numpy

    if data_type == STRING or array.dtype == object:
        return array
    with numpy.errstate(all="ignore"):
        return array.astype(numpy_dtype(data_type))


def thresholds(*parts: Model) -> tuple[float, ...]:
    """Return the small floating-point constants and attributes of models, with numbers close to each; sorted."""
    found = {number for part in parts for number in _numbers(part.graph or Graph())}
    return tuple(sorted({number * factor for number in found if abs(number) <= _GREATEST for factor in _FACTORS}))


def _numbers(graph: Graph) -> Iterator[float]:
    constants = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.t is not None:
                constants.append(attribute.t)
            for stored in (attribute.f, attribute.floats):
                if stored is not None and len(stored) <= 4 * _THRESHOLD_ELEMENTS:
                    yield from struct.unpack(f"<{len(stored) // 4}f", stored)
    for tensor in constants:
        if tensor.data_type in WIDE_FLOATS and element_count(tensor.dims) <= _THRESHOLD_ELEMENTS:
            yield from map(float, to_numpy(tensor).reshape(-1))


def insert_thresholds(array: "NDArray[Any]", numbers: tuple[float, ...], generator: "Generator") -> "NDArray[Any]":
    """Replace some elements of an array by some of `numbers`; arrays of other dtypes than floats do not change."""
    import numpy

    if array.dtype.kind != "f" or not numbers:
        return array
    chosen = numpy.asarray(numbers)[generator.integers(0, len(numbers), array.shape)].astype(array.dtype)
    return numpy.where(generator.random(array.shape) < _SHARE, chosen, array)
