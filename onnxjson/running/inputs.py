"""Values for the inputs of a model: given by the user, otherwise random, and always the same for the same seed.

Two models that are compared get the same values, each in its own dtype.
"""

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Graph, Model, Node, Tensor, Type
from onnxjson.model.dtypes import BITS, BOOL, DATA_TYPES, STRING, WIDE_FLOATS
from onnxjson.model.elements import element_count
from onnxjson.model.errors import FeedError, LimitError
from onnxjson.model.index import Index, Scope, index_of
from onnxjson.model.limits import RANDOM_INPUT_BYTES
from onnxjson.model.tensors import from_numpy, numpy_dtype, to_numpy
from onnxjson.model.types import format_data_type, innermost, shown_type
from onnxjson.running import random_values
from onnxjson.running.coverage import turning_points
from onnxjson.running.inferred_types import AxisSizeOf, InferredTypes
from onnxjson.running.value_types import Input, Shapes, tensor_type, unknown
from onnxjson.running.values import Dictionary, Value, Values
from onnxjson.running.worker import Worker

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

EVERY: Final = ""
"""Name that represents all inputs in fills and ranges."""


_ITEMS: Final = 2

_TRIED_SIZE: Final = 64
"""Sizes of open dimensions from this one on are only tried; see `onnxjson.running.value_types.ALL_SIZES`."""

_SIGNAL: Final = (4096,)
"""Size of the only open dimension for smooth values: a signal needs some samples."""

_LARGEST_TRIED: Final = 1 << 27
"""Maximum bytes of a value of such sizes, for each set: a batch of images, but not all dimensions of a video."""

_BYTES: Final = {DATA_TYPES["uint8"]: (0, 255), DATA_TYPES["int8"]: (-128, 127)}
"""Ranges of integers that represent images and quantized numbers, which use all values."""
_SMALL: Final = (0, 4)
"""Range of other integers: counts, labels and the like."""


class InputOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for random values, by names of inputs."""

    dims: Mapping[str, int] = {}
    """Sizes of open dimensions, by name, or as ``input:axis``."""
    shapes: Mapping[str, tuple[int, ...]] = {}
    fills: Mapping[str, float] = {}
    """Value of all elements; `EVERY` for all inputs."""
    ranges: Mapping[str, tuple[float, float]] = {}
    """Minimum and maximum of the elements; `EVERY` for all inputs."""


def all_inputs(model: Model) -> dict[str, Type | None]:
    """Return the inputs in their order, including initializers."""
    return {} if model.graph is None else {each.name: each.type for each in model.graph.input if each.name}


def free_inputs(model: Model) -> dict[str, Type | None]:
    """Return the inputs that need a value, in their order: all but initializers."""
    graph = model.graph or Graph()
    constants = {each.name for each in graph.initializer}
    constants |= {each.values.name for each in graph.sparse_initializer if each.values is not None}
    return {name: declared for name, declared in all_inputs(model).items() if name not in constants}


def outputs_of(model: Model) -> dict[str, Type | None]:
    """Return the outputs of a model, in their order."""
    return {} if model.graph is None else {each.name: each.type for each in model.graph.output if each.name}


def options_by_model(models: Sequence[Model], input_options: InputOptions) -> list[InputOptions]:
    """Return for each model the options that concern it; options that concern none stay, so that they are refused."""
    inputs = [set(free_inputs(model)) for model in models]
    dims = [
        Shapes([Input((name,), (declared,)) for name, declared in free_inputs(model).items()], {}, {}).names
        for model in models
    ]
    options = []
    for number in range(len(models)):
        kept = {
            field: {
                name: value
                for name, value in getattr(input_options, field).items()
                if name == EVERY or name in names[number] or not any(name in each for each in names)
            }
            for field, names in (("dims", dims), ("shapes", inputs), ("fills", inputs), ("ranges", inputs))
        }
        options.append(msgspec.structs.replace(input_options, **kept))
    return options


def inputs_of(model: Model, input_options: InputOptions, worker: Worker) -> "Inputs":
    """Return the inputs of one model."""
    return Inputs([index_of(model)], [(name,) for name in free_inputs(model)], input_options, worker)


class Inputs:
    """Inputs of one model, or of two models that get the same values.

    Raises:
        FeedError: an option names no input or dimension, or contradicts the model.
    """

    def __init__(
        self,
        indices: Sequence[Index],
        pairs: Sequence[tuple[str | None, ...]],
        input_options: InputOptions,
        worker: Worker,
    ) -> None:
        types = [free_inputs(index.model) for index in indices]
        self._listed = [all_inputs(index.model) for index in indices]
        self.inputs = [
            Input(names, tuple([None if name is None else types[side].get(name) for side, name in enumerate(names)]))
            for names in pairs
        ]
        self._indices = indices
        self._scopes: list[Scope] = [index.scopes[0] for index in indices]
        self._inferred = [InferredTypes(index, worker) for index in indices]
        self._input_options = input_options
        self._require_known_names()
        self.shapes = Shapes(self.inputs, input_options.dims, input_options.shapes)

    def _require_known_names(self) -> None:
        known = {name for each in self.inputs for name in each.names if name}
        for named in (self._input_options.shapes, self._input_options.fills, self._input_options.ranges):
            for name in named:
                if name in known or name == EVERY:
                    continue
                if any([name in listed for listed in self._listed]):
                    raise FeedError(f'"{visible(name)}" has a value in the model; set another one with --input')
                raise FeedError(unknown("input", name, known))

    def _check_values(self, given: Values) -> None:
        """Check values that the user gives, and bind the sizes of open dimensions to theirs."""
        by_name = {name: each.types[side] for each in self.inputs for side, name in enumerate(each.names) if name}
        sides = {name: side for side, listed in reversed(list(enumerate(self._listed))) for name in listed}
        for name, value in given.items():
            if name not in sides:
                raise FeedError(unknown("input", name, sides))
            side = sides[name]
            declared = by_name[name] if name in by_name else self._listed[side].get(name)
            wanted = tensor_type(innermost(declared), side, name)
            if declared is None or wanted is None or not isinstance(value, Tensor):
                continue
            if wanted[0] != value.data_type:
                names = [format_data_type(number or 0) for number in (wanted[0], value.data_type)]
                raise FeedError(f'the value of "{visible(name)}" is {names[1]}, but must be {names[0]}')
            if wanted[1] is not None and not self.shapes.fits(wanted[1], value.dims):
                found = ",".join(map(str, value.dims))
                raise FeedError(
                    f'the value of "{visible(name)}" has the shape [{found}]; the input is {shown_type(declared)}'
                )

    def feeds(
        self,
        given: Values,
        seed: Sequence[int],
        *,
        spread: random_values.Spread = "normal",
        cycle: Sequence[int] = (1,),
        until: float = math.inf,
        rows: Mapping[str, Sequence[int]] = MappingProxyType({}),
    ) -> tuple[dict[str, Value], ...]:
        """Return values for all inputs, for each model; those without a `given` value are random.

        Args:
            given: by name of an input in any of the models; inputs with an initializer are allowed too.
            until: the time, by `time.monotonic`, by which all values must exist.
            rows: by name of an input in the first model; its indices look these rows of tables up before others.

        Raises:
            FeedError: a given value does not fit, or random values for an input cannot be generated.
            LimitError: that needs more than the time limit.
        """
        import numpy

        self._check_values(given)
        sizes = self.shapes.given(cycle)
        values: tuple[dict[str, Value], ...] = tuple([{} for _ in self._scopes])
        for number, model_input in enumerate(self.inputs):
            if time.monotonic() > until:
                raise LimitError(f"random values for {len(self.inputs):,} inputs exceed the time limit (--timeout)")
            largest = RANDOM_INPUT_BYTES if max(cycle) < _TRIED_SIZE else _LARGEST_TRIED
            first = rows.get(model_input.name, ())
            draw = _Draw(sizes, spread, numpy.random.default_rng([*seed, number]), largest, sum(seed), first)
            value = next((given[name] for name in model_input.names if name is not None and name in given), None)
            if value is None:
                value = self._random_value(model_input, draw)
            for side, name in enumerate(model_input.names):
                if name is not None:
                    values[side][name] = _cast(value, model_input.types[side])
        for side, scope in enumerate(self._scopes):
            values[side].update({name: value for name, value in given.items() if name in scope.initializers})
        return values

    def cycle_for(self, spread: random_values.Spread, cycle: Sequence[int]) -> Sequence[int]:
        """Return the sizes of open dimensions: those of a signal for smooth values if just one dimension is open."""
        return _SIGNAL if spread == "smooth" and len(self.shapes.open_dimensions()) == 1 else cycle

    def _random_value(self, model_input: Input, draw: "_Draw") -> Value:
        known = [declared for declared in model_input.types if declared is not None]
        if not known:
            raise FeedError(f'the type of "{visible(model_input.name)}" is unknown; give it a value with --input')
        # All values of the narrower dtype exist in the other one; strings do not become numbers.
        narrowest = min(known, key=_bits)
        for found, what in ((narrowest.map_type, "a map"), (narrowest.sparse_tensor_type, "a sparse tensor")):
            if found is not None:
                raise FeedError(f'"{visible(model_input.name)}" is {what}, for which there are no random values')
        return self._of_type(model_input, narrowest, draw)

    def _of_type(self, model_input: Input, declared: Type, draw: "_Draw") -> Value:
        if declared.optional_type is not None and declared.optional_type.elem_type is not None:
            return self._of_type(model_input, declared.optional_type.elem_type, draw)
        if declared.sequence_type is not None and declared.sequence_type.elem_type is not None:
            inner = declared.sequence_type.elem_type
            return tuple([self._of_type(model_input, inner, draw) for _ in range(_ITEMS)])
        data_type = 0 if declared.tensor_type is None else declared.tensor_type.elem_type or 0
        shape, name = self.shapes.by_name[model_input.name], model_input.name
        if shape is None:
            name = visible(name)
            raise FeedError(f'the shape of "{name}" is unknown; give it a value, or set --shape {name}=...')
        dims = self.shapes.dimensions.sized(shape, draw.sizes)
        if element_count(dims) * max(BITS.get(data_type, 8) // 8, 1) > draw.largest:
            raise FeedError(
                f'"{visible(name)}" would have the shape {list(dims)}, more than {draw.largest / (1 << 30):g} GiB; '
                "choose smaller sizes with --dim, or a value with --input"
            )
        try:
            return from_numpy(self._array(model_input, data_type, dims, draw))
        except (TypeError, ValueError) as error:  # no such dtype; more than 64 dims
            raise FeedError(f'"{visible(name)}": {error}') from None

    def _array(self, model_input: Input, data_type: int, dims: tuple[int, ...], draw: "_Draw") -> "NDArray[Any]":
        import numpy

        requested = self._requested_elements(model_input, data_type, dims, draw.generator)
        if requested is not None:
            return requested
        if math.prod(dims) == 1 and (points := self._points(model_input, data_type)):
            return numpy.full(dims, points[draw.turn % len(points)]).astype(numpy_dtype(data_type))
        past = self._past(draw.sizes)
        if past is not None and "mask" in model_input.name.lower() and data_type in (BOOL, *random_values.INDEX_TYPES):
            return numpy.ones(dims, numpy_dtype(data_type))
        if data_type in random_values.INDEX_TYPES:
            for side, name in enumerate(model_input.names):
                nodes = self._scopes[side].graph.node if name is not None else ()
                length = _attended_length(name, nodes)
                if length is not None and past is not None and self.shapes.cache is not None:
                    new = self.shapes.dimensions.size_of(self.shapes.cache.new, draw.sizes)
                    return numpy.full(dims, past + (new or 1) + length, numpy_dtype(data_type))
                role = random_values.role_of(name or "", nodes, self._axis_size(side, draw.sizes))
                if past is not None and "position" in model_input.name.lower():
                    places = past + numpy.arange(dims[-1] if dims else 1).reshape(dims[-1:])
                    most = role[1] if role is not None and role[0] == "index" else numpy.iinfo("int32").max
                    return numpy.broadcast_to(places % most, dims).astype(numpy_dtype(data_type))
                if role is not None:
                    elements = random_values.role_elements(
                        *role, dims, draw.generator, turn=draw.turn, first=draw.first
                    )
                    return elements.astype(numpy_dtype(data_type))
            if "mask" in model_input.name.lower():
                return _mask(dims, draw.generator).astype(numpy_dtype(data_type))
        if draw.spread == "smooth" and not dims and data_type in WIDE_FLOATS:
            numbers = [name for name, shape in self.shapes.by_name.items() if shape == ()]
            return random_values.constant_array(
                data_type, dims, random_values.ascending(numbers.index(model_input.name))
            )
        low, high = _BYTES.get(data_type, _SMALL)
        return random_values.random_array(data_type, dims, draw.generator, spread=draw.spread, low=low, high=high)

    def _points(self, fed: Input, data_type: int) -> Sequence[float]:
        """Return the elements on which a branch may depend, for an input of one element."""
        if data_type == BOOL:
            return True, False
        points: dict[float, None] = {}
        for side, name in enumerate(fed.names):
            if name is not None and data_type not in (0, STRING):
                points |= dict.fromkeys(turning_points(self._indices[side].scopes, name))
        return [*points]

    def _past(self, sizes: Mapping[Hashable, int]) -> int | None:
        """Return the length of the cache of a decoder; None if the models have none."""
        cache = self.shapes.cache
        return None if cache is None else self.shapes.dimensions.size_of(cache.past, sizes)

    def _axis_size(self, side: int, sizes: Mapping[Hashable, int]) -> AxisSizeOf:
        dimensions = self.shapes.dimensions
        return self._inferred[side].axis_size(self._scopes[side], side, partial(dimensions.size_of, given=sizes))

    def _requested_elements(
        self, model_input: Input, data_type: int, dims: tuple[int, ...], generator: "Generator"
    ) -> "NDArray[Any] | None":
        fill = self._requested(model_input, self._input_options.fills)
        limits = self._requested(model_input, self._input_options.ranges)
        if data_type == STRING:
            if set(model_input.names) & {*self._input_options.fills, *self._input_options.ranges}:
                raise FeedError(f'"{visible(model_input.name)}" has strings, not numbers; give it a value with --input')
            return None
        try:
            if fill is not None:
                return random_values.constant_array(data_type, dims, fill)
            return None if limits is None else random_values.random_within(data_type, dims, limits, generator)
        except ValueError as error:
            raise FeedError(
                f'"{visible(model_input.name)}" is {format_data_type(data_type)}, {error}; choose another value'
            ) from None

    def _requested(self, model_input: Input, requests: Mapping[str, Any]) -> Any:
        if not requests:
            return None
        named = [requests[name] for name in model_input.names if name is not None and name in requests]
        return named[0] if named else requests.get(EVERY)


class _Draw(NamedTuple):
    sizes: Mapping[Hashable, int]
    spread: random_values.Spread
    generator: "Generator"
    largest: int
    """Maximum bytes of a value."""
    turn: int
    """Number of the run."""
    first: Sequence[int]
    """Rows to look up first."""


def _bits(declared: Type) -> float:
    inner = innermost(declared)
    data_type = 0 if inner is None or inner.tensor_type is None else inner.tensor_type.elem_type or 0
    return math.inf if data_type == STRING else BITS.get(data_type, 0)


def _attended_length(name: str | None, nodes: Sequence[Node]) -> int | None:
    """Return the offset of a length input of GroupQueryAttention from the number of tokens; None for other inputs."""
    for node in nodes:
        if node.op_type == "GroupQueryAttention" and name and name in node.input[5:7]:
            return 0 if name in node.input[6:7] else -1
    return None


def _mask(dims: tuple[int, ...], generator: "Generator") -> "NDArray[Any]":
    """Return ones with some zeros at the end of each row."""
    import numpy

    length = dims[-1] if dims else 1
    kept = generator.integers((length + 1) // 2, length, dims[:-1], endpoint=True)
    mask: NDArray[Any] = numpy.arange(length) < numpy.asarray(kept)[..., None]
    return mask.reshape(dims)


def _cast(value: Value, declared: Type | None) -> Value:
    import numpy

    inner = innermost(declared)
    data_type = None if inner is None or inner.tensor_type is None else inner.tensor_type.elem_type
    if isinstance(value, tuple) and not isinstance(value, Dictionary):
        return tuple([_cast(item, declared) for item in value])
    if (
        not isinstance(value, Tensor)
        or data_type in (None, 0, value.data_type)
        or STRING in (data_type, value.data_type)
    ):
        return value
    with numpy.errstate(all="ignore"):
        return from_numpy(to_numpy(value).astype(numpy_dtype(data_type)), value.name)
