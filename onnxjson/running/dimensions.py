"""Numbers for the dimensions that a model names or leaves open: the same for what must be the same."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from onnxjson.document import Type

Dimension = int | Hashable
"""A size, or what stands for one that is not known."""

SIZES: Final[tuple[tuple[int, ...], ...]] = ((2, 3, 5, 4), (2,), (1,))
"""What open dimensions become, in turn: different sizes tell more, equal ones fit where two of them must agree."""


class Dimensions:
    """Open dimensions, of which some are known to be the same; each has a size or gets one."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}
        self._sizes: dict[Hashable, int] = {}

    def join(self, one: Dimension, other: Dimension) -> bool:
        """Note that two dimensions are the same; False where they have different sizes."""
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        if isinstance(one, int):
            one, other = other, one
        first = self._found(one)
        if isinstance(other, int):
            return self._sizes.setdefault(first, other) == other
        second = self._found(other)
        if first != second:
            size = self._sizes.get(second)
            self._above[second] = first
            return size is None or self._sizes.setdefault(first, size) == size
        return True

    def _found(self, dimension: Hashable) -> Hashable:
        while (above := self._above.get(dimension, dimension)) != dimension:
            dimension = above
        return dimension

    def open_in(self, shapes: Iterable[Sequence[Dimension]]) -> list[Hashable]:
        """The dimensions without a size, each once, as they come."""
        found: dict[Hashable, None] = {}
        for shape in shapes:
            for dimension in shape:
                if not isinstance(dimension, int) and (root := self._found(dimension)) not in self._sizes:
                    found[root] = None
        return list(found)

    def sized(self, shape: Sequence[Dimension], given: Mapping[Hashable, int]) -> tuple[int, ...]:
        """A shape in numbers, with sizes `given` for open dimensions."""
        sizes = []
        for dimension in shape:
            if isinstance(dimension, int):
                sizes.append(dimension)
            else:
                root = self._found(dimension)
                sizes.append(self._sizes[root] if root in self._sizes else given[root])
        return tuple(sizes)


def tensor_type(said: Type | None, owner: Hashable, name: str) -> tuple[int, tuple[Dimension, ...] | None] | None:
    """The data type and shape of a tensor; None where a type says neither, or is none of a tensor.

    Args:
        said: what is known of it.
        owner: the model in which names of dimensions mean the same.
        name: that of the value, by which dimensions without a name are told apart.

    Returns:
        the shape is None where the rank is not known.
    """
    tensor = None if said is None else said.tensor_type
    if tensor is None or not tensor.elem_type:
        return None
    if tensor.shape is None:
        return tensor.elem_type, None
    shape: list[Dimension] = []
    for axis, each in enumerate(tensor.shape.dim):
        if each.dim_value is not None and each.dim_value >= 0:
            shape.append(each.dim_value)
        else:
            shape.append((owner, each.dim_param) if each.dim_param else (owner, name, axis))
    return tensor.elem_type, tuple(shape)
