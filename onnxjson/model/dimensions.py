"""Dimensions by name: find them, rename them, replace them by sizes.

A dimension is known by its text in ``dim_param``. Exporters also write expressions of names there, such as
``2*batch + 1``; a name within one follows, and an expression whose names all have sizes becomes a size.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from onnxjson.model.document import Dimension, Model, Record, SimpleShardedDim
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.walking import replace_records, walk

IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
"""A name, alone or within an expression."""

_EXPRESSION: Final = re.compile(r"[\w\s+*/()-]+")
_SUM: Final = re.compile(r"\s*(?:(?P<number>[0-9]{1,19})|(?P<mark>//|[-+*()]))")

Part = TypeVar("Part", bound=Record)


def dimension_names(model: Model) -> dict[str, None]:
    """Yield every text in a ``dim_param``, in the order of the model."""
    names = [each.dim_param for each in walk(model, Dimension)]
    names += [each.dim_param for each in walk(model, SimpleShardedDim)]
    return {name: None for name in names if name}


def with_dimension(dimension: Dimension, size: int | str | None) -> Dimension:
    """Return a dimension with another size or name (None: neither); denotation and unknown fields stay."""
    value = size if isinstance(size, int) else None
    name = size if isinstance(size, str) else None
    if (dimension.dim_value, dimension.dim_param) == (value, name):
        return dimension
    return msgspec.structs.replace(dimension, dim_value=value, dim_param=name)


def size_of(dimension: Dimension) -> int | str | None:
    """Return the size of a dimension, else its name, else None."""
    return dimension.dim_param if dimension.dim_param else dimension.dim_value


def with_dimension_names(root: Part, sizes: Mapping[str, int | str]) -> Part:
    """Replace names of dimensions in a record by other names or sizes, also within expressions."""
    known: dict[str, int | str] = {}

    def substituted(text: str) -> int | str:
        if text not in known:
            known[text] = substitute(text, sizes)
        return known[text]

    def change(dimension: Dimension) -> Dimension:
        if not dimension.dim_param:
            return dimension
        return with_dimension(dimension, substituted(dimension.dim_param))

    def change_shards(shards: SimpleShardedDim) -> SimpleShardedDim:
        if not shards.dim_param:
            return shards
        new = substituted(shards.dim_param)
        if new == shards.dim_param:
            return shards
        value, name = (new, None) if isinstance(new, int) else (None, new)
        return msgspec.structs.replace(shards, dim_value=value, dim_param=name)

    root = replace_records(root, Dimension, change)
    return replace_records(root, SimpleShardedDim, change_shards)


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
    tokens = list(_tokens(text))
    if not tokens or None in tokens or len(tokens) > 200:
        return None
    parser = _Arithmetic([token for token in tokens if token is not None])
    try:
        value = parser.sum(0)
    except (ValueError, ZeroDivisionError, IndexError):
        return None
    return value if parser.at == len(parser.tokens) and 0 <= value <= LARGEST_DIM else None


def _tokens(text: str) -> Iterator[str | None]:
    at, text = 0, text.rstrip()
    while at < len(text):
        found = _SUM.match(text, at)
        if found is None:
            yield None
            return
        at = found.end()
        yield found[0].strip()


class _Arithmetic:
    """A recursive descent over the tokens of one expression."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def _take(self, *marks: str) -> str:
        """Consume and return the next token if it is one of the marks, else ""."""
        if self.at < len(self.tokens) and self.tokens[self.at] in marks:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def sum(self, depth: int) -> int:
        """Evaluate a sum; raise ValueError, ZeroDivisionError or IndexError where the tokens are not an expression."""
        if depth > 20:
            raise ValueError("too many brackets")
        value = self._product(depth)
        while mark := self._take("+", "-"):
            term = self._product(depth)
            value += term if mark == "+" else -term
        return value

    def _product(self, depth: int) -> int:
        value = self._factor(depth)
        while mark := self._take("*", "//"):
            factor = self._factor(depth)
            value = value * factor if mark == "*" else value // factor
            if abs(value) > LARGEST_DIM:
                raise ValueError("no size is so big")
        return value

    def _factor(self, depth: int) -> int:
        if self._take("-"):
            return -self._factor(depth + 1)
        if self._take("("):
            value = self.sum(depth + 1)
            if not self._take(")"):
                raise ValueError("a bracket is not closed")
            return value
        self.at += 1
        return int(self.tokens[self.at - 1])
