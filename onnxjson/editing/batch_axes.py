"""Axes as products of factors, of which one may be the batch.

An axis is a tuple of factors, the outermost first: sizes, names of dimensions, and `BATCH`. ``(BATCH,)`` is the batch
alone, ``(25, BATCH)`` an axis of 25 times the batch, ``()`` an axis of size 1. A Reshape keeps the elements of a tensor
in their order, so the factors of all axes in sequence stay the same; they are only grouped differently.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

BATCH: Final = "\0batch"
"""The factor that is the batch; no dimension can have this name."""

MIXED: Final = "it puts samples together"
OTHER_AXIS: Final = "another axis is where the batch is"
BATCH_LATER: Final = "the batch is not the first axis here"
UNKNOWN_SHAPE: Final = "the shape of an input is not known"
COMPUTED_SHAPE: Final = "its shape is computed in a way that cannot be followed"

Factor = int | str
Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]


class BlockedError(Exception):
    """A node cannot be followed, or cannot have another batch; the text is the reason."""


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
    """Raise if the batch runs along one of some axes.

    Raises:
        BlockedError: it does, with `reason` as the text.
    """
    if any(map(has_batch, axes)):
        raise BlockedError(reason)


def without(axes: Axes, removed: set[int], *, keep: bool) -> list[Axis | None]:
    """Return the axes without some, or with these at size 1 if `keep`."""
    if keep:
        return [() if place in removed else axis for place, axis in enumerate(axes)]
    return [axis for place, axis in enumerate(axes) if place not in removed]


def size(axis: Axis, batch: int) -> int | None:
    """Return the size of an axis; None if it depends on names."""
    product = 1
    for factor in axis:
        if factor == BATCH:
            product *= batch
        elif isinstance(factor, int):
            product *= factor
        else:
            return None
    return product


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


class _Rest(NamedTuple):
    """Factors that no axis has got yet."""

    factors: list[Factor]


def regroup(axes: Axes, sizes: Sequence[int | str | None], batch: int, open_axis: int | None = None) -> Axes:
    """Return the axes of a tensor after a Reshape.

    Args:
        axes: the axes before.
        sizes: the sizes after, for the old batch; a name or None for a dimension without a known size.
        batch: size of the old batch.
        open_axis: the axis with -1 in the shape, which the batch joins if several axes are possible.

    Raises:
        BlockedError: the batch would be split, or its position is ambiguous.
    """
    factors = [factor for axis in axes for factor in axis]
    if batch == 1 and BATCH in factors:
        return _with_unit_batch(axes, sizes, open_axis)
    rest = _Rest(factors)
    return tuple(
        [axis_of(_taken(rest, each, batch, position == len(sizes) - 1)) for position, each in enumerate(sizes)]
    )


def _taken(rest: _Rest, wanted: int | str | None, batch: int, is_last: bool) -> list[Factor]:
    """Remove the factors of one axis from those that are left."""
    if not isinstance(wanted, int):
        return _taken_by_name(rest, wanted, is_last)
    taken: list[Factor] = []
    while wanted > 1:
        if not rest.factors:
            raise BlockedError("the shape has more elements than the tensor")
        factor = rest.factors[0]
        if factor == BATCH:
            if wanted % batch:
                raise BlockedError("it splits the batch")
            wanted //= batch
            taken.append(rest.factors.pop(0))
        elif isinstance(factor, int):
            part = math.gcd(factor, wanted)
            if part == 1:
                raise BlockedError("its sizes do not line up with those of the tensor")
            taken.append(part)
            wanted //= part
            if part == factor:
                rest.factors.pop(0)
            elif wanted > 1:
                raise BlockedError("its sizes do not line up with those of the tensor")
            else:
                rest.factors[0] = factor // part
        else:
            raise BlockedError("sizes in between are not known")
    return taken


def _taken_by_name(rest: _Rest, wanted: str | None, is_last: bool) -> list[Factor]:
    if is_last:
        taken, rest.factors[:] = list(rest.factors), []
        return taken
    if rest.factors and (rest.factors[0] == wanted or (wanted is None and isinstance(rest.factors[0], str))):
        return [rest.factors.pop(0)]
    raise BlockedError("sizes in between are not known")


_Border = tuple[int, int]
"""A position between factors: the number of names before it, and the product of the sizes since the last name."""


def _with_unit_batch(axes: Axes, sizes: Sequence[int | str | None], open_axis: int | None) -> Axes:
    """`regroup` for a batch of 1, which the sizes do not show: it follows its neighbours."""
    factors = [factor for axis in axes for factor in axis]
    if factors.count(BATCH) > 1:
        raise BlockedError("several of its axes have the batch")
    where = next(position for position, axis in enumerate(axes) if BATCH in axis)
    border = _border_after((0, 1), factors[: factors.index(BATCH)])
    # The axes are filled without the batch.
    rest = _Rest([factor for factor in factors if factor != BATCH])
    groups: list[list[Factor]] = []
    edges: list[tuple[_Border, _Border]] = []
    at: _Border = (0, 1)
    for position, each in enumerate(sizes):
        groups.append(_taken(rest, each, 1, position == len(sizes) - 1))
        edges.append((at, _border_after(at, groups[-1])))
        at = edges[-1][1]
    touching = [position for position, (start, end) in enumerate(edges) if start <= border <= end]
    if not touching:
        raise BlockedError("the position of the batch is ambiguous")
    chosen = _chosen(axes, where, sizes, groups, touching, edges, border, open_axis)
    parted = _parted(groups[chosen], edges[chosen][0], border)
    return tuple([axis_of(parted if position == chosen else group) for position, group in enumerate(groups)])


def _chosen(
    axes: Axes,
    where: int,
    sizes: Sequence[int | str | None],
    groups: Sequence[Sequence[Factor]],
    touching: Sequence[int],
    edges: Sequence[tuple[_Border, _Border]],
    border: _Border,
    open_axis: int | None,
) -> int:
    """Return the axis that the batch joins, out of those that touch its position."""
    ones = [position for position in touching if not groups[position] and isinstance(sizes[position], int)]
    if ones:
        # Axes of size 1 directly before that of the batch are before it afterwards, too.
        before = 0
        while before < where and not axes[where - 1 - before]:
            before += 1
        return ones[min(before, len(ones) - 1)]
    if open_axis is not None and open_axis in touching:
        return open_axis
    units = sum([not axis for axis in axes])
    if sum([each == 1 for each in sizes]) > units:
        raise BlockedError("the position of the batch is ambiguous: another axis has size 1")
    return next((position for position in touching if edges[position][1] == border != (0, 1)), touching[0])


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
                raise BlockedError("its sizes do not line up with those of the tensor")
            parted += [first, BATCH, factor // first]
        else:
            parted.append(factor)
        at = end
    return parted if BATCH in parted else [*parted, BATCH]
