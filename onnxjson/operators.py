"""What the package knows about operators: the one door to that knowledge.

The attribute table is frozen with the format and needs no onnx. Everything else is asked of `onnx.defs`, imported on
first use.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from onnxjson.attribute_table import ATTRIBUTE_TYPES_BY_OPERATOR

if TYPE_CHECKING:
    from onnx.defs import OpSchema

__all__ = [
    "ATTRIBUTE_TYPES_BY_OPERATOR",
    "AttributeParameter",
    "Documentation",
    "Parameter",
    "attribute_types",
    "documentation",
    "plain_domain",
]

_NONE: Final[Mapping[str, int]] = {}


def attribute_types(domain: str | None, op_type: str | None) -> Mapping[str, int]:
    """The attributes of an operator in the frozen table: name -> number of AttributeProto.AttributeType.

    The default domain is ``""`` or absent; ``ai.onnx`` is another name, as it is in protobuf.
    """
    return ATTRIBUTE_TYPES_BY_OPERATOR.get((domain or "", op_type or ""), _NONE)


def plain_domain(domain: str | None) -> str:
    """A domain with "" for the default one, which is also written as absent and as ``ai.onnx``."""
    return "" if domain is None or domain == "ai.onnx" else domain


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
    """As a person writes it; None where there is none."""
    doc: str


class Documentation(NamedTuple):
    """What ONNX says about one version of an operator."""

    domain: str
    op_type: str
    since_version: int
    deprecated: bool
    doc: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: tuple[AttributeParameter, ...]


def documentation(domain: str | None, op_type: str | None, opset: int | None) -> Documentation | None:
    """What the installed onnx says about an operator as of an opset (None: its newest); None where it knows none."""
    from onnx import defs

    plain = plain_domain(domain)
    if not (plain.isascii() and (op_type or "").isascii()):
        return None  # bytes that are not UTF-8 cannot even be asked for
    newest = opset if opset is not None and 0 < opset < 1 << 31 else 1 << 30
    try:
        schema = defs.get_schema(op_type or "", newest, plain)
    except defs.SchemaError:
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
