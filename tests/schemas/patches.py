"""The JSON Schema (2020-12) of a patch: records and values as in a document, addresses by their last field."""

from typing import Any, Final

from onnxjson.model.messages import FIELDS, Field
from onnxjson.patching.patch_text import FORMAT
from tests.schemas.documents import STORAGES, Schema, document_schema, record, reference

_SHA256: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_ADDRESS: Final = "^(?:/(?:[^~]|~[01])*)+$"
_POSITION: Final[Schema] = {"type": "integer", "minimum": 0}


def patch_schema() -> Schema:
    """Return the schema of a text ``onnxjson-patch/1``."""
    document = document_schema()
    definitions: Schema = document["$defs"]
    _allow_stored_bytes(definitions)
    definitions |= _own_definitions(document)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:patch-1",
        "title": FORMAT,
        "description": "A change that turns one ONNX model into another.",
        **record(
            {
                "format": {"const": FORMAT},
                "base": _SHA256 | {"description": "SHA-256 of the model before, as SerializeToString writes it."},
                "target": _SHA256 | {"description": "SHA-256 of the model after."},
                "operations": {
                    "description": "All operations happen at once; every address is an address in the base.",
                    "type": "array",
                    "items": {"anyOf": [reference("set"), reference("list")]},
                },
                "payloads": {
                    "description": "Bytes of tensors by their sha256.",
                    "type": "object",
                    "propertyNames": _SHA256,
                    "additionalProperties": record({"base64": reference("base64")}, required=["base64"]),
                },
                "external": {"type": "array", "items": reference("external_file")},
            },
            required=["format", "operations"],
        ),
        "$defs": definitions,
    }


def _either(choices: list[Schema]) -> Schema:
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _allow_stored_bytes(definitions: Schema) -> None:
    """Allow references to the table of payloads for the bytes of a tensor in full form."""
    fields = definitions["Tensor"]["else"]["properties"]
    for name in ("raw_data", *STORAGES):
        fields[name] = {"anyOf": [fields[name], reference("stored_bytes")]}


def _own_definitions(document: Schema) -> Schema:
    return {
        "address": {
            "description": "Address in the base: field names, positions, names of attributes (else #position); "
            "~0 ~1 for ~ /.",
            "anyOf": [{"type": "string", "pattern": _ADDRESS}, record({"base64": reference("base64")})],
        },
        "stored_bytes": {
            "description": "Bytes in the table of payloads, or elsewhere if the table does not have them.",
            **record({"sha256": _SHA256, "bytes": _POSITION}, required=["sha256", "bytes"]),
        },
        "set": {
            "description": "One field; a missing key means that the field is absent.",
            **record({"set": reference("address"), "old": True, "new": True}, required=["set"]),
            "anyOf": [{"required": ["old"]}, {"required": ["new"]}],
            "allOf": _by_name(_field_values(document), lambda value: {"old": value, "new": value}, "set"),
        },
        "list": {
            "description": "A list of records: runs of old positions (first and last) and new members.",
            **record(
                {
                    "list": reference("address"),
                    "sequence": {
                        "type": "array",
                        "items": {"anyOf": [_run(), record({"add": True}, required=["add"])]},
                    },
                    "removed": {
                        "type": "object",
                        "propertyNames": {"pattern": "^(?:0|[1-9][0-9]*)$"},
                        "additionalProperties": True,
                    },
                },
                required=["list", "sequence"],
            ),
            "allOf": _by_name(_members(), _list_values, "list"),
        },
        "external_file": {
            "description": "A file with weights that the models need; the patch does not contain it.",
            **record(
                {"location": reference("string"), "sha256": _SHA256, "side": {"enum": ["base", "target"]}},
                required=["location"],
            ),
        },
    }


def _run() -> Schema:
    return {"type": "array", "prefixItems": [_POSITION, _POSITION], "minItems": 2, "maxItems": 2}


def _list_values(member: Schema) -> Schema:
    return {
        "sequence": {"items": {"if": {"type": "object"}, "then": {"properties": {"add": member}}}},
        "removed": {"additionalProperties": member},
    }


def _by_name(values: dict[str, Schema], properties: Any, key: str) -> list[Schema]:
    """Return conditions on the values of an operation, by the last field of its address."""
    return [
        {
            "if": {"properties": {key: {"type": "string", "pattern": f"/{name}$"}}},
            "then": {"properties": properties(value)},
        }
        for name, value in sorted(values.items())
    ]


def _fields() -> list[tuple[str, Field]]:
    return [(message.__name__, field) for message, fields in FIELDS.items() for field in fields]


def _members() -> dict[str, Schema]:
    found: dict[str, list[Schema]] = {}
    for _, field in _fields():
        if field.message is not None and field.repeated:
            choices = found.setdefault(field.name, [])
            if reference(field.message.__name__) not in choices:
                choices.append(reference(field.message.__name__))
    return {name: _either(choices) for name, choices in found.items()}


def _field_values(document: Schema) -> dict[str, Schema]:
    found: dict[str, list[Schema]] = {"unknown_fields": [reference("base64")]}
    for message, field in _fields():
        if field.message is not None and field.repeated:
            continue
        owner = document if message == "Model" else document["$defs"][message]
        value = (owner.get("else") or owner)["properties"][field.name]
        choices = found.setdefault(field.name, [])
        if value not in choices:
            choices.append(value)
    return {name: _either(choices) for name, choices in found.items()}
