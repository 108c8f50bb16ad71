"""Blocks that the shipped rules describe: norms, activations, rotary embeddings."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from onnxjson.model.document import Attribute, Model
from onnxjson.model.index import Index
from onnxjson.model.messages import value_of
from onnxjson.model.scopes import Scope
from onnxjson.outline.flow import Flow
from onnxjson.outline.units import Unit
from onnxjson.patterns.expression import Pattern
from onnxjson.patterns.finding import Match, matches
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.nodes import TOLERANCE, Nodes, Value
from onnxjson.patterns.rule_files import SHIPPED, NamedBlock, read_rules
from onnxjson.patterns.searching import matchers


@cache
def _blocks() -> list[tuple[Pattern, NamedBlock]]:
    """The blocks of the shipped rules, larger ones before those that they contain."""
    found = [(parse(rule.pattern_text), rule.block) for rule in read_rules(SHIPPED) if rule.block is not None]
    return sorted(found, key=lambda each: -max([len(variant.calls) for variant in each[0].variants]))


def block_units(model: Model, index: Index, flows: Mapping[Scope, Flow]) -> Iterator[tuple[Scope, Unit]]:
    """Yield the blocks of all graphs as units; no node is in two, and no inner value is used elsewhere."""
    taken: dict[Scope, set[int]] = {scope: set() for scope in flows}
    nodes = Nodes(model, index, TOLERANCE)
    for pattern, block in _blocks():
        for match in matches(matchers(model, index, pattern, nodes=nodes), overlapping=True):
            scope = match.root.scope
            flow = flows.get(scope)
            unit = None if flow is None else _unit(flow, block, match)
            if unit is not None and taken[scope].isdisjoint(unit.nodes):
                taken[scope].update(unit.nodes)
                yield scope, unit


def _unit(flow: Flow, block: NamedBlock, match: Match) -> Unit | None:
    """The unit of a match, or None if a value inside it is used elsewhere."""
    root = match.root.position
    nodes = {ref.position for ref in match.nodes if not flow.is_constant(ref.position)}
    if any([ref.scope is not flow.scope for ref in match.nodes]) or root not in nodes:
        return None
    for position in nodes - {root}:
        for name in flow.nodes[position].output:
            if any([user not in nodes and user not in flow.shape_nodes for user, _ in flow.uses.get(name, ())]):
                return None
    operands = [flow.alias(bound.name) for name in block.operands if isinstance(bound := match.bindings[name], Value)]
    keywords = [(key, _number(flow, match.bindings[name]) if name else "") for key, name in block.keywords.items()]
    ordered = (*sorted(nodes - {root}), root)
    return Unit(
        ordered, tuple(flow.nodes[root].output[:1]), block.name, tuple(operands), tuple(keywords), block=block.name
    )  # fmt: skip


def _number(flow: Flow, bound: Value | Attribute) -> str:
    if isinstance(bound, Attribute):
        return str(value_of(bound))
    elements: Sequence[object] | None = flow.elements(bound.name)
    return f"{elements[0]:.6g}" if elements and isinstance(elements[0], float) else "..."
