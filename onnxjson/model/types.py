"""The one-line grammar of types, both ways: ``float32[N,3,?]``, ``seq(int64[])``, ``dtype(99)``.

docs/format.md section 5 is its specification. A type that the grammar cannot represent has no text here (`None`); it is
written in the full form of its message instead.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import astuple, replace

from onnxjson.model import document as d
from onnxjson.model.dtypes import DATA_TYPE_NAMES, DATA_TYPES
from onnxjson.model.foreign_words import meant
from onnxjson.model.limits import LARGEST_DIM, TYPE_DEPTH

T = TypeVar("T")

_TOKEN = re.compile(
    r" *(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<quoted>'[^']*')|(?P<digits>-?[0-9]+)"
    r"|(?P<mark>[\[\](),?])|(?P<other>[^ ])|$)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_IN_QUOTES = re.compile("['\\\\\ud800-\udfff]")
_DIM_FITS = "`?`, a name or a number from 0"


class TypeSyntaxError(ValueError):
    """A text is not a type. ``position`` counts characters from 0; ``found`` and ``fits`` are phrases for a message."""

    def __init__(self, position: int, problem: str, fits: str) -> None:
        super().__init__(f"{problem}; {fits}" if fits else problem)
        self.position = position
        self.found = problem
        self.fits = fits


def format_data_type(number: int) -> str:
    """Return the name of a number of TensorProto.DataType; ``dtype(99)`` for one that onnx does not define."""
    return DATA_TYPE_NAMES.get(number) or f"dtype({number})"


def parse_data_type(name: str) -> int:
    """Return the number of TensorProto.DataType for a name of the text or of onnx; else raise TypeSyntaxError."""
    number = DATA_TYPES.get(name)
    if number is not None:
        return number
    parser = _Parser(name)
    number = parser.data_type()
    parser.end()
    return number


def format_type(value: d.Type) -> str | None:
    """Return the text of a type, or `None` where the grammar cannot represent exactly this record."""
    try:
        return _format(value, 0)
    except _UnrepresentableError:
        return None


def shown_type(value: d.Type) -> str:
    """Return the text of a type to read, also of one with denotations or with the size -1 of some exporters."""
    try:
        return _format(value, 0, is_shown=True)
    except _UnrepresentableError:
        return "a type without a short form"


def parse_type(text: str) -> d.Type:
    """Parse the text of a type; raise TypeSyntaxError if it is not in the grammar."""
    parser = _Parser(text)
    result = parser.type(0)
    parser.end()
    return result


def innermost(declared: d.Type | None) -> d.Type | None:
    """Return the type in sequences and optional values: what they are made of, or the type itself."""
    while declared is not None and (declared.optional_type is not None or declared.sequence_type is not None):
        outer = declared.optional_type or declared.sequence_type
        declared = None if outer is None else outer.elem_type
    return declared


def contradict(one: d.Type | None, other: d.Type | None) -> bool:
    """Whether two types that are stated of one tensor differ in the data type, the rank or a size."""
    tensor, other_tensor = [None if each is None else each.tensor_type for each in (one, other)]
    if tensor is None or other_tensor is None:
        return False
    if tensor.elem_type and other_tensor.elem_type and tensor.elem_type != other_tensor.elem_type:
        return True
    if tensor.shape is None or other_tensor.shape is None:
        return False
    if len(tensor.shape.dim) != len(other_tensor.shape.dim):
        return True
    sizes = [(a.dim_value, b.dim_value) for a, b in zip(tensor.shape.dim, other_tensor.shape.dim, strict=True)]
    return any([None not in pair and pair[0] != pair[1] for pair in sizes])


def format_tensor_type(data_type: int, dims: tuple[int, ...]) -> str | None:
    """Return ``float32[2,3]`` for a constant; `None` for an undefined data type and for negative dims."""
    name = DATA_TYPE_NAMES.get(data_type)
    if name is None or any(dim < 0 for dim in dims):
        return None
    return f"{name}[{','.join(map(str, dims))}]"


def parse_tensor_type(text: str) -> tuple[int, tuple[int, ...]]:
    """Return data type and dims of a constant, from ``float32[2,3]``; raise TypeSyntaxError for any other text."""
    parser = _Parser(text)
    start = parser.start()
    data_type = parser.data_type()
    if data_type not in DATA_TYPE_NAMES:
        raise TypeSyntaxError(start, f"dtype({data_type})", "a constant in short form needs a dtype that onnx defines")
    if parser.peek() != "[":
        raise parser.error("the dims of the constant, such as float32[2,3], or float32[] for a scalar")
    dims = parser.constant_dims()
    parser.end()
    return data_type, dims


class _UnrepresentableError(Exception):
    """The grammar has no text for this record."""


def _format(value: d.Type, depth: int, *, is_shown: bool = False) -> str:
    if (not is_shown and (value.denotation is not None or value.unknown_fields)) or depth > TYPE_DEPTH:
        raise _UnrepresentableError
    present = [kind for kind in astuple(value) if isinstance(kind, d.Record)]
    if len(present) != 1 or (present[0].unknown_fields and not is_shown):
        raise _UnrepresentableError
    match present[0]:
        case d.TensorType() as tensor:
            return _format_tensor(tensor, is_shown)
        case d.SparseTensorType() as tensor:
            return f"sparse({_format_tensor(tensor, is_shown)})"
        case d.SequenceType(elem_type=d.Type() as element):
            return f"seq({_format(element, depth + 1, is_shown=is_shown)})"
        case d.OptionalType(elem_type=d.Type() as element):
            return f"optional({_format(element, depth + 1, is_shown=is_shown)})"
        case d.MapType(key_type=int(key), value_type=d.Type() as element):
            return f"map({format_data_type(key)},{_format(element, depth + 1, is_shown=is_shown)})"
        case d.OpaqueType() as opaque:
            return f"opaque({_format_opaque_name(opaque.domain)},{_format_opaque_name(opaque.name)})"
        case _:
            raise _UnrepresentableError


def _format_tensor(tensor: d.TensorType | d.SparseTensorType, is_shown: bool) -> str:
    if tensor.elem_type is None:
        raise _UnrepresentableError
    name = format_data_type(tensor.elem_type)
    if tensor.shape is None:
        return name
    if tensor.shape.unknown_fields and not is_shown:
        raise _UnrepresentableError
    return f"{name}[{','.join([_format_dim(dim, is_shown) for dim in tensor.shape.dim])}]"


def _format_dim(dim: d.Dimension, is_shown: bool) -> str:
    if not is_shown and (dim.denotation is not None or dim.unknown_fields):
        raise _UnrepresentableError
    if dim.denotation is not None:
        return f"{_format_dim(replace(dim, denotation=None), is_shown)}({dim.denotation})"
    if dim.dim_param is not None:
        if dim.dim_value is not None:
            raise _UnrepresentableError
        return dim.dim_param if _IDENTIFIER.fullmatch(dim.dim_param) else _quote(dim.dim_param)
    if dim.dim_value is None:
        return "?"
    if dim.dim_value < 0 and not is_shown:
        raise _UnrepresentableError
    return str(dim.dim_value)


def _format_opaque_name(name: str | None) -> str:
    return "" if name is None else _quote(name)


def _quote(name: str) -> str:
    if _NOT_IN_QUOTES.search(name):
        raise _UnrepresentableError
    return f"'{name}'"


class _Parser:
    """A recursive descent over one text, bounded by `TYPE_DEPTH`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._next: re.Match[str] | None = None

    def peek(self) -> str:
        """Return the next token, "" at the end."""
        return self._match().group().lstrip(" ")

    def kind(self) -> str:
        return self._match().lastgroup or "end"

    def take(self) -> str:
        token = self.peek()
        self.position = self._match().end()
        self._next = None
        return token

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.error(f"`{mark}`")
        self.take()

    def end(self) -> None:
        if self.kind() != "end":
            raise self.error("the end of the type")

    def error(self, fits: str) -> TypeSyntaxError:
        token = self.peek()
        return TypeSyntaxError(self.start(), f"`{token}`" if token else "the end of the type", fits)

    def _match(self) -> re.Match[str]:
        if self._next is None:
            self._next = _TOKEN.match(self.text, self.position)
            if self._next is None:
                raise AssertionError("the token pattern matches everywhere")
        return self._next

    def start(self) -> int:
        match = self._match()
        return match.end() - len(match.group().lstrip(" "))

    def type(self, depth: int) -> d.Type:
        if depth > TYPE_DEPTH:
            raise TypeSyntaxError(self.start(), f"a type in more than {TYPE_DEPTH} others", "write it in full")
        if self._next_is_call():
            match self.peek():
                case "seq":
                    return d.Type(sequence_type=d.SequenceType(elem_type=self._only_argument(depth)))
                case "optional":
                    return d.Type(optional_type=d.OptionalType(elem_type=self._only_argument(depth)))
                case "map":
                    return self._map(depth)
                case "sparse":
                    self._open()
                    elem_type, shape = self._tensor()
                    self.expect(")")
                    return d.Type(sparse_tensor_type=d.SparseTensorType(elem_type=elem_type, shape=shape))
                case "opaque":
                    return self._opaque()
        elem_type, shape = self._tensor()
        return d.Type(tensor_type=d.TensorType(elem_type=elem_type, shape=shape))

    def _next_is_call(self) -> bool:
        match = self._match()
        following = _TOKEN.match(self.text, match.end())
        return match.lastgroup == "name" and following is not None and following.group("mark") == "("

    def _open(self) -> None:
        self.take()
        self.expect("(")

    def _only_argument(self, depth: int) -> d.Type:
        self._open()
        element = self.type(depth + 1)
        self.expect(")")
        return element

    def _map(self, depth: int) -> d.Type:
        self._open()
        key_type = self.data_type()
        self.expect(",")
        value_type = self.type(depth + 1)
        self.expect(")")
        return d.Type(map_type=d.MapType(key_type=key_type, value_type=value_type))

    def _opaque(self) -> d.Type:
        self._open()
        domain = self._optional_quoted(",")
        self.expect(",")
        name = self._optional_quoted(")")
        self.expect(")")
        return d.Type(opaque_type=d.OpaqueType(domain=domain, name=name))

    def _optional_quoted(self, after: str) -> str | None:
        if self.peek() == after:
            return None
        if self.kind() != "quoted":
            raise self.error(f"a name in single quotes or `{after}`")
        return self._quoted()

    def _quoted(self) -> str:
        start = self.start()
        name = self.take()[1:-1]
        if wrong := _NOT_IN_QUOTES.search(name):
            raise TypeSyntaxError(
                start + 1 + wrong.start(),
                "a character that is not allowed in a quoted name (a backslash or half of a surrogate pair)",
                "write the type in full, as an object",
            )
        return name

    def data_type(self) -> int:
        if self.kind() != "name":
            raise self.error("a dtype, such as float32")
        start = self.start()
        if self.peek() == "dtype" and self._next_is_call():
            self._open()
            number = self._number("the number of a data type", -(2**31), 2**31 - 1)
            self.expect(")")
            return number
        name = self.take()
        known = DATA_TYPES.get(name)
        if known is None:
            raise TypeSyntaxError(start, f"the dtype `{name}`", _nearest_data_types(name))
        return known

    def _tensor(self) -> tuple[int, d.TensorShape | None]:
        elem_type = self.data_type()
        return elem_type, d.TensorShape(dim=self._bracketed(self._dim)) if self.peek() == "[" else None

    def _bracketed(self, item: Callable[[], T]) -> tuple[T, ...]:
        self.expect("[")
        items: list[T] = []
        while self.peek() != "]" or items:
            items.append(item())
            if self.peek() != ",":
                break
            self.take()
        if self.peek() != "]":
            raise self.error("`,` or `]`")
        self.take()
        return tuple(items)

    def _dim(self) -> d.Dimension:
        match self.kind():
            case "name":
                return d.Dimension(dim_param=self.take())
            case "quoted":
                return d.Dimension(dim_param=self._quoted())
            case "digits":
                return d.Dimension(dim_value=self._number(_DIM_FITS, 0, LARGEST_DIM))
            case "mark" if self.peek() == "?":
                self.take()
                return d.Dimension()
        if self.peek() == "'":
            raise self.error("a closing quote for the name of the dimension")
        raise self.error(_DIM_FITS)

    def constant_dims(self) -> tuple[int, ...]:
        """Parse the bracketed dims of a constant, which are all numbers."""
        return self._bracketed(lambda: self._number("a number from 0, since this is a constant", 0, LARGEST_DIM))

    def _number(self, fits: str, smallest: int, largest: int) -> int:
        if self.kind() != "digits":
            raise self.error(fits)
        digits = self.peek()
        # At most 19 digits are converted: Python's int() of a long text needs quadratic time and refuses 4301 digits.
        number = int(digits) if len(digits) <= 20 else None
        if number is None or not smallest <= number <= largest:
            raise self.error(fits if digits.startswith("-") else f"a number up to {largest}")
        if str(number) != digits:
            raise self.error("the number without leading zeros or a sign")
        self.take()
        return number


def _nearest_data_types(name: str) -> str:
    import difflib

    names = [name for name in DATA_TYPE_NAMES.values() if name != "undefined"]
    plain = name.lower().removeprefix("torch.")
    near = difflib.get_close_matches(plain, names, n=len(names), cutoff=0.6)
    near = sorted(near, key=lambda each: sorted(each) != sorted(plain))[:2]  # first those of the same letters
    near = meant("dtype", plain) or ([plain] if plain in names else near)
    if not near:
        return "the dtypes are " + ", ".join(names)
    return "did you mean " + " or ".join(near) + "?"
