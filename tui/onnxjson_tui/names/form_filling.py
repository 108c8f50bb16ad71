"""Texts in the fields of the form of an edit, their initial contents, and the edit that they describe."""

from collections.abc import Mapping
from math import prod
from typing import Final

from onnxjson.editing.declaration import Edit, name_of, non_default_parameters, paragraphs
from onnxjson.editing.parameters import JOINED, Parameter, Shape, parameters
from onnxjson.editing.spelling import build, in_form_order, parse_value, spell_value
from onnxjson.editing.values import ValueMistakeError, record_value, write_value
from onnxjson.model.constants import Constant, find_constant
from onnxjson.model.document import SparseTensor
from onnxjson.model.errors import ParameterError
from onnxjson.model.index import Index, NodeRef
from onnxjson_tui.names.editable_names import is_plain, node_selector, value_selector
from onnxjson_tui.session.session import Session

SELECTION: Final = "%"
"""Represents the selected nodes in a field for nodes."""

EMPTY: Final = '""'
"""Text that represents an empty string, since an empty field is omitted."""

_FEW: Final = 64
"""Maximum elements of a constant that the form shows for editing."""

_OF_NODES: Final = ("set-doc", "set-metadata")
"""Edits that apply to nodes if some are given, otherwise to the whole model."""

_OF_OUTPUTS: Final = ("add-output", "set-shape")
"""Edits that start with an output of the node under the cursor."""

YES: Final = "yes"
NO: Final = "no"


class Filling:
    """A form that is being filled in; every field contains a text."""

    def __init__(self, edit: type[Edit], texts: Mapping[str, str] | None = None) -> None:
        """Create a form with initial texts by field; lists have one item per line, flags are "yes" or "no"."""
        self.edit_type = edit
        self.name = name_of(edit)
        self.title = self.name.replace("-", " ").capitalize()
        self.help = paragraphs(edit)
        self.fields = tuple(in_form_order(edit))
        """The parameters in the order of the form."""
        self.texts: dict[str, str] = {field.name: "" for field in self.fields} | dict(texts or {})

    @classmethod
    def of(cls, edit: Edit) -> "Filling":
        """Return the form of an existing edit, filled in."""
        filling = cls(type(edit))
        shapes = {field.name: field.shape for field in filling.fields}
        filling.texts |= {name: _text_of(shapes[name], value) for name, value in non_default_parameters(edit).items()}
        return filling

    def has_lines(self, field: Parameter) -> bool:
        """Whether a field may have several lines."""
        is_list = field.shape.form == "list" and _item(field.shape).form not in JOINED
        return is_list or field.shape.form == "mapping" or field.role == "text"

    def options(self, field: Parameter) -> tuple[str, ...]:
        """Return the values that a field may have; () for a text field."""
        return (NO, YES) if field.shape.form == "flag" else field.shape.choices

    def parts(self, field: Parameter) -> tuple[str, ...]:
        """Return the values that each item of a list may have."""
        return _item(field.shape).choices if field.shape.form == "list" else ()

    def default(self, field: Parameter) -> str:
        """Return the default of an empty field, or ""."""
        if field.required or field.default is None or field.default in ((), {}, ""):
            return ""
        return _text_of(field.shape, field.default).replace("\n", ", ")

    def may_be_empty(self, field: Parameter) -> bool:
        """Whether an empty string is a valid value of a required field."""
        return field.required and field.shape.form == "text" and not field.shape.least

    def given(self) -> dict[str, list[str]]:
        """Return the texts of the filled-in fields, as `onnxjson.editing.spelling.build` expects them."""
        found = {field.name: _texts(field, self.texts.get(field.name, "")) for field in self.fields}
        return {name: texts for name, texts in found.items() if texts is not None}

    def missing(self) -> tuple[Parameter, ...]:
        """Return the required fields that are empty."""
        given = self.given()
        return tuple([field for field in self.fields if field.required and field.name not in given])

    def mistake(self, name: str) -> str:
        """Return the mistake in the text of one field on its own, or ""."""
        texts = self.given().get(name)
        if texts is None:
            return ""
        try:
            parse_value(next(field for field in self.fields if field.name == name), texts)
        except ValueMistakeError as mistake:
            path = "".join([f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake.path])
            return f"{path}: {mistake}".removeprefix(": ")
        except ParameterError as error:
            return str(error)
        return ""

    def edit(self) -> Edit:
        """Return the edit of the form.

        Raises:
            ParameterError: a field is invalid or missing.
        """
        return build(self.edit_type, self.given(), ())


def _item(shape: Shape) -> Shape:
    return shape.item or Shape("value")


def _texts(parameter: Parameter, text: str) -> list[str] | None:
    """Split the text of a field into words; None if the field is empty."""
    shape = parameter.shape
    if shape.form == "flag":
        is_default = text in ("", YES if parameter.default else NO)
        return None if is_default and not parameter.required else [] if text == YES else [NO]
    if shape.form in ("list", "mapping"):
        lines = text.splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        # An empty line between others represents an omitted value.
        lines = [line for line in lines if line.strip() or parameter.role == "tensors"]
        return lines or None
    if not text.strip():
        return None
    return [""] if text.strip() == EMPTY and shape.form == "text" else [text if shape.form == "text" else text.strip()]


def _text_of(shape: Shape, value: object) -> str:
    """Return a value as the text of a field."""
    if shape.form == "flag":
        return YES if value else NO
    texts = spell_value(shape, value)
    if shape.form in ("list", "mapping"):
        is_clear = all([is_plain(text) and not text.startswith("{") for text in texts])
        return "\n".join(texts) if is_clear else write_value(value)
    return EMPTY if texts == [""] and shape.form in ("text", "size", "value") else texts[0]


def prefilled(session: Session, edit: type[Edit], here: NodeRef | None) -> dict[str, str]:
    """Return the initial texts of the fields of an edit, from the selection and the node under the cursor."""
    found: dict[str, str] = {}
    for parameter in parameters(edit):
        if parameter.role in ("node", "nodes") and (parameter.required or name_of(edit) in _OF_NODES):
            if session.places.selected and parameter.role == "nodes":
                found[parameter.name] = SELECTION
            elif here is not None:
                found[parameter.name] = node_selector(session.index, here)
    if here is None:
        return found
    if name_of(edit) in _OF_OUTPUTS and here.node.output:
        found["tensor"] = _value(session, here, here.node.output[0])
    if name_of(edit) in ("set-tensor", "cast-tensor"):
        constants = [find_constant(here.scope, name) for name in (*here.node.input, *here.node.output) if name]
        dense = [each for each in constants if each is not None and not isinstance(each.value, SparseTensor)]
        if dense:
            found["tensor"] = _value(session, here, dense[0].name)
            if name_of(edit) == "set-tensor":
                found["value"] = _elements(dense[0])
    if name_of(edit) == "add-node" and here.scope.address != "/graph":
        found["graph"] = here.scope.address
    return {name: text for name, text in found.items() if text}


def _elements(constant: Constant) -> str:
    """Return the elements of a small constant as editable text; "" for other constants."""
    tensor = constant.tensor
    if tensor is None or tensor.external_data or prod(tensor.dims) > _FEW:
        return ""
    values = record_value(tensor).get("values")
    return "" if values is None else write_value(values)


def _value(session: Session, here: NodeRef, name: str) -> str:
    defining_scope = Index.defining_scope(here.scope, name) if name else None
    if defining_scope is None:
        return ""
    several = sum([scope.defines(name) for scope in session.index.scopes]) > 1
    return value_selector(defining_scope, name, is_unique=not several)
