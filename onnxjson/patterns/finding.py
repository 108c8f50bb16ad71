"""All places of a model that match a pattern."""

from collections.abc import Iterator, Sequence

import msgspec

from onnxjson.model.constants import is_constant_node
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute
from onnxjson.model.index import NodeRef
from onnxjson.model.messages import value_of
from onnxjson.model.methods import Guessed
from onnxjson.patterns.expression import Pattern
from onnxjson.patterns.matching import Matcher
from onnxjson.patterns.nodes import Value


class Match(Guessed, msgspec.Struct, frozen=True):
    """One place that matches a pattern."""

    root: NodeRef
    """The node whose output the pattern describes."""
    calls: tuple[NodeRef, ...]
    """The node of each call of the pattern: `root`, then those of its inputs; for a path, its end, then its start."""
    bindings: dict[str, Value | Attribute]
    """The value or attribute of each name of the pattern."""
    pattern: Pattern
    """The pattern, with one option of each alternative."""

    def __repr__(self) -> str:
        """Return one line: the address and the operator of its last node, and the names."""
        names = "".join([f", {name}={value}" for name, value in self.names.items()])
        return f"<Match {visible(f'{self.root.address}: {self.root.node.op_type}{names}', 110)}>"

    @property
    def name(self) -> str:
        """The name of its last node, "" if it has none."""
        return self.root.name

    @property
    def op_type(self) -> str:
        """The operator of its last node."""
        return self.root.op_type

    @property
    def nodes(self) -> tuple[NodeRef, ...]:
        """The nodes of the match, each once, with ``.op_type``, ``.name``, and as a record ``.node``."""
        return tuple(dict.fromkeys(self.calls))

    @property
    def names(self) -> dict[str, object]:
        """For each name of the pattern, the name of a value, or the value of an attribute.

        For an attribute with a tensor, graph or other record, its kind, such as "tensor"; ``@name`` for one that is
        an attribute of the function around.
        """
        return {
            name: bound.name if isinstance(bound, Value) else _plain(bound) for name, bound in self.bindings.items()
        }


def _plain(bound: Attribute) -> object:
    if bound.ref_attr_name:
        return f"@{bound.ref_attr_name}"
    value = value_of(bound)
    items = value if isinstance(value, tuple) else (value,)
    if all(isinstance(each, int | float | str) for each in items):
        return value
    return type(items[0]).__name__.lower()


def matches(matchers: Sequence[Matcher], *, overlapping: bool = False) -> list[Match]:
    """Return the matches of the variants of a pattern, in the order of their last nodes.

    Raises:
        LimitError: see `onnxjson.patterns.searching.find`.
    """
    taken: set[NodeRef] = set()
    seen: set[frozenset[NodeRef]] = set()
    unsorted = [match for matcher in matchers for match in _matches(matcher, taken, seen, overlapping=overlapping)]
    if len(matchers) == 1:
        return unsorted
    by_root: dict[NodeRef, list[Match]] = {}
    for match in unsorted:
        by_root.setdefault(match.root, []).append(match)
    return [match for root in matchers[0].in_order(list(by_root)) for match in by_root[root]]


def _matches(
    matcher: Matcher, taken: set[NodeRef], seen: set[frozenset[NodeRef]], *, overlapping: bool
) -> Iterator[Match]:
    operators = {each.name for call in matcher.pattern.calls for each in call.operators}
    may_share = not operators.isdisjoint(("Constant", "*"))
    for ref in matcher.places():
        if ref in taken:
            continue
        for state in matcher.matches_at(ref):
            match = Match(state.nodes[0], state.nodes, dict(state.bindings), matcher.pattern)
            if overlapping:
                nodes = frozenset(match.calls)
                if nodes not in seen:
                    seen.add(nodes)
                    yield match
                continue
            own = [each for each in match.calls if not is_constant_node(each.node)] if may_share else match.calls
            if taken.isdisjoint(own):
                taken.update(own)
                yield match
                break
