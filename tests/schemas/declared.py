"""The JSON Schemas (2020-12) of rewrite scripts, recipes and policies, from the declarations of edits and passes."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from onnxjson.checking.policy import FORMAT, LISTS, NUMBERS, Policy
from onnxjson.editing.catalogue import EDITS
from onnxjson.editing.declaration import Declared, Edit, name_of, paragraphs, summary
from onnxjson.editing.parameters import Parameter, Shape, parameters
from onnxjson.editing.script import SCRIPT, StepFormat
from onnxjson.editing.values import plain_value
from onnxjson.optimizing.passes.catalogue import NAMES as PASSES
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.recipe import RECIPE

_REPEAT: Final = "repeat"

Schema = dict[str, Any]


def rewrite_schema() -> Schema:
    """Schema of a text ``onnxjson-rewrite/1``, with a definition for each edit."""
    definitions = {
        "edit": choice_of("edit", {name_of(edit): name_of(edit) for edit in EDITS}),
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
    }
    description = "Edits of an ONNX model, applied in order, all or none."
    return envelope(SCRIPT, description, {"$ref": "#/$defs/edit"}, definitions)


def envelope(form: StepFormat, description: str, step: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Schema of a text with a list of steps."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{form.format.replace('-', ':', 1).replace('/', '-')}",
        "title": form.format,
        "description": description,
        "type": "object",
        "properties": {"format": {"const": form.format}, form.steps: {"type": "array", "items": step}},
        "required": ["format", form.steps],
        "additionalProperties": False,
        "$defs": dict(definitions),
    }


def choice_of(key: str, definitions: Mapping[str, str]) -> Schema:
    """Schema of an object whose `key` names one of several declarations: name -> name of its definition."""
    return {
        "type": "object",
        "properties": {key: {"enum": list(definitions)}},
        "required": [key],
        "allOf": [
            {"if": {"properties": {key: {"const": name}}}, "then": {"$ref": f"#/$defs/{definition}"}}
            for name, definition in definitions.items()
        ],
    }


def declared_schema(key: str, kind: type[Declared], description: str, properties: Mapping[str, Schema]) -> Schema:
    """Schema of one edit or pass as an object with its name at `key`; `properties` are those of all other keys."""
    return {
        "description": description,
        "type": "object",
        "properties": {key: {"const": name_of(kind)}, **properties},
        "required": [key, *[each.name for each in parameters(kind) if each.required]],
        "additionalProperties": False,
    }


def parameter_schema(parameter: Parameter, shape: Schema | None = None) -> Schema:
    """Schema of a parameter, with another schema for its type if `shape` is given."""
    described = {"description": parameter.description} if parameter.description else {}
    default = {} if parameter.required or parameter.default is None else {"default": plain_value(parameter.default)}
    return {**described, **(parameter.shape.schema if shape is None else shape), **default}


def _edit(edit: type[Edit]) -> Schema:
    properties = {each.name: parameter_schema(each, _text(each.shape)) for each in parameters(edit)}
    return declared_schema("edit", edit, paragraphs(edit), properties)


def _text(shape: Shape) -> Schema | None:
    return {"$ref": "#/$defs/text"} if shape.form == "text" and not shape.least else None


_REPEAT_SCHEMA: Schema = {"description": "Run it until no byte changes, at most ten times.", "type": "boolean"}


def recipe_schema() -> Schema:
    """Schema of a text ``onnxjson-recipe/1``, with a definition for each pass."""
    definitions = {
        "step": {
            "anyOf": [
                {"type": "string", "description": "As after -p, or a rewrite script.", "minLength": 1},
                {"$ref": "#/$defs/pass"},
                {"$ref": "#/$defs/edit"},
            ]
        },
        "pass": choice_of("pass", {name: f"pass {name}" for name in PASSES}),
        **{f"pass {name}": _pass(kind) for name, kind in PASSES.items()},
        "edit": {
            "description": "An edit as in a rewrite script; `onnxjson schema rewrite` shows the parameters of each.",
            "type": "object",
            "properties": {"edit": {"type": "string"}, _REPEAT: _REPEAT_SCHEMA},
            "required": ["edit"],
        },
    }
    description = "Passes that optimize an ONNX model, one after the other."
    return envelope(RECIPE, description, {"$ref": "#/$defs/step"}, definitions)


def _pass(kind: type[Pass]) -> Schema:
    parts: Schema = {"type": "array", "items": {"enum": list(kind.parts)}}
    properties = {
        each.name: parameter_schema(each, parts if each.name == kind.part else None) for each in parameters(kind)
    }
    return declared_schema("pass", kind, summary(kind), {**properties, _REPEAT: _REPEAT_SCHEMA})


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy."""
    (schema,), definitions = msgspec.json.schema_components([Policy], ref_template="#/$defs/{name}")
    properties = definitions["Policy"]["properties"]
    properties["format"] = {"const": FORMAT}
    properties["budgets"] = {
        "type": "object",
        "properties": {
            name: {"type": ["string", "integer"] if name in NUMBERS else "array"} for name in (*NUMBERS, *LISTS)
        },
        "additionalProperties": False,
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:onnxjson:policy-1", "title": FORMAT}
    return {**head, **schema, "required": ["format"], "$defs": definitions}
