"""Dimensions by name: find them, rename them, replace them by sizes.

A dimension is known by its text in ``dim_param``. Exporters also write expressions of names there, such as
``2*batch + 1``; a name within one follows, and an expression whose names all have sizes becomes a size.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from onnxjson.model.document import Dimension, Record, SimpleShardedDim
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.walking import replace_records, walk

IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
"""A name, alone or within an expression."""

INVENTED: Final = "unk__"
"""Prefix of dimension names that the inference of onnx invents."""

_EXPRESSION: Final = re.compile(r"[\w\s+*/()-]+")
_ARITHMETIC: Final = re.compile(r"[0-9\s+*/()-]{1,1000}")

_OPERATIONS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}

Part = TypeVar("Part", bound=Record)
Sized = TypeVar("Sized", Dimension, SimpleShardedDim)


def dimension_names(root: Record) -> dict[str, None]:
    """Return every text in a ``dim_param``, in the order of a model, or of a part of one."""
    names = [each.dim_param for each in walk(root, Dimension)]
    names += [each.dim_param for each in walk(root, SimpleShardedDim)]
    return {name: None for name in names if name}


def names_within(root: Record) -> set[str]:
    """Return every text in a ``dim_param`` of a model or of a part of one, and the names in these texts."""
    return {name for text in dimension_names(root) for name in (text, *IDENTIFIER.findall(text))}


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


def substitute(text: str, sizes: Mapping[str, int | str]) -> int | str:
    """Replace names in the text of a dimension; the result is a size if it is a constant expression."""
    if text in sizes:
        return sizes[text]
    if not _EXPRESSION.fullmatch(text) or text.isidentifier():
        return text

    def replaced(match: re.Match[str]) -> str:
        new = sizes.get(match[0], match[0])
        return str(new) if isinstance(new, int) or new.isidentifier() else f"({new})"

    new = IDENTIFIER.sub(replaced, text)
    if new == text:
        return text
    value = _evaluated(new)
    return new if value is None else value


def _evaluated(text: str) -> int | None:
    """Return the value of a sum of products of whole numbers, or None for other texts and invalid sizes."""
    if not _ARITHMETIC.fullmatch(text):
        return None
    try:
        value = _value(ast.parse(" ".join(text.split()), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, KeyError, RecursionError, MemoryError):
        return None
    return value if 0 <= value <= LARGEST_DIM else None


def _value(tree: ast.expr) -> int:
    match tree:
        case ast.Constant(value=int(value)):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            value, rest = divmod(_value(left), _value(right))
            if rest:
                raise ValueError("not a whole number")
        case ast.BinOp(left=left, op=operation, right=right):
            value = _OPERATIONS[type(operation)](_value(left), _value(right))
        case _:
            raise ValueError("not a sum of products of whole numbers")
    if abs(value) > LARGEST_DIM:
        raise OverflowError(value)
    return value
