"""The JSON Schema (2020-12) of a recipe, built from the declarations of the passes.

The file in schemas/ is what ``onnxjson schema recipe`` prints; nothing reads it at run time.
"""

from typing import Any

from onnxjson.edits.parameters import Parameter, Shape
from onnxjson.edits.values import plain_value
from onnxjson.passes.catalogue import PASSES
from onnxjson.passes.declaration import Pass, name_of, options, summary
from onnxjson.passes.recipe import FORMAT

Schema = dict[str, Any]

_REPEAT: Schema = {"description": "Run it until the bytes stand still, ten times at most.", "type": "boolean"}


def recipe_schema() -> Schema:
    """The schema of a text ``onnxjson-recipe/1``, with a definition for each pass."""
    names = [name_of(each) for each in PASSES]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:recipe-1",
        "title": FORMAT,
        "description": "Passes that optimize an ONNX model, one after the other.",
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "passes": {"type": "array", "items": {"$ref": "#/$defs/step"}},
        },
        "required": ["format", "passes"],
        "additionalProperties": False,
        "$defs": {
            "step": {
                "anyOf": [
                    {"type": "string", "description": "As after -p, or a rewrite script.", "minLength": 1},
                    {"$ref": "#/$defs/pass"},
                    {"$ref": "#/$defs/edit"},
                ]
            },
            "pass": {
                "type": "object",
                "properties": {"pass": {"enum": names}},
                "required": ["pass"],
                "allOf": [
                    {"if": {"properties": {"pass": {"const": name}}}, "then": {"$ref": f"#/$defs/pass {name}"}}
                    for name in names
                ],
            },
            **{f"pass {name_of(each)}": _pass(each) for each in PASSES},
            "edit": {
                "description": "An edit as in a rewrite script; `onnxjson schema rewrite` says what each takes.",
                "type": "object",
                "properties": {"edit": {"type": "string"}, "repeat": _REPEAT},
                "required": ["edit"],
            },
        },
    }


def _pass(kind: type[Pass]) -> Schema:
    found = options(kind)
    properties = {each.name: _option(each, kind) for each in found}
    return {
        "description": summary(kind),
        "type": "object",
        "properties": {"pass": {"const": name_of(kind)}, **properties, "repeat": _REPEAT},
        "required": ["pass", *[each.name for each in found if each.required]],
        "additionalProperties": False,
    }


def _option(option: Parameter, kind: type[Pass]) -> Schema:
    shape = {"type": "array", "items": {"enum": list(kind.parts)}} if option.name == kind.part else _shape(option.shape)
    described = {"description": option.description} if option.description else {}
    default = {} if option.required or option.default is None else {"default": plain_value(option.default)}
    return {**described, **shape, **default}


def _shape(shape: Shape) -> Schema:
    least = shape.least
    match shape.form:
        case "text":
            return {"type": "string"} | ({"minLength": least} if least else {})
        case "integer":
            return {"type": "integer"} | ({} if least is None else {"minimum": least})
        case "number":
            return {"type": "number"}
        case "flag":
            return {"type": "boolean"}
        case "choice":
            return {"enum": list(shape.choices)}
        case "size":
            return {"type": ["integer", "string"]}
        case "list":
            return {"type": "array", "items": _shape(shape.item or Shape("value"))} | (
                {"minItems": least} if least else {}
            )
        case "mapping":
            return {"type": "object", "additionalProperties": _shape(shape.item or Shape("value"))}
        case _:
            return {}
