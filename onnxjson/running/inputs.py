"""What the inputs of a model get: values that are given, else made up, the same ones for the same seed.

Two models that are to be compared get the same values, in the dtype that each of them wants.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onnxjson.display import visible
from onnxjson.document import Graph, Model, Node, Tensor, Type
from onnxjson.elements import BITS, element_count
from onnxjson.errors import FeedError
from onnxjson.index import Index, Scope
from onnxjson.names import DATA_TYPES, STRING
from onnxjson.running.dimensions import tensor_type
from onnxjson.running.feeds import Spread, random_array
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.input_shapes import Input, Shapes, innermost, unknown
from onnxjson.running.integer_roles import elements as role_elements
from onnxjson.running.integer_roles import role_of
from onnxjson.running.values import Value, Values
from onnxjson.running.wished_values import filled, within
from onnxjson.tensors import from_numpy, numpy_dtype, to_numpy
from onnxjson.types import format_data_type, format_type
from onnxjson.worker import Worker

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

EVERY: Final = ""
"""The name that stands for all inputs where a fill or a range is wished."""

MOST_BYTES: Final = 1 << 31
"""Of the values of one input that are made up."""

_ITEMS: Final = 2
"""Of a sequence that is made up."""

_INDICES: Final = (DATA_TYPES["int32"], DATA_TYPES["int64"])
_BYTES: Final = {DATA_TYPES["uint8"]: (0, 255), DATA_TYPES["int8"]: (-128, 127)}
"""Integers that hold pictures and quantised numbers, which have all values."""
_AXIS_OPERATORS: Final = frozenset({"Gather", "GatherElements", "ScatterElements"})
_SMALL: Final = (0, 4)
"""Other integers: counts, labels and the like."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """How values are to be made up; names are those of inputs."""

    dims: Mapping[str, int] = {}
    """Sizes of open dimensions, by their name, or as ``input:axis``."""
    shapes: Mapping[str, tuple[int, ...]] = {}
    fills: Mapping[str, float] = {}
    """All elements the same; `EVERY` for all inputs."""
    ranges: Mapping[str, tuple[float, float]] = {}
    """The least and the greatest element; `EVERY` for all inputs."""


def all_inputs(model: Model) -> dict[str, Type | None]:
    """The inputs, in their order, initializers among them."""
    return {} if model.graph is None else {each.name: each.type for each in model.graph.input if each.name}


def free_inputs(model: Model) -> dict[str, Type | None]:
    """The inputs that need a value, in their order: those that are no initializers."""
    graph = model.graph or Graph()
    constants = {each.name for each in graph.initializer}
    constants |= {each.values.name for each in graph.sparse_initializer if each.values is not None}
    return {name: said for name, said in all_inputs(model).items() if name not in constants}


def wishes_for(models: Sequence[Model], wishes: Wishes) -> list[Wishes]:
    """For each of several models the wishes that are about it; one that is about none of them stays, to be refused."""
    inputs = [set(free_inputs(model)) for model in models]
    dims = [
        Shapes([Input((name,), (said,)) for name, said in free_inputs(model).items()], {}, {}).names for model in models
    ]
    found = []
    for number in range(len(models)):
        kept = {
            field: {
                name: value
                for name, value in getattr(wishes, field).items()
                if name == EVERY or name in names[number] or not any(name in each for each in names)
            }
            for field, names in (("dims", dims), ("shapes", inputs), ("fills", inputs), ("ranges", inputs))
        }
        found.append(msgspec.structs.replace(wishes, **kept))
    return found


class Inputs:
    """The inputs of one model, or of two that are to get the same values.

    Args:
        indices: the models.
        pairs: their free inputs; of two models, which is which.
        wishes: how values are to be made up.
        worker: where types are inferred that a model does not say.

    Raises:
        FeedError: a wish names no input or dimension, or contradicts the model.
    """

    def __init__(
        self, indices: Sequence[Index], pairs: Sequence[tuple[str | None, ...]], wishes: Wishes, worker: Worker
    ) -> None:
        types = [free_inputs(index.model) for index in indices]
        self._listed = [all_inputs(index.model) for index in indices]
        self.inputs = [
            Input(names, tuple([None if name is None else types[side].get(name) for side, name in enumerate(names)]))
            for names in pairs
        ]
        self._scopes: list[Scope] = [index.scopes[0] for index in indices]
        self._inferred = [InferredTypes(index, worker) for index in indices]
        self._wishes = wishes
        self._require_known_names()
        self._shapes = Shapes(self.inputs, wishes.dims, wishes.shapes)

    def _require_known_names(self) -> None:
        known = {name for each in self.inputs for name in each.names if name}
        for wished in (self._wishes.shapes, self._wishes.fills, self._wishes.ranges):
            for name in wished:
                if name in known or name == EVERY:
                    continue
                if any([name in listed for listed in self._listed]):
                    raise FeedError(f'"{visible(name)}" has a value in the model; --input can give it another one')
                raise FeedError(unknown("input", name, known))

    def checked(self, given: Values) -> dict[str, Value]:
        """Values that a person gives, with the sizes of open dimensions taken from them.

        Args:
            given: by name of an input in any of the models; initializers that are inputs may be given, too.

        Raises:
            FeedError: there is no such input, or its type is another one.
        """
        by_name = {name: each.types[side] for each in self.inputs for side, name in enumerate(each.names) if name}
        sides = {name: side for side, listed in reversed(list(enumerate(self._listed))) for name in listed}
        for name, value in given.items():
            if name not in sides:
                raise FeedError(unknown("input", name, sides))
            side = sides[name]
            said = by_name[name] if name in by_name else self._listed[side].get(name)
            wanted = tensor_type(innermost(said), side, name)
            if said is None or wanted is None or not isinstance(value, Tensor):
                continue
            if wanted[0] != value.data_type:
                names = [format_data_type(number or 0) for number in (wanted[0], value.data_type)]
                raise FeedError(f'the value of "{visible(name)}" is {names[1]}, and {names[0]} is wanted')
            if wanted[1] is not None and not self._shapes.fits(wanted[1], value.dims):
                found = ",".join(map(str, value.dims))
                raise FeedError(f'the value of "{visible(name)}" has the shape [{found}]: {format_type(said)}')
        return dict(given)

    def open_dimensions(self) -> list[Hashable]:
        """See `Shapes.open_dimensions`."""
        return self._shapes.open_dimensions()

    def sizes(self, cycle: Sequence[int]) -> dict[str, int]:
        """See `Shapes.sizes`."""
        return self._shapes.sizes(cycle)

    def feeds(
        self, given: Values, seed: Sequence[int], *, spread: Spread = "normal", cycle: Sequence[int] = (1,)
    ) -> tuple[dict[str, Value], ...]:
        """Values for all inputs, for each model.

        Args:
            given: values that are not made up; `checked`.
            seed: where the others come from.
            spread: how they lie.
            cycle: sizes for open dimensions, in turn.

        Raises:
            FeedError: nothing can be made up for an input.
        """
        import numpy

        sizes = self._shapes.given(cycle)
        made: tuple[dict[str, Value], ...] = tuple([{} for _ in self._scopes])
        for number, each in enumerate(self.inputs):
            generator = numpy.random.default_rng([*seed, number])
            value = next((given[name] for name in each.names if name is not None and name in given), None)
            if value is None:
                value = self._made(each, sizes, spread, generator)
            for side, name in enumerate(each.names):
                if name is not None:
                    made[side][name] = _cast(value, each.types[side])
        for side, scope in enumerate(self._scopes):
            made[side].update({name: value for name, value in given.items() if name in scope.initializers})
        return made

    def _made(self, each: Input, sizes: Mapping[Hashable, int], spread: Spread, generator: "Generator") -> Value:
        known = [said for said in each.types if said is not None]
        if not known:
            raise FeedError(f'nothing says what type "{visible(each.name)}" has; give it a value with --input')
        # The narrower of two dtypes has no values that the other one lacks; words are no numbers.
        narrowest = min(known, key=_bits)
        if narrowest.map_type is not None or narrowest.sparse_tensor_type is not None:
            what = "a map" if narrowest.map_type is not None else "a sparse tensor"
            raise FeedError(f'"{visible(each.name)}" is {what}, for which no values are made up')
        return self._of_type(each, narrowest, sizes, spread, generator)

    def _of_type(
        self, each: Input, said: Type, sizes: Mapping[Hashable, int], spread: Spread, generator: "Generator"
    ) -> Value:
        if said.optional_type is not None and said.optional_type.elem_type is not None:
            return self._of_type(each, said.optional_type.elem_type, sizes, spread, generator)
        if said.sequence_type is not None and said.sequence_type.elem_type is not None:
            inner = said.sequence_type.elem_type
            return tuple([self._of_type(each, inner, sizes, spread, generator) for _ in range(_ITEMS)])
        data_type = 0 if said.tensor_type is None else said.tensor_type.elem_type or 0
        shape = self._shapes.of(each.name)
        if shape is None:
            name = visible(each.name)
            raise FeedError(f'nothing says what shape "{name}" has; give it a value, or say --shape {name}=...')
        dims = self._shapes.sized(shape, sizes)
        if element_count(dims) * max(BITS.get(data_type, 8) // 8, 1) > MOST_BYTES:
            raise FeedError(
                f'"{visible(each.name)}" would have the shape {list(dims)}; choose smaller sizes with --dim'
            )
        try:
            return from_numpy(self._array(each, data_type, dims, sizes, spread, generator))
        except TypeError as error:
            raise FeedError(f'"{visible(each.name)}": {error}') from None

    def _array(
        self,
        each: Input,
        data_type: int,
        dims: tuple[int, ...],
        sizes: Mapping[Hashable, int],
        spread: Spread,
        generator: "Generator",
    ) -> "NDArray[Any]":
        wished = self._as_wished(each, data_type, dims, generator)
        if wished is not None:
            return wished
        if data_type in _INDICES:
            for side, name in enumerate(each.names):
                if name is None:
                    continue
                nodes = self._scopes[side].graph.node
                role = role_of(name, nodes, self._axis_sizes(side, sizes))
                if role is not None:
                    return role_elements(*role, dims, generator).astype(numpy_dtype(data_type))
            if "mask" in each.name.lower():
                return _mask(dims, generator).astype(numpy_dtype(data_type))
        low, high = _BYTES.get(data_type, _SMALL)
        return random_array(data_type, dims, generator, spread=spread, low=low, high=high)

    def _as_wished(
        self, each: Input, data_type: int, dims: tuple[int, ...], generator: "Generator"
    ) -> "NDArray[Any] | None":
        fill, limits = self._wished(each, self._wishes.fills), self._wished(each, self._wishes.ranges)
        name = visible(each.name)
        if data_type == STRING:
            if set(each.names) & {*self._wishes.fills, *self._wishes.ranges}:
                raise FeedError(f'"{name}" is made of strings, which are no numbers; give it a value with --input')
            return None
        try:
            if fill is not None:
                return filled(data_type, dims, fill)
            return None if limits is None else within(data_type, dims, limits, generator)
        except ValueError as error:
            raise FeedError(f'"{name}" is {format_data_type(data_type)}, {error}; say another one for it') from None

    def _wished(self, each: Input, wishes: Mapping[str, Any]) -> Any:
        named = [wishes[name] for name in each.names if name is not None and name in wishes]
        return named[0] if named else wishes.get(EVERY)

    def _axis_sizes(self, side: int, sizes: Mapping[Hashable, int]) -> Callable[[Node], int | None]:
        """How long the axis is that the indices of a node count along."""

        def size(node: Node) -> int | None:
            data = node.input[0]
            found = tensor_type(self._inferred[side].type_of(self._scopes[side], data), side, data)
            if found is None or not found[1]:
                return None
            known = []
            for dimension in found[1]:
                try:
                    known.append(self._shapes.sized([dimension], sizes)[0])
                except KeyError:
                    known.append(0)
            axis = next((each.i or 0 for each in node.attribute if each.name == "axis"), 0)
            if node.op_type in _AXIS_OPERATORS and -len(known) <= axis < len(known):
                return known[axis] or None
            return min((each for each in known if each), default=None)

        return size


def _bits(said: Type) -> float:
    """Of an element; words are the widest."""
    inner = innermost(said)
    data_type = 0 if inner is None or inner.tensor_type is None else inner.tensor_type.elem_type or 0
    return math.inf if data_type == STRING else BITS.get(data_type, 0)


def _mask(dims: tuple[int, ...], generator: "Generator") -> "NDArray[Any]":
    """Ones, and some zeros at the end of each row."""
    import numpy

    length = dims[-1] if dims else 1
    kept = generator.integers((length + 1) // 2, length, dims[:-1], endpoint=True)
    mask: NDArray[Any] = numpy.arange(length) < numpy.asarray(kept)[..., None]
    return mask.reshape(dims)


def _cast(value: Value, said: Type | None) -> Value:
    """A value in the dtype that a model wants."""
    import numpy

    inner = innermost(said)
    data_type = None if inner is None or inner.tensor_type is None else inner.tensor_type.elem_type
    if isinstance(value, tuple) and not hasattr(value, "keys"):
        return tuple([_cast(item, said) for item in value])
    if not isinstance(value, Tensor) or not data_type or STRING in (data_type, value.data_type):
        return value
    if data_type == value.data_type:
        return value
    with numpy.errstate(all="ignore"):
        return from_numpy(to_numpy(value).astype(numpy_dtype(data_type)), value.name)
