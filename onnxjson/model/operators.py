"""Knowledge about operators: attributes, defaults, versions, signatures, documentation.

A file of the package describes all versions of all operators of one release of onnx, as needed to check nodes, with the
defaults of attributes. It is read in 1 ms, while importing onnx takes 150 ms. The attribute table of onnxjson/1 is a
part of it that never changes. Anything else comes from `onnx.defs`, imported on first use.
"""

import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from onnxjson.model import document as d
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS, ATTRIBUTE_TYPES
from onnxjson.model.types import parse_type

if TYPE_CHECKING:
    from onnx import AttributeProto
    from onnx.defs import OpSchema


PATH: Final = Path(__file__).with_name("operators.json")

_FROZEN: Final = {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
"""Domains and versions of onnx 1.23, from which the attribute table of onnxjson/1 was made."""

Option = Literal["single", "optional", "variadic"]

_COMMUTATIVE: Final = frozenset(
    {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
)

OperatorKey: TypeAlias = tuple[str, str, str]
"""Identity of an operator or function: domain ("" for the default one), name, overload."""

_PAYLOADS: Final[dict[int, Callable[[Any], Any]]] = {
    ATTRIBUTE_TYPES["FLOAT"]: lambda number: struct.pack("<f", number),
    ATTRIBUTE_TYPES["INT"]: int,
    ATTRIBUTE_TYPES["STRING"]: str.encode,
    ATTRIBUTE_TYPES["INTS"]: tuple,
    ATTRIBUTE_TYPES["STRINGS"]: lambda texts: tuple(map(str.encode, texts)),
}
"""Types of defaults, and functions that convert defaults in the file to values of an `Attribute`."""

_TENSOR: Final = re.compile(r"\btensor\(([^()]*)\)")


class FormalRow(msgspec.Struct, array_like=True, frozen=True):
    """An input or output; see `Formal`."""

    name: str
    option: Option
    variable: str
    is_homogeneous: bool
    least: int


class OperatorRow(msgspec.Struct, array_like=True, frozen=True):
    """One version of an operator; see `Signature`."""

    since_version: int
    deprecated: bool
    counts: tuple[int, int, int, int]
    inputs: tuple[FormalRow, ...]
    outputs: tuple[FormalRow, ...]
    constraints: dict[str, int]
    """Variables and the positions of their sets of types."""
    attributes: dict[str, tuple[int, bool]]
    """Number of AttributeProto.AttributeType, and whether it is required."""
    defaults: dict[str, Any] = {}
    """Values of attributes that are omitted: a number, a text, or a list of them."""


class OperatorTable(msgspec.Struct, frozen=True):
    """The content of the file."""

    onnx: str
    """The release of onnx that it was made from."""
    newest: dict[str, int]
    """The newest version of each domain."""
    types: tuple[tuple[str, ...], ...]
    operators: dict[str, dict[str, msgspec.Raw]]
    """Domain -> name -> its `OperatorRow` of each version, newest first."""

    def rows(self, domain: str, op_type: str) -> tuple[OperatorRow, ...]:
        """Return all versions of an operator, newest first; none if it is not known."""
        raw = self.operators.get(domain, {}).get(op_type)
        return () if raw is None else msgspec.json.decode(raw, type=tuple[OperatorRow, ...])

    def row(self, domain: str, op_type: str, opset: int | None) -> OperatorRow | None:
        """Return the newest known version of an operator as of an opset (None: any), or None."""
        return next((each for each in self.rows(domain, op_type) if opset is None or each.since_version <= opset), None)


@lru_cache(maxsize=1)
def operator_table() -> OperatorTable:
    """Return the content of the file."""
    return msgspec.json.decode(PATH.read_bytes(), type=OperatorTable)


@lru_cache(maxsize=4096)
def attribute_types(domain: str | None, op_type: str | None) -> Mapping[str, int]:
    """Return the attributes of an operator in the table of onnxjson/1 (docs/format.md, section 12), and their types.

    These are the attributes with one type in all versions of the operator up to onnx 1.23, sorted.
    """
    types: dict[str, set[int]] = {}
    for row in operator_table().rows(domain or "", op_type or ""):
        if row.since_version <= _FROZEN.get(domain or "", 0):
            for name, (kind, _) in row.attributes.items():
                types.setdefault(name, set()).add(kind)
    return {name: next(iter(kinds)) for name, kinds in sorted(types.items()) if len(kinds) == 1}


def is_commutative(domain: str | None, op_type: str | None) -> bool:
    """Whether the inputs of an operator of ONNX may be in any order."""
    return op_type in _COMMUTATIVE and not plain_domain(domain)


def plain_domain(domain: str | None) -> str:
    """Return a domain with "" for the default one, which is also written as absent and as ``ai.onnx``."""
    return "" if domain is None or domain == "ai.onnx" else domain


def operator_key(node: d.Node) -> OperatorKey:
    """Return the operator or function that a node calls."""
    return plain_domain(node.domain), node.op_type or "", node.overload or ""


def function_key(function: d.Function) -> OperatorKey:
    """Return the `operator_key` of the nodes that call a function."""
    return plain_domain(function.domain), function.name or "", function.overload or ""


def operator_name(domain: str | None, op_type: str | None, overload: str | None = None) -> str:
    """Return the name of an operator or function: ``Add``, ``com.microsoft::Gelu``, ``own::Block:overload``."""
    name = op_type or "(no operator)"
    plain = plain_domain(domain)
    return (f"{plain}::{name}" if plain else name) + (f":{overload}" if overload else "")


class Formal(NamedTuple):
    """An input or output of an operator."""

    name: str
    option: Option
    variable: str
    """The name of a set of types: all values of one variable have one type. Else the one type, as in onnx.defs."""
    types: tuple[d.Type, ...]
    """The types that it may have, without shapes."""
    least: int
    """Minimum number of values of a variadic one."""
    is_homogeneous: bool
    """Whether all values of a variadic one have one type."""
    doc: str


class AttributeFormal(NamedTuple):
    """An attribute of an operator."""

    name: str
    type: int
    """The number of AttributeProto.AttributeType."""
    required: bool
    default: str | None
    """As a user writes it; None if there is no default."""
    doc: str


class Signature(NamedTuple):
    """One version of an operator in ONNX, with its documentation."""

    domain: str
    op_type: str
    since_version: int
    deprecated: bool
    doc: str
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: dict[str, AttributeFormal]
    """By name, sorted."""
    least_inputs: int
    most_inputs: int
    least_outputs: int
    most_outputs: int

    def input_at(self, slot: int) -> Formal | None:
        """Return the input that a value at a position belongs to; None for an operator without inputs."""
        return self.inputs[min(slot, len(self.inputs) - 1)] if self.inputs else None


@lru_cache(maxsize=1024)
def operator_signature(domain: str | None, op_type: str | None, opset: int | None) -> Signature | None:
    """Return the signature of an operator as of an opset (None: the newest), or None if onnx does not know it."""
    schema = _schema(plain_domain(domain), op_type or "", opset)
    if schema is None:
        return None
    constraints = {each.type_param_str: tuple(each.allowed_type_strs) for each in schema.type_constraints}
    return Signature(
        domain=schema.domain,
        op_type=schema.name,
        since_version=int(schema.since_version),
        deprecated=bool(schema.deprecated),
        doc=schema.doc or "",
        inputs=tuple([_formal(each, constraints) for each in schema.inputs]),
        outputs=tuple([_formal(each, constraints) for each in schema.outputs]),
        attributes={name: _attribute(schema.attributes[name]) for name in sorted(schema.attributes)},
        least_inputs=int(schema.min_input),
        most_inputs=int(schema.max_input),
        least_outputs=int(schema.min_output),
        most_outputs=int(schema.max_output),
    )


@lru_cache(maxsize=1024)
def table_signature(domain: str | None, op_type: str | None, opset: int) -> Signature | None:
    """Return the signature of an operator as of an opset without importing onnx, or None if the table lacks it."""
    table = operator_table()
    domain, op_type = plain_domain(domain), op_type or ""
    row = table.row(domain, op_type, opset) if opset <= table.newest.get(domain, 0) else None
    if row is None:
        return None
    return Signature(
        domain,
        op_type,
        row.since_version,
        row.deprecated,
        "",
        tuple([_formal_of_row(each, row) for each in row.inputs]),
        tuple([_formal_of_row(each, row) for each in row.outputs]),
        {name: AttributeFormal(name, *each, default=None, doc="") for name, each in row.attributes.items()},
        *row.counts,
    )


def _formal_of_row(formal: FormalRow, row: OperatorRow) -> Formal:
    position = row.constraints.get(formal.variable)
    names = (formal.variable,) if position is None else operator_table().types[position]
    return Formal(
        formal.name, formal.option, formal.variable, _types(names), formal.least, formal.is_homogeneous, doc=""
    )


def _types(names: tuple[str, ...]) -> tuple[d.Type, ...]:
    return tuple([type_of(each) for each in names])


def _formal(formal: "OpSchema.FormalParameter", constraints: dict[str, tuple[str, ...]]) -> Formal:
    option: Option = str(formal.option).rpartition(".")[2].lower()  # type: ignore[assignment]
    return Formal(
        name=formal.name,
        option=option,
        variable=formal.type_str,
        types=_types(constraints.get(formal.type_str) or (formal.type_str,)),
        least=int(formal.min_arity),
        is_homogeneous=bool(formal.is_homogeneous),
        doc=formal.description or "",
    )


def _attribute(attribute: "OpSchema.Attribute") -> AttributeFormal:
    kind = ATTRIBUTE_TYPES[str(attribute.type).rpartition(".")[2]]
    value = default_value(attribute.default_value)
    # A float32 such as 0.1 is read as a double with many digits.
    default = None if value is None else f"{value:.7g}" if isinstance(value, float) else str(value)
    return AttributeFormal(attribute.name, kind, bool(attribute.required), default, attribute.description or "")


def default_value(default: "AttributeProto") -> Any:
    """Return a default of `onnx.defs` as in `OperatorRow.defaults`; None if there is none."""
    from onnx import helper

    value = helper.get_attribute_value(default) if default.type in _PAYLOADS else None
    if isinstance(value, list | tuple):
        return [each.decode() if isinstance(each, bytes) else each for each in value]
    return value.decode() if isinstance(value, bytes) else value


@lru_cache(maxsize=1024)
def attribute_defaults(domain: str | None, op_type: str | None, opset: int | None) -> Mapping[str, d.Attribute]:
    """Return the default values of the attributes of an operator as of an opset (None: the newest), by name."""
    row = operator_table().row(plain_domain(domain), op_type or "", opset or None)
    known = () if row is None else [(name, row.attributes[name][0], row.defaults[name]) for name in row.defaults]
    return {
        name: d.Attribute(name=name, type=kind, **{ATTRIBUTE_PAYLOADS[kind]: _PAYLOADS[kind](value)})
        for name, kind, value in known
    }


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
    schema = _schema(plain_domain(domain), op_type or "", opset)
    return None if schema is None else int(schema.since_version)


@lru_cache(maxsize=64)
def newest_version(domain: str | None) -> int | None:
    """Return the newest version of an operator set in the installed onnx, or None for an unknown domain."""
    from onnx import defs

    plain = plain_domain(domain)
    if plain == "":
        return defs.onnx_opset_version()
    return max([version for name, _, version in all_operators() if name == plain], default=None)


@lru_cache(maxsize=1)
def all_operators() -> tuple[tuple[str, str, int], ...]:
    """Return every version of every operator in the installed onnx: domain, operator, version; sorted."""
    from onnx import defs

    found = {(each.domain, each.name, int(each.since_version)) for each in defs.get_all_schemas_with_history()}
    return tuple(sorted(found))


@lru_cache(maxsize=16)
def known_operators(domain: str | None) -> frozenset[str]:
    """Return the names of all operators of a domain in the installed onnx."""
    from onnx import defs

    plain = plain_domain(domain)
    return frozenset(schema.name for schema in defs.get_all_schemas() if schema.domain == plain)


def known_attributes(domain: str | None, op_type: str | None, opset: int | None) -> Mapping[str, bool] | None:
    """Return the attributes of an operator as of an opset, and whether it requires them; None if unknown."""
    schema = _schema(plain_domain(domain), op_type or "", opset)
    return None if schema is None else {name: each.required for name, each in schema.attributes.items()}


def ir_version_for(domain: str, opset: int) -> int:
    """Return the lowest IR version that a model with this operator set may have; 1 if unknown."""
    from onnx import helper

    return int(helper.OP_SET_ID_VERSION_MAP.get((plain_domain(domain) or "ai.onnx", opset), 1))


def type_of(text: str) -> d.Type:
    """Return the type that onnx.defs spells ``seq(tensor(float))``, without a shape."""
    return parse_type(_TENSOR.sub(r"\1", text.strip()).replace("sparse_tensor(", "sparse("))
