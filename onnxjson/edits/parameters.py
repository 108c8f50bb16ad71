"""What a parameter of an edit takes, from its annotation: one reader for Python, scripts, the command line and forms.

An annotation is a type of these, with ``| None`` where the parameter may be left out::

    str  int  float  bool  Literal["a", "b"]  Any (a JSON value)
    tuple[X, ...]  dict[str, X]  int | str

and ``Annotated[..., Role("node"), msgspec.Meta(description="...", ge=0, min_length=1)]`` says what a text names, and
what is to be said and checked.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from onnxjson.display import visible
from onnxjson.document import Record
from onnxjson.edits.values import ValueMistakeError, found_words, plain_value
from onnxjson.suggestions import suggest

Form = Literal["text", "integer", "number", "flag", "choice", "value", "list", "mapping", "size"]
"""What a parameter holds; "size" is a whole number or a text, "value" any JSON value."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a text names: "nodes", "node", "tensor", "attribute", "type", "shape", "dim", "file" ..."""

    name: str


class Shape(NamedTuple):
    """The type of a parameter, without what is said about it."""

    form: Form
    choices: tuple[str, ...] = ()
    """Of "choice"."""
    item: "Shape | None" = None
    """Of "list" and "mapping" the type of the members."""
    least: int | None = None
    """The smallest whole number, or the smallest length."""

    def read(self, value: object) -> Any:
        """The value as the edit holds it: lists as tuples, JSON values as plain ones.

        Raises:
            ValueMistakeError: it is of another kind.
        """
        return _READERS[self.form](self, value)

    @property
    def fits(self) -> str:
        """What a value is, in words."""
        match self.form:
            case "text":
                return "a text"
            case "integer":
                return "a whole number" if self.least is None else f"a whole number from {self.least}"
            case "number":
                return "a number" if self.least is None else f"a number from {self.least}"
            case "flag":
                return "true or false"
            case "size":
                return "a whole number or a text"
            case "choice":
                return "one of " + ", ".join(self.choices)
            case "list":
                return "a list, each item " + (self.item or _VALUE).fits
            case "mapping":
                return "an object, each value " + (self.item or _VALUE).fits
            case _:
                return "a JSON value"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an edit."""

    field: str
    """The name in Python, such as ``from_``."""
    name: str
    """The name everywhere else, such as ``from``."""
    shape: Shape
    description: str
    role: str
    """What its text names, "" where nothing in particular."""
    required: bool
    default: Any

    def read(self, value: object) -> Any:
        """The value as the edit holds it; None where it is left out and may be.

        Raises:
            ValueMistakeError: it does not fit.
        """
        if value is None and not self.required and self.default is None:
            return None
        return self.shape.read(value)


@lru_cache(maxsize=256)
def parameters(edit: type[msgspec.Struct]) -> tuple[Parameter, ...]:
    """The parameters of an edit in the order of its declaration, those of all edits last."""
    hints = get_type_hints(edit, include_extras=True)
    fields = msgspec.structs.fields(edit)
    found = [_parameter(field, hints[field.name]) for field in fields]
    return tuple(sorted(found, key=lambda each: each.field in COMMON))


COMMON: Final = ("expect",)
"""Parameters that every edit has."""


def _parameter(field: msgspec.structs.FieldInfo, hint: Any) -> Parameter:
    description, role = "", ""
    for extra in _extras(hint):
        if isinstance(extra, Role):
            role = extra.name
        elif isinstance(extra, msgspec.Meta):
            description = extra.description or description
    default = field.default if field.default is not msgspec.NODEFAULT else None
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    shape = _shape(hint)._replace(least=_least(_extras(hint)))
    return Parameter(field.name, field.encode_name, shape, description, role, field.required, default)


def _least(extras: Sequence[object]) -> int | None:
    """The least number, or length, that is said at the outside of a type."""
    least = None
    for extra in extras:
        if isinstance(extra, msgspec.Meta):
            least = extra.ge if isinstance(extra.ge, int) else least
            least = extra.min_length if extra.min_length is not None else least
    return least


def _extras(hint: Any) -> list[Any]:
    """What ``Annotated`` says at the outside of a type, also inside of ``| None``."""
    if get_origin(hint) is Annotated:
        return [*_extras(hint.__origin__), *hint.__metadata__]
    if get_origin(hint) in (Union, types.UnionType):
        return [extra for part in get_args(hint) for extra in _extras(part)]
    return []


def _shape(hint: Any) -> Shape:
    origin = get_origin(hint)
    if origin is Annotated:
        return _shape(hint.__origin__)._replace(least=_least(hint.__metadata__))
    if origin in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        if len(parts) == 1:
            return _shape(parts[0])
        if {_shape(part).form for part in parts} == {"integer", "text"}:
            return Shape("size")
        raise TypeError(f"{hint} is no type of a parameter")
    if origin is Literal:
        return Shape("choice", choices=get_args(hint))
    if origin is tuple:
        return Shape("list", item=_shape(get_args(hint)[0]))
    if origin is dict:
        return Shape("mapping", item=_shape(get_args(hint)[1]))
    if hint not in _FORMS:
        raise TypeError(f"{hint} is no type of a parameter")
    return Shape(_FORMS[hint])


_FORMS: Final[dict[Any, Form]] = {str: "text", int: "integer", float: "number", bool: "flag", Any: "value"}


def _read_text(shape: Shape, value: object) -> str:
    if not isinstance(value, str):
        raise ValueMistakeError(found_words(value), shape.fits)
    if shape.least and len(value) < shape.least:
        raise ValueMistakeError("an empty text", shape.fits)
    return value


def _read_integer(shape: Shape, value: object) -> int:
    if isinstance(value, bool | float | str) or not hasattr(value, "__index__"):
        raise ValueMistakeError(found_words(value), shape.fits)
    number = value.__index__()
    if shape.least is not None and number < shape.least:
        raise ValueMistakeError(found_words(number), shape.fits)
    return int(number)


def _read_number(shape: Shape, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueMistakeError(found_words(value), shape.fits)
    if shape.least is not None and not value >= shape.least:
        raise ValueMistakeError(found_words(value), shape.fits)
    return value


def _read_flag(shape: Shape, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueMistakeError(found_words(value), shape.fits)
    return value


def _read_choice(shape: Shape, value: object) -> str:
    if not isinstance(value, str):
        raise ValueMistakeError(found_words(value), shape.fits)
    if value not in shape.choices:
        near = suggest(value, shape.choices)
        raise ValueMistakeError(f'the text "{visible(value, 40)}"', f"{shape.fits}{'; ' if near else ''}{near}")
    return value


def _read_size(shape: Shape, value: object) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | float) or not hasattr(value, "__index__"):
        raise ValueMistakeError(found_words(value), shape.fits)
    number = int(value.__index__())
    if shape.least is not None and number < shape.least:
        raise ValueMistakeError(found_words(number), f"{shape.fits}, the number from {shape.least},")
    return number


def _read_value(_: Shape, value: object) -> Any:
    return plain_value(value)


def _read_list(shape: Shape, value: object) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Record) or not isinstance(value, Sequence):
        raise ValueMistakeError(found_words(value), shape.fits)
    if shape.least and len(value) < shape.least:
        many = f"at least {shape.least} item" + "s" * (shape.least != 1)
        raise ValueMistakeError("an empty list" if not value else f"a list of {len(value)}", many)
    item = shape.item or _VALUE
    return tuple([_member(item, each, position) for position, each in enumerate(value)])


def _read_mapping(shape: Shape, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueMistakeError(found_words(value), shape.fits)
    item = shape.item or _VALUE
    found = {}
    for key, each in value.items():
        if not isinstance(key, str):
            raise ValueMistakeError(f"the key {found_words(key)}", "keys that are texts")
        found[key] = _member(item, each, key)
    return found


def _member(shape: Shape, value: object, key: str | int) -> Any:
    try:
        return shape.read(value)
    except ValueMistakeError as mistake:
        raise ValueMistakeError(mistake.found, mistake.fits, (key, *mistake.path)) from None


_READERS: Final[dict[Form, Callable[[Shape, object], Any]]] = {
    "text": _read_text,
    "integer": _read_integer,
    "number": _read_number,
    "flag": _read_flag,
    "choice": _read_choice,
    "value": _read_value,
    "list": _read_list,
    "mapping": _read_mapping,
    "size": _read_size,
}
_VALUE: Final = Shape("value")
