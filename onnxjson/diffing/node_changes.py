"""Compare paired nodes: operator, attributes, inputs, outputs, documentation and metadata."""

from collections.abc import Sequence

import msgspec

from onnxjson.diffing.changes import EXAMPLES, ORDER, Change, one_sided_addresses, one_sided_detail
from onnxjson.diffing.comparing import BASE, TARGET, ChangedSlot, DiffContext, GraphComparison
from onnxjson.diffing.details import attribute_texts, field_details, node_label, place_of, unknown_field_details
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.list_changes import Bulk
from onnxjson.diffing.weight_changes import without_elements
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.constants import constant_value, is_constant_node
from onnxjson.model.display import counted
from onnxjson.model.document import Attribute, Node, StringStringEntry
from onnxjson.model.operators import attribute_defaults, is_commutative, operator_key, operator_name


class NodeComparison:
    """The comparison of one pair of nodes."""

    def __init__(self, graph: GraphComparison, position: int) -> None:
        self._context = graph.context
        self._graph = graph
        self._position = position
        self._partner = graph.pair.target_of[position]
        self._node: Node = graph.nodes(BASE)[position]
        self._other: Node = graph.nodes(TARGET)[self._partner]
        self._address = graph.node_address(position)
        self._target_address = graph.node_address(self._partner, TARGET)
        self._operator = operator_name(self._node.domain, self._node.op_type)

    def run(self) -> None:
        """Report the differences."""
        key, target_key = operator_key(self._node), operator_key(self._other)
        if key != target_key and self._context.functions.get(key) != target_key:
            # This is a rewrite that includes the attributes; other inputs can be a separate change.
            self._graph.replaced.append(self._position)
            self._inputs(is_replaced=True)
            return
        self._spelling()
        if self._node.attribute != self._other.attribute:
            self._attributes()
        self._inputs()
        self._outputs()
        self._device_configurations()
        if details := unknown_field_details(self._node, self._other):
            path = "/unknown_fields"
            self._add("field-changed", f"{self._operator}.unknown_fields", details, [path])

    def _add(
        self,
        kind: Kind,
        pattern: str,
        details: Sequence[Detail],
        claims: Sequence[str],
        target_claims: Sequence[str] | None = None,
    ) -> Change:
        """Add a change of this pair; claims are relative to the nodes, the same in the target unless given."""
        place, order = place_of(self._node), (self._graph.number, self._position)
        change = Change(kind, pattern, (self._address,), (self._target_address,), place, tuple(details), order=order)
        target_claims = claims if target_claims is None else target_claims
        addresses = (
            [self._address + claim for claim in claims],
            [self._target_address + claim for claim in target_claims],
        )
        self._context.ledger.add(change, *addresses)
        self._graph.changes.setdefault(self._position, []).append(change)
        return change

    def _spelling(self) -> None:
        """Compare spellings: the default domain and overload can be absent, empty or written out."""
        if operator_key(self._node) != operator_key(self._other):
            return  # The called function is renamed, which is a separate change.
        for name in ("op_type", "domain", "overload"):
            old, new = getattr(self._node, name), getattr(self._other, name)
            if old != new:
                self._add("storage-changed", f"{name} of nodes", [Detail(name, old, new)], [f"/{name}"])

    def _device_configurations(self) -> None:
        old, new = self._node.device_configurations, self._other.device_configurations
        translate, renamed = self._graph.translate, []
        for configuration in old:
            specs = [
                msgspec.structs.replace(spec, tensor_name=translate(spec.tensor_name or "") or spec.tensor_name)
                for spec in configuration.sharding_spec
            ]
            renamed.append(msgspec.structs.replace(configuration, sharding_spec=tuple(specs)))
        if old != new and tuple(renamed) != new:
            details, path = field_details(old, new, "device_configurations"), "/device_configurations"
            self._add("field-changed", f"{self._operator}.device_configurations", details, [path])

    # Attributes

    def _attributes(self) -> None:
        before, after = self._node.attribute, self._other.attribute
        segments, target_segments = attribute_segments(before), attribute_segments(after)
        if any(name.startswith("#") for name in (*segments, *target_segments)):
            # Attributes without unique names cannot be paired.
            texts = [", ".join([attribute_texts(entry, None)[0] or "" for entry in both]) for both in (before, after)]
            detail = Detail("attributes", *texts)
            self._add("attribute-changed", f"{self._operator} attributes", [detail], ["/attribute"])
            return
        old, new = dict(zip(segments, before, strict=True)), dict(zip(target_segments, after, strict=True))
        for name in dict.fromkeys((*segments, *target_segments)):
            one, other = old.get(name), new.get(name)
            if one == other:
                continue
            if one is None or other is None:
                self._one_sided(name, one, other)
            else:
                self._attribute(name, one, other)
        kept = [name for name in segments if name in new]
        if kept != [name for name in target_segments if name in old]:
            details = [Detail("order of attributes", ", ".join(segments), ", ".join(target_segments))]
            self._add("reordered", "attributes", details, [f"/attribute{ORDER}"])

    def _one_sided(self, name: str, one: Attribute | None, other: Attribute | None) -> None:
        """Report an attribute that only one node has; if it has the default value, only the storage differs."""
        side = BASE if one is not None else TARGET
        present = one if one is not None else other
        assert present is not None
        key = operator_key(self._node)
        default = None
        if key not in self._context.function_keys:
            # The side without the attribute uses the default of its own opset.
            opset = self._context.opsets[1 - side].get(key[0])
            default = attribute_defaults(key[0], key[1], opset).get(present.name or "")
        path = f"/attribute/{escape(name)}"
        claims, target_claims = one_sided_addresses(side, path)
        text, _ = attribute_texts(present, None)
        if default is not None and default == msgspec.structs.replace(present, doc_string=None):
            detail = one_sided_detail(side, f"attribute {name}", text)
            pattern = f"{self._operator}.{name}, as by default"
            self._add("storage-changed", pattern, [detail], claims, target_claims)
            return
        missing = None if default is None else f"{attribute_texts(default, None)[0]} (default)"
        detail = one_sided_detail(side, f"attribute {name}", text, missing)
        self._add("attribute-changed", f"{self._operator}.{name}", [detail], claims, target_claims)

    def _attribute(self, name: str, one: Attribute, other: Attribute) -> None:
        path = f"/attribute/{escape(name)}"
        one, other = self._without_pairs(path, one, other)
        if one.doc_string != other.doc_string:
            detail = Detail(f"attribute {name}", one.doc_string, other.doc_string)
            self._add("metadata-changed", "doc_string of attributes", [detail], [f"{path}/doc_string"])
            one = msgspec.structs.replace(one, doc_string=other.doc_string)
        if one == other:
            return
        tensors = [constant_value(each) if is_constant_node(self._node) else each.t for each in (one, other)]
        if tensors[0] is not None and tensors[1] is not None:
            self._tensor(name, path, one, other)
            return
        if one.type != other.type and msgspec.structs.replace(one, type=other.type) == other:
            detail = Detail(f"type of attribute {name}", str(one.type), str(other.type))
            self._add("field-changed", f"{self._operator}.{name} type", [detail], [path])
            return
        detail = Detail(f"attribute {name}", *attribute_texts(one, other))
        self._add("attribute-changed", f"{self._operator}.{name}", [detail], [path])

    def _without_pairs(self, path: str, one: Attribute, other: Attribute) -> tuple[Attribute, Attribute]:
        by_base = self._context.by_base
        if one.g is not None and other.g is not None and f"{self._address}{path}/g" in by_base:
            one, other = msgspec.structs.replace(one, g=None), msgspec.structs.replace(other, g=None)
        if one.graphs and len(one.graphs) == len(other.graphs):
            start = f"{self._address}{path}/graphs"
            if all([f"{start}/{place}" in by_base for place in range(len(one.graphs))]):
                one, other = msgspec.structs.replace(one, graphs=()), msgspec.structs.replace(other, graphs=())
        return one, other

    def _tensor(self, name: str, path: str, one: Attribute, other: Attribute) -> None:
        if one.t is not None and other.t is not None and msgspec.structs.replace(one, t=other.t) != other:
            parts = [f"type {each.type}, {counted(len(each.tensors), 'tensor')}" for each in (one, other)]
            detail = Detail(f"attribute {name}", *parts)
            self._add("field-changed", f"{self._operator}.{name} besides its tensor", [detail], [path])
            path = f"{path}/t"
        before, after = constant_value(one) or one.t, constant_value(other) or other.t
        assert before is not None
        assert after is not None
        tensor_change = self._context.weights.compare(before, after)
        if tensor_change is not None and is_constant_node(self._node):
            change = self._add(tensor_change.kind, tensor_change.pattern, tensor_change.details, [path])
            self._context.changed_constants.append((self._graph, self._node.output[0], change))
        elif tensor_change is not None:
            self._add("attribute-changed", f"{self._operator}.{name}", tensor_change.details, [path])
        elif one.t is not None and other.t is not None:
            details = field_details(without_elements(one.t), without_elements(other.t), f"attribute {name}")
            if details:
                self._add("metadata-changed", "names and documentation of constants", details, [path])
        else:
            # For example value_int 1 and value [1] of Constant.
            detail = Detail(f"attribute {name}", *attribute_texts(one, other))
            self._add("storage-changed", f"{self._operator}.{name}", [detail], [path])

    # Inputs and outputs

    def _inputs(self, *, is_replaced: bool = False) -> None:
        graph, before, after = self._graph, self._node.input, self._other.input
        count = max(len(before), len(after))
        old, new = (*before, *[""] * (count - len(before))), (*after, *[""] * (count - len(after)))
        wrong = [place for place in range(count) if not graph.is_same_name(old[place], new[place])]
        if not wrong:
            if len(before) != len(after):
                detail = Detail("inputs", f"{len(before)}", f"{len(after)}")
                self._add("storage-changed", "optional inputs left out or empty", [detail], ["/input"])
            return
        places = list(range(count))
        if is_commutative(self._node.domain, self._node.op_type) and not is_replaced:
            places = self._swapped(old, new)
            wrong = [place for place in wrong if not graph.is_same_name(old[place], new[places[place]])]
            if not wrong:
                detail = Detail("inputs", ", ".join(before), ", ".join(after))
                self._add("reordered", f"inputs of {self._operator}", [detail], ["/input"])
                return
        for place in wrong:
            slot = ChangedSlot(
                graph, self._position, self._partner, place, places[place], old[place], new[places[place]]
            )
            graph.slots.append(slot)

    def _swapped(self, old: Sequence[str], new: Sequence[str]) -> list[int]:
        """Return for each input the place of its value in the target.

        Inputs without a match get a free place: a constant one where a constant is, if they can.
        """
        is_same = self._graph.is_same_name
        places = [place if is_same(name, new[place]) else -1 for place, name in enumerate(old)]
        free = [place for place, assigned in enumerate(places) if assigned < 0]
        for place, name in enumerate(old):
            match = next((candidate for candidate in free if is_same(name, new[candidate])), -1)
            if places[place] < 0 <= match:
                places[place] = match
                free.remove(match)
        for place, assigned in enumerate(places):
            if assigned < 0:
                kind = self._is_constant(BASE, old[place])
                alike = [other for other in free if self._is_constant(TARGET, new[other]) == kind] or free
                places[place] = place if place in alike else alike[0]
                free.remove(places[place])
        return places

    def _is_constant(self, side: int, name: str) -> bool:
        return self._graph.constant(side, self._graph.source(side, name)) is not None

    def _outputs(self) -> None:
        before, after = self._node.output, self._other.output
        if len(before) == len(after) and [not output for output in before] == [not output for output in after]:
            return
        details = [Detail("outputs", *[", ".join(output or '""' for output in outputs) for outputs in (before, after)])]
        used_places = [[place for place, output in enumerate(outputs) if output] for outputs in (before, after)]
        if used_places[0] == used_places[1]:
            change = self._add("storage-changed", "optional outputs left out or empty", details, ["/output"])
        else:
            change = self._add("field-changed", f"{self._operator}.output", details, ["/output"])
        for name in before:
            self._context.explained_names.setdefault((self._graph, name), change)


def compare_metadata(graph: GraphComparison, bulk: Bulk) -> None:
    """Report differences in documentation and metadata of nodes: one change for each field of a graph."""
    nodes, target_nodes, target_of = graph.nodes(BASE), graph.nodes(TARGET), graph.pair.target_of
    for field in ("doc_string", "metadata_props"):
        details: list[Detail] = []
        count = 0
        for position in graph.suspects:
            node, other = nodes[position], target_nodes[target_of[position]]
            old, new = getattr(node, field), getattr(other, field)
            if old == new:
                continue
            count += 1
            if len(details) < EXAMPLES:
                name = node_label(node)
                details += [Detail(name, old, new)] if field == "doc_string" else _metadata_entries(name, old, new)
        if count:
            bulk.add(graph, "metadata-changed", f"{field} of nodes", ("node", field), details, count)


def _metadata_entries(
    name: str, old: tuple[StringStringEntry, ...], new: tuple[StringStringEntry, ...]
) -> list[Detail]:
    before, after = {each.key: each.value for each in old}, {each.key: each.value for each in new}
    return [
        Detail(f"{name} {key}", before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    ][:1]


def join_attributes(context: DiffContext, plain: list[ChangedSlot]) -> list[ChangedSlot]:
    """Join each attribute that became an input, or an input that became an attribute, into the attribute's change.

    New versions of operators do this. Returns the remaining inputs.
    """
    left: list[ChangedSlot] = []
    patterns: dict[Change, str] = {}
    for slot in plain:
        change = _attribute_change(slot)
        if change is None:
            left.append(slot)
            continue
        side, name = (BASE, slot.old) if slot.old else (TARGET, slot.new)
        constant = slot.graph.constant(side, name)
        change.details = (*change.details, Detail(f"input {slot.place}", slot.old or None, slot.new or None))
        attribute = patterns.setdefault(change, change.pattern)
        change.pattern = f"{attribute}, {'now' if side == TARGET else 'was'} an input"
        context.ledger.take(change, [slot.address])
        if constant is not None and not constant.is_paired(side):
            context.ledger.claim(change, *one_sided_addresses(side, constant.address))
    return left


def _attribute_change(slot: ChangedSlot) -> Change | None:
    """Return the change of an attribute that was removed where this input was added, or the other way round."""
    if bool(slot.old) == bool(slot.new) or slot.base is None:
        return None
    for change in slot.graph.changes.get(slot.base, ()):
        if change.kind != "attribute-changed" or not change.details:
            continue
        detail = change.details[0]
        is_removed = detail.base is not None and not _is_given(detail.target)
        is_added = detail.target is not None and not _is_given(detail.base)
        if (is_removed and slot.new) or (is_added and slot.old):
            return change
    return None


def _is_given(text: str | None) -> bool:
    return text is not None and not text.endswith(" (default)")
