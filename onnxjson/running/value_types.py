"""Shapes of inputs, with sizes for dimensions that are open.

Dimensions with the same name in one model are the same, and so are those of paired inputs of two models.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from onnxjson.model.dimensions import IDENTIFIER, is_expression, substitute
from onnxjson.model.display import suggest, visible
from onnxjson.model.document import Type
from onnxjson.model.errors import FeedError
from onnxjson.model.types import innermost, shown_type

AxisSize = int | Hashable
"""A size, or a key for a size that is not known."""

SIZES: Final[tuple[tuple[int, ...], ...]] = ((2, 3, 5, 4), (2,), (1,))
"""Sizes that open dimensions get in turn: different sizes reveal more, equal ones fit if two dimensions must agree."""

ALL_SIZES: Final = (*SIZES, (64,), (1, 512), (1, 256))
"""The same for whole models: at last the sizes that images with strides of 32 need, and samples of sound."""


class Dimensions:
    """Dimensions of several values: which ones are the same, and the sizes that are known."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}
        self._sizes: dict[Hashable, int] = {}

    def join(self, one: AxisSize, other: AxisSize) -> bool:
        """Record that two dimensions are the same; return False if their sizes differ."""
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        if isinstance(one, int):
            one, other = other, one
        first = self.root(one)
        if isinstance(other, int):
            return self._sizes.setdefault(first, other) == other
        second = self.root(other)
        if first != second:
            size = self._sizes.get(second)
            self._above[second] = first
            return size is None or self._sizes.setdefault(first, size) == size
        return True

    def root(self, dimension: Hashable) -> Hashable:
        """Return the key that all dimensions that are the same have in common."""
        while (above := self._above.get(dimension, dimension)) != dimension:
            dimension = above
        return dimension

    def open_in(self, shapes: Iterable[Sequence[AxisSize]]) -> list[Hashable]:
        """Return the dimensions without a size, each once, in order of appearance."""
        roots: dict[Hashable, None] = {}
        for shape in shapes:
            for dimension in shape:
                if not isinstance(dimension, int) and (root := self.root(dimension)) not in self._sizes:
                    roots[root] = None
        return list(roots)

    def size_of(self, dimension: AxisSize, given: Mapping[Hashable, int]) -> int | None:
        """Return the size of a dimension, with sizes `given` for open ones; None if it has none."""
        if isinstance(dimension, int):
            return dimension
        root = self.root(dimension)
        return self._sizes.get(root, given.get(root))

    def sized(self, shape: Sequence[AxisSize], given: Mapping[Hashable, int]) -> tuple[int, ...]:
        """Return a shape in numbers, with sizes `given` for open dimensions."""
        sizes = [self.size_of(dimension, given) for dimension in shape]
        if None in sizes:
            raise KeyError(shape[sizes.index(None)])
        return tuple([size for size in sizes if size is not None])


def tensor_type(declared: Type | None, owner: Hashable, name: str) -> tuple[int, tuple[AxisSize, ...] | None] | None:
    """Return the data type and shape of a tensor; None if the data type is unknown or it is not a tensor type.

    Args:
        owner: key of the model, in which equal names of dimensions mean equal sizes.
        name: name of the value, which distinguishes dimensions without a name.
    """
    tensor = None if declared is None else declared.tensor_type
    if tensor is None or not tensor.elem_type:
        return None
    if tensor.shape is None:
        return tensor.elem_type, None
    shape: list[AxisSize] = []
    for axis, axis_dim in enumerate(tensor.shape.dim):
        if axis_dim.dim_value is not None and axis_dim.dim_value >= 0:
            shape.append(axis_dim.dim_value)
        else:
            is_named = (
                axis_dim.dim_param and axis_dim.dim_param != "?"
            )  # which some exporters write for any unknown size
            shape.append((owner, axis_dim.dim_param) if is_named else (owner, name, axis))
    return tensor.elem_type, tuple(shape)


class Input(NamedTuple):
    """Input that needs a value, or a pair of such inputs."""

    names: tuple[str | None, ...]
    """Its names in all models; None where a model does not have it."""
    types: tuple[Type | None, ...]

    @property
    def name(self) -> str:
        """Name shown to the user."""
        return next(name for name in self.names if name is not None)


class Cache(NamedTuple):
    """Lengths in the inputs of a decoder that keeps keys and values of earlier tokens."""

    past: AxisSize
    new: AxisSize
    totals: tuple[Hashable, ...]
    """Lengths of masks, which are the sum of the others."""


class Shapes:
    """Shapes of all inputs.

    Args:
        dims: sizes of open dimensions, by name or as ``input:axis``.

    Raises:
        FeedError: there is no such dimension, or it has another size.
    """

    def __init__(self, inputs: Sequence[Input], dims: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._inputs = inputs
        self.dimensions = Dimensions()
        self._names: dict[str, list[Hashable]] = {}
        self._places: dict[str, list[Hashable]] = {}
        """Open dimensions, also named ones, by ``input:axis``."""
        self.by_name = {each.name: self._shape(each) for each in inputs}
        """Shapes of the inputs; None if the rank is unknown."""
        self.cache = self._found_cache()
        self._bind(dims, shapes)

    @property
    def names(self) -> set[str]:
        """All names of open dimensions."""
        return {*self._names, *self._places}

    def _shape(self, shaped_input: Input) -> tuple[AxisSize, ...] | None:
        shape: tuple[AxisSize, ...] | None = None
        for side, name in enumerate(shaped_input.names):
            data_type_and_shape = None if name is None else tensor_type(innermost(shaped_input.types[side]), side, name)
            if data_type_and_shape is None or data_type_and_shape[1] is None:
                continue
            for axis, dimension in enumerate(data_type_and_shape[1]):
                if not isinstance(dimension, int):
                    assert isinstance(dimension, tuple)
                    place = f"{name}:{axis}"
                    self._places.setdefault(place, []).append(dimension)
                    self._names.setdefault(dimension[1] if len(dimension) == 2 else place, []).append(dimension)
            if shape is None:
                shape = data_type_and_shape[1]
            elif len(shape) == len(data_type_and_shape[1]):
                for one, other in zip(shape, data_type_and_shape[1], strict=True):
                    self.dimensions.join(one, other)
        return shape

    def _found_cache(self) -> Cache | None:
        """Find the lengths of a cache by the names that exporters give to inputs."""
        kinds: dict[str, list[Sequence[AxisSize]]] = {"cache": [], "mask": [], "": []}
        for name, shape in self.by_name.items():
            low = name.lower()
            is_cache = len(shape or ()) > 2 and ("past" in low or "cache" in low)
            is_mask = "mask" in low and ("decoder" in low or "encoder" not in low)
            if shape:
                kinds["cache" if is_cache else "mask" if is_mask else ""].append(shape)
        lengths = [each for shape in kinds["cache"][:1] for each in shape[1:] if not isinstance(each, int)]
        if not lengths or not kinds[""]:
            return None
        tokens = next((shape for name, shape in self.by_name.items() if shape and "input" in name), kinds[""][0])
        known = {self.dimensions.root(each) for kind in ("cache", "") for shape in kinds[kind] for each in shape}
        totals = [shape[-1] for shape in kinds["mask"] if self.dimensions.root(shape[-1]) not in known]
        is_open = [each for each in totals if not isinstance(each, int) and not _is_computed(each)]
        return Cache(lengths[-1], tokens[min(1, len(tokens) - 1)], tuple(is_open))

    def _bind(self, dims: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> None:
        known = {name for each in self._inputs for name in each.names if name}
        for name, size in dims.items():
            dimensions = self._names.get(name) or self._places.get(name)
            if dimensions is None and name == "past" and self.cache is not None:
                dimensions = [self.cache.past]
            if dimensions is None:
                head, _, axis = name.rpartition(":")
                if head in known and axis.isdecimal():
                    raise FeedError(f'axis {axis} of "{visible(head)}" is not dynamic: {self.describe(head)}')
                raise FeedError(unknown("dynamic dimension", name, self._names))
            for dimension in dimensions:
                if not self.dimensions.join(dimension, size):
                    raise FeedError(f'the dimension "{visible(name)}" cannot be {size}; it must be another size')
        for shaped_input in self._inputs:
            for name_in_model in shaped_input.names:
                if name_in_model is not None and name_in_model in shapes:
                    self._bind_shape(shaped_input, shapes[name_in_model])

    def _bind_shape(self, shaped_input: Input, sizes: tuple[int, ...]) -> None:
        shape = self.by_name[shaped_input.name]
        fits = shape is None or (
            len(shape) == len(sizes)
            and all([self.dimensions.join(one, size) for one, size in zip(shape, sizes, strict=True)])
        )
        if not fits:
            name, wanted = visible(shaped_input.name), ",".join(map(str, sizes))
            raise FeedError(f'"{name}" is {self.describe(shaped_input.name)} and cannot have the shape [{wanted}]')
        if shape is None:
            self.by_name[shaped_input.name] = sizes

    def describe(self, name: str) -> str:
        """Describe the type of an input for the user."""
        declared = next(type_ for each in self._inputs for its, type_ in zip(*each, strict=True) if its == name)
        return "of unknown type" if declared is None else shown_type(declared)

    def fits(self, shape: Sequence[AxisSize], dims: Sequence[int]) -> bool:
        """Whether a value of these dimensions is allowed; bind open dimensions to its sizes."""
        if len(shape) != len(dims):
            return False
        # Equal names need not have equal sizes in given values; runtimes do not check that either.
        return all(
            [self.dimensions.join(*pair) or not isinstance(pair[0], int) for pair in zip(shape, dims, strict=True)]
        )

    def open_dimensions(self) -> list[Hashable]:
        """Return the dimensions without a size, in order of appearance, except those computed from others."""
        totals = {self.dimensions.root(each) for each in (self.cache.totals if self.cache else ())}
        return [each for each in self._all_open() if not _is_computed(each) and each not in totals]

    def _all_open(self) -> list[Hashable]:
        return self.dimensions.open_in([shape for shape in self.by_name.values() if shape is not None])

    def sizes(self, cycle: Sequence[int]) -> dict[str, int]:
        """Return the size of each open dimension by name, with sizes of `cycle` in turn for those without one."""
        given = self.given(cycle)
        sizes = {name: self.dimensions.size_of(each[0], given) for name, each in self._names.items()}
        return {name: size for name, size in sizes.items() if size is not None}

    def given(self, cycle: Sequence[int]) -> dict[Hashable, int]:
        """Return sizes for all open dimensions, those of `cycle` in turn."""
        given = {each: cycle[place % len(cycle)] for place, each in enumerate(self.open_dimensions())}
        for each in self._all_open():
            if each not in given:
                given[each] = self._evaluated(each, given, cycle[0])
        return given

    def _evaluated(self, dimension: Hashable, given: Mapping[Hashable, int], otherwise: int) -> int:
        """Compute the size of a dimension such as ``past + 1``."""
        if self.cache is not None and dimension in map(self.dimensions.root, self.cache.totals):
            return sum(self.dimensions.sized((self.cache.past, self.cache.new), given))
        assert isinstance(dimension, tuple)
        owner, text = dimension
        sizes = {name: self.dimensions.size_of((owner, name), given) for name in IDENTIFIER.findall(text)}
        found = substitute(text, {name: size for name, size in sizes.items() if size is not None})
        return found if isinstance(found, int) else otherwise


def _is_computed(dimension: Hashable) -> bool:
    """Whether the name of a dimension is arithmetic on other names, such as ``past_sequence_length + 1``."""
    text = str(dimension[1]) if isinstance(dimension, tuple) and len(dimension) == 2 else ""
    return is_expression(text) and not set(text).isdisjoint("+-*/%")


def unknown(what: str, name: str, known: "Mapping[str, Any] | set[str]") -> str:
    """Message for an unknown name, with the known names or a suggestion."""
    shown = ", ".join([visible(each) for each in sorted(known)[:10]]) or "none"
    hint = suggest(name, list(known)) or f"there {'is' if len(known) == 1 else 'are'} {shown}"
    return f'there is no {what} "{visible(name)}"; {hint}'
