"""A rewrite as something to evaluate: both sides as models, and the same made-up values for what they take."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.diffing.regions import Region
from onnxjson.display import visible
from onnxjson.document import Model, Node
from onnxjson.elements import BITS, element_count
from onnxjson.index import Scope
from onnxjson.names import DATA_TYPES, STRING
from onnxjson.running.dimensions import SIZES, Dimension, Dimensions, tensor_type
from onnxjson.running.feeds import SPREADS, Spread, random_array
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.integer_roles import elements as role_elements
from onnxjson.running.integer_roles import role_of
from onnxjson.running.parts import Elements, NotRunError, Part, UnsettledError, part
from onnxjson.running.sessions import Values
from onnxjson.running.thresholds import strewn, thresholds
from onnxjson.tensors import from_numpy, numpy_dtype

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

MOST_ELEMENTS: Final = 1 << 24
"""Of the inputs of one run together."""

_INDICES: Final = (DATA_TYPES["int32"], DATA_TYPES["int64"])
_AXIS_OPERATORS: Final = frozenset({"Gather", "GatherElements", "ScatterElements"})


class Side(NamedTuple):
    """What is known of one of two models."""

    model: Model
    types: InferredTypes
    elements: Elements


class Run(NamedTuple):
    """Values for both sides."""

    sizes: int
    """Which of `onnxjson.running.dimensions.SIZES` the open dimensions have."""
    base: Values
    target: Values


class Rewrite(NamedTuple):
    """Both sides of a region as models, and the values to try."""

    base: Part
    target: Part
    runs: tuple[Run, ...]
    alone: tuple[str, ...]
    """Values, made visible, that one side takes and the other side does not have."""


class _Shared(NamedTuple):
    """One value around a region: its names on both sides, data types, shape."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    data_types: tuple[int, int]
    shape: tuple[Dimension, ...]


def rewrite(region: Region, base: Side, target: Side, seed: Sequence[int]) -> Rewrite:
    """What to evaluate for a region.

    Args:
        region: the nodes on both sides.
        base: the model before.
        target: the model after.
        seed: where the values come from; the same ones for the same seed.

    Raises:
        NotRunError: it cannot be evaluated on its own.
    """
    sides, scopes = (base, target), (region.pair.base, region.pair.target)
    dimensions = Dimensions()
    shared = [_shared(names, sides, scopes, dimensions) for names in _joined(region.inputs)]
    parts = []
    for number, (side, scope, positions) in enumerate(zip(sides, scopes, (region.base, region.target), strict=True)):
        inputs = {name: (each.data_types[number], len(each.shape)) for each in shared for name in each.names[number]}
        outputs = [pair[number] for pair in region.outputs]
        parts.append(part(side.model, scope, positions, inputs, outputs, side.elements))
    taken = [each for each in shared if any(set(each.names[number]) & set(parts[number].inputs) for number in (0, 1))]
    feeds = _Feeds(region, sides, dimensions, taken, parts)
    alone = tuple([visible(name) for each in taken if () in each.names for name in sum(each.names, ())])
    return Rewrite(parts[0], parts[1], feeds.runs(seed), alone)


def _joined(pairs: Sequence[tuple[str | None, str | None]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The names of each value on both sides; a value may have several, by Identity."""
    groups: list[tuple[dict[str, None], dict[str, None]]] = []
    by_name: dict[tuple[int, str], int] = {}
    for pair in pairs:
        named = [(side, name) for side, name in enumerate(pair) if name]
        numbers = sorted({by_name[each] for each in named if each in by_name})
        if not numbers:
            numbers = [len(groups)]
            groups.append(({}, {}))
        home = numbers[0]
        for other in numbers[1:]:
            named += [(side, name) for side in (0, 1) for name in groups[other][side]]
            groups[other] = ({}, {})
        for side, name in named:
            groups[home][side][name] = None
            by_name[side, name] = home
    return [(tuple(base), tuple(target)) for base, target in groups if base or target]


def _shared(
    names: tuple[tuple[str, ...], tuple[str, ...]],
    sides: tuple[Side, Side],
    scopes: tuple[Scope, Scope],
    dimensions: Dimensions,
) -> _Shared:
    """Type and shape of a value, as far as either model knows them."""
    data_types: list[int | None] = [None, None]
    shape: tuple[Dimension, ...] | None = None
    shown = next(f'"{visible(name)}"' for each in names for name in each)
    for number in (0, 1):
        for name in names[number]:
            said = sides[number].types.type_of(scopes[number], name)
            found = tensor_type(said, number, name)
            if found is None:
                if said is not None and said.tensor_type is None:
                    raise NotRunError(f"{shown}, which it takes, is not a tensor")
                continue
            data_types[number] = data_types[number] or found[0]
            if found[1] is None:
                continue
            if shape is None:
                shape = found[1]
            elif len(shape) != len(found[1]):
                raise UnsettledError(f"{shown}, which it takes, has {len(shape)} or {len(found[1])} dimensions")
            for one, other in zip(shape, found[1], strict=True):
                dimensions.join(one, other)
    one, other = data_types[0] or data_types[1], data_types[1] or data_types[0]
    if one is None or other is None:
        raise UnsettledError(f"nothing says what type {shown}, which it takes, has")
    if shape is None:
        raise UnsettledError(f"nothing says what shape {shown}, which it takes, has")
    return _Shared(names, (one, other), shape)


class _Feeds:
    """Values for what the two sides of a region take."""

    def __init__(
        self,
        region: Region,
        sides: tuple[Side, Side],
        dimensions: Dimensions,
        taken: Sequence[_Shared],
        parts: Sequence[Part],
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

    def runs(self, seed: Sequence[int]) -> tuple[Run, ...]:
        """For each choice of sizes a run for each way to lie, and one about thresholds; one where nothing is taken."""
        import numpy

        if not self._taken:
            return (Run(0, {}, {}),)
        open_dimensions = self._dimensions.open_in([each.shape for each in self._taken])
        runs = []
        for number, sizes in enumerate(SIZES if open_dimensions else SIZES[:1]):
            given = {each: sizes[place % len(sizes)] for place, each in enumerate(open_dimensions)}
            for place, spread in enumerate(SPREADS):
                generator = numpy.random.default_rng([*seed, number, place])
                runs.append(self._run(number, given, spread, generator))
            if self._thresholds:
                generator = numpy.random.default_rng([*seed, number, len(SPREADS)])
                runs.append(self._run(number, given, "normal", generator, self._thresholds))
        return tuple(runs)

    def _run(
        self,
        number: int,
        given: Mapping[Hashable, int],
        spread: Spread,
        generator: "Generator",
        numbers: tuple[float, ...] = (),
    ) -> Run:
        values: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        shapes = [self._dimensions.sized(each.shape, given) for each in self._taken]
        if sum(element_count(shape) for shape in shapes) > MOST_ELEMENTS:
            raise NotRunError(f"its inputs have more than {MOST_ELEMENTS:,} elements")
        for each, shape in zip(self._taken, shapes, strict=True):
            array = strewn(self._array(each, shape, given, spread, generator), numbers, generator)
            for side in (0, 1):
                names = [name for name in each.names[side] if name in self._inputs[side]]
                if names:
                    tensor = from_numpy(_cast(array, each.data_types[side]))
                    values[side].update(dict.fromkeys(names, tensor))
        return Run(number, *values)

    def _array(
        self,
        each: _Shared,
        shape: tuple[int, ...],
        given: Mapping[Hashable, int],
        spread: Spread,
        generator: "Generator",
    ) -> "NDArray[Any]":
        # The narrower of two dtypes has no values that the other one lacks.
        data_type = min(each.data_types, key=lambda number: BITS.get(number, 0))
        if data_type in _INDICES:
            for side in (0, 1):
                for name in each.names[side]:
                    role = role_of(name, self._nodes[side], self._axis_sizes(side, given))
                    if role is not None:
                        return role_elements(*role, shape, generator)
        try:
            return random_array(data_type, shape, generator, spread=spread)
        except TypeError as error:
            raise NotRunError(str(error)) from None

    def _axis_sizes(self, side: int, given: Mapping[Hashable, int]) -> Callable[[Node], int | None]:
        """How long the axis is that the indices of a node count along."""

        def size(node: Node) -> int | None:
            data = node.input[0]
            found = tensor_type(self._sides[side].types.type_of(self._scopes[side], data), side, data)
            if found is None or not found[1]:
                return None
            try:
                sizes = self._dimensions.sized(found[1], given)
            except KeyError:
                return None
            axis = next((each.i or 0 for each in node.attribute if each.name == "axis"), 0)
            if node.op_type in _AXIS_OPERATORS and -len(sizes) <= axis < len(sizes):
                return sizes[axis]
            return min(sizes)

        return size


def _cast(array: "NDArray[Any]", data_type: int) -> "NDArray[Any]":
    import numpy

    if data_type == STRING or array.dtype == object:
        return array
    with numpy.errstate(all="ignore"):
        return array.astype(numpy_dtype(data_type))
