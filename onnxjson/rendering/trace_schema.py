"""The JSON Schema (2020-12) of a trace, onnxjson-trace/1: of trace.json, and of what ``onnxjson trace`` prints.

The file in schemas/ is what ``onnxjson schema trace`` prints; nothing reads it at run time.
"""

from typing import Any, Final, TypeAlias, get_args

from onnxjson.diffing.events import Kind
from onnxjson.rendering.diff_schema import diff_schema
from onnxjson.tracing.storing import FORMAT

Schema: TypeAlias = dict[str, Any]

_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_STRING: Final[Schema] = {"$ref": "#/$defs/string"}
_ADDRESS: Final[Schema] = {"$ref": "#/$defs/address"}
_SHA256: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def trace_schema() -> Schema:
    """The schema of a trace."""
    stories = {"type": "object", "additionalProperties": {"$ref": "#/$defs/story"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:trace-1",
        "title": FORMAT,
        "description": "What passes did to an ONNX model, one after the other.",
        **_record(
            {
                "format": {"const": FORMAT},
                "source": {"description": "What the model was called.", **_STRING},
                "first": _record({"sha256": _SHA256, "size": {"$ref": "#/$defs/size"}}),
                "last": _record({"sha256": _SHA256}),
                "steps": {"description": "The passes.", "type": "array", "items": {"$ref": "#/$defs/step"}},
                "origins": {"description": "By address in the last model: what each node was made of.", **stories},
                "fates": {"description": "By address in the first model: what became of each node.", **stories},
            },
            optional=("origins", "fates"),
        ),
        "$defs": {"step": _step(), "part": _part(), "size": _size(), "story": _story(), **_of_events()},
    }


def _record(properties: dict[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _step() -> Schema:
    return _record(
        {
            "name": {"description": "The pass, as it was spelled.", **_STRING},
            "packages": {
                "description": "Versions of the packages that it is made of.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
            "seconds": {"type": "number", "minimum": 0},
            "rounds": {"description": "How often it ran.", **_COUNT},
            "notes": {"description": "What it lost or changed besides, and what it had to say.", **_list(_STRING)},
            "failure": {"description": "Why it has no result.", "anyOf": [{"type": "null"}, _STRING]},
            "parts": {"description": "None where not a byte changed.", **_list({"$ref": "#/$defs/part"})},
        }
    )


def _part() -> Schema:
    return _record(
        {
            "name": {"description": 'Such as a rule; "" for the pass as a whole.', **_STRING},
            "after": {"$ref": "#/$defs/size"},
            "events": _list({"$ref": "#/$defs/event"}),
            "incomplete": {"description": "What could not be compared.", **_list(_STRING)},
            "patch": {
                "description": "The file with the patch, onnxjson-patch/1, from the model before; null for none.",
                "anyOf": [{"type": "null"}, {"type": "string", "pattern": r"^patches/[0-9]{4,6}\.json$"}],
            },
        }
    )


def _size() -> Schema:
    return _record(
        {
            "nodes": {"description": "In all graphs and functions.", **_COUNT},
            "parameters": {"description": "Elements of initializers.", **_COUNT},
            "bytes": {"description": "Of the serialised model.", **_COUNT},
            "operators": {"description": "Nodes by operator.", "type": "object", "additionalProperties": _COUNT},
        }
    )


def _story() -> Schema:
    part = _record({"step": _COUNT, "part": _COUNT, "kind": {"enum": list(get_args(Kind))}})
    return _record(
        {
            "nodes": {"description": "Addresses in the other model.", **_list(_ADDRESS)},
            "parts": {"description": "Which parts of which passes had a hand in it, by position.", **_list(part)},
        }
    )


def _of_events() -> Schema:
    """Events as a diff has them, without the number of their members, which a trace leaves out."""
    found: Schema = diff_schema()["$defs"]
    event = found["event"]
    properties = {name: value for name, value in event["properties"].items() if name != "count"}
    required = [name for name in event["required"] if name != "count"]
    return found | {"event": event | {"properties": properties, "required": required}}
