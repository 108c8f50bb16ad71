"""Forms of edits that exist."""

from onnxjson.editing.declaration import Edit, non_default_parameters
from onnxjson_tui.names.form_filling import Filling, text_of


def filled(edit: Edit) -> Filling:
    """The form of an edit, filled in; without what only scripts ask for."""
    filling = Filling(type(edit))
    shapes = {field.name: field.shape for field in filling.fields}
    given = non_default_parameters(edit)
    filling.texts |= {name: text_of(shape, given[name]) for name, shape in shapes.items() if name in given}
    return filling
