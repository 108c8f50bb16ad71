"""The JSON Schema (2020-12) of a rewrite script, built from the declarations of the edits.

The file in schemas/ is what ``onnxjson schema rewrite`` prints; nothing reads it at run time.
"""

from typing import Any

from onnxjson.edits.catalogue import EDITS
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.forms import paragraphs
from onnxjson.edits.parameters import Parameter, Shape, parameters
from onnxjson.edits.script import FORMAT
from onnxjson.edits.values import plain_value

Schema = dict[str, Any]


def rewrite_schema() -> Schema:
    """The schema of a text ``onnxjson-rewrite/1``, with a definition for each edit."""
    names = [name_of(edit) for edit in EDITS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:rewrite-1",
        "title": FORMAT,
        "description": "Edits of an ONNX model, made in their order, all or nothing.",
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
        },
        "required": ["format", "edits"],
        "additionalProperties": False,
        "$defs": {
            "edit": {
                "type": "object",
                "properties": {"edit": {"enum": names}},
                "required": ["edit"],
                "allOf": [
                    {"if": {"properties": {"edit": {"const": name}}}, "then": {"$ref": f"#/$defs/{name}"}}
                    for name in names
                ],
            },
            "text": {
                "description": "Text, or the bytes of what is not UTF-8.",
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
                        "required": ["base64"],
                        "additionalProperties": False,
                    },
                ],
            },
            **{name_of(edit): _edit(edit) for edit in EDITS},
        },
    }


def _edit(edit: type[Edit]) -> Schema:
    found = parameters(edit)
    return {
        "description": paragraphs(edit),
        "type": "object",
        "properties": {"edit": {"const": name_of(edit)}} | {each.name: _parameter(each) for each in found},
        "required": ["edit", *[each.name for each in found if each.required]],
        "additionalProperties": False,
    }


def _parameter(parameter: Parameter) -> Schema:
    schema: Schema = {}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.shape.form == "text" and not parameter.shape.least:
        schema["$ref"] = "#/$defs/text"
    else:
        schema |= _shape(parameter.shape)
    if not parameter.required and parameter.default is not None:
        schema["default"] = plain_value(parameter.default)
    return schema


def _shape(shape: Shape) -> Schema:
    match shape.form:
        case "text":
            return {"type": "string"} | ({"minLength": shape.least} if shape.least else {})
        case "integer":
            return {"type": "integer"} | ({} if shape.least is None else {"minimum": shape.least})
        case "number":
            return {"type": "number"}
        case "flag":
            return {"type": "boolean"}
        case "choice":
            return {"enum": list(shape.choices)}
        case "size":
            return {"type": ["integer", "string"]}
        case "list":
            least = {"minItems": shape.least} if shape.least else {}
            return {"type": "array", "items": _shape(shape.item or Shape("value"))} | least
        case "mapping":
            return {"type": "object", "additionalProperties": _shape(shape.item or Shape("value"))}
        case _:
            return {}
