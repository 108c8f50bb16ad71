"""Choices from the edited model: for fields of a form, and, ranked, for the inputs of a node."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from onnxjson.editing.attributes import DTYPE_ATTRIBUTES
from onnxjson.editing.parameters import Parameter
from onnxjson.editing.rewiring import Known, check_node, dtype_conflict, dtype_of
from onnxjson.editing.type_relations import refine_type
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import own_constant, type_of_constant
from onnxjson.model.dimensions import dimension_names
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model, Node, Type
from onnxjson.model.dtypes import DATA_TYPE_NAMES
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operator_checks import quoted
from onnxjson.model.operators import (
    AttributeFormal,
    attribute_defaults,
    known_operators,
    operator_name,
    operator_signature,
    plain_domain,
)
from onnxjson.model.types import format_data_type, format_type
from onnxjson.patterns.selector_terms import attribute_text
from onnxjson.patterns.selectors import select_nodes
from onnxjson.rendering.node import attribute_value_text, imported_signature, opset_of, view_node
from onnxjson.rendering.values import value_type
from onnxjson_tui.names.editable_names import constant_of, is_plain, node_selector, value_address, value_selector
from onnxjson_tui.names.form_filling import SELECTION, Filling
from onnxjson_tui.rows.choices import Choice, Searchable
from onnxjson_tui.session.opening import path_members
from onnxjson_tui.session.session import Session

_LONGEST: Final = 300
_COMMON: Final = ("float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool")
_DTYPES: Final = [*_COMMON, *[name for number, name in DATA_TYPE_NAMES.items() if number and name not in _COMMON]]
"""Data types, the common ones first."""

LEFT_OUT: Final = '""'  # key of the choice that omits the input

_MAYBE: Final = 3  # rank of a value about which too little is known to decide whether it fits


class Offers:
    """Choices for the fields of one form; use it in a thread for a big model."""

    def __init__(self, session: Session, ref: NodeRef | None) -> None:
        """Use the current model of a session; values of `ref`, the node under the cursor, are listed first."""
        self._session = session
        self._ref = ref

    def of(self, filling: Filling, field: Parameter) -> list[Choice]:
        """Return the choices of a field; none if they are unknown."""
        parts = filling.options(field) or filling.parts(field)
        return [Choice(part, visible(part)) for part in parts] or list(self._of_role(filling, field))

    def _of_role(self, filling: Filling, field: Parameter) -> Iterable[Choice]:
        model, texts = self._session.model, filling.texts
        role = texts.get("kind", "") if field.role == "name" and field.name == "from" else field.role
        match role:
            case "node" if field.role == "name":
                named = (ref.node for ref in self._index.node_refs if ref.node.name)
                return (_plain(node.name or "", visible(node.op_type or "")) for node in named)
            case "tensor" if field.role == "name":
                return (
                    _plain(name, _type(scope, name))
                    for scope in self._scopes()
                    for name in dict.fromkeys((*scope.producers, *scope.initializers, *scope.inputs))
                )
            case "nodes" | "node":
                return self._nodes()
            case "tensor" | "tensors" | "join":
                return self._values(lambda scope, name: True)
            case "constant":
                return self._values(constant_of)
            case "input" if field.name == "input":
                first = self._selected(texts.get("node", ""))[:1]
                names = enumerate([visible(name, _LONGEST) for ref in first for name in ref.node.input])
                return (Choice(str(slot), str(slot), name or "(omitted)") for slot, name in names)
            case "input" | "output":
                return self._interface(*(("input", "output") if filling.name == "transpose-input" else (role,)))
            case "attribute":
                return self.attributes(texts.get("node", ""))
            case "attribute-value":
                return self._attribute_values(filling)
            case "" if field.name == "attribute":
                return self._attributes_of_operator(texts.get("op_type", ""), texts.get("domain", ""))
            case "operator":
                return self.operators(texts.get("domain", ""))
            case "domain":
                return [_plain(each.domain or '""', f"version {each.version}") for each in model.opset_import]
            case "graph":
                nodes = ((each, counted(len(each.graph.node), "node")) for each in self._index.scopes)
                return (_plain(each.address, f"{each.kind}, {count}") for each, count in nodes)
            case "type":
                return self._types()
            case "dtype":
                return map(_plain, _DTYPES)
            case "dim" | "shape":
                return [_plain(name) for name in dimension_names(model)]
            case "metadata":
                return [_plain(each.key or "", each.value or "") for each in model.metadata_props]
            case "file":
                found = path_members(texts.get(field.name, ""), self._session.edits_folder, ("",))
                return [_plain(path) for path, _ in found]
        return ()

    @property
    def _index(self) -> Index:
        return self._session.index

    def _nodes(self) -> Iterator[Choice]:
        """Yield the selection, the node under the cursor, every operator, every node."""
        selected = self._session.places.selected
        if selected:
            yield Choice(SELECTION, f"{SELECTION}  the selection", counted(len(selected), "node"))
        if self._ref is not None:
            yield _node(self._index, self._ref)
        for operator, count in sorted(self._index.operator_counts().items()):
            yield _plain(f"op:{operator.rpartition('::')[2]}", counted(count, "node"))
        for ref in self._index.node_refs:
            if ref != self._ref:
                yield _node(self._index, ref)

    def _scopes(self) -> list[Scope]:
        """Return all graphs, starting with that of the node under the cursor and its outer graphs."""
        first = [] if self._ref is None else list(self._ref.scope.chain())
        return [*first, *[each for each in self._index.scopes if each not in first]]

    def _values(self, fits: Callable[[Scope, str], bool]) -> Iterator[Choice]:
        """Yield values of all graphs, starting with those of the node under the cursor."""
        scopes = self._scopes()
        known = {scope: dict.fromkeys((*scope.inputs, *scope.initializers, *scope.producers)) for scope in scopes}
        counts = Counter(name for names in known.values() for name in names)
        near: list[tuple[Scope, str]] = []
        if self._ref is not None:
            for name in (*self._ref.node.output, *self._ref.node.input):
                defining_scope = Index.defining_scope(self._ref.scope, name) if name else None
                near += [(defining_scope, name)] if defining_scope is not None else []
        for scope, name in dict.fromkeys((*near, *[(each, name) for each in scopes for name in known[each]])):
            if fits(scope, name):
                yield _value(scope, name, is_unique=counts[name] == 1)

    def _interface(self, *kinds: str) -> Iterator[Choice]:
        scope = self._index.main
        if scope is None:
            return
        for kind in kinds:
            for name in scope.inputs if kind == "input" else filter(None, scope.output_names):
                yield _plain(name, _type(scope, name))

    def _selected(self, selector: str) -> Sequence[NodeRef]:
        """Return the nodes that a field selects; none if it is invalid."""
        if selector == SELECTION:
            return self._session.selected
        try:
            return select_nodes(self._session.model, self._index, selector) if selector else ()
        except OnnxJsonError:
            return ()

    def attributes(self, selector: str) -> Iterator[Choice]:
        """Yield attributes of the first selected node: existing ones, then others of its operator."""
        refs = self._selected(selector)
        if not refs:
            return
        ref = refs[0]
        view = view_node(self._session.model, self._index, ref, "")
        existing = {each.name: each for each in view.attributes}
        for name, attribute in existing.items():
            yield _plain(name or "", f"{attribute.type or ''}  now {attribute_value_text(attribute)}")
        signature = operator_signature(ref.node.domain, ref.node.op_type, opset_of(self._session.model, ref))
        for attribute_signature in signature.attributes.values() if signature is not None else ():
            if attribute_signature.name not in existing:
                yield _plain(attribute_signature.name, _about(attribute_signature))

    def _attributes_of_operator(self, operator: str, domain: str) -> Iterator[Choice]:
        """Yield the attributes of an operator, those for a dtype with each dtype, as the beginning of a line."""
        signature = imported_signature(self._session.model, operator, domain)
        for attribute in signature.attributes.values() if signature is not None else ():
            is_dtype = attribute.name in DTYPE_ATTRIBUTES and ATTRIBUTE_TYPE_NAMES[attribute.type] == "INT"
            for value in _DTYPES if is_dtype else ("",):
                yield Choice(f"{attribute.name}={value}", visible(f"{attribute.name}={value}"), _about(attribute))

    def _attribute_values(self, filling: Filling) -> Iterator[Choice]:
        """Yield the values of the attribute in nodes with the same operator, and its default."""
        name, refs = filling.texts.get("attribute", ""), self._selected(filling.texts.get("node", ""))
        if not refs or not name:
            return
        if name in DTYPE_ATTRIBUTES:
            yield from [_plain(each, "dtype") for each in _DTYPES]
            return
        node = refs[0].node
        values: Counter[str] = Counter()
        for ref in (*refs[:1], *self._index.nodes_with("op_type", node.op_type or "")):
            for attribute in ref.node.attribute:
                if attribute.name == name and (text := attribute_text(attribute)) is not None:
                    values[text] += 1
        default = attribute_defaults(node.domain, node.op_type, opset_of(self._session.model, refs[0])).get(name)
        if default is not None and (text := attribute_text(default)) is not None:
            yield _plain(text, "the default")
            values.pop(text, None)
        for text, count in values.most_common(100):
            yield _plain(text, counted(count, "node"))

    def operators(self, domain: str, *, take_inputs: bool = False) -> Iterator[Choice]:
        """Yield operators of a domain in the model's opset version, and model functions; those in use first.

        With `take_inputs`, operators without inputs, such as Constant, are left out.
        """
        model, wanted = self._session.model, plain_domain(domain)
        counts = Counter(
            ref.node.op_type or "" for ref in self._index.node_refs if plain_domain(ref.node.domain) == wanted
        )
        names = dict.fromkeys(sorted(counts, key=lambda name: (-counts[name], name)))
        names |= dict.fromkeys(sorted(known_operators(domain)))
        functions = [each for each in model.functions if plain_domain(each.domain) == wanted]
        names |= dict.fromkeys(each.name or "" for each in functions)
        without_inputs = {each.name or "" for each in functions if not each.input}
        for name in names:
            signature = imported_signature(model, name, domain)
            if (
                signature.deprecated
                if signature is not None
                else name not in counts and name in known_operators(domain)
            ):
                continue
            if take_inputs and (not signature.inputs if signature is not None else name in without_inputs):
                continue
            taken = f"({', '.join([each.name for each in signature.inputs])})" if signature is not None else ""
            used = f"  {counts[name]:,} here" if counts[name] else ""
            yield _plain(name, f"{taken}{used}")

    def _types(self) -> Iterator[Choice]:
        counts: Counter[str] = Counter()
        for scope in self._index.scopes:
            counts.update([format_type(each) or "" for each in scope.types.values()])
        for text, count in counts.most_common(200):
            if text:
                yield _plain(text, counted(count, "value"))
        yield from [_plain(name, "a dtype") for name in _DTYPES]


def _node(index: Index, ref: NodeRef) -> Choice:
    operator = visible(operator_name(ref.node.domain, ref.node.op_type), 40)
    words = node_selector(index, ref)
    return Choice(words, visible(words, _LONGEST), f"{operator}  {ref.position}")


def _value(scope: Scope, name: str, *, is_unique: bool) -> Choice:
    words = value_selector(scope, name, is_unique=is_unique)
    where = "" if scope.kind == "main" else f"  in {visible(scope.address, 80)}"
    return Choice(words, visible(name, _LONGEST), f"{origin(scope, name)}  {_type(scope, name)}{where}")


def origin(scope: Scope, name: str) -> str:
    """Return the origin of a value: constant, input, or position and operator of its producer."""
    if name in scope.initializers or name in scope.sparse_initializers:
        return "constant"
    if name in scope.inputs:
        return "input"
    position, _ = scope.producers[name]
    return f"{position} {visible(scope.graph.node[position].op_type or '?', 40)}"


def _type(scope: Scope, name: str) -> str:
    return visible(value_type(scope, name) or "", 120)


def _about(attribute: AttributeFormal) -> str:
    """Describe an attribute of an operator."""
    default = f"default {attribute.default}" if attribute.default is not None else ""
    return f"{ATTRIBUTE_TYPE_NAMES[attribute.type]}  {'required' if attribute.required else default}".strip()


def _plain(text: str, detail: str = "") -> Choice:
    return Choice(text, visible(text, _LONGEST), visible(detail, _LONGEST))


def slot_choices(model: Model, ref: NodeRef) -> list[Choice]:
    """Return the inputs of a node as choices, and one more if its operator allows it."""
    names = [visible(name, _LONGEST) for name in ref.node.input]
    found = operator_signature(ref.node.domain, ref.node.op_type, opset_of(model, ref))
    labels = [visible(each.name, 60) for each in found.inputs] if found is not None else []
    if found is not None and len(names) < found.most_inputs:
        names.append("")
    known = [labels[min(slot, len(labels) - 1)] if labels else "" for slot in range(len(names))]
    return [Choice(str(slot), f"{slot}  {known[slot]}", name or "(omitted)") for slot, name in enumerate(names)]


def value_choices(model: Model, ref: NodeRef, slot: int) -> Searchable:
    """Return the values that an input of a node may consume, best first, and the refused ones with the reason.

    Goes through all nodes of the graph, so call it in a thread.
    """
    return _Ranking(model, ref, slot).choices()


def _type_in(scope: Scope, name: str) -> Type | None:
    """Return the type of a value of a graph: that of its constant, or the stated one."""
    constant = scope.initializer(name)
    return type_of_constant(constant) if constant is not None else scope.types.get(name)


class _Ranking:
    def __init__(self, model: Model, ref: NodeRef, slot: int) -> None:
        self._workspace = Workspace(model)
        scope = self._workspace.scope(ref.scope.address)
        self._ref = NodeRef(scope, ref.position)
        self._slot = slot
        self._known: Known = {}
        node = self._ref.node
        self._now = node.input[slot] if slot < len(node.input) else ""
        defining_scope = Index.defining_scope(scope, self._now) if self._now else None
        self._type_now = _type_in(defining_scope, self._now) if defining_scope is not None else None
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
        kind = _type_in(scope, name)
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
            conflict = dtype_conflict(
                self._workspace, self._ref.scope, self._with(name), {name: dtype}, self._known,
                lambda value: "this one" if value == name else quoted(value),
            )  # fmt: skip
            self._refusals[dtype] = conflict or ""
        return self._refusals[dtype]

    def _with(self, name: str) -> Node:
        names = [*self._ref.node.input, *[""] * (self._slot + 1 - len(self._ref.node.input))]
        names[self._slot] = name
        while names and not names[-1]:
            names.pop()
        return msgspec.structs.replace(self._ref.node, input=tuple(names))

    def _rank(self, kind: Type | None, dtype: int | None) -> int:
        """Return how well a type matches that of the current value; 0 is best."""
        current = self._type_now
        if self._dtype_now is not None and dtype is not None and dtype != self._dtype_now:
            return 5
        if current is not None and kind is not None:
            if kind == current:
                return 0
            return 1 if refine_type(kind, current) is not None else 4
        return 2 if dtype is not None and dtype == self._dtype_now else _MAYBE

    def _none(self) -> Iterator[Choice]:
        if not self._now:
            return
        try:
            check_node(self._workspace, self._ref.scope, self._with(""), "")
        except EditError as error:
            yield Choice(LEFT_OUT, "(omit the input)", "", str(error))
        else:
            yield Choice(LEFT_OUT, "(omit the input)", "optional")
