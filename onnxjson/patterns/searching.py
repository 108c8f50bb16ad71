"""Find what matches a pattern."""

from collections.abc import Sequence

from onnxjson.model.document import Model
from onnxjson.model.index import Index, NodeRef, index_of
from onnxjson.model.operators import operator_name
from onnxjson.patterns.expression import Pattern
from onnxjson.patterns.finding import Match, matches
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.matching import Matcher
from onnxjson.patterns.nodes import TOLERANCE, Nodes
from onnxjson.patterns.selectors import select_nodes


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
        overlapping: also return matches that share nodes other than constants with an earlier one.
        tolerance: relative difference up to which floating-point numbers count as equal.
        index: the index that the matches refer to; `Model.index` by default.

    Raises:
        SelectorError: the pattern is not valid.
        LimitError: the search needs too many comparisons.
    """
    return matches(matchers(model, index or index_of(model), pattern, tolerance), overlapping=overlapping)


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
