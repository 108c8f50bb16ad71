"""Knowledge about operators: attributes, defaults, versions, documentation.

The attribute table is frozen with the format and needs no onnx. Everything else comes from `onnx.defs`, imported on
first use.
"""

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from onnxjson.model.attribute_table import ATTRIBUTE_TYPES_BY_OPERATOR
from onnxjson.model.document import Attribute, Function, Node

if TYPE_CHECKING:
    from onnx import AttributeProto
    from onnx.defs import OpSchema

__all__ = [
    "ATTRIBUTE_TYPES_BY_OPERATOR",
    "AttributeParameter",
    "Documentation",
    "OperatorKey",
    "Parameter",
    "Signature",
    "attribute_defaults",
    "attribute_types",
    "documentation",
    "function_key",
    "is_commutative",
    "known_attributes",
    "known_operators",
    "newest_version",
    "operator_key",
    "operator_name",
    "plain_domain",
    "since_version",
]

_NONE: Final[Mapping[str, int]] = {}


def attribute_types(domain: str | None, op_type: str | None) -> Mapping[str, int]:
    """Return the attributes of an operator in the frozen table: name -> number of AttributeProto.AttributeType.

    The default domain is ``""`` or absent; ``ai.onnx`` is another name, as it is in protobuf.
    """
    return ATTRIBUTE_TYPES_BY_OPERATOR.get((domain or "", op_type or ""), _NONE)


_COMMUTATIVE: Final = frozenset(
    {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
)


def is_commutative(domain: str | None, op_type: str | None) -> bool:
    """Whether the inputs of an operator of ONNX may be in any order."""
    return op_type in _COMMUTATIVE and not plain_domain(domain)


def plain_domain(domain: str | None) -> str:
    """Return a domain with "" for the default one, which is also written as absent and as ``ai.onnx``."""
    return "" if domain is None or domain == "ai.onnx" else domain


OperatorKey: TypeAlias = tuple[str, str, str]
"""Identity of an operator or function: domain ("" for the default one), name, overload."""


def operator_key(node: Node) -> OperatorKey:
    """Return the operator or function that a node calls."""
    return plain_domain(node.domain), node.op_type or "", node.overload or ""


def function_key(function: Function) -> OperatorKey:
    """Return the `operator_key` of the nodes that call a function."""
    return plain_domain(function.domain), function.name or "", function.overload or ""


def operator_name(domain: str | None, op_type: str | None, overload: str | None = None) -> str:
    """Return the name of an operator or function: ``Add``, ``com.microsoft::Gelu``, ``own::Block:overload``."""
    name = op_type or "(no operator)"
    plain = plain_domain(domain)
    return (f"{plain}::{name}" if plain else name) + (f":{overload}" if overload else "")


class Parameter(NamedTuple):
    """An input or output of an operator."""

    name: str
    types: str
    """A type such as ``tensor(float)``, or the name of a set of types."""
    option: str
    """"single", "optional" or "variadic"."""
    doc: str


class AttributeParameter(NamedTuple):
    """An attribute of an operator."""

    name: str
    type: str
    required: bool
    default: str | None
    """As a user writes it; None where there is none."""
    doc: str


class Documentation(NamedTuple):
    """The documentation of one version of an operator in ONNX."""

    domain: str
    op_type: str
    since_version: int
    deprecated: bool
    doc: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: tuple[AttributeParameter, ...]


def attribute_defaults(domain: str | None, op_type: str | None, opset: int | None) -> Mapping[str, Attribute]:
    """Return the default values of the attributes of an operator as of an opset (None: the newest), by name.

    Empty where the installed onnx does not know the operator. An optional attribute without a default is not there.
    """
    return _attribute_defaults(plain_domain(domain), op_type or "", opset)


@lru_cache(maxsize=1024)
def _attribute_defaults(domain: str, op_type: str, opset: int | None) -> Mapping[str, Attribute]:
    schema = _schema(domain, op_type, opset)
    if schema is None:
        return {}
    found = {name: _default_record(each.default_value) for name, each in schema.attributes.items()}
    return {name: record for name, record in found.items() if record is not None}


def _default_record(default: "AttributeProto") -> Attribute | None:
    from onnx import AttributeProto

    match default.type:
        case AttributeProto.FLOAT:
            payload: dict[str, Any] = {"f": struct.pack("<f", default.f)}
        case AttributeProto.INT:
            payload = {"i": default.i}
        case AttributeProto.STRING:
            payload = {"s": default.s}
        case AttributeProto.FLOATS:
            payload = {"floats": struct.pack(f"<{len(default.floats)}f", *default.floats)}
        case AttributeProto.INTS:
            payload = {"ints": tuple(default.ints)}
        case AttributeProto.STRINGS:
            payload = {"strings": tuple(default.strings)}
        case _:
            return None
    return Attribute(name=default.name, type=default.type, **payload)


def _schema(domain: str, op_type: str, opset: int | None) -> "OpSchema | None":
    from onnx import defs

    if not (domain.isascii() and op_type.isascii()):
        return None  # onnx cannot look up names that are not UTF-8
    newest = opset if opset is not None and 0 < opset < 1 << 31 else 1 << 30
    try:
        return defs.get_schema(op_type, newest, domain)
    except defs.SchemaError:
        return None


def since_version(domain: str | None, op_type: str | None, opset: int | None) -> int | None:
    """Return the version that introduced an operator as it is in an opset (None: the newest), or None if unknown."""
    return _since_version(plain_domain(domain), op_type or "", opset)


@lru_cache(maxsize=4096)
def _since_version(domain: str, op_type: str, opset: int | None) -> int | None:
    schema = _schema(domain, op_type, opset)
    return None if schema is None else int(schema.since_version)


@lru_cache(maxsize=64)
def newest_version(domain: str | None) -> int | None:
    """Return the newest version of an operator set in the installed onnx, or None for an unknown domain."""
    from onnx import defs

    plain = plain_domain(domain)
    if plain == "":
        return defs.onnx_opset_version()
    versions = [each.since_version for each in defs.get_all_schemas_with_history() if each.domain == plain]
    return max(versions, default=None)


class Signature(NamedTuple):
    """Inputs and outputs of an operator, as needed to check their number and dtypes."""

    since_version: int
    deprecated: bool
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    fewest_inputs: int
    most_inputs: int
    fewest_outputs: int
    most_outputs: int
    is_mixed: bool
    """Whether the last input represents several of different types."""
    types: Mapping[str, frozenset[str]]
    """The types that each set of types has, such as ``tensor(float)``, by the name of the set."""


@lru_cache(maxsize=1024)
def signature(domain: str | None, op_type: str | None, opset: int | None) -> Signature | None:
    """Return the signature of an operator as of an opset (None: the newest), or None if onnx does not know it."""
    schema = _schema(plain_domain(domain), op_type or "", opset)
    if schema is None:
        return None
    return Signature(
        schema.since_version,
        schema.deprecated,
        tuple([_parameter(each) for each in schema.inputs]),
        tuple([_parameter(each) for each in schema.outputs]),
        schema.min_input,
        schema.max_input,
        schema.min_output,
        schema.max_output,
        bool(schema.inputs) and not schema.inputs[-1].is_homogeneous,
        {each.type_param_str: frozenset(each.allowed_type_strs) for each in schema.type_constraints},
    )


@lru_cache(maxsize=16)
def known_operators(domain: str | None) -> frozenset[str]:
    """Return the names of all operators of a domain in the installed onnx."""
    from onnx import defs

    plain = plain_domain(domain)
    return frozenset(schema.name for schema in defs.get_all_schemas() if schema.domain == plain)


@lru_cache(maxsize=1024)
def known_attributes(domain: str | None, op_type: str | None, opset: int | None) -> Mapping[str, bool] | None:
    """Return the attributes that an operator can have as of an opset (None: the newest), and whether it requires them.

    None where the installed onnx does not know the operator.
    """
    schema = _schema(plain_domain(domain), op_type or "", opset)
    return None if schema is None else {name: each.required for name, each in schema.attributes.items()}


def documentation(domain: str | None, op_type: str | None, opset: int | None) -> Documentation | None:
    """Return the documentation of an operator as of an opset (None: the newest), or None if onnx does not know it."""
    plain = plain_domain(domain)
    schema = _schema(plain, op_type or "", opset)
    if schema is None:
        return None
    return Documentation(
        domain=plain,
        op_type=schema.name,
        since_version=schema.since_version,
        deprecated=schema.deprecated,
        doc=schema.doc or "",
        inputs=tuple([_parameter(each) for each in schema.inputs]),
        outputs=tuple([_parameter(each) for each in schema.outputs]),
        attributes=tuple([_attribute(schema.attributes[name]) for name in sorted(schema.attributes)]),
    )


def _parameter(formal: "OpSchema.FormalParameter") -> Parameter:
    option = str(formal.option).rpartition(".")[2].lower()
    return Parameter(formal.name, formal.type_str, option, formal.description or "")


def _attribute(attribute: "OpSchema.Attribute") -> AttributeParameter:
    from onnx import helper

    value = attribute.default_value
    default = helper.get_attribute_value(value) if value.name else None
    text = None if default is None else default.decode() if isinstance(default, bytes) else _default_text(default)
    return AttributeParameter(
        attribute.name, str(attribute.type).rpartition(".")[2], attribute.required, text, attribute.description or ""
    )


def _default_text(value: object) -> str:
    # A float32 such as 0.1 comes as a double with many digits.
    return f"{value:.7g}" if isinstance(value, float) else str(value)
