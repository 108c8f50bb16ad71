"""Signatures of operators: inputs, outputs and attributes with all the types that they may have.

Only this module and `onnxjson.model.operators` use `onnx.defs`, which is imported on first use.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from onnxjson.model.document import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, Type
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.operators import plain_domain

if TYPE_CHECKING:
    from onnx.defs import OpSchema

Option = Literal["single", "optional", "variadic"]

_CALL: Final = re.compile(r"(\w+)\((.*)\)\Z", re.DOTALL)


class Formal(NamedTuple):
    """An input or output of an operator."""

    name: str
    option: Option
    variable: str
    """The name of a set of types: all values of one variable have one type. Else the one type."""
    types: tuple[Type, ...]
    """The types that it may have, without shapes."""
    least: int
    """Minimum number of values of a variadic one."""
    is_homogeneous: bool
    """Whether all values of a variadic one have one type."""


class AttributeFormal(NamedTuple):
    """An attribute of an operator."""

    name: str
    type: int
    """The number of AttributeProto.AttributeType."""
    required: bool


class Signature(NamedTuple):
    """One version of an operator."""

    domain: str
    op_type: str
    since_version: int
    deprecated: bool
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: dict[str, AttributeFormal]
    least_inputs: int
    most_inputs: int
    least_outputs: int
    most_outputs: int


@lru_cache(maxsize=1024)
def typed_signature(domain: str, op_type: str, opset: int | None) -> Signature | None:
    """Return the signature of an operator as of an opset (None: the newest), or None if onnx does not know it."""
    from onnx import defs

    plain = plain_domain(domain)
    if not (plain.isascii() and op_type.isascii()):
        return None
    try:
        # Versions have 32 bits there, and 64 in a model.
        return _read(defs.get_schema(op_type, min(1 << 30 if opset is None else max(opset, 0), 1 << 30), plain))
    except defs.SchemaError:
        return None


@lru_cache(maxsize=1)
def all_operators() -> tuple[tuple[str, str, int], ...]:
    """Return every version of every operator in the installed onnx: domain, operator, version; sorted."""
    from onnx import defs

    found = {(each.domain, each.name, int(each.since_version)) for each in defs.get_all_schemas_with_history()}
    return tuple(sorted(found))


@lru_cache(maxsize=256)
def ir_version_for(domain: str, opset: int) -> int:
    """Return the lowest IR version that a model with this operator set may have; 1 if unknown."""
    from onnx import helper

    known = {(name, version): ir for (name, version), ir in helper.OP_SET_ID_VERSION_MAP.items()}
    return int(known.get((plain_domain(domain) or "ai.onnx", opset), 1))


def _read(schema: "OpSchema") -> Signature:
    constraints = {each.type_param_str: tuple(each.allowed_type_strs) for each in schema.type_constraints}
    return Signature(
        domain=schema.domain,
        op_type=schema.name,
        since_version=int(schema.since_version),
        deprecated=bool(schema.deprecated),
        inputs=tuple([_formal(each, constraints) for each in schema.inputs]),
        outputs=tuple([_formal(each, constraints) for each in schema.outputs]),
        attributes={
            name: AttributeFormal(name, _attribute_type(each), bool(each.required))
            for name, each in schema.attributes.items()
        },
        least_inputs=int(schema.min_input),
        most_inputs=int(schema.max_input),
        least_outputs=int(schema.min_output),
        most_outputs=int(schema.max_output),
    )


def _attribute_type(attribute: "OpSchema.Attribute") -> int:
    from onnx import AttributeProto

    return int(AttributeProto.AttributeType.Value(str(attribute.type).rpartition(".")[2]))


def _formal(formal: "OpSchema.FormalParameter", constraints: dict[str, tuple[str, ...]]) -> Formal:
    option: Option = str(formal.option).rpartition(".")[2].lower()  # type: ignore[assignment]
    texts = constraints.get(formal.type_str) or (formal.type_str,)
    return Formal(
        name=formal.name,
        option=option,
        variable=formal.type_str,
        types=tuple([type_of(each) for each in texts]),
        least=int(formal.min_arity),
        is_homogeneous=bool(formal.is_homogeneous),
    )


@lru_cache(maxsize=512)
def type_of(text: str) -> Type:
    """Return the type that onnx.defs spells ``seq(tensor(float))``, without a shape.

    Raises:
        ValueError: it is not a type.
    """
    found = _CALL.match(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no type of onnx.defs")
    kind, inner = found[1], found[2].strip()
    match kind:
        case "tensor":
            return Type(tensor_type=TensorType(elem_type=_element(inner)))
        case "sparse_tensor":
            return Type(sparse_tensor_type=SparseTensorType(elem_type=_element(inner)))
        case "seq":
            return Type(sequence_type=SequenceType(elem_type=type_of(inner)))
        case "optional":
            return Type(optional_type=OptionalType(elem_type=type_of(inner)))
        case "map":
            key, _, value = inner.partition(",")
            held = value.strip() if "(" in value else f"tensor({value.strip()})"
            return Type(map_type=MapType(key_type=_element(key), value_type=type_of(held)))
    raise ValueError(f"{text!r} is no type of onnx.defs")


def _element(name: str) -> int:
    return DATA_TYPES[name.strip()]
