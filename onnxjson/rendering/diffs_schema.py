"""The JSON Schema (2020-12) of the diffs of several models of a repository, onnxjson-diffs/1.

The file in schemas/ is what ``onnxjson schema diffs`` prints; nothing reads it at run time.
"""

from typing import Any, Final, TypeAlias

from onnxjson.rendering.diff_schema import diff_schema

Schema: TypeAlias = dict[str, Any]

FORMAT: Final = "onnxjson-diffs/1"

_NAME: Final[Schema] = {"description": "As git and a person name it.", "$ref": "#/$defs/string"}
_NOTHING: Final[Schema] = {"type": "null"}


def diffs_schema() -> Schema:
    """The schema of what ``onnxjson diff --format json`` prints of revisions."""
    one = diff_schema()
    definitions = one.pop("$defs")
    head = {name: one.pop(name) for name in ("$schema", "$id", "title", "description")}
    return {
        "$schema": head["$schema"],
        "$id": "urn:onnxjson:diffs-1",
        "title": FORMAT,
        "description": "What differs between the models of two revisions, of the index or of the work tree.",
        **_record(
            {
                "format": {"const": FORMAT},
                "files": {
                    "description": "Every model that changed.",
                    "type": "array",
                    "items": {"$ref": "#/$defs/file"},
                },
            }
        ),
        "$defs": {"file": _file(), "diff": {"description": head["description"], **one}, **definitions},
    }


def _file() -> Schema:
    error = {"error": {"description": "Why it could not be read or compared.", "$ref": "#/$defs/string"}}
    compared = {"status": {"enum": ["changed", "renamed"]}, "old": _NAME, "new": _NAME}
    added = {"status": {"const": "added"}, "old": _NOTHING, "new": _NAME}
    removed = {"status": {"const": "removed"}, "old": _NAME, "new": _NOTHING}
    return {
        "description": "One model; a diff where it is on both sides.",
        "oneOf": [
            _record(compared | {"diff": {"$ref": "#/$defs/diff"}}),
            _record(compared | error),
            _record(added | error, optional="error"),
            _record(removed | error, optional="error"),
        ],
    }


def _record(properties: Schema, optional: str = "") -> Schema:
    required = [name for name in properties if name != optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
