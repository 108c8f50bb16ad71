"""Numbers and lists in the replacement of a pattern: as constants of the right data type, and as attributes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onnxjson.editing.operator_checks import dtype_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import visible
from onnxjson.model.dtypes import DATA_TYPES, INTEGERS
from onnxjson.model.elements import pack
from onnxjson.model.errors import EditError
from onnxjson.model.index import NodeRef
from onnxjson.model.operator_checks import dtype_of_type
from onnxjson.model.operators import attribute_types, operator_signature
from onnxjson.model.scalars import ElementError
from onnxjson.model.types import format_data_type
from onnxjson.patterns.expression import Call, Elements, Number, Operator

_INT64: Final = DATA_TYPES["int64"]
_JSON: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
"""Numbers that JSON writes as texts."""

_WITH_SCALARS: Final = ("DFT", "Loop", "NonMaxSuppression", "Trilu")
"""Operators with inputs of int64 that are not lists."""


def constant_dtype(
    workspace: Workspace, root: NodeRef, call: Call, place: int, inputs: Sequence[str], edit: str
) -> int:
    """Return the data type of a constant: a list of integers is int64, else it is as the other inputs.

    Raises:
        EditError: the operator needs a list there.
    """
    operator, wanted = call.operators[0], (call.inputs or ())[place]
    if isinstance(wanted, Elements) and not any(isinstance(each, float) for each in wanted.items):
        return _INT64
    found = operator_signature(operator.domain, operator.name, workspace.opset(root.scope, operator.domain))
    formals = [None if found is None else found.input_at(slot) for slot in range(len(inputs))]
    formal = formals[place]
    allowed = set() if formal is None else {dtype_of_type(each) for each in formal.types}
    if allowed == {_INT64} and isinstance(wanted, Number) and operator.name not in _WITH_SCALARS:
        raise EditError(f"{edit}: input {place} of {operator} is a list of integers: write [{wanted}]", root.address)
    alike = [formal is not None and each is not None and each.variable == formal.variable for each in formals]
    is_integer = _INT64 in allowed and allowed <= INTEGERS
    names = [name for name, same in zip(inputs, alike, strict=True) if same]
    if not is_integer:
        names += [*inputs, root.node.output[0]]
    for name in names:
        dtype = dtype_of(workspace, root.scope, name) if name else None
        if dtype and (dtype in allowed or not allowed):
            return dtype
    return _INT64 if is_integer else DATA_TYPES["float32"]


def packed(wanted: Number | Elements, dtype: int, root: NodeRef, edit: str) -> bytes:
    """Return the elements of a constant.

    Raises:
        EditError: the data type has no such elements.
    """
    try:
        return pack(dtype, [*map(_as_json, [wanted.value] if isinstance(wanted, Number) else wanted.items)])
    except (ElementError, KeyError) as error:
        fits = f"an element is {error.fits}" if isinstance(error, ElementError) else "its elements are no numbers"
        raise EditError(
            f"{edit}: {visible(str(wanted))} cannot be {format_data_type(dtype)}: {fits}", root.address
        ) from None


def typed(attributes: Mapping[str, Any], operator: Operator) -> dict[str, Any]:
    """Return the values of attributes as in a document; in attributes that ONNX does not know, a point means FLOAT."""
    known = attribute_types(operator.domain, operator.name)
    values: dict[str, Any] = {}
    for name, value in attributes.items():
        is_list = isinstance(value, list)
        values[name] = [*map(_as_json, value)] if is_list else _as_json(value)
        if name not in known and any(isinstance(each, float) for each in (value if is_list else [value])):
            values[name] = {"FLOATS" if is_list else "FLOAT": values[name]}
    return values


def _as_json(value: object) -> object:
    return _JSON.get(str(value), value) if isinstance(value, float) else value
