"""Signatures of the operators of ONNX from a file of the package: 5 ms, where importing onnx needs 150 ms.

The file has what nodes are checked for, without documentation and defaults. It is that of one release of onnx; an
operator or a version that is not in it may still be known to the installed onnx (`onnxjson.model.operators`).
"""

from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.model.document import Type
from onnxjson.model.operators import AttributeFormal, Formal, Option, Signature, plain_domain, type_of

PATH: Final = Path(__file__).with_name("operators.json")


class FormalRow(msgspec.Struct, array_like=True, frozen=True):
    """An input or output; see `onnxjson.model.operators.Formal`."""

    name: str
    option: Option
    variable: str
    is_homogeneous: bool
    least: int


class OperatorRow(msgspec.Struct, array_like=True, frozen=True):
    """One version of an operator; see `onnxjson.model.operators.Signature`."""

    since_version: int
    deprecated: bool
    counts: tuple[int, int, int, int]
    inputs: tuple[FormalRow, ...]
    outputs: tuple[FormalRow, ...]
    constraints: dict[str, int]
    """Variables and the positions of their sets of types."""
    attributes: dict[str, tuple[int, bool]]
    """Number of the type, and whether it is required."""


class OperatorTable(msgspec.Struct, frozen=True):
    """The content of the file."""

    onnx: str
    """The release of onnx that it was made from."""
    newest: dict[str, int]
    """The newest version of each domain."""
    types: tuple[tuple[str, ...], ...]
    operators: dict[str, dict[str, msgspec.Raw]]
    """Domain -> name -> its `OperatorRow` of each version, newest first."""


@lru_cache(maxsize=1)
def operator_table() -> OperatorTable:
    """Return the content of the file."""
    return msgspec.json.decode(PATH.read_bytes(), type=OperatorTable)


@lru_cache(maxsize=1024)
def table_signature(domain: str | None, op_type: str | None, opset: int) -> Signature | None:
    """Return the signature of an operator as of an opset, or None if the table does not have it."""
    table = operator_table()
    domain, op_type = plain_domain(domain), op_type or ""
    if opset > table.newest.get(domain, 0):
        return None
    raw = table.operators[domain].get(op_type, b"[]")
    rows = msgspec.json.decode(raw, type=tuple[OperatorRow, ...])
    row = next((each for each in rows if each.since_version <= opset), None)
    if row is None:
        return None
    return Signature(
        domain=domain,
        op_type=op_type,
        since_version=row.since_version,
        deprecated=row.deprecated,
        doc="",
        inputs=tuple([_formal(each, row) for each in row.inputs]),
        outputs=tuple([_formal(each, row) for each in row.outputs]),
        attributes={name: AttributeFormal(name, *each, default=None, doc="") for name, each in row.attributes.items()},
        least_inputs=row.counts[0],
        most_inputs=row.counts[1],
        least_outputs=row.counts[2],
        most_outputs=row.counts[3],
    )


def _formal(formal: FormalRow, row: OperatorRow) -> Formal:
    position = row.constraints.get(formal.variable)
    types = (type_of(formal.variable),) if position is None else _types(position)
    return Formal(formal.name, formal.option, formal.variable, types, formal.least, formal.is_homogeneous, doc="")


@lru_cache(maxsize=256)
def _types(position: int) -> tuple[Type, ...]:
    return tuple([type_of(each) for each in operator_table().types[position]])
