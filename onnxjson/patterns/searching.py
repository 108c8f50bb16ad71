"""Find what matches a pattern, and explain what nearly does."""

from collections.abc import Callable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final, NamedTuple

from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError
from onnxjson.model.index import Index, NodeRef, index_of
from onnxjson.model.operators import operator_name
from onnxjson.patterns.expression import Pattern
from onnxjson.patterns.finding import Match, matches
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.matching import Matcher
from onnxjson.patterns.mismatches import State
from onnxjson.patterns.nodes import TOLERANCE, Nodes
from onnxjson.patterns.selectors import select_nodes

_SLACK: Final = (1, 2, 4)
"""Requirements that a miss may miss: fewer are tried first."""

_ALTERNATIVES: Final = 200
"""Ways to miss that are compared at one node."""


class Miss(NamedTuple):
    """A place that nearly matches."""

    root: NodeRef
    """The node that would be the last one of a match."""
    matched: int
    """The calls of the pattern that match there."""
    wanted: int
    """The calls of the pattern."""
    reasons: tuple[str, ...]
    """Descriptions of the differences, in the order of the pattern: at least one."""
    addresses: tuple[str, ...]
    """The node of each reason."""


def find(
    model: Model,
    pattern: Pattern | str,
    *,
    overlapping: bool = False,
    tolerance: float = TOLERANCE,
    index: Index | None = None,
) -> list[Match]:
    """Return the matches of a pattern in all graphs and functions of a model, in the order of their last nodes.

    Args:
        model: the model.
        pattern: a pattern or its text.
        overlapping: also return matches that share nodes, constants apart, with an earlier one.
        tolerance: relative difference up to which numbers of floating point are equal.
        index: the index of the model whose nodes the matches name; that of `Model.index` by default.

    Raises:
        SelectorError: the pattern is misspelled.
        LimitError: the search makes too many comparisons.
    """
    return matches(matchers(model, index or index_of(model), pattern, tolerance), overlapping=overlapping)


def nearest_misses(
    model: Model,
    pattern: Pattern | str,
    *,
    at: Sequence[NodeRef] | None = None,
    tolerance: float = TOLERANCE,
    most: int = 10,
    stopped: Callable[[str], None] | None = None,
) -> list[Miss]:
    """Return the places that nearly match a pattern, the nearest first.

    A place is near if it misses few requirements, and many calls of the pattern match.

    Args:
        model: the model.
        pattern: a pattern or its text.
        at: consider these nodes as last nodes only; None for all.
        tolerance: see `find`.
        most: number of places.
        stopped: called with the reason, if the search ends before all places are compared.

    Raises:
        SelectorError: the pattern is misspelled.
    """
    index = index_of(model)  # kept here, so that all parts of the search have the same one
    variants = matchers(model, index, pattern, tolerance)
    nearest: dict[NodeRef, tuple[float, Miss]] = {}
    limit: LimitError | None = None
    try:
        for matcher in variants:
            _add_misses(matcher, index, at, nearest)
    except LimitError as error:
        limit = error  # the places found so far count
    if limit is not None and stopped is not None:
        stopped(str(limit))
    # One variant may nearly match where another one matches.
    matching = {match.root for match in matches(variants, overlapping=True)} if len(variants) > 1 else set()
    return [miss for _, miss in sorted(nearest.values(), key=itemgetter(0)) if miss.root not in matching][:most]


def _add_misses(
    matcher: Matcher, index: Index, at: Sequence[NodeRef] | None, nearest: dict[NodeRef, tuple[float, Miss]]
) -> None:
    wanted = len(matcher.pattern.calls)
    likely = set(matcher.candidates())
    for slack in _SLACK:
        for ref in at if at is not None else index.node_refs:
            # Nodes of other operators have missed one requirement already, so everything else must match there.
            if at is None and ref not in likely and (slack > 1 or wanted == 1):
                continue
            misses = [_miss(state, ref, wanted) for state in islice(matcher.matches_at(ref, slack), _ALTERNATIVES)]
            if not all([miss.reasons for miss in misses]):
                continue  # it matches
            for miss in misses:
                distance = len(miss.reasons) - 2 * miss.matched / wanted + 0.5 * (ref not in likely)
                is_nearer = ref not in nearest or distance < nearest[ref][0]
                if is_nearer and (miss.matched or at is not None):
                    nearest[ref] = distance, miss
        if any([miss.matched == wanted for _, miss in nearest.values()]):
            break


def absent_operators(index: Index, pattern: Pattern | str) -> list[str]:
    """Return the operators of a pattern of which a model has no node."""
    parsed = parse(pattern) if isinstance(pattern, str) else pattern
    return min([_absent(index, variant) for variant in parsed.variants], key=len)


def _absent(index: Index, pattern: Pattern) -> list[str]:
    counts = index.operator_counts()
    wanted = [call.operators for call in pattern.calls]
    absent = [
        each
        for each in wanted
        if not any(one.name == "*" or counts[operator_name(one.domain, one.name)] for one in each)
    ]
    return [" or ".join(map(str, each)) for each in dict.fromkeys(absent)]


def _miss(state: State, ref: NodeRef, wanted: int) -> Miss:
    addresses = tuple([missed.address for missed in state.missed])
    other = {missed.other for missed in state.missed}
    matched = sum(each not in other for each in state.nodes)
    return Miss(ref, matched, wanted, tuple([missed.text for missed in state.missed]), addresses)


def matchers(
    model: Model, index: Index, pattern: Pattern | str, tolerance: float = TOLERANCE, nodes: Nodes | None = None
) -> list[Matcher]:
    """Return what searches for a pattern: one for each combination of its alternatives.

    Searches for several patterns may share `nodes`.
    """
    parsed = parse(pattern) if isinstance(pattern, str) else pattern
    nodes = nodes or Nodes(model, index, tolerance)

    def selected(selector: str) -> Sequence[NodeRef]:
        return select_nodes(model, index, selector)

    return [Matcher(nodes, variant, selected) for variant in parsed.variants]
