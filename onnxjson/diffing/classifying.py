"""What a region is: inserted, eliminated, folded, fused, and so on, with its pattern and what went where."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from onnxjson.diffing.changes import Change
from onnxjson.diffing.comparing import BASE, TARGET, Context
from onnxjson.diffing.constant_traces import constant_details
from onnxjson.diffing.duplicates import originals
from onnxjson.diffing.events import Detail, Kind
from onnxjson.diffing.places import common_place, place_of, scope_parts
from onnxjson.diffing.region_changes import Draft, cut_out
from onnxjson.diffing.region_shapes import ordered_operators, signature
from onnxjson.diffing.texts import attribute_value_text
from onnxjson.document import Node
from onnxjson.operators import operator_key

_CASTS: Final = frozenset({"Cast", "CastLike"})
_LAYOUT: Final = frozenset({"Transpose", "ReorderInput", "ReorderOutput"})
_ALIASES: Final = frozenset({"Identity"})
_QUANTIZING: Final = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "MatMulNBits"}
)
_BLOCKED_DOMAIN: Final = "com.microsoft.nchwc"
_MOST_OPERATORS: Final = 8
"""Operators that a pattern names; what is more is counted."""


def classify(context: Context, draft: Draft) -> None:
    """Give the change of a region its kind, pattern, place and details."""
    _Classification(context, draft).run()


class _Classification:
    def __init__(self, context: Context, draft: Draft) -> None:
        self._context = context
        self._graph = draft.graph
        self._region = draft.region
        self._change = draft.change
        self._slots = draft.slots
        graph, region = draft.graph, draft.region
        self._base: list[Node] = [graph.nodes(BASE)[position] for position in region.base]
        self._target: list[Node] = [graph.nodes(TARGET)[position] for position in region.target]

    def run(self) -> None:
        change, region = self._change, self._region
        names = [ordered_operators(self._graph, side, region) for side in (BASE, TARGET)]
        texts = [pattern_text(each) for each in names]
        kind, pattern, details = self._kind(texts)
        change.kind = kind
        change.pattern = pattern
        change.details = tuple(details)
        change.place = self._place()
        if len(self._base) + len(self._target) > 2:
            change.key = signature(self._graph, region, self._context.labels)

    def _place(self) -> str:
        """Where the nodes are; new ones without a scope are where those are that take their values."""
        nodes = self._base or self._target
        if not any(scope_parts(node) for node in nodes):
            for slot in self._slots:
                if slot.base is not None:
                    taker = slot.graph.nodes(BASE)[slot.base]
                    if scope_parts(taker):
                        return f"before {place_of(taker)}"
        return common_place(nodes)

    def _kind(self, texts: Sequence[str]) -> tuple[Kind, str, list[Detail]]:
        both = f"{texts[BASE]} -> {texts[TARGET]}"
        if not self._target:
            return self._removed(texts[BASE])
        if self._is_quantized():
            return "quantized", both if self._base else texts[TARGET], self._constants()
        if not self._base:
            return self._added(texts[TARGET])
        inlined = self._functions(both)
        if inlined is not None:
            return inlined
        old, new = Counter(map(_bare_name, self._base)), Counter(map(_bare_name, self._target))
        if self._is_blocked(self._target) and not self._is_blocked(self._base):
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
        if not self._slots:
            return "dead-code-removed", text, []
        aliases = [Detail("consumers take", old, new) for old, new in region.outputs]
        aliases += [Detail("consumers take", slot.old, None) for slot in self._slots if not slot.new]
        if all(_bare_name(node) in _ALIASES for node in self._base):
            return "eliminated", text, aliases
        constants = {new for _, new in region.outputs if graph.constant(TARGET, new) is not None}
        if constants and len(constants) == len(region.outputs):
            return "folded", f"{text} -> constant", aliases
        if kept := originals(graph, BASE, region):
            self._with_originals(BASE, kept)
            return "merged", text, aliases
        if self._is_quantizing(self._base):
            return "quantized", f"{text} removed", aliases
        return "eliminated", text, aliases

    def _added(self, text: str) -> tuple[Kind, str, list[Detail]]:
        region, graph = self._region, self._graph
        outputs = [Detail("consumers take", old, new) for old, new in region.outputs]
        outputs += [Detail("consumers take", None, slot.new) for slot in self._slots if not slot.old]
        names = {_bare_name(node) for node in self._target}
        if region.outputs and all(graph.constant(BASE, old) is not None for old, _ in region.outputs):
            return "decomposed", f"constant -> {text}", outputs
        if region.outputs and names <= _CASTS:
            return "cast-inserted", text, outputs
        if region.outputs and names <= _LAYOUT and (len(self._target) > 1 or names != {"Transpose"}):
            return "layout-changed", text, outputs
        if region.outputs and (kept := originals(graph, TARGET, region)):
            self._with_originals(TARGET, kept)
            return "inserted", f"{text}, computed again", outputs
        return "inserted", text, outputs

    def _with_originals(self, side: int, kept: list[int]) -> None:
        """Which of equal computations is the copy nobody can know: the region has them all."""
        graph, region, change = self._graph, self._region, self._change
        partners = graph.pair.base_of if side else graph.pair.target_of
        others = sorted(partners[position] for position in kept)
        mine = sorted([*kept, *region.nodes(side)])
        base, target = (others, mine) if side else (mine, others)
        nodes, its_nodes, target_of = graph.nodes(BASE), graph.nodes(TARGET), graph.pair.target_of
        own = [
            pair
            for position in (others if side else kept)
            for pair in zip(nodes[position].output, its_nodes[target_of[position]].output, strict=False)
        ]
        slots = [slot for slot in self._slots if slot.base not in base or slot.graph is not graph]
        change.region = cut_out(graph, base, target, tuple(slots), own)
        change.base = tuple([graph.node_address(position) for position in base])
        change.target = tuple([graph.node_address(position, TARGET) for position in target])

    def _replaced(self) -> list[Detail]:
        if len(self._base) != 1 or len(self._target) != 1:
            return []
        one, other = self._base[0], self._target[0]
        if one.attribute == other.attribute:
            return self._constants()
        old = {each.name or "": attribute_value_text(each) for each in one.attribute}
        new = {each.name or "": attribute_value_text(each) for each in other.attribute}
        details = [
            Detail(f"attribute {name}", old.get(name), new.get(name))
            for name in dict.fromkeys((*old, *new))
            if old.get(name) != new.get(name)
        ]
        return details + self._constants()

    def _functions(self, both: str) -> tuple[Kind, str, list[Detail]] | None:
        """One call of a function of the model for what is in it, or the other way round."""
        functions = self._context.function_keys, self._context.target_function_keys
        old, new = [[operator_key(node) for node in nodes] for nodes in (self._base, self._target)]
        if len(old) == 1 and old[0] in functions[BASE] and old[0] not in new:
            return "function-inlined", both, []
        if len(new) == 1 and new[0] in functions[TARGET] and new[0] not in old:
            return "function-outlined", both, []
        return None

    @staticmethod
    def _is_blocked(nodes: Sequence[Node]) -> bool:
        """Whether some of the nodes work on ONNX Runtime's blocks of channels."""
        return any(node.domain == _BLOCKED_DOMAIN for node in nodes)

    def _is_quantized(self) -> bool:
        return self._is_quantizing(self._target) and not self._is_quantizing(self._base)

    @staticmethod
    def _is_quantizing(nodes: Sequence[Node]) -> bool:
        return any(_bare_name(node) in _QUANTIZING or _bare_name(node).startswith("QLinear") for node in nodes)

    def _constants(self) -> list[Detail]:
        return constant_details(self._context, self._graph, self._region)


def settle_transposes(drafts: Sequence[Draft]) -> None:
    """A Transpose is a node like others; two that came and undo each other carry another layout between them."""
    came: dict[tuple[int, ...], list[Change]] = {}
    for draft in drafts:
        if draft.change.kind == "inserted" and draft.change.pattern == "Transpose":
            node = draft.graph.nodes(TARGET)[draft.region.target[0]]
            permutation = next((each.ints for each in node.attribute if each.name == "perm"), ())
            came.setdefault(permutation, []).append(draft.change)
    for permutation, changes in came.items():
        back = tuple([permutation.index(axis) for axis in range(len(permutation)) if axis in permutation])
        if back in came and (back != permutation or len(changes) > 1):
            for change in changes:
                change.kind = "layout-changed"


def _bare_name(node: Node) -> str:
    return node.op_type or ""


def _without(names: Counter[str], left_out: frozenset[str]) -> Counter[str]:
    return Counter({name: count for name, count in names.items() if name not in left_out})


def pattern_text(names: Sequence[str]) -> str:
    """Operators as a pattern: ``MatMul+Add``, ``Gemm+2 Reshape``; what is much is counted."""
    parts: list[list[object]] = []
    for name in names:
        if parts and parts[-1][0] == name:
            parts[-1][1] = int(str(parts[-1][1])) + 1
        else:
            parts.append([name, 1])
    shown = [name if count == 1 else f"{count} {name}" for name, count in parts[:_MOST_OPERATORS]]
    left = len(names) - sum(int(str(count)) for _, count in parts[:_MOST_OPERATORS])
    return "+".join(map(str, [*shown, f"{left} more"] if left else shown))
