"""The operators of ONNX from a file of the package, which is read in 1 ms, where importing onnx needs 150 ms.

The file has what nodes are checked for, without documentation and defaults, of all versions of all operators. It is
that of one release of onnx; an operator or a version that it does not have may still be known to the installed onnx
(`onnxjson.model.operators`). The attribute table of onnxjson/1 is a part of it that never changes.
"""

from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

PATH: Final = Path(__file__).with_name("operators.json")

_FROZEN: Final = {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
"""Domains and versions of onnx 1.23, from which the attribute table of onnxjson/1 was made."""

Option = Literal["single", "optional", "variadic"]


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
    """Number of AttributeProto.AttributeType, and whether it is required."""


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


@lru_cache(maxsize=1)
def operator_table() -> OperatorTable:
    """Return the content of the file."""
    return msgspec.json.decode(PATH.read_bytes(), type=OperatorTable)


@lru_cache(maxsize=4096)
def frozen_attributes(domain: str, op_type: str) -> dict[str, int]:
    """Return the attributes of an operator in the table of onnxjson/1 (docs/format.md, section 12), and their types.

    These are the attributes with one type in all versions of the operator up to onnx 1.23, sorted.
    """
    types: dict[str, set[int]] = {}
    for row in operator_table().rows(domain, op_type):
        if row.since_version <= _FROZEN.get(domain, 0):
            for name, (kind, _) in row.attributes.items():
                types.setdefault(name, set()).add(kind)
    return {name: next(iter(kinds)) for name, kinds in sorted(types.items()) if len(kinds) == 1}


@lru_cache(maxsize=1)
def attribute_table() -> dict[tuple[str, str], dict[str, int]]:
    """Return the whole attribute table of onnxjson/1: domain and op_type -> attribute -> number of its type."""
    operators = operator_table().operators
    found = {(domain, name): frozen_attributes(domain, name) for domain in operators for name in operators[domain]}
    return {operator: attributes for operator, attributes in found.items() if attributes}
