"""The places of a model that nearly match a pattern, and what differs there in words.

The search begins at the nodes whose operator is the rarest of the pattern, and goes from their consumers to the last
node of a match, where `onnxjson.patterns.comparison` lays the pattern beside the model.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from onnxjson.model.document import Attribute, Model
from onnxjson.model.errors import LimitError
from onnxjson.model.index import NodeRef, index_of
from onnxjson.patterns import mismatches
from onnxjson.patterns.comparison import (
    BETWEEN,
    DETAIL,
    NODE,
    Choice,
    Comparison,
    between_cost,
    by_rank,
    depths,
)
from onnxjson.patterns.expression import (
    Anything,
    Bound,
    Call,
    Either,
    Elements,
    Number,
    Path,
    Pattern,
    final_call,
)
from onnxjson.patterns.finding import matches
from onnxjson.patterns.matching import Matcher
from onnxjson.patterns.nodes import TOLERANCE, Nodes, Value, given_inputs, is_calling
from onnxjson.patterns.searching import matchers

_LAST: Final = 0.25
"""Cost of a last call without a node, in addition: another node is more often in its place."""

_RAREST: Final = 0.4
"""Cost of a place without the rarest operator of the pattern, in addition."""

_FAR: Final = 1.0
"""Distance behind the nearest place at which one that has half of the calls, or fewer, is not shown."""

_ENOUGH: Final = 2_000
"""Places that are compared, the rarest operators first, before near ones are enough."""

_FREEDOM: Final = 64
"""Equally cheap orders of inputs that are tried for the fewest names with two values."""

_QUOTED: Final = re.compile(r' ?"(?:[^"\\]|\\.)*"')


class Miss(NamedTuple):
    """A place that nearly matches, and the other places with the same differences."""

    root: NodeRef
    """The node that would be the last one of a match."""
    matched: int
    """The calls of the pattern that match there."""
    wanted: int
    """The calls of the pattern."""
    reasons: tuple[str, ...]
    """Descriptions of the differences: at least one."""
    addresses: tuple[str, ...]
    """The node of each reason."""
    alike: tuple[NodeRef, ...] = ()
    """The last nodes of other places with the same differences, apart from names."""


class _Place(NamedTuple):
    rank: tuple[float, int]
    """Its distance, and the negative number of calls that match."""
    miss: Miss
    nodes: frozenset[NodeRef]
    """The nodes of the model that are compared with calls."""


class _Difference(NamedTuple):
    text: str
    address: str
    cost: float


_Names: TypeAlias = dict[str, Value | Attribute]


def nearest_misses(
    model: Model,
    pattern: Pattern | str,
    *,
    at: Sequence[NodeRef] | None = None,
    tolerance: float = TOLERANCE,
    most: int = 10,
    stopped: Callable[[str], None] | None = None,
) -> list[Miss]:
    """Return the places that nearly match a pattern, nearest first; only one of those with the same differences.

    A place is near if few things differ and many calls of the pattern match. Nodes of full matches are left out.

    Args:
        model: the model.
        pattern: a pattern or its text.
        at: consider only these nodes as last nodes; None for all.
        tolerance: see `find`.
        most: maximum number of places.
        stopped: a function that is called with the reason if the search ends before all places are compared.

    Raises:
        SelectorError: the pattern is not valid.
    """
    index = index_of(model)  # kept here, so that all parts of the search have the same one
    nodes = Nodes(model, index, tolerance)
    variants = matchers(model, index, pattern, tolerance, nodes)
    matching: set[NodeRef] = set()
    nearest: dict[NodeRef, _Place] = {}
    try:
        for match in matches(variants, overlapping=True):
            matching.update(match.calls if at is None else (match.root,))
        near = _Places(nodes)
        for matcher in variants:
            for place in near.misses(matcher, at, matching):
                known = nearest.get(place.miss.root)
                if known is None or place.rank < known.rank:
                    nearest[place.miss.root] = place
    except LimitError as error:  # the places found so far count
        if stopped is not None:
            stopped(str(error))
    groups: dict[tuple[str, ...], list[Miss]] = {}
    covered: set[NodeRef] = set()
    places = sorted(nearest.values(), key=lambda each: each.rank)
    for place in places:
        is_far = matching or place.rank[0] > places[0].rank[0] + _FAR
        is_near = 2 * place.miss.matched > place.miss.wanted or not is_far
        if (place.miss.root not in covered and is_near) or at is not None:
            kinds = tuple([_QUOTED.sub("", reason) for reason in place.miss.reasons])
            groups.setdefault(kinds, []).append(place.miss)
            covered.update(place.nodes)
    return [first._replace(alike=tuple([each.root for each in others])) for first, *others in groups.values()][:most]


class _Places:
    """The places of one model, compared with patterns."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._literals = nodes.literals
        self._comparison = Comparison(nodes)
        self._freedom = 0
        self._seen: set[NodeRef] = set()
        self._fitting: set[NodeRef] = set()
        self._rarest: Call | None = None

    def misses(self, matcher: Matcher, at: Sequence[NodeRef] | None, matching: set[NodeRef]) -> Iterator[_Place]:
        """Yield the places near a match of a pattern without alternatives."""
        anchors = self._anchors(matcher.pattern, matching)
        self._rarest = anchors[0][0] if anchors and len(matcher.pattern.calls) > 2 else None
        places = self._places(matcher.pattern, anchors, matching) if at is None else [[*at]]
        compared, best = 0, float("inf")
        for refs in places:
            for ref in refs:
                if ref in matching:
                    continue
                place = self._place(matcher, ref)
                inner = self._fitting - {ref}
                is_matched = bool(inner) and inner <= matching
                if place.miss.reasons and ((place.miss.matched and not is_matched) or at is not None):
                    best = min(best, place.rank[0])
                    yield place
            compared += len(refs)
            if best <= NODE and compared > _ENOUGH:
                return

    def _anchors(self, pattern: Pattern, matching: set[NodeRef]) -> list[tuple[Call, int, list[NodeRef]]]:
        """Return the calls with nodes outside matches, the rarest operator first: call, calls after it, nodes."""
        anchors = [
            (call, depth, [ref for ref in self._nodes.calling(call.operators) if ref not in matching])
            for call, depth in depths(pattern.root)
            if all([each.name != "*" for each in call.operators])
        ]
        return sorted([anchor for anchor in anchors if anchor[2]], key=lambda anchor: len(anchor[2]))

    def _places(
        self, pattern: Pattern, anchors: Sequence[tuple[Call, int, list[NodeRef]]], matching: set[NodeRef]
    ) -> Iterator[Sequence[NodeRef]]:
        """Yield the possible last nodes of matches: those after nodes of the rarest operator first."""
        seen = set(matching)
        root = final_call(pattern.root)
        for _, depth, refs in anchors:
            last: dict[NodeRef, None] = {}
            for ref in refs:
                last.update(dict.fromkeys(self._after(ref, depth, root)))
            new = [ref for ref in last if ref not in seen]
            seen.update(new)
            yield new
        if not anchors:
            yield [ref for ref in self._nodes.calling(root.operators) if ref not in seen]

    def _after(self, ref: NodeRef, depth: int, root: Call) -> Iterator[NodeRef]:
        """Yield nodes about `depth` steps after a node: those with the operator of `root`, and some others."""
        level, others = [ref], list[NodeRef]()
        for step in range(depth + BETWEEN):
            if step >= depth - 2:
                yield from [each for each in level if is_calling(each.node, root.operators)]
            if depth - 1 <= step <= depth:
                others += level
            level = list(dict.fromkeys([user for each in level for user in self._users(each)]))[: 8 + depth]
        yield from others

    def _users(self, ref: NodeRef) -> Iterator[NodeRef]:
        for name in ref.node.output:
            for use in self._nodes.index.consumers(ref.scope, name) if name else ():
                if use.position is not None:
                    yield NodeRef(use.scope, use.position)

    def _place(self, matcher: Matcher, ref: NodeRef) -> _Place:
        pattern = matcher.pattern
        names: _Names = {}
        self._freedom, self._seen, self._fitting = _FREEDOM, {ref}, set()
        root, outputs = pattern.root, ref.node.output
        assert not isinstance(root, Either)
        output = final_call(root).output
        value = Value(ref.scope, outputs[output] if output < len(outputs) else next(iter(outputs), ""))
        without = [choice._replace(cost=choice.cost + _LAST) for choice in self._comparison.without(root, value)]
        choice = min([self._comparison.at(root, ref), *without], key=by_rank)
        differences, matched = self._explained(root, choice, value, None, 0, names)
        taken = [ref]
        for other in pattern.others:
            assert not isinstance(other, Either)
            more, others_matched = self._elsewhere(other, ref, names, taken)
            differences += more
            matched += others_matched
        for condition in pattern.conditions:
            bound = names.get(condition.name)
            problem = None if bound is None else matcher.conditions.problem(condition, bound, names)
            if problem is not None:
                differences.append(_Difference(problem, ref.address, DETAIL))
        cost = sum([each.cost for each in differences])
        rarest = self._rarest
        if rarest is not None and not any([is_calling(each.node, rarest.operators) for each in self._seen]):
            cost += _RAREST
        texts = {each.text: each.address for each in differences}
        miss = Miss(ref, matched, len(pattern.calls), tuple(texts), tuple(texts.values()))
        return _Place((cost, -matched), miss, frozenset(self._seen))

    def _elsewhere(
        self, want: Call | Path, first: NodeRef, names: _Names, taken: list[NodeRef]
    ) -> tuple[list[_Difference], int]:
        """Compare another value of a pattern with the nodes that use what is known, or call its operator."""
        call = final_call(want)
        known = [names.get(each.name) for each in call.inputs or () if isinstance(each, Bound)]
        near = next((each for each in known if isinstance(each, Value) and each.scope is not None), None)
        refs = self._nodes.calling(call.operators)
        if near is not None and near.scope is not None:
            uses = self._nodes.index.consumers(near.scope, near.name)
            refs = [NodeRef(use.scope, use.position) for use in uses if use.position is not None]
        refs = [ref for ref in refs if ref not in taken and is_calling(ref.node, call.operators)][:_FREEDOM]
        best: tuple[float, list[_Difference], int, _Names, NodeRef] | None = None
        for ref in refs:
            tried = dict(names)
            value = Value(ref.scope, ref.node.output[min(call.output, len(ref.node.output) - 1)])
            differences, matched = self._explained(want, self._comparison.at(want, ref), value, None, 0, tried)
            cost = sum([each.cost for each in differences])
            if best is None or cost < best[0]:
                best = cost, differences, matched, tried, ref
        if best is None:
            return [_Difference(f"no other node matches {call}", first.address, NODE)], 0
        names.update(best[3])
        taken.append(best[4])
        return best[1], best[2]

    # Its differences in words

    def _explained(
        self, want: Call | Path, choice: Choice, value: Value, user: NodeRef | None, slot: int, names: _Names
    ) -> tuple[list[_Difference], int]:
        """Return what a comparison found, and the number of calls that match; binds names."""
        call, ref = final_call(want), choice.ref
        differences: list[_Difference] = []
        if choice.kind == "absent":
            producer = None if value.scope is None else self._nodes.producer(value.scope, value.name)
            text = mismatches.comes_from(call, value.name, producer, value.scope)
            return [_Difference(text, "" if user is None else user.address, choice.cost)], 0
        if choice.kind == "removed":
            inner = (call.inputs or ())[choice.order[0]]
            assert isinstance(inner, Call | Path)
            users = [] if ref is None or user is not None else list(self._users(ref))
            text = mismatches.nothing_between(ref, value.name, user or next(iter(users), None), call)
            below = self._comparison.choice(inner, value)
            at = "" if user is None else user.address
            differences.append(_Difference(text, at, choice.cost - below.cost))
            more, matched = self._explained(inner, below, value, user, slot, names)
            return differences + more, matched
        assert ref is not None
        self._seen.add(ref)
        if choice.between:
            text = mismatches.between(ref, user, choice.between)
            differences.append(_Difference(text, choice.between[0].address, between_cost(len(choice.between))))
            value = Value(ref.scope, ref.node.output[min(call.output, len(ref.node.output) - 1)])
        matched = 0
        if choice.kind == "other":
            text = mismatches.comes_from(call, value.name, ref, value.scope)
            text = mismatches.other_operator(ref, call) if user is None else text
            differences.append(_Difference(text, ref.address, NODE))
        else:
            matched = 1
            self._fitting.add(ref)
            differences += self._details(call, ref, value, names)
        if call.inputs:
            more, inner_matched = self._inputs(call, ref, choice, names)
            differences, matched = differences + more, matched + inner_matched
        if isinstance(want, Path):
            more, inner_matched = self._path(want, ref, names)
            differences, matched = differences + more, matched + inner_matched
        return differences, matched

    def _details(self, call: Call, ref: NodeRef, value: Value, names: _Names) -> list[_Difference]:
        texts = []
        output = self._comparison.output_of(ref, value)
        if output != call.output:
            texts.append(mismatches.other_output(ref, output, call))
        if call.name:
            texts += self._named(Bound(call.name), value, names)
        for name, wanted in call.attributes:
            if not self._nodes.binds(name, wanted, ref, names):
                texts.append(mismatches.attribute_differs(ref, name, self._nodes.attribute(ref, name), wanted))
        if self._comparison.is_more(call, ref):
            texts.append(mismatches.more_inputs(ref, given_inputs(ref), len(call.inputs or ())))
        return [_Difference(text, ref.address, DETAIL) for text in texts]

    def _named(self, want: Bound, value: Value, names: _Names) -> list[str]:
        before = names.setdefault(want.name, value)
        if want.is_constant and not self._literals.is_constant(value):
            return [mismatches.not_constant(want, value)]
        return [] if before == value else [mismatches.two_values(want, before, value)]

    def _inputs(self, call: Call, ref: NodeRef, choice: Choice, names: _Names) -> tuple[list[_Difference], int]:
        """Explain the inputs in the order that leaves the fewest names with two values."""
        orders = self._comparison.orders(call, ref)[2]
        best: tuple[float, list[_Difference], int, _Names] | None = None
        for order in orders:
            tried = dict(names)
            differences, matched = self._in_order(call, ref, order, tried)
            cost = sum([each.cost for each in differences])
            if best is None or cost < best[0]:
                best = cost, differences, matched, tried
            self._freedom -= 1
            if self._freedom < 0:
                break
        assert best is not None
        names.update(best[3])
        return best[1], best[2]

    def _in_order(self, call: Call, ref: NodeRef, order: Sequence[int], names: _Names) -> tuple[list[_Difference], int]:
        differences, matched = list[_Difference](), 0
        is_fitting = is_calling(ref.node, call.operators)
        for want, slot in zip(call.inputs or (), order, strict=True):
            value = self._comparison.input_of(ref, slot)
            if isinstance(want, Anything) or not (is_fitting or isinstance(want, Call | Path)):
                continue
            if value is None:
                differences.append(_Difference(mismatches.no_input(ref, slot, want), ref.address, DETAIL))
            elif isinstance(want, Call | Path):
                more, inner = self._explained(want, self._comparison.choice(want, value), value, ref, slot, names)
                differences, matched = differences + more, matched + inner
            elif isinstance(want, Bound):
                differences += [_Difference(text, ref.address, DETAIL) for text in self._named(want, value, names)]
            elif isinstance(want, Number | Elements) and not self._literals.is_like(value, want):
                text = mismatches.constant_differs(ref.node, slot, want, self._literals.text(value), value.name)
                differences.append(_Difference(text, ref.address, DETAIL))
        return differences, matched

    def _path(self, want: Path, ref: NodeRef, names: _Names) -> tuple[list[_Difference], int]:
        cost, _, user, slot, surplus = self._comparison.start(want, ref)
        if slot < 0:
            text = mismatches.no_path(want, ref.node.output[0])
            name = next(filter(None, ref.node.input), "")
            if want.most == 0 and isinstance(want.start, Call | Path) and name:
                source, scope = self._nodes.producer(ref.scope, name), self._nodes.value(ref.scope, name).scope
                text = mismatches.comes_from(final_call(want.start), name, source, scope)
            return [_Difference(text, ref.address, cost)], 0
        value = self._comparison.input_of(user, slot)
        assert value is not None
        differences, matched = list[_Difference](), 0
        start = want.start
        if isinstance(start, Call | Path):
            choice = self._comparison.choice(start, value)
            differences, matched = self._explained(start, choice, value, user, slot, names)
        elif isinstance(start, Bound):
            differences = [_Difference(text, ref.address, DETAIL) for text in self._named(start, value, names)]
        if surplus:
            source = None if value.scope is None else self._nodes.producer(value.scope, value.name)
            text = mismatches.between(source, ref, surplus)
            differences.insert(0, _Difference(text, surplus[0].address, between_cost(len(surplus))))
        elif cost > sum([each.cost for each in differences]) + NODE / 2:
            differences.insert(0, _Difference(mismatches.no_path(want, ref.node.output[0]), ref.address, NODE))
        return differences, matched
