"""What stands in the fields of the form of an edit, and the edit that it makes."""

from collections.abc import Mapping
from typing import Final

from onnxjson.edits.declaration import Edit, said
from onnxjson.edits.forms import Field, Form, form
from onnxjson.edits.parameters import Parameter, Shape, parameters
from onnxjson.edits.spelling import build, texts_of, value_of_texts
from onnxjson.edits.values import ValueMistakeError, write_value
from onnxjson.errors import ParameterError
from onnxjson_tui.forms.words import is_plain

EMPTY: Final = '""'
"""What a person types where an empty text is meant, since an empty field is one that is left out."""

YES: Final = "yes"
NO: Final = "no"

_JOINED: Final = ("integer", "number", "size")


class Filling:
    """A form that is being filled in; every field holds a text."""

    def __init__(self, edit: type[Edit], texts: Mapping[str, str] | None = None) -> None:
        """Begins a form.

        Args:
            edit: the class of the edit.
            texts: what stands in the fields at first, by their names; lists have an item a line, flags "yes" or "no".
        """
        self.edit_type = edit
        self.form: Form = form(edit)
        self.texts: dict[str, str] = {field.name: "" for field in self.form.fields} | dict(texts or {})
        self._parameters = {each.name: each for each in parameters(edit)}

    @classmethod
    def of(cls, edit: Edit) -> "Filling":
        """The form as it is filled in for an edit that is there already."""
        filling = cls(type(edit))
        for name, value in said(edit).items():
            filling.texts[name] = _text_of(filling._parameters[name].shape, value)
        return filling

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in their order."""
        return self.form.fields

    def has_lines(self, field: Field) -> bool:
        """Whether a field has room for several lines."""
        shape = self._parameters[field.name].shape
        is_list = shape.form == "list" and _item(shape).form not in _JOINED
        return is_list or shape.form == "mapping" or field.role == "text"

    def options(self, field: Field) -> tuple[str, ...]:
        """What a field is one of; nothing for a field with a text."""
        return (NO, YES) if field.kind == "flag" else field.choices if field.kind == "choice" else ()

    def parts(self, field: Field) -> tuple[str, ...]:
        """What each item of a list is one of."""
        shape = self._parameters[field.name].shape
        return _item(shape).choices if shape.form == "list" else ()

    def default(self, field: Field) -> str:
        """What counts where a field is left empty; "" for nothing."""
        parameter = self._parameters[field.name]
        if parameter.required or parameter.default is None or parameter.default in ((), {}, ""):
            return ""
        return _text_of(parameter.shape, parameter.default).replace("\n", ", ")

    def may_be_empty(self, field: Field) -> bool:
        """Whether an empty text means something in a field that has to be filled in."""
        shape = self._parameters[field.name].shape
        return field.required and shape.form == "text" and not shape.least

    def fits(self, field: Field) -> str:
        """What the value of a field is, in words."""
        return self._parameters[field.name].shape.fits

    def given(self) -> dict[str, list[str]]:
        """The texts of the fields that are not left out, as `onnxjson.edits.spelling.build` takes them."""
        found: dict[str, list[str]] = {}
        for name, parameter in self._parameters.items():
            texts = _texts(parameter, self.texts.get(name, ""))
            if texts is not None:
                found[name] = texts
        return found

    def missing(self) -> tuple[Field, ...]:
        """The fields that have to be filled in and are not."""
        given = self.given()
        return tuple([field for field in self.fields if field.required and field.name not in given])

    def mistake(self, name: str) -> str:
        """What is wrong with the text of one field, taken by itself; "" where nothing is."""
        texts = self.given().get(name)
        if texts is None:
            return ""
        try:
            value_of_texts(self._parameters[name], texts)
        except ValueMistakeError as mistake:
            path = "".join([f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake.path])
            return f"{path}: {mistake}".removeprefix(": ")
        except ParameterError as error:
            return str(error)
        return ""

    def edit(self) -> Edit:
        """The edit that the form makes.

        Raises:
            ParameterError: a field does not fit, or is missing.
        """
        return build(self.edit_type, self.given(), ())


def _item(shape: Shape) -> Shape:
    return shape.item or Shape("value")


def _texts(parameter: Parameter, text: str) -> list[str] | None:
    """The words that a text of a field stands for; None where it is left out."""
    shape = parameter.shape
    if shape.form == "flag":
        is_default = text in ("", YES if parameter.default else NO)
        return None if is_default and not parameter.required else [] if text == YES else [NO]
    if shape.form in ("list", "mapping"):
        lines = text.splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        # A value that is left out is an empty line among those that are not.
        lines = [line for line in lines if line.strip() or parameter.role == "tensors"]
        return lines or None
    if not text.strip():
        return None
    return [""] if text.strip() == EMPTY and shape.form == "text" else [text if shape.form == "text" else text.strip()]


def _text_of(shape: Shape, value: object) -> str:
    """A value as it stands in a field."""
    if shape.form == "flag":
        return YES if value else NO
    texts = texts_of(shape, value)
    if shape.form in ("list", "mapping"):
        is_clear = all([is_plain(text) and not text.startswith("{") for text in texts])
        return "\n".join(texts) if is_clear else write_value(value)
    return EMPTY if texts == [""] and shape.form in ("text", "size", "value") else texts[0]
