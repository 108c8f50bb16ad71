"""The JSON Schema (2020-12) of a document, built from the field table and the short forms of docs/format.md.

The schema is for editors and for other languages. It describes the structure of a text and the attributes of operators,
but not how many values a tensor needs or which names exist: whatever it rejects the reader rejects, but not vice versa.
"""

import re
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from typing import Any, Final, TypeAlias

from onnxjson.model import document as d
from onnxjson.model import messages as m
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.operators import all_operators, attribute_types, operator_signature

Schema: TypeAlias = dict[str, Any]

_CANONICAL_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
_NUMBER: Final = "(?:0|[1-9][0-9]*)"
_DTYPE: Final = rf"(?:{'|'.join(DATA_TYPES)}|dtype\(-?{_NUMBER}\))"
_DIM: Final = rf"(?:{_NUMBER}|[A-Za-z_][A-Za-z0-9_]*|'[^'\\\\]*'|\?)"

_SENTENCE: Final = re.compile(r".+?(?:[.:](?= |$)|$)")

STORAGES: Final = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


_TYPE_MISTAKE: Final = "a type, such as float32[1,N,64]: a dtype, and dims that are numbers, names or ?"
"""What editors say where a text is no type."""


def _spaced_list(item: str) -> str:
    return rf"\[ *(?:{item} *(?:, *{item} *)*)?\]"


def reference(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def _either(*choices: Schema) -> Schema:
    return {"anyOf": list(choices)}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _tuple(*items: Schema) -> Schema:
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}


def _whole_number(smallest: int, largest: int) -> Schema:
    return _either(
        {"type": "integer", "minimum": smallest, "maximum": largest}, {"type": "string", "pattern": "^-?[0-9]+$"}
    )


def record(properties: Mapping[str, Schema | bool], **more: Any) -> Schema:
    """An object with these properties only."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def _attributes(value: str) -> Schema:
    return {
        "description": "Name -> value; a list of full forms where names repeat, are absent or all digits.",
        **_either({"type": "object", "additionalProperties": reference(value)}, _list(reference("Attribute"))),
    }


_BASE64: Final = reference("base64")
_BASE64_OBJECT: Final = record({"base64": _BASE64}, required=["base64"])
_PAIRS: Final = reference("pairs")

_VALUES: Final[dict[str, Schema]] = {
    "base64": {"type": "string", "contentEncoding": "base64", "pattern": _CANONICAL_BASE64},
    "int32": _whole_number(-(2**31), 2**31 - 1),
    "int64": _whole_number(-(2**63), 2**63 - 1),
    "uint64": _whole_number(0, 2**64 - 1),
    "float": _either(
        {"type": "number"}, {"type": "string", "pattern": r"^(?:NaN(?:\(0x[0-9a-f]{1,16}\))?|-?Infinity|-0\.0)$"}
    ),
    "string": {
        "description": "A string, or its bytes as base64 if they are not UTF-8.",
        **_either({"type": "string"}, _BASE64_OBJECT),
    },
    "text": {
        "description": "A string, or the list of its lines.",
        **_either(reference("string"), _list({"type": "string"})),
    },
    "data_type": _either(
        {"enum": list(DATA_TYPES)}, {"type": "string", "pattern": r"^dtype\(-?[0-9]+\)$"}, reference("int32")
    ),
    "attribute_type": _either({"enum": list(m.ATTRIBUTE_TYPES)}, {"type": "integer"}),
    "data_location": _either({"enum": list(m.DATA_LOCATIONS)}, {"type": "integer"}),
    "pairs": {
        "description": "Keys and values, in order; a list where a key repeats or is all digits.",
        **_either(
            {"type": "object", "additionalProperties": reference("text")},
            _list(_either(_tuple(reference("string"), reference("text")), reference("StringStringEntry"))),
        ),
    },
    "opset_import": {
        "description": 'Domain -> version; "" is the default domain.',
        **_either({"type": "object", "additionalProperties": reference("int64")}, _list(reference("OperatorSetId"))),
    },
    "attributes": _attributes("attribute_value"),
    "function_attributes": _attributes("untabled_value"),
    "element_metadata": {
        "description": "Metadata of the elements: kind, owner, key, value.",
        **_list(_tuple({"enum": ["node", "input", "output", "initializer", "value_info"]}, *[{"type": "string"}] * 3)),
    },
    "tensor_values": {
        "description": "Elements, nested by shape; complex numbers are [re, im].",
        **_either({"type": ["number", "string", "boolean"]}, _BASE64_OBJECT, _list(reference("tensor_values"))),
    },
}
"""Definitions of values that are not messages, by name."""

_SCALARS: Final[dict[m.Kind, str]] = {
    m.Kind.INT64: "int64", m.Kind.UINT64: "uint64", m.Kind.INT32: "int32", m.Kind.FLOAT: "float",
    m.Kind.DOUBLE: "float", m.Kind.STRING: "string", m.Kind.BYTES: "string", m.Kind.DATA_TYPE: "data_type",
    m.Kind.ATTRIBUTE_TYPE: "attribute_type", m.Kind.DATA_LOCATION: "data_location",
}  # fmt: skip

_OWN_FORMS: Final[dict[tuple[type[d.Record], str], Schema]] = {
    (d.Node, "attribute"): reference("attributes"),
    (d.Node, "op_type"): reference("operator"),
    (d.Function, "attribute_proto"): reference("function_attributes"),
    (d.Tensor, "raw_data"): _BASE64_OBJECT,
}
"""Fields with a form that does not follow from their kind."""

_CONFLICTS: Final[Schema] = {
    "description": "Unresolved conflicts of a merge; a text with conflicts is not a model yet.",
    **_list(
        record(
            {"id": reference("string"), "at": reference("string"), "base": {}, "ours": {}, "theirs": {}},
            required=["id", "at"],
        )
    ),
}


def document_schema() -> Schema:
    """The schema of an ``onnxjson/1`` document, with one definition for each message."""
    definitions = {message.__name__: _definition(message) for message in m.FIELDS if message is not d.Model}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:onnxjson:document-1",
        "title": "onnxjson/1",
        "description": "A whole ONNX model.",
        **record(
            {
                "$schema": {"description": "For editors; not part of the model.", "type": "string"},
                "format": {"const": "onnxjson/1"},
                "conflicts": _CONFLICTS,
                "weights": {"const": "digest"},
                "blobs": {"type": "string", "minLength": 1},
                **_properties(d.Model),
            },
            required=["format"],
        ),
        "$defs": {
            **dict(sorted(definitions.items())),
            **_attribute_values(),
            "operator": _operators(),
            "operator_attributes": _operator_attributes(),
            **dict(sorted(_VALUES.items())),
        },
    }


def _definition(message: type[d.Record]) -> Schema:
    full = _full_form(message)
    description = {"description": (message.__doc__ or "").partition("\n")[0]}
    if message is d.Tensor:
        return description | {"if": {"required": ["type"]}, "then": _short_tensor(), "else": full}
    if message is d.Type:
        return description | {
            "if": {"type": "string"},
            "then": {"pattern": _type_pattern(), "patternErrorMessage": _TYPE_MISTAKE},
            "else": full,
        }
    if message is d.Node:
        return description | full | {"allOf": [reference("operator_attributes")]}
    return description | full


def _full_form(message: type[d.Record], *, without: str = "") -> Schema:
    """An object of the fields by their names, with at most one member of each oneof."""
    properties = _properties(message)
    properties.pop(without, None)
    groups: dict[str, list[str]] = {}
    for field in m.FIELDS[message]:
        if field.oneof:
            groups.setdefault(field.oneof, []).append(field.name)
    pairs = [pair for members in groups.values() for pair in combinations(members, 2)]
    exclusive = {"not": _either(*({"required": list(pair)} for pair in pairs))} if pairs else {}
    return record(properties, **exclusive)


def _properties(message: type[d.Record]) -> dict[str, Schema]:
    properties = {field.name: _field(message, field) for field in m.FIELDS[message]}
    if message in (d.Graph, d.Function):
        properties["element_metadata"] = reference("element_metadata")
    return properties | {"unknown_fields": _BASE64}


def _field(message: type[d.Record], field: m.Field) -> Schema:
    if own := _OWN_FORMS.get((message, field.name)):
        return own
    if field.message is d.StringStringEntry:
        return _PAIRS
    if field.message is d.OperatorSetId:
        return reference("opset_import")
    if field.name == "doc_string" or (message is d.StringStringEntry and field.name == "value"):
        return reference("text")
    value = reference(field.message.__name__ if field.message else _SCALARS[field.kind])
    return _list(value) if field.repeated else value


def _short_tensor() -> Schema:
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    payloads = {
        "values": reference("tensor_values"),
        "base64": _BASE64,
        "blob": digest,
        "sha256": digest,
        "external_data": _PAIRS,
    }
    return record(
        {
            "name": reference("string"),
            "type": {
                "type": "string",
                "pattern": rf"^ *{_DTYPE} *{_spaced_list(_NUMBER)} *$",
                "patternErrorMessage": "a dtype and sizes, such as float32[64,3,7,7]",
            },
            "storage": {"enum": list(STORAGES)},
            **payloads,
            "doc_string": reference("text"),
            "metadata_props": _PAIRS,
            "unknown_fields": _BASE64,
        },
        oneOf=[{"required": [payload]} for payload in payloads],
    )


def _type_pattern() -> str:
    """A pattern for types: exact for tensors; the outermost word and its parentheses for types that contain types."""
    tensor = rf"{_DTYPE}(?: *{_spaced_list(_DIM)})?"
    return rf"^ *(?:{tensor}|(?:seq|optional|map|sparse|opaque) *\(.*\)) *$"


@cache
def attribute_table() -> dict[tuple[str, str], Mapping[str, int]]:
    """The whole attribute table of onnxjson/1: domain and op_type -> attribute -> number of its type."""
    operators = sorted({(domain, name) for domain, name, _ in all_operators()})
    return {operator: found for operator in operators if (found := attribute_types(*operator))}


def _attribute_values() -> dict[str, Schema]:
    payloads = {field.name: _field(d.Attribute, field) for field in m.FIELDS[d.Attribute]}
    by_type = {name: payloads[m.ATTRIBUTE_PAYLOADS[number]] for name, number in m.ATTRIBUTE_TYPES.items() if number}
    numbers = _either(reference("float"), reference("int64"))
    messages = [reference(message.__name__) for message in (d.Tensor, d.Graph, d.SparseTensor, d.Type)]
    tagged = [record({name: payload}, required=[name]) for name, payload in by_type.items()]
    full = record({"AttributeProto": _full_form(d.Attribute, without="name")}, required=["AttributeProto"])
    tabled = {number for attributes in attribute_table().values() for number in attributes.values()}
    return {
        "attribute_value": {
            "description": "Bare, tagged with the name of its type, or in full.",
            **_either(
                numbers,
                reference("string"),
                _list(_either(numbers, reference("string"))),
                *messages,
                *map(_list, messages),
                reference("tagged_value"),
            ),
        },
        "untabled_value": {
            "description": "An integer, a string or a list of either; all other types are tagged.",
            **_either(
                {"type": "integer"},
                {"type": "string"},
                {**_list({"type": "integer"}), "minItems": 1},
                {**_list({"type": "string"}), "minItems": 1},
                reference("tagged_value"),
            ),
        },
        "tagged_value": {
            "description": "The type of the attribute and its value, or all fields of the attribute.",
            **_either(*tagged, full),
        },
        **{
            _value_name(number): _either(by_type[m.ATTRIBUTE_TYPE_NAMES[number]], reference("tagged_value"))
            for number in sorted(tabled)
        },
    }


def _value_name(number: int) -> str:
    """The definition of the values of an attribute type, such as ``INTS_value``."""
    return f"{m.ATTRIBUTE_TYPE_NAMES[number]}_value"


_CHOICES: Final = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "approximate": ("none", "tanh"),
    "coordinate_transformation_mode": (
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    ),
    "direction": ("forward", "reverse", "bidirectional"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "padding_mode": ("zeros", "border", "reflection"),
}  # fmt: skip
"""Values that attributes of these names may have; onnx.defs has them in sentences only."""


def _operator_attributes() -> Schema:
    untabled = {"additionalProperties": reference("untabled_value")}
    branches = []
    for (domain, op_type), attributes in attribute_table().items():
        branches.append(
            {
                "if": {
                    "properties": {"op_type": {"const": op_type}, "domain": {"const": domain}},
                    "required": ["op_type", "domain"] if domain else ["op_type"],
                },
                "then": {
                    "properties": {"attribute": {"properties": _described(domain, op_type, attributes), **untabled}}
                },
            }
        )
    op_types = sorted({op_type for _, op_type in attribute_table()})
    other = {
        "if": {"properties": {"op_type": {"not": {"enum": op_types}}}},
        "then": {"properties": {"attribute": untabled}},
    }
    return {"allOf": [*branches, other]}


def _described(domain: str, op_type: str, attributes: Mapping[str, int]) -> Schema:
    """The attributes of an operator, with the first sentence of their documentation, and default and choices."""
    signature = operator_signature(domain, op_type, None)
    values: Schema = {}
    for name, number in attributes.items():
        value = reference(_value_name(number))
        formal = None if signature is None else signature.attributes.get(name)
        choices = _CHOICES.get(name) if m.ATTRIBUTE_TYPE_NAMES[number] == "STRING" else None
        if choices:
            value = {"anyOf": [{"enum": list(choices)}, value]}
        if formal is None:
            value["description"] = f"{op_type} of earlier operator sets."
        else:
            state = "Required. " if formal.required else f"Default: {formal.default}. " if formal.default else ""
            value["description"] = f"{m.ATTRIBUTE_TYPE_NAMES[number]}. {state}{_first_sentence(formal.doc)}".rstrip()
        values[name] = value
    return values


def _operators() -> Schema:
    """The names of all operators of ONNX with the first sentence of their documentation; other names are valid too."""
    found: dict[str, str] = {}
    for domain, name, _ in all_operators():
        signature = operator_signature(domain, name, None)
        found.setdefault(name, "" if signature is None else _first_sentence(signature.doc))
    names = sorted(found)
    known = {"enum": names, "enumDescriptions": [found[name] for name in names]}
    return {"description": "The operator or function that the node calls.", **_either(known, reference("string"))}


def _first_sentence(text: str) -> str:
    sentence = _SENTENCE.match(" ".join(text.split()))
    return "" if sentence is None else sentence[0]
