"""Dimensions: by name, found, renamed or replaced by sizes; and by index, in slices of tensors such as ``[0, :, 3]``.

A dimension is known by its text in ``dim_param``. Exporters also write expressions of names there, such as
``floor(height/2) + 1``; a name within one follows, and what has no names any more becomes a number. Slices have the
meaning that they have in numpy.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from onnxjson.model.display import counted, visible
from onnxjson.model.document import Dimension, Record, SimpleShardedDim
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.walking import replace_records, walk

IDENTIFIER: Final = re.compile(r"(?<!\w)[^\W\d]\w*\b(?!\s*\()")
"""A name, alone or within an expression; not that of a function such as floor."""

INVENTED: Final = "unk__"
"""Prefix of dimension names that the inference of onnx invents."""

_BY_X: Final = re.compile(r"(?=.*(?<![^x])\d+(?![^x]))[^x,\s]+(x[^x,\s]+)+")
_EXPRESSION: Final = re.compile(r"[\w\s+*/%(),-]+")
_IN_PARENTHESES: Final = re.compile(r"(?<!\w)\((\d+)\)")

_OPERATIONS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Fraction | int]]]] = {
    "floor": (1, math.floor), "ceil": (1, math.ceil), "ceiling": (1, math.ceil), "Mod": (2, operator.mod),
    "Max": (0, max), "Min": (0, min),
}  # fmt: skip
"""Functions of SymPy, which exporters use -> number of arguments (0: one or more), and what they compute."""

Part = TypeVar("Part", bound=Record)
Sized = TypeVar("Sized", Dimension, SimpleShardedDim)

_LONGEST: Final = 10_000
"""Maximum number of characters of an expression that is evaluated."""
_MOST_PARTS: Final = 64

Pick = int | range  # one index of a dimension, or several


def split_dimensions(text: str) -> list[str]:
    """Return the dimensions in a text: ``N,16``, ``[N, 16]``, or with at least one number ``1x3xHxW``."""
    text = text.strip()
    if text[:1] + text[-1:] in ("[]", "()"):
        text = text[1:-1].strip()
    if _BY_X.fullmatch(text):
        return text.split("x")
    return [word.strip() for word in text.split(",")] if text else []


def dimension_names(root: Record) -> dict[str, None]:
    """Return every text in a ``dim_param``, in the order of a model, or of a part of one."""
    names = [each.dim_param for each in walk(root, Dimension)]
    names += [each.dim_param for each in walk(root, SimpleShardedDim)]
    return {name: None for name in names if name}


def names_within(root: Record) -> set[str]:
    """Return every text in a ``dim_param`` of a model or of a part of one, and the names in these texts."""
    return {name for text in dimension_names(root) for name in (text, *names_of(text))}


def names_of(text: str) -> list[str]:
    """Return the names in the text of a dimension: those in an expression, else the text."""
    return IDENTIFIER.findall(text) if _EXPRESSION.fullmatch(text) else [text]


def with_dimension(dimension: Sized, size: int | str | None) -> Sized:
    """Return a dimension with another size or name (None: neither); all other fields stay."""
    value = size if isinstance(size, int) else None
    name = size if isinstance(size, str) else None
    if (dimension.dim_value, dimension.dim_param) == (value, name):
        return dimension
    return msgspec.structs.replace(dimension, dim_value=value, dim_param=name)


def size_of(dimension: Dimension) -> int | str | None:
    """Return the size of a dimension, else its name, else None; some exporters write -1 for an unknown size."""
    size = dimension.dim_value
    return dimension.dim_param or (None if size is None or size < 0 else size)


def with_dimension_names(root: Part, sizes: Mapping[str, int | str]) -> Part:
    """Replace names of dimensions in a record by other names or sizes, also within expressions."""
    known = cache(lambda text: substitute(text, sizes))

    def change(dimension: Any) -> Any:
        return with_dimension(dimension, known(dimension.dim_param)) if dimension.dim_param else dimension

    return replace_records(root, (Dimension, SimpleShardedDim), change)


def is_expression(text: str) -> bool:
    """Whether the text of a dimension is arithmetic, and not only a name."""
    return _EXPRESSION.fullmatch(text) is not None and not text.isidentifier()


def substitute(text: str, sizes: Mapping[str, int | str]) -> int | str:
    """Replace names in the text of a dimension; what is constant then becomes a number, such as floor(7/2)."""
    if text in sizes:
        return sizes[text]
    if not is_expression(text):
        return text

    def replaced(match: re.Match[str]) -> str:
        new = sizes.get(match[0], match[0])
        return str(new) if isinstance(new, int) or new.isidentifier() else f"({new})"

    new = IDENTIFIER.sub(replaced, text)
    return text if new == text else _evaluated(new)


def _evaluated(text: str) -> int | str:
    """Return the value of an expression, or the expression with numbers for its constant parts."""
    plain = " ".join(text.split())
    if len(plain) > _LONGEST:
        return text
    numbers: list[tuple[int, int, int]] = []
    try:
        value = _value(ast.parse(plain, mode="eval").body, numbers)
    except (SyntaxError, ValueError, ArithmeticError, KeyError, RecursionError, MemoryError):
        return text
    if value is not None:
        return int(value) if value.denominator == 1 and value >= 0 else text
    encoded = plain.encode()
    for start, end, number in reversed(numbers):
        encoded = encoded[:start] + str(number).encode() + encoded[end:]
    return _IN_PARENTHESES.sub(r"\1", encoded.decode()) if numbers else text


def _value(tree: ast.expr, numbers: list[tuple[int, int, int]]) -> Fraction | None:
    """Return the value of an expression; None if it has names.

    The biggest parts that are whole numbers are added to `numbers`, each with its start and end in bytes.
    """
    parts: list[ast.expr]
    combine: Callable[..., Fraction | int]
    match tree:
        case ast.Constant(value=int(number)):
            parts, combine = [], lambda: number
        case ast.Name():
            return None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            parts, combine = [operand], operator.neg
        case ast.BinOp(left=left, op=operation, right=right):
            parts, combine = [left, right], _OPERATIONS[type(operation)]
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            count, combine = _FUNCTIONS[name]
            if not parts or (count and len(parts) != count):
                raise ValueError("another number of arguments")
        case _:
            raise ValueError("not an expression of a size")
    inner: list[tuple[int, int, int]] = []
    values = [value for part in parts if (value := _value(part, inner)) is not None]
    if len(values) < len(parts):
        numbers += inner
        return None
    value = Fraction(combine(*values))
    if max(abs(value.numerator), value.denominator) > LARGEST_DIM:
        raise OverflowError(value)
    if parts and value.denominator == 1 and value >= 0:
        numbers.append((tree.col_offset, tree.end_col_offset or 0, int(value)))
    else:
        numbers += inner
    return value


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
