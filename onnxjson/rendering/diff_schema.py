"""The JSON Schema (2020-12) of a diff for programs, onnxjson-diff/1, built from the kinds of events and verdicts.

The file in schemas/ is what ``onnxjson schema diff`` prints; nothing reads it at run time.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, get_args

from onnxjson.diffing.events import KINDS, Verdict
from onnxjson.rendering.diff_json import FORMAT

Schema: TypeAlias = dict[str, Any]

_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_STRING: Final[Schema] = {"$ref": "#/$defs/string"}
_ADDRESS: Final[Schema] = {"$ref": "#/$defs/address"}
_BASE64: Final[Schema] = {
    "type": "object",
    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["base64"],
    "additionalProperties": False,
}


def diff_schema() -> Schema:
    """The schema of what ``onnxjson diff --format json`` prints."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:diff-1",
        "title": FORMAT,
        "description": "What differs between two ONNX models, the base and the target.",
        **_record(
            {
                "format": {"const": FORMAT},
                "equal": {"description": "Nothing differs of what was to be compared.", "type": "boolean"},
                "incomplete": {
                    "description": "What could not be compared, a sentence each; equal is never true then.",
                    **_list(_STRING),
                    "minItems": 1,
                },
                "summary": _summary(),
                "matches": {
                    "description": "Every pair of nodes that are counterparts: address in the base, in the target.",
                    **_list({"type": "array", "prefixItems": [_ADDRESS, _ADDRESS], "minItems": 2, "maxItems": 2}),
                },
                "events": {"description": "What happened, in topological order.", **_list({"$ref": "#/$defs/event"})},
            },
            optional=("incomplete", "matches"),
        ),
        "$defs": {
            "event": _event(),
            "member": _member(),
            "detail": _detail(),
            "address": _address(),
            "string": _text(),
        },
    }


def _record(properties: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _summary() -> Schema:
    events = {"description": "Places by kind of event.", **_record(dict.fromkeys(KINDS, _COUNT), optional=KINDS)}
    return _record(
        {
            "base_nodes": {"description": "In all graphs and functions.", **_COUNT},
            "target_nodes": _COUNT,
            "matched_nodes": {"description": "Nodes of the base that have a counterpart.", **_COUNT},
            "events": events,
        }
    )


def _event() -> Schema:
    return _record(
        {
            "kind": {"enum": list(KINDS)},
            "count": {"description": "At how many places it happened.", "type": "integer", "minimum": 1},
            "pattern": {"description": "What happened; groups the members.", **_STRING},
            "verdict": {
                "description": "What evaluating both sides on the same inputs said; null for what is no rewrite.",
                "enum": [*get_args(Verdict), None],
            },
            "evidence": {"description": "What the verdict was found by, for a person.", **_STRING},
            "members": {**_list({"$ref": "#/$defs/member"}), "minItems": 1},
        }
    )


def _member() -> Schema:
    return {
        "description": "One place where it happened.",
        **_record(
            {
                "base": {"description": "Addresses in the base.", **_list(_ADDRESS)},
                "target": {"description": "Addresses in the target.", **_list(_ADDRESS)},
                "place": {"description": "Where that is, for a person.", **_STRING},
                "details": _list({"$ref": "#/$defs/detail"}),
                "count": {
                    "description": "How many places it stands for, if not 1; the details tell the first of them.",
                    "type": "integer",
                    "minimum": 1,
                },
            },
            optional=("count",),
        ),
    }


def _detail() -> Schema:
    side = {"anyOf": [_STRING, {"type": "null"}]}
    return {
        "description": "One thing that changed: what, from, to; null where there is nothing.",
        **_record({"what": _STRING, "base": side, "target": side}),
    }


def _address() -> Schema:
    return {
        "description": "Field names of onnx.proto, members of lists by position, attributes by name or #position.",
        "anyOf": [{"type": "string", "pattern": "^(?:/(?:[^~/]|~[01])*)*$"}, _BASE64],
    }


def _text() -> Schema:
    return {
        "description": "Text, or the bytes of what is not UTF-8.",
        "anyOf": [{"type": "string"}, _BASE64],
    }
