"""A form for each edit, described so that any user interface can show it and make the edit of what is filled in."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from onnxjson.edits.catalogue import EDITS, edit_named
from onnxjson.edits.declaration import Edit, name_of, said
from onnxjson.edits.parameters import COMMON, Parameter, parameters
from onnxjson.edits.spelling import build, option_of, positional, summary, texts_of

FieldKind = Literal["text", "integer", "number", "flag", "choice", "json", "list", "mapping"]
"""How a field is shown: a line of text, a number, a box to tick, a choice, JSON, lines of items or of NAME=VALUE."""


class Field(msgspec.Struct, frozen=True):
    """One field of a form."""

    name: str
    label: str
    kind: FieldKind
    help: str
    required: bool
    default: Any = None
    """As a script has it; None where nothing is filled in."""
    choices: tuple[str, ...] = ()
    role: str = ""
    """What its text names, such as "nodes", "tensor" or "file", so that an interface can offer what there is."""
    minimum: int | None = None
    """The smallest whole number."""
    advanced: bool = False
    """Whether it is of use to scripts more than to people."""


class Form(msgspec.Struct, frozen=True):
    """All fields of an edit, in the order in which they are filled in."""

    edit: str
    title: str
    help: str
    fields: tuple[Field, ...]


def form(edit: type[Edit] | str) -> Form:
    """The form of an edit, by its class or its name.

    Raises:
        ParameterError: there is no edit of that name.
    """
    kind = edit_named(edit) if isinstance(edit, str) else edit
    first = positional(kind)
    ordered = [*first, *[each for each in parameters(kind) if each not in first]]
    name = name_of(kind)
    title = name.replace("-", " ").capitalize()
    return Form(name, title, paragraphs(kind), tuple([_field(each) for each in ordered]))


def forms() -> tuple[Form, ...]:
    """The forms of all edits."""
    return tuple([form(edit) for edit in EDITS])


def fill(edit: type[Edit] | str, texts: Mapping[str, str | Sequence[str] | bool]) -> Edit:
    """The edit of what was filled in.

    Args:
        edit: its class or name.
        texts: what stands in the fields, by their names; empty and missing ones are left out. Lists and objects may
            be lines or sequences of items.

    Raises:
        ParameterError: a field does not fit, or is missing.
    """
    kind = edit_named(edit) if isinstance(edit, str) else edit
    given: dict[str, list[str]] = {}
    known = {each.name: each for each in parameters(kind)}
    for name, text in texts.items():
        if isinstance(text, bool):
            given[name] = [] if text else ["no"]
        elif isinstance(text, str):
            lines = text.splitlines() if name in known and known[name].shape.form in ("list", "mapping") else [text]
            if any(lines):
                given[name] = lines
        elif text:
            given[name] = list(text)
    return build(kind, given, ())


def filled(edit: Edit) -> dict[str, str | bool]:
    """What stands in the fields of a form for an edit that is there already; lists have an item a line."""
    known = {each.name: each for each in parameters(type(edit))}
    found: dict[str, str | bool] = {}
    for name, value in said(edit).items():
        found[name] = value if isinstance(value, bool) else "\n".join(texts_of(known[name].shape, value))
    return found


def paragraphs(edit: type[Edit]) -> str:
    """What an edit does: the summary, and what more its declaration says, paragraphs apart by an empty line."""
    more = (edit.__doc__ or "").strip().partition("\n")[2]
    blocks = [" ".join(block.split()) for block in more.split("\n\n")]
    return "\n\n".join([summary(edit), *[block for block in blocks if block]])


def _field(parameter: Parameter) -> Field:
    shape = parameter.shape
    kinds: dict[str, FieldKind] = {"value": "json", "size": "text"}
    kind: Any = kinds.get(shape.form, shape.form)
    default = parameter.default
    return Field(
        parameter.name,
        option_of(parameter)[2:].replace("-", " "),
        kind,
        parameter.description,
        parameter.required,
        list(default) if isinstance(default, tuple) else default,
        shape.choices,
        parameter.role,
        shape.least if shape.form == "integer" else None,
        parameter.field in COMMON,
    )
