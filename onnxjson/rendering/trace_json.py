"""A trace as JSON, onnxjson-trace/1 with the provenance of every node, and its JSON Schema (2020-12).

The schema covers trace.json and the output of ``onnxjson trace``. The file in schemas/ is what
``onnxjson schema trace`` prints; nothing reads it at run time.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, get_args

from onnxjson.diffing.events import Kind
from onnxjson.optimizing.provenance import Provenance, Story
from onnxjson.optimizing.trace_records import Trace
from onnxjson.optimizing.trace_storing import FORMAT, tree
from onnxjson.rendering.diff_json import ADDRESS, COUNT, STRING, Schema, diff_schema, list_schema, record_schema
from onnxjson.rendering.trace_text import Subject


def trace_json(trace: Trace, found: Provenance, subjects: "list[Subject] | None" = None) -> Iterator[str]:
    """Yield the text, ASCII; with `subjects`, only these nodes have their provenance in it."""
    origins, fates = found.origins, found.fates
    if subjects is not None:
        origins = {each.ref.address: each.story for each in subjects if each.is_of_result}
        fates = {each.ref.address: each.story for each in subjects if not each.is_of_result}
    whole = tree(trace)
    whole["origins"] = {address: _story(story) for address, story in origins.items()}
    whole["fates"] = {address: _story(story) for address, story in fates.items()}
    yield json.dumps(whole, indent=1, ensure_ascii=True, allow_nan=False)
    yield "\n"


def _story(story: Story) -> dict[str, Any]:
    touches = [{"step": each.step, "part": each.part, "kind": each.kind} for each in story.touches]
    return {"nodes": list(story.nodes), "parts": touches}


_SHA256: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def trace_schema() -> Schema:
    """Schema of a trace."""
    stories = {"type": "object", "additionalProperties": {"$ref": "#/$defs/story"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:trace-1",
        "title": FORMAT,
        "description": "Changes that passes made to an ONNX model, pass by pass.",
        **record_schema(
            {
                "format": {"const": FORMAT},
                "source": {"description": "Name of the model, such as its path.", **STRING},
                "first": record_schema({"sha256": _SHA256, "size": {"$ref": "#/$defs/size"}}),
                "last": record_schema({"sha256": _SHA256}),
                "steps": {"description": "The passes.", **list_schema({"$ref": "#/$defs/step"})},
                "origins": {"description": "By address in the last model: the origins of each node.", **stories},
                "fates": {"description": "By address in the first model: the nodes that each node became.", **stories},
            },
            optional=("origins", "fates"),
        ),
        "$defs": {
            "step": _step_schema(),
            "part": _part_schema(),
            "size": _size_schema(),
            "story": _story_schema(),
            **_of_events(),
        },
    }


def _step_schema() -> Schema:
    return record_schema(
        {
            "name": {"description": "The pass as given on the command line.", **STRING},
            "packages": {
                "description": "Versions of the packages that implement it.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
            "seconds": {"type": "number", "minimum": 0},
            "rounds": {"description": "Number of times that it ran.", **COUNT},
            "notes": {
                "description": "Side effects, such as lost metadata, and messages of the pass.",
                **list_schema(STRING),
            },
            "failure": {"description": "Why it failed; null if it did not.", "anyOf": [{"type": "null"}, STRING]},
            "parts": {"description": "Empty if no byte changed.", **list_schema({"$ref": "#/$defs/part"})},
        }
    )


def _part_schema() -> Schema:
    return record_schema(
        {
            "name": {"description": 'Name of the part, such as a rule; "" for the pass as a whole.', **STRING},
            "after": {"$ref": "#/$defs/size"},
            "events": list_schema({"$ref": "#/$defs/event"}),
            "incomplete": {"description": "What could not be compared.", **list_schema(STRING)},
            "patch": {
                "description": "File of the patch, onnxjson-patch/1, from the model before; null if nothing changed.",
                "anyOf": [{"type": "null"}, {"type": "string", "pattern": r"^patches/[0-9]{4,6}\.json$"}],
            },
        }
    )


def _size_schema() -> Schema:
    return record_schema(
        {
            "nodes": {"description": "Nodes in all graphs and functions.", **COUNT},
            "parameters": {"description": "Elements of initializers.", **COUNT},
            "bytes": {"description": "Size of the serialized model.", **COUNT},
            "operators": {"description": "Nodes by operator.", "type": "object", "additionalProperties": COUNT},
        }
    )


def _story_schema() -> Schema:
    part = record_schema({"step": COUNT, "part": COUNT, "kind": {"enum": list(get_args(Kind))}})
    return record_schema(
        {
            "nodes": {"description": "Addresses in the other model.", **list_schema(ADDRESS)},
            "parts": {"description": "Parts of passes that changed the node, by position.", **list_schema(part)},
        }
    )


def _of_events() -> Schema:
    """Definitions of events as in a diff, without the number of their members, which a trace omits."""
    found: Schema = diff_schema()["$defs"]
    event = found["event"]
    properties = {name: value for name, value in event["properties"].items() if name != "count"}
    required = [name for name in event["required"] if name != "count"]
    return found | {"event": event | {"properties": properties, "required": required}}
