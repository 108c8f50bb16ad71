"""The two sides of a replaced match: constants and attributes of the new one; a proof that both compute the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from onnxjson.diffing.changes import Region
from onnxjson.diffing.matching.alignment import GraphPair
from onnxjson.editing.rewiring import dtype_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import find_constant
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DATA_TYPES, INTEGERS
from onnxjson.model.elements import pack
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operator_checks import dtype_of_type
from onnxjson.model.operators import attribute_types, operator_signature
from onnxjson.model.payloads import Data
from onnxjson.model.scalars import ElementError
from onnxjson.model.tensors import raw_bytes
from onnxjson.model.types import format_data_type
from onnxjson.patterns.expression import Call, Elements, Number, Operator
from onnxjson.patterns.finding import Match
from onnxjson.patterns.nodes import Value
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver

_INT64: Final = DATA_TYPES["int64"]
_JSON: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
"""Numbers that JSON writes as texts."""

_WITH_SCALARS: Final = ("DFT", "Loop", "NonMaxSuppression", "Trilu")
"""Operators with inputs of int64 that are not lists."""


def constant_dtype(
    workspace: Workspace, root: NodeRef, call: Call, place: int, inputs: Sequence[str], edit: str
) -> int:
    """Return the data type of a constant: a list of integers is int64, else it is as the other inputs.

    Raises:
        EditError: the operator needs a list there.
    """
    operator, wanted = call.operators[0], (call.inputs or ())[place]
    if isinstance(wanted, Elements) and not any(isinstance(each, float) for each in wanted.items):
        return _INT64
    found = operator_signature(operator.domain, operator.name, workspace.opset(root.scope, operator.domain))
    formals = [None if found is None else found.input_at(slot) for slot in range(len(inputs))]
    formal = formals[place]
    allowed = set() if formal is None else {dtype_of_type(each) for each in formal.types}
    if allowed == {_INT64} and isinstance(wanted, Number) and operator.name not in _WITH_SCALARS:
        raise EditError(
            f"input {place} of {operator} is a list of integers: write [{wanted}]", root.address, place=edit
        )
    alike = [formal is not None and each is not None and each.variable == formal.variable for each in formals]
    is_integer = _INT64 in allowed and allowed <= INTEGERS
    names = [name for name, same in zip(inputs, alike, strict=True) if same]
    if not is_integer:
        names += [*inputs, root.node.output[0]]
    for name in names:
        dtype = dtype_of(workspace, root.scope, name) if name else None
        if dtype and (dtype in allowed or not allowed):
            return dtype
    return _INT64 if is_integer else DATA_TYPES["float32"]


def packed(wanted: Number | Elements, dtype: int, root: NodeRef, edit: str) -> bytes:
    """Return the elements of a constant.

    Raises:
        EditError: the data type has no such elements.
    """
    try:
        return pack(dtype, [*map(_as_json, [wanted.value] if isinstance(wanted, Number) else wanted.items)])
    except (ElementError, KeyError) as error:
        fits = f"an element is {error.fits}" if isinstance(error, ElementError) else "its elements are not numbers"
        raise EditError(
            f"{visible(str(wanted))} cannot be {format_data_type(dtype)}: {fits}", root.address, place=edit
        ) from None


def typed(attributes: Mapping[str, Any], operator: Operator) -> dict[str, Any]:
    """Return the values of attributes as in a document; in attributes that ONNX does not know, a point means FLOAT."""
    known = attribute_types(operator.domain, operator.name)
    values: dict[str, Any] = {}
    for name, value in attributes.items():
        is_list = isinstance(value, list)
        values[name] = [*map(_as_json, value)] if is_list else _as_json(value)
        if name not in known and any(isinstance(each, float) for each in (value if is_list else [value])):
            values[name] = {"FLOATS" if is_list else "FLOAT": values[name]}
    return values


def _as_json(value: object) -> object:
    return _JSON.get(str(value), value) if isinstance(value, float) else value


class Replaced(NamedTuple):
    """One match that was replaced."""

    match: Match
    ends: list[str]
    """The values that the replacement computes."""
    made: set[str]
    """Outputs of the new nodes."""


def prove(
    workspace: Workspace, before: Index, done: Sequence[Replaced], resolved: Callable[[Value], str], edit: str
) -> Iterator[str]:
    """Run both sides of each replacement; yield what that shows.

    `before` is the index of the model before the replacements; `resolved` returns the name of a value after them.

    Raises:
        EditError: the results of a replacement differ.
    """
    from onnxjson.running.proof import prove_regions

    resolver = Resolver(workspace.model_folder or Path())

    def elements(tensor: Tensor) -> Data | None:
        found = raw_bytes(with_elements(tensor, resolver))
        return None if found is None else found[0]

    regions = [_region(each, before, workspace.index, resolved) for each in done]
    verdicts = prove_regions(before, workspace.index, regions, elements)
    for each, (verdict, evidence) in zip(done, verdicts, strict=True):
        if verdict == "different":
            raise EditError(f"{each.match.root.address}: {evidence}", each.match.root.address, place=edit)
    ran = [evidence for verdict, evidence in verdicts if verdict != "not-run"]
    if ran:
        yield f"{counted(len(ran), 'replacement')} proved: {ran[0]}"
    missed = [evidence for verdict, evidence in verdicts if verdict == "not-run"]
    if missed:
        yield f"{counted(len(missed), 'replacement')} not run: {missed[0]}"


def _region(replaced: Replaced, before: Index, after: Index, resolved: Callable[[Value], str]) -> Region:
    """Return a replacement as the nodes before and after, with the values around them."""
    old = replaced.match.root.scope
    scope, target = before.by_address[old.address], after.scope(old.address)
    if target is None:
        raise EditError(f"{old.address} moved, so that the replacement in it cannot be proved")
    base = sorted(ref.position for ref in replaced.match.nodes if ref.scope is old)
    new = sorted({target.producers[name][0] for name in replaced.made if name in target.producers})
    around = {(name, resolved(Value(old, name))): None for name in _taken(scope, base)}
    known = {name for _, name in around}
    around |= {(name, name): None for name in _taken(target, new) if name not in known}
    ends = tuple([(name, resolved(Value(old, name))) for name in replaced.ends])
    pair = GraphPair(scope, target, (), (), {}, {}, {})
    return Region(pair, tuple(base), tuple(new), tuple(around), ends, (), ())


def _taken(scope: Scope, positions: Sequence[int]) -> list[str]:
    """Return the values that nodes consume and do not produce, constants that no caller replaces apart."""
    nodes = [scope.graph.node[each] for each in positions]
    made = {name for node in nodes for name in node.output}
    names = dict.fromkeys([name for node in nodes for name in consumed_names(node) if name not in made])
    found = {name: find_constant(scope, name) for name in names}
    return [name for name, each in found.items() if each is None or each.is_default]
