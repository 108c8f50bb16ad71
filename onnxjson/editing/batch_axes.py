"""Axes as products of factors, of which one may be the batch.

An axis is a tuple of factors, the outermost first: sizes, names of dimensions, and `BATCH`. ``(BATCH,)`` is the batch
alone, ``(25, BATCH)`` an axis of 25 times the batch, ``()`` an axis of size 1. A Reshape keeps the elements of a tensor
in their order, so the factors of all axes in sequence stay the same; they are only grouped differently.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final

BATCH: Final = "\0batch"
"""The factor that is the batch; no dimension can have this name."""

MIXED: Final = "it combines samples with each other"
PAIRED: Final = "it pairs each sample with all others"
OTHER_AXIS: Final = "another input has a different size on the axis of that dimension"
BATCH_LATER: Final = "that dimension is not the first axis here"
UNKNOWN_SHAPE: Final = "the shape of an input is not known"
_SIZES_UNKNOWN: Final = "some of its sizes are not known"
_NOT_ALIGNED: Final = "its sizes do not line up with those of the tensor"
COMPUTED_SHAPE: Final = "its shape is computed in a way that cannot be followed"

Factor = int | str
Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]

_Border = tuple[int, int]
"""A position between factors: the number of names before it, and the product of the sizes since the last name."""


class BlockedError(Exception):
    """A node cannot be followed, or cannot have another batch; the text is the reason."""


class MixedError(BlockedError):
    """A node would mix samples, or needs the batch where it is not; its operator says so, whatever its sizes are."""


class LostError(BlockedError):
    """A node gets no further because of another one, which has its own reason."""


def axis_of(factors: Iterable[Factor]) -> Axis:
    """Build an axis: multiply adjacent sizes, and leave out ones."""
    joined: list[Factor] = []
    for factor in factors:
        last = joined[-1] if joined else None
        if isinstance(factor, int) and isinstance(last, int):
            joined[-1] = last * factor
        elif factor != 1:
            joined.append(factor)
    return tuple(joined)


def has_batch(axis: Axis) -> bool:
    """Whether the batch runs along an axis."""
    return BATCH in axis


def refuse_batch(axes: Iterable[Axis], reason: str = MIXED) -> None:
    """Raise `MixedError` if the batch runs along one of some axes."""
    if any(map(has_batch, axes)):
        raise MixedError(reason)


def without(axes: Axes, removed: set[int], *, keep: bool) -> list[Axis | None]:
    """Return the axes without some, or with these at size 1 if `keep`."""
    if keep:
        return [() if place in removed else axis for place, axis in enumerate(axes)]
    return [axis for place, axis in enumerate(axes) if place not in removed]


def open_sizes(axes: Axes) -> list[Axis | None]:
    """Return the axes with the batch, and None for the others, whose size onnx infers."""
    return [axis if has_batch(axis) else None for axis in axes]


def size(axis: Axis, batch: int) -> int | None:
    """Return the size of an axis; None if it depends on names."""
    found = resized(axis, batch)
    return found if isinstance(found, int) else None


def resized(axis: Axis, batch: int | str) -> int | str | None:
    """Return the size of an axis with a new batch: a number, a name or an expression; None if it is unknown."""
    sizes = math.prod([each for each in axis if isinstance(each, int)])
    names = [batch if each == BATCH else each for each in axis if not isinstance(each, int)]
    if any([isinstance(each, str) and each.startswith("\0") for each in names]):
        return None
    sizes *= math.prod([each for each in names if isinstance(each, int)])
    texts = [each for each in names if isinstance(each, str)]
    if not texts:
        return sizes
    texts = [text if text.isidentifier() or len(texts) == sizes == 1 else f"({text})" for text in texts]
    return "*".join([*([str(sizes)] if sizes != 1 else []), *texts])


def regroup(
    axes: Axes, sizes: Sequence[int | str | None], batch: int, open_axis: int | None = None, *, later: bool = False
) -> Axes:
    """Return the axes of a tensor after a Reshape; `batch` is the size of the old batch.

    `sizes` are those after, for the old batch; a name or None for a dimension without a known size. `open_axis` is the
    axis with -1 in the shape, which a batch of 1 joins if several axes are possible; else the first of them, or with
    `later` the last.

    Raises:
        BlockedError: the batch would be split, or its position is ambiguous.
    """
    factors = [factor for axis in axes for factor in axis]
    if batch == 1 and BATCH in factors:
        return _with_unit_batch(axes, factors, sizes, open_axis, later)
    return tuple(map(axis_of, _groups(factors, sizes, batch)))


def _groups(factors: Iterable[Factor], sizes: Sequence[int | str | None], batch: int) -> list[list[Factor]]:
    """Distribute factors to axes of some sizes, in their order."""
    rest = list(factors)
    groups: list[list[Factor]] = []
    for position, wanted in enumerate(sizes):
        if isinstance(wanted, int):
            if wanted > 1 and not rest and None in sizes:
                raise BlockedError(_SIZES_UNKNOWN)
            groups.append(_taken(rest, wanted, batch))
        elif position == len(sizes) - 1:
            groups.append(rest)
        elif rest and (rest[0] == wanted or (wanted is None and isinstance(rest[0], str))):
            groups.append([rest.pop(0)])
        else:
            raise BlockedError(_SIZES_UNKNOWN)
    return groups


def _taken(rest: list[Factor], wanted: int, batch: int) -> list[Factor]:
    """Remove the factors of an axis of a known size from those that are left."""
    taken: list[Factor] = []
    while wanted > 1:
        if not rest:
            raise BlockedError("the shape has more elements than the tensor")
        factor = rest[0]
        if factor == BATCH:
            if wanted % batch:
                raise BlockedError("it splits that dimension")
            wanted //= batch
            taken.append(rest.pop(0))
        elif isinstance(factor, int):
            part = math.gcd(factor, wanted)
            wanted //= part
            if part < factor and wanted > 1:
                raise BlockedError(_NOT_ALIGNED)
            taken.append(part)
            rest[:1] = [] if part == factor else [factor // part]
        else:
            raise BlockedError(_SIZES_UNKNOWN)
    return taken


def _with_unit_batch(
    axes: Axes, factors: Sequence[Factor], sizes: Sequence[int | str | None], open_axis: int | None, later: bool
) -> Axes:
    """`regroup` for a batch of 1, which the sizes do not show: it follows its neighbours."""
    if factors.count(BATCH) > 1:
        raise BlockedError("several of its axes have that dimension")
    border = _border_after((0, 1), factors[: factors.index(BATCH)])
    # The axes are filled without the batch.
    groups = _groups([factor for factor in factors if factor != BATCH], sizes, 1)
    edges = list(itertools.accumulate(groups, _border_after, initial=(0, 1)))
    touching = [place for place in range(len(groups)) if edges[place] <= border <= edges[place + 1]]
    if not touching:
        raise BlockedError("the position of that dimension is ambiguous")
    ones = [place for place in touching if not groups[place] and isinstance(sizes[place], int)]
    if ones:
        # Axes of size 1 directly before that of the batch are before it afterwards, too.
        where = next(place for place, axis in enumerate(axes) if has_batch(axis))
        before = 0
        while before < where and not axes[where - 1 - before]:
            before += 1
        chosen = ones[min(before, len(ones) - 1)]
    elif open_axis is not None and open_axis in touching:
        chosen = open_axis
    elif list(sizes).count(1) > axes.count(()):
        raise BlockedError("the position of that dimension is ambiguous: another axis has size 1")
    elif later or _splits_next(axes, groups[touching[-1]]):
        chosen = touching[-1]
    else:
        chosen = next((place for place in touching if edges[place + 1] == border != (0, 1)), touching[0])
    groups[chosen] = _parted(groups[chosen], edges[chosen], border)
    return tuple(map(axis_of, groups))


def _splits_next(axes: Axes, group: Sequence[Factor]) -> bool:
    """Whether a Reshape splits the axis after that of the batch, into heads that exporters stack for all samples."""
    where = next(place for place, axis in enumerate(axes) if has_batch(axis)) + 1
    sizes = [size(axis_of(each), 1) for each in (axes[where] if where < len(axes) else (), group)]
    return (sizes[0] or 0) > (sizes[1] or 0)


def _border_after(place: _Border, factors: Sequence[Factor]) -> _Border:
    names, product = place
    for factor in factors:
        if isinstance(factor, int):
            product *= factor
        else:
            names, product = names + 1, 1
    return names, product


def _parted(axis: Sequence[Factor], start: _Border, border: _Border) -> list[Factor]:
    """Return the factors of an axis with the batch inserted at its position."""
    parted: list[Factor] = []
    at = start
    for factor in axis:
        end = _border_after(at, [factor])
        if at == border and BATCH not in parted:
            parted.append(BATCH)
        if at < border < end and isinstance(factor, int):
            first, left = divmod(border[1], at[1])
            if left or factor % first:
                raise BlockedError(_NOT_ALIGNED)
            parted += [first, BATCH, factor // first]
        else:
            parted.append(factor)
        at = end
    return parted if BATCH in parted else [*parted, BATCH]
