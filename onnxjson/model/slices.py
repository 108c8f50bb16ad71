"""Slices of tensors as text, such as ``[0, :, 3]``, with the meaning that they have in numpy."""

from collections.abc import Sequence
from typing import Final

from onnxjson.model.display import counted, visible

_MOST_PARTS: Final = 64

Pick = int | range  # one index of a dimension, or several


class SliceError(ValueError):
    """A slice is invalid or out of range."""


def parse_slice(text: str, dims: Sequence[int]) -> tuple[Pick, ...]:
    """Parse a slice such as ``[0, :, 3]`` as numpy does; brackets and trailing dimensions are optional.

    Args:
        text: numbers, negative ones from the end, ``start:end:step``, and one ``...``.
        dims: the shape of the tensor.

    Raises:
        SliceError: the slice is invalid or out of range.
    """
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if parts and not parts[-1]:
        parts.pop()
    if len(parts) > _MOST_PARTS:
        raise SliceError("too many dimensions")
    if parts.count("...") > 1:
        raise SliceError("... may occur only once")
    given = len(parts) - parts.count("...")
    if given > len(dims):
        raise SliceError(f"the tensor has {counted(len(dims), 'dimension')}, but {given} are given")
    missing = [":"] * (len(dims) - given)
    place = parts.index("...") if "..." in parts else len(parts)
    parts[place : place + 1] = missing
    return tuple([_pick(part, dim, axis) for axis, (part, dim) in enumerate(zip(parts, dims, strict=True))])


def _pick(text: str, dim: int, axis: int) -> Pick:
    pieces = [piece.strip() for piece in text.split(":")]
    numbers = [_whole(piece, axis) if piece or len(pieces) == 1 else None for piece in pieces]
    if len(numbers) > 3:
        raise SliceError(f"dimension {axis}: {visible(text, 40)} has too many colons")
    if len(numbers) == 1:
        assert numbers[0] is not None
        at = numbers[0] + dim if numbers[0] < 0 else numbers[0]
        if not 0 <= at < dim:
            raise SliceError(f"dimension {axis} has {dim:,} elements, so {numbers[0]:,} is out of range")
        return at
    if len(numbers) == 3 and numbers[2] == 0:
        raise SliceError(f"dimension {axis}: the step must not be 0")
    return range(dim)[slice(*numbers)]


def _whole(text: str, axis: int) -> int:
    try:
        if len(text) > 20:
            raise ValueError
        return int(text)
    except ValueError:
        raise SliceError(f"dimension {axis}: {visible(text, 40) or 'nothing'} is not an integer") from None


def slice_text(picks: Sequence[Pick], dims: Sequence[int]) -> str:
    """Format a slice."""
    return "[" + ", ".join([_pick_text(pick, dim) for pick, dim in zip(picks, dims, strict=True)]) + "]"


def _pick_text(pick: Pick, dim: int) -> str:
    if isinstance(pick, int):
        return str(pick)
    if pick == range(dim):
        return ":"
    if pick.step < 0:
        end = "" if pick.stop < 0 else str(pick.stop)
        return f"{pick.start}:{end}:{pick.step}"
    return f"{pick.start or ''}:{pick.stop}" + (f":{pick.step}" if pick.step != 1 else "")
