"""What runs may not reach of a model: constants that differ while all outputs agree, such as rows of tables that no
index looks up, and branches that depend on the numbers that inputs are compared with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.model.constants import find_constant
from onnxjson.model.document import Tensor
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.model.operators import plain_domain
from onnxjson.model.scopes import Scope
from onnxjson.model.tensors import to_numpy
from onnxjson.model.weights import held_constants
from onnxjson.running.random_values import copies
from onnxjson.storage.constant_reading import array_of

_LARGEST: Final = 256 << 20
"""Maximum bytes of a constant that is compared."""

_COMPARING: Final = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))


class Difference(NamedTuple):
    """What differs in a constant of two models."""

    rows: list[int]
    """Indices along the first axis; [0] for a single number."""
    total: int
    """Number of rows of the constant."""


def differences(indices: tuple[Index, Index], folders: Sequence[Path | None]) -> dict[str, Difference]:
    """Return the constants that differ between two models, by name.

    Those of other dtypes or shapes are not compared, nor those beyond 256 MiB.
    """
    others = {each.name: each.tensor for each in held_constants(indices[1])}
    differing = {}
    for name, tensor, _ in held_constants(indices[0]):
        other = others.get(name)
        if other is not None and (rows := _rows(tensor, other, folders)):
            differing[name] = Difference(rows, tensor.dims[0] if tensor.dims else 1)
    return differing


def rows_by_input(index: Index, inputs: Iterable[str], differing: Mapping[str, Difference]) -> dict[str, list[int]]:
    """Return the rows that differ of the tables whose rows an input looks up, by name of the input."""
    scope = index.scopes[0]
    rows: dict[str, list[int]] = {}
    for name in inputs if differing else ():
        held = copies(name, scope.graph.node)
        for node in scope.graph.node:
            if node.op_type != "Gather" or plain_domain(node.domain) or held.isdisjoint(node.input[1:]):
                continue
            if node.input[0] in differing and not any([each.i for each in node.attribute]):
                rows.setdefault(name, []).extend(differing[node.input[0]].rows)
    return rows


def _rows(one: Tensor, other: Tensor, folders: Sequence[Path | None]) -> list[int]:
    size = byte_length(one.data_type or 0, element_count(one.dims)) or 0
    is_alike = (one.dims, one.data_type) == (other.dims, other.data_type)
    if not is_alike or not 0 < size <= _LARGEST or _is_same(one, other, folders):
        return []
    try:
        arrays = [array_of(each, folder) for each, folder in zip((one, other), folders, strict=True)]
    except (OnnxJsonError, ValueError):  # such as a file that is missing, of which the run tells
        return []
    differs = (arrays[0] != arrays[1]) & ((arrays[0] == arrays[0]) | (arrays[1] == arrays[1]))
    return [int(row) for row in differs.reshape(one.dims[0] if one.dims else 1, -1).any(axis=1).nonzero()[0]]


def _is_same(one: Tensor, other: Tensor, folders: Sequence[Path | None]) -> bool:
    """Whether two tensors have the same bytes, or are the same part of a file."""
    if one is other or (one.raw_data is not None and one.raw_data == other.raw_data):
        return True
    return bool(one.external_data) and one.external_data == other.external_data and folders[0] == folders[1]


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
