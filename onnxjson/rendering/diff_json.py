"""A structural diff as JSON, onnxjson-diff/1, in ASCII; its JSON Schema (2020-12), and that of onnxjson-diffs/1.

The schemas are built from the kinds of events and verdicts. The files in schemas/ are what ``onnxjson schema`` prints;
nothing reads them at run time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, get_args

from onnxjson.diffing.events import KINDS, Detail, Event, Member, Verdict
from onnxjson.rendering.diff_report import Report
from onnxjson.rendering.exact import as_json

FORMAT: Final = "onnxjson-diff/1"


def diff_json(report: Report, *, with_matches: bool = False) -> Iterator[str]:
    """Yield the text in pieces, a line for each pair and each member; strings are exact, see `as_json`.

    Args:
        report: the diff.
        with_matches: whether to include every pair of nodes.
    """
    head: dict[str, Any] = {"format": FORMAT, "equal": report.equal}
    if report.incomplete:
        head["incomplete"] = list(report.incomplete)
    head["summary"] = {
        "base_nodes": report.nodes.before,
        "target_nodes": report.nodes.after,
        "matched_nodes": report.matched,
        "events": dict(report.places),
    }
    yield "{" + ",\n".join(f"{_line(key)}: {_line(value)}" for key, value in head.items())
    if with_matches:
        yield from _list(',\n"matches": ', (_line(pair) for pair in report.alignment.node_pairs()))
    yield from _list(',\n"events": ', map(_event, report.events))
    yield "}\n"


def _list(before: str, members: Iterator[str]) -> Iterator[str]:
    yield before + "["
    separator = "\n"
    for text in members:
        yield separator + text
        separator = ",\n"
    yield "\n]" if separator != "\n" else "]"


def _line(value: object) -> str:
    return as_json(value, indent=None)


def _event(event: Event) -> str:
    head = _line({
        "kind": event.kind,
        "count": event.count,
        "pattern": event.pattern,
        "verdict": event.verdict,
        "evidence": event.evidence,
    })  # fmt: skip
    members = "".join(_list("", (_line(_member(member)) for member in event.members)))
    return f'{head[:-1]}, "members": {members}}}'


def _member(member: Member) -> dict[str, Any]:
    found = {
        "base": member.base,
        "target": member.target,
        "place": member.place,
        "details": [_detail(detail) for detail in member.details],
    }
    return found if member.count == 1 else found | {"count": member.count}


def _detail(detail: Detail) -> dict[str, Any]:
    return {"what": detail.what, "base": detail.base, "target": detail.target}


Schema: TypeAlias = dict[str, Any]

COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
STRING: Final[Schema] = {"$ref": "#/$defs/string"}
ADDRESS: Final[Schema] = {"$ref": "#/$defs/address"}
_BASE64: Final[Schema] = {
    "type": "object",
    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["base64"],
    "additionalProperties": False,
}


def diff_schema() -> Schema:
    """Schema of the output of ``onnxjson diff --format json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:diff-1",
        "title": FORMAT,
        "description": "Differences between two ONNX models, the base and the target.",
        **record_schema(
            {
                "format": {"const": FORMAT},
                "equal": {"description": "Whether nothing that was compared differs.", "type": "boolean"},
                "incomplete": {
                    "description": "What could not be compared, one sentence each; equal is false then.",
                    **list_schema(STRING),
                    "minItems": 1,
                },
                "summary": _summary_schema(),
                "matches": {
                    "description": "Every pair of matched nodes: address in the base, address in the target.",
                    **list_schema({"type": "array", "prefixItems": [ADDRESS, ADDRESS], "minItems": 2, "maxItems": 2}),
                },
                "events": {
                    "description": "The changes, in topological order.",
                    **list_schema({"$ref": "#/$defs/event"}),
                },
            },
            optional=("incomplete", "matches"),
        ),
        "$defs": {
            "event": _event_schema(),
            "member": _member_schema(),
            "detail": _detail_schema(),
            "address": _address_schema(),
            "string": _text_schema(),
        },
    }


def record_schema(properties: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """Schema of an object with exactly these properties; all are required but the optional ones."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def list_schema(item: Schema) -> Schema:
    """Schema of an array of items."""
    return {"type": "array", "items": item}


def _summary_schema() -> Schema:
    events = {
        "description": "Number of places by kind of event.",
        **record_schema(dict.fromkeys(KINDS, COUNT), optional=KINDS),
    }
    return record_schema(
        {
            "base_nodes": {"description": "Nodes in all graphs and functions.", **COUNT},
            "target_nodes": COUNT,
            "matched_nodes": {"description": "Nodes of the base that are matched with a node of the target.", **COUNT},
            "events": events,
        }
    )


def _event_schema() -> Schema:
    return record_schema(
        {
            "kind": {"enum": list(KINDS)},
            "count": {"description": "Number of places where it happened.", "type": "integer", "minimum": 1},
            "pattern": {"description": "The change that all members have in common.", **STRING},
            "verdict": {
                "description": "Result of running both sides on the same inputs; null unless it is a rewrite.",
                "enum": [*get_args(Verdict), None],
            },
            "evidence": {"description": "How the verdict was found, as text.", **STRING},
            "members": {**list_schema({"$ref": "#/$defs/member"}), "minItems": 1},
        }
    )


def _member_schema() -> Schema:
    return {
        "description": "One place where it happened.",
        **record_schema(
            {
                "base": {"description": "Addresses in the base.", **list_schema(ADDRESS)},
                "target": {"description": "Addresses in the target.", **list_schema(ADDRESS)},
                "place": {"description": "Readable name of the place.", **STRING},
                "details": list_schema({"$ref": "#/$defs/detail"}),
                "count": {
                    "description": "Number of places that it represents, if not 1; the details are those of the first.",
                    "type": "integer",
                    "minimum": 1,
                },
            },
            optional=("count",),
        ),
    }


def _detail_schema() -> Schema:
    side = {"anyOf": [STRING, {"type": "null"}]}
    return {
        "description": "One thing that changed: what, from, to; null where there is no value.",
        **record_schema({"what": STRING, "base": side, "target": side}),
    }


def _address_schema() -> Schema:
    return {
        "description": "Field names of onnx.proto, list elements by position, attributes by name or #position.",
        "anyOf": [{"type": "string", "pattern": "^(?:/(?:[^~/]|~[01])*)*$"}, _BASE64],
    }


def _text_schema() -> Schema:
    return {
        "description": "Text, or its bytes where it is not UTF-8.",
        "anyOf": [{"type": "string"}, _BASE64],
    }


DIFFS_FORMAT: Final = "onnxjson-diffs/1"

_NAME: Final[Schema] = {"description": "The path as git shows it.", "$ref": "#/$defs/string"}
_NOTHING: Final[Schema] = {"type": "null"}


def diffs_schema() -> Schema:
    """Schema of the output of ``onnxjson diff --format json`` for revisions."""
    one = diff_schema()
    definitions = one.pop("$defs")
    head = {name: one.pop(name) for name in ("$schema", "$id", "title", "description")}
    return {
        "$schema": head["$schema"],
        "$id": "urn:onnxjson:diffs-1",
        "title": DIFFS_FORMAT,
        "description": "Differences between the models of two revisions, the index or the work tree.",
        **record_schema(
            {
                "format": {"const": DIFFS_FORMAT},
                "files": {"description": "Every model that changed.", **list_schema({"$ref": "#/$defs/file"})},
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
        "description": "One model; a diff if it is on both sides.",
        "oneOf": [
            record_schema(compared | {"diff": {"$ref": "#/$defs/diff"}}),
            record_schema(compared | error),
            record_schema(added | error, optional=("error",)),
            record_schema(removed | error, optional=("error",)),
        ],
    }
