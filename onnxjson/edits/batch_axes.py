"""Axes as products of factors of which one may be the batch: how a tracer writes down where it is.

An axis is a tuple of factors, the outermost first: sizes, names of dimensions, and `BATCH`. ``(BATCH,)`` is the batch
alone, ``(25, BATCH)`` an axis of 25 rows for each of which the batch runs, ``()`` an axis of size 1. Rows of a tensor
never change their order in a Reshape, so the factors of all axes one after another stay the same; they are only put
together and apart.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

BATCH: Final = "\0batch"
"""The factor that is the batch; no dimension can have this name."""

Factor = int | str
Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]


class AlignmentError(Exception):
    """Axes cannot be put together in the way that is asked for; the text says why."""


def axis_of(factors: Iterable[Factor]) -> Axis:
    """An axis with neighbouring sizes multiplied and ones left out."""
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


def size(axis: Axis, batch: int) -> int | None:
    """The size of an axis; None where that depends on names."""
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
    """What to call an axis whose batch has another size or name: a size, a name, an expression; None for unknown."""
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
    """What is left of a row of factors."""

    factors: list[Factor]


def regrouped(axes: Axes, sizes: Sequence[int | str | None], batch: int, open_axis: int | None = None) -> Axes:
    """The axes of a tensor after a Reshape.

    Args:
        axes: before.
        sizes: the sizes after, with the batch as it was; names where they are known by name, None for unknown.
        batch: the size that the batch has.
        open_axis: the axis that takes whatever is left (-1 in the shape), which the batch rather joins.

    Raises:
        AlignmentError: the batch would be taken apart, or nobody can say where it goes.
    """
    factors = [factor for axis in axes for factor in axis]
    if batch == 1 and BATCH in factors:
        return _with_unit_batch(axes, sizes, open_axis)
    rest = _Rest(factors)
    return tuple(
        [axis_of(_taken(rest, each, batch, position == len(sizes) - 1)) for position, each in enumerate(sizes)]
    )


def _taken(rest: _Rest, wanted: int | str | None, batch: int, is_last: bool) -> list[Factor]:
    """The factors of one axis, which leave the row."""
    if not isinstance(wanted, int):
        return _taken_by_name(rest, wanted, is_last)
    taken: list[Factor] = []
    while wanted > 1:
        if not rest.factors:
            raise AlignmentError("the shape has more elements than the tensor")
        factor = rest.factors[0]
        if factor == BATCH:
            if wanted % batch:
                raise AlignmentError("it takes the batch apart")
            wanted //= batch
            taken.append(rest.factors.pop(0))
        elif isinstance(factor, int):
            part = math.gcd(factor, wanted)
            if part == 1:
                raise AlignmentError("its sizes do not line up with those of the tensor")
            taken.append(part)
            wanted //= part
            if part == factor:
                rest.factors.pop(0)
            elif wanted > 1:
                raise AlignmentError("its sizes do not line up with those of the tensor")
            else:
                rest.factors[0] = factor // part
        else:
            raise AlignmentError("sizes that are not known stand between")
    return taken


def _taken_by_name(rest: _Rest, wanted: str | None, is_last: bool) -> list[Factor]:
    if is_last:
        taken, rest.factors[:] = list(rest.factors), []
        return taken
    if rest.factors and (rest.factors[0] == wanted or (wanted is None and isinstance(rest.factors[0], str))):
        return [rest.factors.pop(0)]
    raise AlignmentError("sizes that are not known stand between")


_Place = tuple[int, int]
"""A place in a row of factors: how many names stand before it, and the product of the sizes since the last of them."""


def _with_unit_batch(axes: Axes, sizes: Sequence[int | str | None], open_axis: int | None) -> Axes:
    """`regrouped` for a batch of 1, which the sizes do not show: it goes where its neighbours are."""
    factors = [factor for axis in axes for factor in axis]
    if factors.count(BATCH) > 1:
        raise AlignmentError("the batch stands in it several times")
    where = next(position for position, axis in enumerate(axes) if BATCH in axis)
    border = _place_after((0, 1), factors[: factors.index(BATCH)])
    # The axes are filled without the batch.
    rest = _Rest([factor for factor in factors if factor != BATCH])
    groups: list[list[Factor]] = []
    edges: list[tuple[_Place, _Place]] = []
    at: _Place = (0, 1)
    for position, each in enumerate(sizes):
        groups.append(_taken(rest, each, 1, position == len(sizes) - 1))
        edges.append((at, _place_after(at, groups[-1])))
        at = edges[-1][1]
    touching = [position for position, (start, end) in enumerate(edges) if start <= border <= end]
    if not touching:
        raise AlignmentError("nobody can say where the batch goes")
    chosen = _chosen(axes, where, sizes, groups, touching, edges, border, open_axis)
    parted = _parted(groups[chosen], edges[chosen][0], border)
    return tuple([axis_of(parted if position == chosen else group) for position, group in enumerate(groups)])


def _chosen(
    axes: Axes,
    where: int,
    sizes: Sequence[int | str | None],
    groups: Sequence[Sequence[Factor]],
    touching: Sequence[int],
    edges: Sequence[tuple[_Place, _Place]],
    border: _Place,
    open_axis: int | None,
) -> int:
    """The axis that the batch joins, of those that its place touches."""
    ones = [position for position in touching if not groups[position] and isinstance(sizes[position], int)]
    if ones:
        # Axes of size 1 right before that of the batch come before it afterwards, too.
        before = 0
        while before < where and not axes[where - 1 - before]:
            before += 1
        return ones[min(before, len(ones) - 1)]
    if open_axis is not None and open_axis in touching:
        return open_axis
    units = sum([not axis for axis in axes])
    if sum([each == 1 for each in sizes]) > units:
        raise AlignmentError("nobody can say where the batch goes: an axis of size 1 stands where it is not")
    return next((position for position in touching if edges[position][1] == border != (0, 1)), touching[0])


def _place_after(place: _Place, factors: Sequence[Factor]) -> _Place:
    names, product = place
    for factor in factors:
        if isinstance(factor, int):
            product *= factor
        else:
            names, product = names + 1, 1
    return names, product


def _parted(axis: Sequence[Factor], start: _Place, border: _Place) -> list[Factor]:
    """The factors of an axis with the batch at its place among them."""
    parted: list[Factor] = []
    at = start
    for factor in axis:
        end = _place_after(at, [factor])
        if at == border and BATCH not in parted:
            parted.append(BATCH)
        if at < border < end and isinstance(factor, int):
            first, left = divmod(border[1], at[1])
            if left or factor % first:
                raise AlignmentError("its sizes do not line up with those of the tensor")
            parted += [first, BATCH, factor // first]
        else:
            parted.append(factor)
        at = end
    return parted if BATCH in parted else [*parted, BATCH]
