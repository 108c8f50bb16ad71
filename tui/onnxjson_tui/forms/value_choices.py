"""Which values an input of a node may take: those that fit best first, and why others cannot be taken."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from onnxjson.display import visible
from onnxjson.document import Model, Node, Type
from onnxjson.edits.constant_types import type_of_constant
from onnxjson.edits.deletion import fits
from onnxjson.edits.operator_checks import Known, check_node, dtype_conflict, dtype_of
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.operators import signature
from onnxjson.rendering.node import opset_of
from onnxjson.types import format_data_type, format_type
from onnxjson_tui.forms.words import is_plain, value_address
from onnxjson_tui.rows.choices import Choice, Searchable

LEFT_OUT: Final = '""'
"""The key of the choice that takes no value."""

_LONGEST: Final = 300

_MAYBE: Final = 3
"""The rank of a value of which not enough is known to say that it fits or does not."""


class Slot(NamedTuple):
    """One input that a node has or could have."""

    position: int
    name: str
    """Of the value that it takes now; "" where it takes none."""
    label: str
    """What the operator calls it. Visible."""


def slots(model: Model, ref: NodeRef) -> list[Slot]:
    """The inputs of a node, and one more where its operator takes more."""
    node = ref.node
    found = signature(node.domain, node.op_type, opset_of(model, ref))
    labels = [] if found is None else [each.name for each in found.inputs]
    most = len(node.input)
    if found is not None and most < found.most_inputs:
        most += 1
    return [
        Slot(
            position,
            node.input[position] if position < len(node.input) else "",
            visible(labels[min(position, len(labels) - 1)], 60) if labels else "",
        )
        for position in range(most)
    ]


def slot_choices(model: Model, ref: NodeRef) -> list[Choice]:
    """The inputs of a node, to choose from."""
    return [
        Choice(str(each.position), f"{each.position}  {each.label}", visible(each.name, _LONGEST) or "(takes none)")
        for each in slots(model, ref)
    ]


def value_choices(model: Model, ref: NodeRef, slot: int) -> Searchable:
    """The values that an input of a node may take, best first, and those that it cannot take with the reason.

    Takes as long as going through all nodes of the graph; to be asked in a thread.

    Args:
        model: the model.
        ref: the node.
        slot: the input.
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
        home = Index.home(scope, self._now) if self._now else None
        self._is_constant_now = home is not None and _is_constant(home, self._now)
        self._dtype_now = dtype_of(self._workspace, scope, self._now, self._known) if self._now else None
        self._is_wrong_now = dtype_conflict(self._workspace, scope, node, None, self._known) is not None
        self._refusals: dict[int | None, str] = {}

    def choices(self) -> Searchable:
        ref = self._ref
        below = _Below(self._workspace.index, ref)
        ranked: list[tuple[tuple[int, bool, int, bool, int], Choice]] = []
        hidden: set[str] = set()
        for scope in ref.scope.chain():
            is_own = scope is ref.scope
            at = ref.position if is_own else self._position_in(scope)
            for name in dict.fromkeys((*scope.inputs, *scope.initializers, *scope.sparse_initializers, *scope.makers)):
                if name in hidden:
                    continue
                hidden.add(name)
                place = scope.makers[name][0] if name in scope.makers else None
                is_below = place is not None and NodeRef(scope, place) in below
                is_later = place is not None and place >= at
                rank, choice = self._choice(scope, name, is_below=is_below, is_later=is_later)
                distance = at if place is None else abs(at - place)
                # Where nothing says that a type is just the one, a constant hardly replaces what is computed.
                is_unlike = _is_constant(scope, name) != self._is_constant_now
                rough = _MAYBE if 0 < rank <= _MAYBE else rank
                ranked.append(((rough, is_unlike, rank, is_later, distance), choice))
        ranked.sort(key=lambda each: each[0])
        return Searchable([*[choice for _, choice in ranked], *self._none()])

    def _position_in(self, outer: Scope) -> int:
        for scope in self._ref.scope.chain():
            if scope.owner is not None and scope.owner.scope is outer:
                return scope.owner.position
        return len(outer.graph.node)

    def _choice(self, scope: Scope, name: str, *, is_below: bool, is_later: bool) -> tuple[int, Choice]:
        key = name if is_plain(name) else "@" + value_address(scope, name)
        constant = scope.initializer(name)
        kind = type_of_constant(constant) if constant is not None else scope.types.get(name)
        said = kind.tensor_type.elem_type if kind is not None and kind.tensor_type is not None else None
        dtype = said or dtype_of(self._workspace, scope, name, self._known)
        shown = visible(format_type(kind) or "?", 100) if kind is not None else format_data_type(dtype) if dtype else ""
        detail = f"{self._origin(scope, name)}  {shown}"
        label = visible(name, _LONGEST)
        if name == self._now:
            return 9, Choice(key, label, detail, "it takes this one now")
        if is_below:
            return 8, Choice(key, label, detail, "it needs what this node makes: that would be a cycle")
        if refusal := self._refusal(name, dtype):
            return 7, Choice(key, label, detail, refusal)
        if is_later:
            detail += "  (made later; nodes are put in order)"
        return self._rank(kind, dtype), Choice(key, label, detail)

    def _refusal(self, name: str, dtype: int | None) -> str:
        """Why no value of a dtype can be taken."""
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
        """How well a type fits in the place of that of the value that is taken now; 0 is best."""
        now = self._type_now
        if self._dtype_now is not None and dtype is not None and dtype != self._dtype_now:
            return 5
        if now is not None and kind is not None:
            if kind == now:
                return 0
            return 1 if fits(kind, now) else 4
        return 2 if dtype is not None and dtype == self._dtype_now else _MAYBE

    def _none(self) -> Iterator[Choice]:
        if not self._now:
            return
        try:
            check_node(self._workspace, self._ref.scope, self._with(""), "")
        except EditError as error:
            yield Choice(LEFT_OUT, "(take no value)", "", str(error).removeprefix(": "))
        else:
            yield Choice(LEFT_OUT, "(take no value)", "the input is left out")

    def _type(self, scope: Scope, name: str) -> Type | None:
        home = Index.home(scope, name)
        if home is None:
            return None
        constant = home.initializer(name)
        return type_of_constant(constant) if constant is not None else Index.type_of(home, name)

    def _origin(self, scope: Scope, name: str) -> str:
        if _is_constant(scope, name):
            return "constant"
        if name in scope.inputs:
            return "input"
        place = scope.makers[name][0]
        return f"{place} {visible(scope.graph.node[place].op_type or '?', 40)}"


def _is_constant(scope: Scope, name: str) -> bool:
    return name in scope.initializers or name in scope.sparse_initializers


class _Below:
    """The nodes that need what a node makes, itself among them; with those that own the graph that it stands in."""

    def __init__(self, index: Index, ref: NodeRef) -> None:
        # Positions: as many nodes as objects would be looked through by the collector of garbage.
        self._positions: dict[Scope, set[int]] = {}
        self._pending: dict[Scope, list[int]] = {}
        self._add(ref)
        for scope in ref.scope.chain():
            if scope.owner is not None:
                self._add(scope.owner)
        while self._pending:
            scope, positions = self._pending.popitem()
            while positions:
                self._follow(index, scope, scope.graph.node[positions.pop()])

    def __contains__(self, ref: NodeRef) -> bool:
        return ref.position in self._positions.get(ref.scope, ())

    def _follow(self, index: Index, scope: Scope, node: Node) -> None:
        for name in node.output:
            for use in index.consumers(scope, name) if name else ():
                if use.position is not None:
                    self._add(NodeRef(use.scope, use.position))

    def _add(self, ref: NodeRef) -> None:
        found: NodeRef | None = ref
        while found is not None and found not in self:
            self._positions.setdefault(found.scope, set()).add(found.position)
            self._pending.setdefault(found.scope, []).append(found.position)
            # Whoever owns the graph that a taker stands in needs the value, too.
            found = found.scope.owner
