"""The JSON Schemas (2020-12) of diffs and traces; see `onnxjson.rendering.reports`."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, get_args

from onnxjson.diffing.events import KINDS, Verdict
from onnxjson.optimizing.trace_storing import FORMAT as TRACE_FORMAT
from onnxjson.rendering.cost_text import TOTALS
from onnxjson.rendering.reports import DIFFS_FORMAT, FORMAT

Schema: TypeAlias = dict[str, Any]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_PLACES: Final[Schema] = {"type": "integer", "minimum": 1}
_NULL: Final[Schema] = {"type": "null"}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _about(description: str, schema: Schema) -> Schema:
    return {"description": description, **schema}


def _head(form: str, description: str) -> Schema:
    name = f"urn:{form.replace('-', ':').replace('/', '-')}"
    return {"$schema": _DIALECT, "$id": name, "title": form, "description": description}


def _records(optional: Sequence[str] = (), /, **properties: Schema) -> Schema:
    """Schema of an object with exactly these properties; all are required but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _array(item: Schema, **more: object) -> Schema:
    return {"type": "array", "items": item, **more}


def _values(item: Schema) -> Schema:
    return {"type": "object", "additionalProperties": item}


_STRING: Final = _reference("string")
_ADDRESS: Final = _reference("address")
_BASE64: Final = _records(base64={"type": "string", "contentEncoding": "base64"})


_AMOUNT: Final = _about("A number, or a formula of dimensions without a size.", {"type": ["integer", "string", "null"]})
_COST: Final = _records(
    **dict.fromkeys(TOTALS, _AMOUNT),
    dims=_values({"type": "integer"}),
    unknown=_about(
        "Operators that are not counted.", _array(_records(operator=_STRING, nodes=_COUNT, reason={"type": "string"}))
    ),
)


def diff_schema() -> Schema:
    """Schema of the output of ``onnxjson diff --format json``."""
    pair = {"type": "array", "prefixItems": [_ADDRESS, _ADDRESS], "minItems": 2, "maxItems": 2}
    places = _records(KINDS, **dict.fromkeys(KINDS, _COUNT))
    side = {"anyOf": [_STRING, _NULL]}
    incomplete = "What could not be compared, one sentence each; equal is false then."
    matches = "Every pair of matched nodes: address in the base, address in the target."
    return {
        **_head(FORMAT, "Differences between two ONNX models, the base and the target."),
        **_records(
            ("incomplete", "cost", "interface", "matches"),
            format={"const": FORMAT},
            equal=_about("Whether nothing that was compared differs.", {"type": "boolean"}),
            incomplete=_about(incomplete, _array(_STRING, minItems=1)),
            summary=_records(
                base_nodes=_about("Nodes in all graphs and functions.", _COUNT),
                target_nodes=_COUNT,
                matched_nodes=_about("Nodes of the base that are matched with a node of the target.", _COUNT),
                events=_about("Number of places by kind of event.", places),
                changes=_about("Number of places of all events.", _COUNT),
                without_effect=_about("Number of those that leave all results unchanged.", _COUNT),
            ),
            interface=_about(
                "Changed names, dtypes, ranks and sizes of inputs and outputs; breaking unless all callers can stay.",
                _array(_records(breaking={"type": "boolean"}, text=_STRING), minItems=1),
            ),
            cost=_about("With --cost: the cost of both models.", _records(base=_COST, target=_COST)),
            matches=_about(matches, _array(pair)),
            events=_about("The changes, in topological order.", _array(_reference("event"))),
        ),
        "$defs": {
            "event": _event_schema(),
            "member": _about("One place where it happened.", _member_schema()),
            "detail": _about(
                "One thing that changed: what, from, to; null where there is no value.",
                _records(what=_STRING, base=side, target=side),
            ),
            "address": _about(
                "Field names of onnx.proto, list elements by position, attributes by name or #position.",
                {"anyOf": [{"type": "string", "pattern": "^(?:/(?:[^~/]|~[01])*)*$"}, _BASE64]},
            ),
            "string": _about("Text, or its bytes where it is not UTF-8.", {"anyOf": [{"type": "string"}, _BASE64]}),
        },
    }


def _event_schema() -> Schema:
    verdict = "Result of running both sides on the same inputs; null unless it is a rewrite."
    return _records(
        kind={"enum": list(KINDS)},
        count=_about("Number of places where it happened.", _PLACES),
        pattern=_about("The change that all members have in common.", _STRING),
        where=_about("Rounds of repeats of the outline and options of its lines that change, as text.", _STRING),
        verdict=_about(verdict, {"enum": [*get_args(Verdict), None]}),
        evidence=_about("How the verdict was found, as text.", _STRING),
        members=_array(_reference("member"), minItems=1),
    )


def _member_schema() -> Schema:
    count = "Number of places that it represents, if not 1; the details are those of the first."
    return _records(
        ("count",),
        base=_about("Addresses in the base.", _array(_ADDRESS)),
        target=_about("Addresses in the target.", _array(_ADDRESS)),
        place=_about("Readable name of the place.", _STRING),
        details=_array(_reference("detail")),
        count=_about(count, _PLACES),
    )


def diffs_schema() -> Schema:
    """Schema of the output of ``onnxjson diff --format json`` for revisions."""
    one = diff_schema()
    definitions = one.pop("$defs")
    head = {name: one.pop(name) for name in ("$schema", "$id", "title", "description")}
    files = _about("Every model that changed.", _array(_reference("file")))
    return {
        **_head(DIFFS_FORMAT, "Differences between the models of two revisions, the index or the work tree."),
        **_records(format={"const": DIFFS_FORMAT}, files=files),
        "$defs": {"file": _file_schema(), "diff": _about(head["description"], one), **definitions},
    }


def _file_schema() -> Schema:
    name = _about("The path as git shows it.", _STRING)
    error = _about("Why it could not be read or compared.", _STRING)
    both: Schema = {"status": {"enum": ["changed", "renamed"]}, "old": name, "new": name}
    return {
        "description": "One model; a diff if it is on both sides.",
        "oneOf": [
            _records(**both, diff=_reference("diff")),
            _records(**both, error=error),
            _records(("error",), status={"const": "added"}, old=_NULL, new=name, error=error),
            _records(("error",), status={"const": "removed"}, old=name, new=_NULL, error=error),
        ],
    }


def trace_schema() -> Schema:
    """Schema of a trace."""
    sha256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    stories = _values(_reference("story"))
    patch = {"anyOf": [_NULL, {"type": "string", "pattern": r"^patches/[0-9]{4,6}\.json$"}]}
    touched = _records(step=_COUNT, part=_COUNT, kind={"enum": list(KINDS)})
    definitions = diff_schema()["$defs"]
    # A trace omits the number of places of an event.
    event = {name: value for name, value in definitions["event"]["properties"].items() if name != "count"}
    definitions["event"] = _records(**event)
    return {
        **_head(TRACE_FORMAT, "Changes that passes made to an ONNX model, pass by pass."),
        **_records(
            ("origins", "fates"),
            format={"const": TRACE_FORMAT},
            source=_about("Name of the model, such as its path.", _STRING),
            first=_records(sha256=sha256, size=_reference("size")),
            last=_records(sha256=sha256),
            steps=_about("The passes.", _array(_reference("step"))),
            origins=_about("Origins of each node, by address in the last model.", stories),
            fates=_about("The nodes that each node became, by address in the first model.", stories),
        ),
        "$defs": {
            "step": _records(
                name=_about("The pass as given on the command line.", _STRING),
                packages=_about("Versions of the packages that implement it.", _values({"type": "string"})),
                seconds={"type": "number", "minimum": 0},
                rounds=_about("Number of times that it ran.", _COUNT),
                notes=_about("Side effects, such as lost metadata, and messages of the pass.", _array(_STRING)),
                failure=_about("Why it failed; null if it did not.", {"anyOf": [_NULL, _STRING]}),
                parts=_about("Empty if no byte changed.", _array(_reference("part"))),
            ),
            "part": _records(
                name=_about('Name of the part, such as a rule; "" for the pass as a whole.', _STRING),
                after=_reference("size"),
                events=_array(_reference("event")),
                incomplete=_about("What could not be compared.", _array(_STRING)),
                patch=_about(
                    "File of the patch, onnxjson-patch/1, from the model before; null if nothing changed.", patch
                ),
            ),
            "size": _records(
                nodes=_about("Nodes in all graphs and functions.", _COUNT),
                parameters=_about("Elements of initializers.", _COUNT),
                bytes=_about("Size of the serialized model.", _COUNT),
                operators=_about("Nodes by operator.", _values(_COUNT)),
            ),
            "story": _records(
                nodes=_about("Addresses in the other model.", _array(_ADDRESS)),
                among=_about("Number of candidate nodes if the origin is ambiguous; else 0.", _COUNT),
                parts=_about("Parts of passes that changed the node, by position.", _array(touched)),
            ),
            **definitions,
        },
    }
