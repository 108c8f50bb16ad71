"""What of a model its inputs choose: the rows of tables that indices look up, and the numbers that inputs are compared
with, on which a branch may depend.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from onnxjson.model.constants import find_constant
from onnxjson.model.document import Tensor
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.model.operators import plain_domain
from onnxjson.model.scopes import Scope
from onnxjson.model.tensors import to_numpy
from onnxjson.running.random_values import copies
from onnxjson.running.values import Value
from onnxjson.storage.constant_reading import array_of

_LARGEST: Final = 256 << 20
"""Maximum bytes of a table whose rows are compared."""

_COMPARING: Final = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))


def _tables(index: Index, inputs: Iterable[str]) -> dict[str, dict[str, Tensor]]:
    """Return the constants whose rows inputs look up: name of the input -> name of the table -> its elements."""
    scope = index.scopes[0]
    tables: dict[str, dict[str, Tensor]] = {}
    for name in inputs:
        held = copies(name, scope.graph.node)
        for node in scope.graph.node:
            if node.op_type != "Gather" or plain_domain(node.domain) or held.isdisjoint(node.input[1:]):
                continue
            constant = find_constant(scope, node.input[0])
            if constant is not None and constant.tensor is not None and not any([each.i for each in node.attribute]):
                tables.setdefault(name, {})[constant.name] = constant.tensor
    return tables


def differing_rows(
    indices: tuple[Index, Index], inputs: Iterable[str], folders: Sequence[Path | None]
) -> dict[str, dict[str, list[int]]]:
    """Return the rows of tables that differ between two models: name of the input in the base -> table -> rows.

    Tables are paired by name; those of other dtypes or shapes are not compared.
    """
    differing: dict[str, dict[str, list[int]]] = {}
    for name, tables in _tables(indices[0], inputs).items():
        for table, tensor in tables.items():
            other = find_constant(indices[1].scopes[0], table)
            if other is not None and other.tensor is not None and (rows := _rows(tensor, other.tensor, folders)):
                differing.setdefault(name, {})[table] = rows
    return differing


def unused_rows(
    differing: Mapping[str, Mapping[str, Sequence[int]]], feeds: Sequence[Mapping[str, Value]]
) -> dict[str, list[int]]:
    """Return the rows of `differing_rows` that no run with some inputs looks up, by table."""
    unused: dict[str, list[int]] = {}
    for name, tables in differing.items():
        arrays = [to_numpy(value) for each in feeds if isinstance(value := each.get(name), Tensor)]
        used = {int(row) for array in arrays if array.dtype.kind in "iu" for row in array.reshape(-1)}
        for table, rows in tables.items():
            if missed := [row for row in rows if row not in used]:
                unused[table] = missed
    return unused


def _rows(one: Tensor, other: Tensor, folders: Sequence[Path | None]) -> list[int]:
    size = byte_length(one.data_type or 0, element_count(one.dims)) or 0
    is_alike = (one.dims, one.data_type) == (other.dims, other.data_type)
    if one is other or not is_alike or not one.dims or not 0 < size <= _LARGEST:
        return []
    try:
        arrays = [array_of(each, folder) for each, folder in zip((one, other), folders, strict=True)]
    except (OnnxJsonError, ValueError):  # such as a file that is missing, of which the run tells
        return []
    differs = (arrays[0] != arrays[1]) & ((arrays[0] == arrays[0]) | (arrays[1] == arrays[1]))
    return [int(row) for row in differs.reshape(one.dims[0], -1).any(axis=1).nonzero()[0]]


def _single(scope: Scope, name: str) -> Iterator[float]:
    """Yield the number of a constant that is one number."""
    constant = find_constant(scope, name)
    tensor = None if constant is None else constant.tensor
    if tensor is not None and element_count(tensor.dims) == 1 and not tensor.external_data:
        try:
            yield float(to_numpy(tensor).reshape(-1)[0])
        except (TypeError, ValueError):  # a string, or bytes that do not fit
            return


def turning_points(scopes: Sequence[Scope], name: str) -> list[float]:
    """Return the numbers on both sides of those that an input is compared with, the numbers themselves first."""
    held = copies(name, scopes[0].graph.node, parts=("Gather", "Slice"))
    numbers = dict.fromkeys([
        float(number)
        for scope in scopes
        for node in scope.graph.node
        if node.op_type in _COMPARING and not plain_domain(node.domain) and not held.isdisjoint(node.input)
        for other in node.input
        for number in _single(scope, other)
    ])  # fmt: skip
    return [number + step for step in (0, 1, -1) for number in numbers]
