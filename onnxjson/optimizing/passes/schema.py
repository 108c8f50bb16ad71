"""JSON Schema (2020-12) of a recipe, built from the declarations of the passes.

The file in schemas/ is what ``onnxjson schema recipe`` prints; nothing reads it at run time.
"""

from onnxjson.editing.declaration import summary
from onnxjson.editing.parameters import parameters
from onnxjson.editing.schema import Schema, choice_of, declared_schema, envelope, parameter_schema
from onnxjson.optimizing.passes.catalogue import NAMES
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.recipe import RECIPE

_REPEAT: Schema = {"description": "Run it until the bytes stand still, ten times at most.", "type": "boolean"}


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
        "pass": choice_of("pass", {name: f"pass {name}" for name in NAMES}),
        **{f"pass {name}": _pass(kind) for name, kind in NAMES.items()},
        "edit": {
            "description": "An edit as in a rewrite script; `onnxjson schema rewrite` says what each takes.",
            "type": "object",
            "properties": {"edit": {"type": "string"}, "repeat": _REPEAT},
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
    return declared_schema("pass", kind, summary(kind), {**properties, "repeat": _REPEAT})
