"""Classify regions: inserted, eliminated, folded, fused, and so on, with their patterns, details and signatures."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import Final

from onnxjson.diffing.changes import Change, Region
from onnxjson.diffing.comparing import BASE, TARGET, GraphComparison
from onnxjson.diffing.details import attribute_texts, common_place, place_of, scope_parts
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.region_changes import RegionDraft, cut_region
from onnxjson.diffing.region_constants import constant_details
from onnxjson.model.dataflow import producers_among, topological_order
from onnxjson.model.document import Attribute, Node
from onnxjson.model.operators import is_commutative, operator_key, operator_name

_CASTS: Final = frozenset({"Cast", "CastLike"})
_LAYOUT: Final = frozenset({"Transpose", "ReorderInput", "ReorderOutput"})
_QUANTIZING: Final = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "MatMulNBits"}
)
_BLOCKED_DOMAIN: Final = "com.microsoft.nchwc"
_MOST_OPERATORS: Final = 8
"""Maximum number of operators in a pattern; the others are counted."""

_DEEPEST: Final = 200
"""Maximum depth of compared computations, in nodes."""


class Classification:
    """Sets kind, pattern, place and details of the change of a region."""

    def __init__(self, draft: RegionDraft) -> None:
        self._graph = draft.graph
        self._region = draft.region
        self._change = draft.change
        self._slots = draft.slots
        self._base: list[Node] = [self._graph.nodes(BASE)[position] for position in self._region.base]
        self._target: list[Node] = [self._graph.nodes(TARGET)[position] for position in self._region.target]

    def run(self) -> None:
        """Classify the region."""
        change, region = self._change, self._region
        (operators, key), (target_operators, target_key) = [
            _computation(self._graph, side, region) for side in (BASE, TARGET)
        ]
        change.kind, change.pattern, details = self._kind([_pattern(operators), _pattern(target_operators)])
        change.details, change.place = tuple(details), self._place()
        if len(self._base) + len(self._target) > 2:
            change.key = key, target_key

    def _place(self) -> str:
        """Return the place of the nodes; new nodes without a scope are at the place of their consumers."""
        nodes = self._base or self._target
        if not any(scope_parts(node) for node in nodes):
            for slot in self._slots:
                if slot.base is not None:
                    consumer = slot.graph.nodes(BASE)[slot.base]
                    if scope_parts(consumer):
                        return f"before {place_of(consumer)}"
        return common_place(nodes)

    def _kind(self, texts: Sequence[str]) -> tuple[Kind, str, list[Detail]]:
        both = f"{texts[BASE]} -> {texts[TARGET]}"
        if not self._target:
            return self._removed(texts[BASE])
        if _is_quantizing(self._target) and not _is_quantizing(self._base):
            return "quantized", both if self._base else texts[TARGET], self._constants()
        if not self._base:
            return self._added(texts[TARGET])
        inlined = self._functions(both)
        if inlined is not None:
            return inlined
        old, new = Counter(map(_bare_name, self._base)), Counter(map(_bare_name, self._target))
        if _is_blocked(self._target) and not _is_blocked(self._base):
            return "layout-changed", both, self._constants()
        if old != new:
            if _without(old, _LAYOUT) == _without(new, _LAYOUT):
                return "layout-changed", both, []
            if not old - new and set(new - old) <= _CASTS:
                return "cast-inserted", both, []
        if len(self._target) == 1 < len(self._base):
            return "fused", both, self._constants()
        if len(self._base) == 1 < len(self._target):
            return "decomposed", both, self._constants()
        return "replaced", both, self._replaced()

    def _removed(self, text: str) -> tuple[Kind, str, list[Detail]]:
        region, graph = self._region, self._graph
        consumers = graph.near_consumers[BASE]
        ends = [name for node in self._base for name in node.output if name in graph.cuts[BASE]]
        if not self._slots and not any([consumers[name] for name in ends]):
            return "dead-code-removed", text, []
        aliases = [Detail("consumers use", old, new) for old, new in region.outputs if old != new]
        aliases += [Detail("consumers use", slot.old, None) for slot in self._slots if not slot.new]
        if all(node.op_type == "Identity" for node in self._base):
            return "eliminated", text, aliases
        constants = {new for _, new in region.outputs if graph.constant(TARGET, new) is not None}
        if constants and len(constants) == len(region.outputs):
            return "folded" if self._computes_constants() else "replaced", f"{text} -> constant", aliases
        if kept := _find_originals(graph, BASE, region):
            self._with_originals(BASE, kept)
            return "merged", text, aliases
        if _is_quantizing(self._base):
            return "quantized", f"{text} removed", aliases
        return "eliminated", text, aliases

    def _computes_constants(self) -> bool:
        """Whether the removed nodes use constants and sizes alone, so that a constant can stand for them."""
        graph, inside = self._graph, {name for node in self._base for name in node.output}
        return all(
            name in inside or not name or node.op_type in ("Shape", "Size") or graph.constant(BASE, name) is not None
            for node in self._base
            for name in node.input
        )

    def _added(self, text: str) -> tuple[Kind, str, list[Detail]]:
        region, graph = self._region, self._graph
        outputs = [Detail("consumers use", old, new) for old, new in region.outputs if old != new]
        outputs += [Detail("consumers use", None, slot.new) for slot in self._slots if not slot.old]
        names = {_bare_name(node) for node in self._target}
        if region.outputs and all(graph.constant(BASE, old) is not None for old, _ in region.outputs):
            return "decomposed", f"constant -> {text}", outputs
        if region.outputs and names <= _CASTS:
            return "cast-inserted", text, outputs
        if region.outputs and names <= _LAYOUT and (len(self._target) > 1 or names != {"Transpose"}):
            return "layout-changed", text, outputs
        if region.outputs and (kept := _find_originals(graph, TARGET, region)):
            self._with_originals(TARGET, kept)
            return "inserted", f"{text}, computed again", outputs
        return "inserted", text, outputs

    def _with_originals(self, side: int, kept: list[int]) -> None:
        """Extend the region by the equal computations: which of them is the copy is undecidable."""
        graph, region, change = self._graph, self._region, self._change
        partners = graph.pair.base_of if side else graph.pair.target_of
        others = sorted(partners[position] for position in kept)
        extended = sorted([*kept, *region.nodes(side)])
        base, target = (others, extended) if side else (extended, others)
        pairs = [pair for position in (others if side else kept) for pair in graph.output_pairs(position)]
        slots = [slot for slot in self._slots if slot.base not in base or slot.graph is not graph]
        change.region = cut_region(graph, base, target, tuple(slots), pairs)
        change.base = tuple([graph.node_address(position) for position in base])
        change.target = tuple([graph.node_address(position, TARGET) for position in target])

    def _replaced(self) -> list[Detail]:
        if len(self._base) != 1 or len(self._target) != 1:
            return constant_details(self._graph, self._region, is_scaling_only=True)
        one, other = self._base[0], self._target[0]
        if one.attribute == other.attribute:
            return self._constants()
        old, new = [{each.name or "": each for each in node.attribute} for node in (one, other)]
        texts = {name: attribute_texts(old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))}
        details = [Detail(f"attribute {name}", *each) for name, each in texts.items() if each[0] != each[1]]
        return details + self._constants()

    def _functions(self, both: str) -> tuple[Kind, str, list[Detail]] | None:
        context = self._graph.context
        old, new = [[operator_key(node) for node in nodes] for nodes in (self._base, self._target)]
        if len(old) == 1 and old[0] in context.function_keys and old[0] not in new:
            return "function-inlined", both, []
        if len(new) == 1 and new[0] in context.target_function_keys and new[0] not in old:
            return "function-outlined", both, []
        return None

    def _constants(self) -> list[Detail]:
        return constant_details(self._graph, self._region)


def find_layout_transposes(drafts: Sequence[RegionDraft]) -> None:
    """Classify inserted Transposes as a changed layout if another inserted one undoes them."""
    inserted: dict[tuple[int, ...], list[Change]] = {}
    for draft in drafts:
        if draft.change.kind == "inserted" and draft.change.pattern == "Transpose":
            node = draft.graph.nodes(TARGET)[draft.region.target[0]]
            permutation = next((each.ints for each in node.attribute if each.name == "perm"), ())
            inserted.setdefault(permutation, []).append(draft.change)
    for permutation, changes in inserted.items():
        back = tuple([permutation.index(axis) for axis in range(len(permutation)) if axis in permutation])
        if back in inserted and (back != permutation or len(changes) > 1):
            for change in changes:
                change.kind = "layout-changed"


def _bare_name(node: Node) -> str:
    return node.op_type or ""


def _is_blocked(nodes: Sequence[Node]) -> bool:
    """Whether some of the nodes use ONNX Runtime's blocked channel layout."""
    return any(node.domain == _BLOCKED_DOMAIN for node in nodes)


def _is_quantizing(nodes: Sequence[Node]) -> bool:
    return any(_bare_name(node) in _QUANTIZING or _bare_name(node).startswith("QLinear") for node in nodes)


def _without(names: Counter[str], left_out: frozenset[str]) -> Counter[str]:
    return Counter({name: count for name, count in names.items() if name not in left_out})


def _pattern(names: Sequence[str]) -> str:
    """Return operators as a pattern: ``MatMul+Add``, ``Gemm+2 Reshape``; repetitions are counted."""
    runs = [(name, len(list(members))) for name, members in groupby(names)]
    shown = [name if count == 1 else f"{count} {name}" for name, count in runs[:_MOST_OPERATORS]]
    left = sum([count for _, count in runs[_MOST_OPERATORS:]])
    return "+".join([*shown, f"{left} more"] if left else shown)


def _computation(graph: GraphComparison, side: int, region: Region) -> tuple[list[str], Hashable]:
    """Return the operators of one side, each after its producers, ties in alphabetical order; and a key.

    The key is equal for regions with the same operators, wired in the same way; attributes are ignored.
    """
    positions, nodes, known = region.nodes(side), graph.nodes(side), graph.context.labels
    producers = {
        name: (position, slot) for position in positions for slot, name in enumerate(nodes[position].output) if name
    }
    constants = set(region.constants(side))
    needs = producers_among([nodes[position] for position in positions])
    order = topological_order(needs)
    order += sorted(set(range(len(needs))) - set(order))  # nodes on a cycle
    depths: dict[int, int] = {}
    labels: dict[int, int] = {}
    operators = []
    for position in [positions[index] for index in order]:
        node = nodes[position]
        operator = operator_name(node.domain, node.op_type)
        before = [depths.get(producers[name][0], -1) for name in graph.consumed(side, position) if name in producers]
        depths[position] = 1 + max(before, default=-1)
        operators.append((depths[position], operator))
        parts: list[tuple[int, int]] = []
        for name in [consumed if consumed in producers else graph.source(side, consumed) for consumed in node.input]:
            if name in producers:
                producer, slot = producers[name]
                parts.append((labels.get(producer, -4), slot))
            else:
                parts.append((-3 if not name else -2 if name in constants else -1, 0))
        if is_commutative(node.domain, node.op_type):
            parts.sort()
        labels[position] = known.setdefault((operator, tuple(parts)), len(known))
    return [name for _, name in sorted(operators)], frozenset(Counter(labels.values()).items())


def _find_originals(graph: GraphComparison, side: int, region: Region) -> list[int]:
    """Return paired nodes that compute the same as the nodes of a region, all of one side; [] for none.

    This finds common subexpressions that were merged: the nodes also produce the region's outputs in the other model.
    """
    nodes, inside = graph.nodes(side), set(region.nodes(side))
    partners = graph.pair.base_of if side else graph.pair.target_of
    originals: dict[int, int] = {}

    def is_same_value(one: str, other: str, depth: int) -> bool:
        if one == other:
            return True
        producer, other_producer = graph.producer(side, one), graph.producer(side, other)
        if depth == 0 or producer is None or other_producer is None:
            return False
        (position, slot), (original, original_slot) = producer, other_producer
        if position not in inside or slot != original_slot or partners[original] < 0:
            return False
        if originals.get(position) != original:
            if not is_same_call(nodes[position], nodes[original], depth - 1):
                return False
            originals[position] = original
        return True

    def is_same_call(one: Node, other: Node, depth: int) -> bool:
        if operator_key(one) != operator_key(other) or len(one.input) != len(other.input):
            return False
        if one.attribute != other.attribute and sorted(one.attribute, key=_name) != sorted(other.attribute, key=_name):
            return False
        orders = [other.input, other.input[::-1]] if is_commutative(one.domain, one.op_type) else [other.input]
        return any(
            all(is_same_value(name, twin, depth) for name, twin in zip(one.input, order, strict=True))
            for order in orders
        )

    for old, new in region.outputs:
        kept = graph.translate(old) if side else graph.translate_back(new)
        if not kept or not is_same_value(new if side else old, kept, _DEEPEST):
            return []
    return sorted(set(originals.values())) if len(originals) == len(region.base or region.target) else []


def _name(attribute: Attribute) -> str:
    return attribute.name or ""
