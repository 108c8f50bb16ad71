"""Parameters of edits and passes, derived from the annotations of their fields.

An annotation is one of these types, with ``| None`` if the parameter is optional::

    str  int  float  bool  Literal["a", "b"]  Any (a JSON value)
    tuple[X, ...]  dict[str, X]  int | str

``Annotated[..., Role("node"), about("...", ge=0, min_length=1)]`` adds what a string names, a
description, and limits. One reader checks values from Python, scripts, the command line and forms.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from onnxjson.editing.values import ValueMistakeError, found_words, plain_value
from onnxjson.model.display import suggest, visible
from onnxjson.model.document import Record

Form = Literal["text", "integer", "number", "flag", "choice", "value", "list", "mapping", "size"]
"""Type of a parameter; "size" is an integer or a string, "value" any JSON value."""

JOINED: Final = ("integer", "size", "number")
"""Forms of list items that commas may join on a command line."""

COMMON: Final = ("expect", "if_any")
"""Parameters of all edits that select something."""

_SELECTING: Final = frozenset(
    ("nodes", "node", "tensor", "tensors", "constant", "input", "output", "name", "dim", "graph", "address")
)
"""Roles of parameters that may select nothing, or several elements."""

_FORMS: Final[dict[Any, Form]] = {str: "text", int: "integer", float: "number", bool: "flag", Any: "value"}

_LEAST: Final[dict[Form, str]] = {"text": "minLength", "integer": "minimum", "list": "minItems"}
"""The keywords of a JSON Schema for a smallest number or length."""

_TYPES: Final[dict[Form, type]] = {"text": str, "flag": bool, "choice": str, "mapping": Mapping}


@dataclass(frozen=True, slots=True)
class Role:
    """Kind of thing that a string names: "nodes", "node", "tensor", "attribute", "type", "shape", "dim", "file" ..."""

    name: str


def about(description: str, **limits: Any) -> msgspec.Meta:
    """Return the description and the limits of a parameter, such as ``ge=0`` and ``min_length=1``."""
    return msgspec.Meta(description=description, **limits)


class Shape(NamedTuple):
    """Type of a parameter with its limits."""

    form: Form
    choices: tuple[str, ...] = ()
    """Values of a "choice"."""
    item: "Shape | None" = None
    """Type of the members of a "list" or "mapping"."""
    least: int | None = None
    """Smallest number, or smallest length."""

    def read(self, value: object) -> Any:
        """Convert a value: lists become tuples, all others plain JSON values.

        Raises:
            ValueMistakeError: it has another type.
        """
        kind = _TYPES.get(self.form, object)
        if not isinstance(value, kind):
            raise ValueMistakeError(found_words(value), self.fits)
        return _READERS[self.form](self, value)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the values that fit."""
        keyword = _LEAST.get(self.form)
        least = {keyword: self.least} if keyword and self.least is not None else {}
        match self.form:
            case "choice":
                return {"enum": list(self.choices)}
            case "size":
                return {"type": ["integer", "string"]}
            case "list":
                return {"type": "array", "items": (self.item or _VALUE).schema} | least
            case "mapping":
                return {"type": "object", "additionalProperties": (self.item or _VALUE).schema}
        plain = {"text": "string", "integer": "integer", "number": "number", "flag": "boolean"}
        return {"type": plain[self.form]} | least if self.form in plain else {}

    @property
    def fits(self) -> str:
        """Description of the values that fit."""
        from_least = "" if self.least is None else f" from {self.least}"
        match self.form:
            case "integer":
                return f"an integer{from_least}"
            case "number":
                return f"a number{from_least}"
            case "choice":
                return "one of " + ", ".join(self.choices)
            case "list":
                return "a list, each item " + (self.item or _VALUE).fits
            case "mapping":
                return "an object, each value " + (self.item or _VALUE).fits
        plain = {"text": "a string", "flag": "true or false", "size": "an integer or a string"}
        return plain.get(self.form, "a JSON value")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an edit or a pass."""

    field: str
    """Name in Python, such as ``from_``."""
    name: str
    """Name everywhere else, such as ``from``."""
    shape: Shape
    description: str
    role: str
    """Kind of thing that its text names (see `Role`), "" if nothing in particular."""
    required: bool
    default: Any

    @property
    def label(self) -> str:
        """Name for the user, such as ``doc string``."""
        return self.name.replace("_", " ").replace("-", " ")

    @property
    def is_common(self) -> bool:
        """Whether all edits that select something have this parameter."""
        return self.field in COMMON

    @property
    def metavar(self) -> str:
        """Placeholder for the value in a help text, "" for a flag."""
        match self.shape.form:
            case "flag":
                return ""
            case "choice":
                return "|".join(self.shape.choices)
            case "mapping":
                return "NAME=VALUE"
            case "list" if self.shape.item is not None and self.shape.item.form in JOINED:
                return "DIM,..." if self.shape.item.form == "size" else "NUMBER,..."
            case "integer" | "number":
                return "NUMBER"
            case "value":
                return "JSON"
            case "size":
                return "INPUT" if self.role == "input" else "SIZE"
            case _:
                return "SELECTOR" if self.role in ("nodes", "node") else self.role.upper() or "TEXT"

    def read(self, value: object) -> Any:
        """Convert a value; None is accepted if the parameter is optional.

        Raises:
            ValueMistakeError: it does not fit.
        """
        if value is None and not self.required and self.default is None:
            return None
        return self.shape.read(value)


@lru_cache(maxsize=256)
def parameters(edit: type[msgspec.Struct]) -> tuple[Parameter, ...]:
    """Return the parameters of an edit or a pass in the order of the declaration, those of all selectors last."""
    hints = get_type_hints(edit, include_extras=True)
    fields = msgspec.structs.fields(edit)
    declared = [_parameter(field, hints[field.name]) for field in fields]
    specific = [each for each in declared if each.field not in COMMON]
    is_selecting = any(each.role in _SELECTING for each in specific)
    return (*specific, *[each for each in declared if each.field in COMMON and is_selecting])


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
    """Smallest number or length in the annotations of a type."""
    least = None
    for extra in extras:
        if isinstance(extra, msgspec.Meta):
            least = extra.ge if isinstance(extra.ge, int) else least
            least = extra.min_length if extra.min_length is not None else least
    return least


def _extras(hint: Any) -> list[Any]:
    """Return the extras of ``Annotated`` around a type, also inside ``| None``."""
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
        raise TypeError(f"{hint} is not a type of a parameter")
    if origin is Literal:
        return Shape("choice", choices=get_args(hint))
    if origin is tuple:
        return Shape("list", item=_shape(get_args(hint)[0]))
    if origin is dict:
        return Shape("mapping", item=_shape(get_args(hint)[1]))
    if hint not in _FORMS:
        raise TypeError(f"{hint} is not a type of a parameter")
    return Shape(_FORMS[hint])


def _read_text(shape: Shape, value: str) -> str:
    if shape.least and len(value) < shape.least:
        raise ValueMistakeError("an empty text", shape.fits)
    return value


def _read_number(shape: Shape, value: object) -> Any:
    """Read a whole number, a number, or a size, which may also be a text."""
    if shape.form == "size" and isinstance(value, str):
        return value
    if shape.form == "number":
        fits, number = isinstance(value, int | float) and not isinstance(value, bool), value
    else:
        fits = hasattr(value, "__index__") and not isinstance(value, bool | float | str)
        number = int(value.__index__()) if fits else None  # type: ignore[attr-defined]
    if not fits:
        raise ValueMistakeError(found_words(value), shape.fits)
    if shape.least is not None and not number >= shape.least:  # type: ignore[operator]
        least = f", the number from {shape.least}," if shape.form == "size" else ""
        raise ValueMistakeError(found_words(number), shape.fits + least)
    return number


def _read_choice(shape: Shape, value: str) -> str:
    if value not in shape.choices:
        near = suggest(value, shape.choices)
        raise ValueMistakeError(f'the string "{visible(value, 40)}"', f"{shape.fits}{'; ' if near else ''}{near}")
    return value


def _read_list(shape: Shape, value: object) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Record) or not isinstance(value, Sequence):
        raise ValueMistakeError(found_words(value), shape.fits)
    if shape.least and len(value) < shape.least:
        many = f"at least {shape.least} item" + "s" * (shape.least != 1)
        raise ValueMistakeError("an empty list" if not value else f"a list of {len(value)}", many)
    item = shape.item or _VALUE
    return tuple([_member(item, each, position) for position, each in enumerate(value)])


def _read_mapping(shape: Shape, value: Mapping[object, object]) -> dict[str, Any]:
    item = shape.item or _VALUE
    members = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise ValueMistakeError(f"the key {found_words(key)}", "string keys")
        members[key] = _member(item, member, key)
    return members


def _member(shape: Shape, value: object, key: str | int) -> Any:
    try:
        return shape.read(value)
    except ValueMistakeError as mistake:
        raise ValueMistakeError(mistake.found, mistake.fits, (key, *mistake.path)) from None


_READERS: Final[dict[Form, Callable[[Shape, Any], Any]]] = {
    "text": _read_text,
    "integer": _read_number,
    "number": _read_number,
    "flag": lambda _, value: value,
    "choice": _read_choice,
    "value": lambda _, value: plain_value(value),
    "list": _read_list,
    "mapping": _read_mapping,
    "size": _read_number,
}
_VALUE: Final = Shape("value")
