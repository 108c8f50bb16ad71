"""Ranking of the values that an input of a node may consume, and why others are refused."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from onnxjson.editing.operator_checks import Known, check_node, dtype_conflict, dtype_of
from onnxjson.editing.type_relations import refine_type
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import own_constant, type_of_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Node, Type
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_signature
from onnxjson.model.types import format_data_type, format_type
from onnxjson.rendering.node import opset_of
from onnxjson_tui.names.editable_names import is_plain, value_address
from onnxjson_tui.names.offers import origin
from onnxjson_tui.rows.choices import Choice, Searchable

LEFT_OUT: Final = '""'
"""Key of the choice that omits the input."""

_LONGEST: Final = 300

_MAYBE: Final = 3
"""Rank of a value about which too little is known to decide whether it fits."""


class Slot(NamedTuple):
    """An existing or possible input of a node."""

    position: int
    name: str
    """Name of the current value; "" for an omitted input."""
    label: str
    """Name of the input in the operator's schema, without control characters."""


def slots(model: Model, ref: NodeRef) -> list[Slot]:
    """Return the inputs of a node, and one more if its operator allows it."""
    node = ref.node
    found = operator_signature(node.domain, node.op_type, opset_of(model, ref))
    labels = [] if found is None else [each.name for each in found.inputs]
    most = len(node.input) + (found is not None and len(node.input) < found.most_inputs)
    return [
        Slot(
            position,
            node.input[position] if position < len(node.input) else "",
            visible(labels[min(position, len(labels) - 1)], 60) if labels else "",
        )
        for position in range(most)
    ]


def slot_choices(model: Model, ref: NodeRef) -> list[Choice]:
    """Return the inputs of a node as choices."""
    return [
        Choice(str(each.position), f"{each.position}  {each.label}", visible(each.name, _LONGEST) or "(omitted)")
        for each in slots(model, ref)
    ]


def value_choices(model: Model, ref: NodeRef, slot: int) -> Searchable:
    """Return the values that an input of a node may consume, best first, and the refused ones with the reason.

    Goes through all nodes of the graph, so call it in a thread.
    """
    return _Ranking(model, ref, slot).choices()


class _Ranking:
    def __init__(self, model: Model, ref: NodeRef, slot: int) -> None:
        self._workspace = Workspace(model)
        scope = self._workspace.scope(ref.scope.address)
        self._ref = NodeRef(scope, ref.position)
        self._slot = slot
        self._known: Known = {}
        node = self._ref.node
        self._now = node.input[slot] if slot < len(node.input) else ""
        self._type_now = self._type(scope, self._now) if self._now else None
        defining_scope = Index.defining_scope(scope, self._now) if self._now else None
        self._is_constant_now = defining_scope is not None and own_constant(defining_scope, self._now) is not None
        self._dtype_now = dtype_of(self._workspace, scope, self._now, self._known) if self._now else None
        self._is_wrong_now = dtype_conflict(self._workspace, scope, node, None, self._known) is not None
        self._refusals: dict[int | None, str] = {}

    def choices(self) -> Searchable:
        ranked: list[tuple[tuple[int, bool, int, bool, int], Choice]] = []
        hidden: set[str] = set()
        at: NodeRef | None = self._ref
        while at is not None:
            scope, position = at
            below = self._workspace.index.descendants(scope, position)
            for name in [name for name in scope.defined_names if name not in hidden]:
                place = scope.producers[name][0] if name in scope.producers else None
                is_later = place is not None and place >= position
                rank, choice = self._choice(scope, name, is_below=place in below, is_later=is_later)
                distance = position if place is None else abs(position - place)
                # Without an exactly matching type, a constant rarely replaces a computed value.
                is_unlike = (own_constant(scope, name) is not None) != self._is_constant_now
                rough = _MAYBE if 0 < rank <= _MAYBE else rank
                ranked.append(((rough, is_unlike, rank, is_later, distance), choice))
            hidden |= scope.defined_names.keys()
            at = scope.owner
        ranked.sort(key=lambda each: each[0])
        return Searchable([*[choice for _, choice in ranked], *self._none()])

    def _choice(self, scope: Scope, name: str, *, is_below: bool, is_later: bool) -> tuple[int, Choice]:
        key = name if is_plain(name) else "@" + value_address(scope, name)
        constant = scope.initializer(name)
        kind = type_of_constant(constant) if constant is not None else scope.types.get(name)
        declared = kind.tensor_type.elem_type if kind is not None and kind.tensor_type is not None else None
        dtype = declared or dtype_of(self._workspace, scope, name, self._known)
        shown = visible(format_type(kind) or "?", 100) if kind is not None else format_data_type(dtype) if dtype else ""
        is_constant = own_constant(scope, name) is not None
        detail = f"{'constant' if is_constant else origin(scope, name)}  {shown}"
        label = visible(name, _LONGEST)
        if name == self._now:
            return 9, Choice(key, label, detail, "this is the current value")
        if is_below:
            return 8, Choice(key, label, detail, "it depends on this node: that would be a cycle")
        if refusal := self._refusal(name, dtype):
            return 7, Choice(key, label, detail, refusal)
        if is_later:
            detail += "  (computed later; the nodes are reordered)"
        return self._rank(kind, dtype), Choice(key, label, detail)

    def _refusal(self, name: str, dtype: int | None) -> str:
        """Return why the input cannot consume values of a dtype, or ""."""
        if dtype is None or self._is_wrong_now:
            return ""
        if dtype not in self._refusals:
            found = dtype_conflict(self._workspace, self._ref.scope, self._with(name), {name: dtype}, self._known)
            self._refusals[dtype] = "" if found is None else found.replace(f'"{visible(name)}"', "this one")
        return self._refusals[dtype]

    def _with(self, name: str) -> Node:
        names = [*self._ref.node.input, *[""] * (self._slot + 1 - len(self._ref.node.input))]
        names[self._slot] = name
        while names and not names[-1]:
            names.pop()
        return msgspec.structs.replace(self._ref.node, input=tuple(names))

    def _rank(self, kind: Type | None, dtype: int | None) -> int:
        """Return how well a type matches that of the current value; 0 is best."""
        now = self._type_now
        if self._dtype_now is not None and dtype is not None and dtype != self._dtype_now:
            return 5
        if now is not None and kind is not None:
            if kind == now:
                return 0
            return 1 if refine_type(kind, now) is not None else 4
        return 2 if dtype is not None and dtype == self._dtype_now else _MAYBE

    def _none(self) -> Iterator[Choice]:
        if not self._now:
            return
        try:
            check_node(self._workspace, self._ref.scope, self._with(""), "")
        except EditError as error:
            yield Choice(LEFT_OUT, "(omit the input)", "", str(error).removeprefix(": "))
        else:
            yield Choice(LEFT_OUT, "(omit the input)", "optional")

    def _type(self, scope: Scope, name: str) -> Type | None:
        defining_scope = Index.defining_scope(scope, name)
        if defining_scope is None:
            return None
        constant = defining_scope.initializer(name)
        return type_of_constant(constant) if constant is not None else Index.type_of(defining_scope, name)
