"""What other ways of comparing two models say which node is which."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from onnxjson.diffing.line_changes import changes
from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.unified import digest_text
from onnxjson.model.document import Graph, Model
from onnxjson.model.index import Index
from tests.diffing.judging import GraphPairs

MAIN: Final = "/graph"

_NODE: Final = re.compile(rb' {4}\{"op_type": ')
"""The first line of a node of the main graph in the canonical text."""

_SAYS_SOMETHING: Final = re.compile(rb".*[A-Za-z]")


def pairs_by_text(base: Model, target: Model) -> list[GraphPairs]:
    """Nodes of the main graphs that share lines which a line diff of the canonical texts leaves unchanged.

    A node goes with the one that it shares most such lines with.
    """
    texts = [digest_text(model).split(b"\n") for model in (base, target)]
    starts = [_starts(lines, _graph(model)) for lines, model in zip(texts, (base, target), strict=True)]
    shared: Counter[tuple[int, int]] = Counter()
    for old, new in _unchanged(*texts):
        if _SAYS_SOMETHING.match(texts[0][old]):
            one, other = bisect_right(starts[0], old) - 1, bisect_right(starts[1], new) - 1
            if 0 <= one < len(starts[0]) - 1 and 0 <= other < len(starts[1]) - 1:
                shared[one, other] += 1
    target_of = [UNMATCHED] * (len(starts[0]) - 1)
    taken: set[int] = set()
    for (one, other), _ in shared.most_common():
        if target_of[one] == UNMATCHED and other not in taken:
            target_of[one] = other
            taken.add(other)
    return [GraphPairs(MAIN, MAIN, target_of)]


def _unchanged(old: Sequence[bytes], new: Sequence[bytes]) -> Iterable[tuple[int, int]]:
    at, there = 0, 0
    for change in changes(old, new):
        yield from zip(range(at, change.old_start), range(there, change.new_start), strict=True)
        at, there = change.old_end, change.new_end
    yield from zip(range(at, len(old)), range(there, len(new)), strict=True)


def _starts(lines: Sequence[bytes], graph: Graph) -> list[int]:
    """The first line of each node, and the line after the last node."""
    count = len(graph.node)
    if not count:
        return [len(lines)]
    first = lines.index(b'  "node": [')
    starts = [place for place in range(first, len(lines)) if _NODE.match(lines[place])][:count]
    end = next(place for place in range(starts[-1], len(lines)) if lines[place].startswith(b"  ]"))
    return [*starts, end]


def _graph(model: Model) -> Graph:
    return model.graph or Graph()


def pairs_but(base: Model, target: Model, removed: Iterable[Sequence[str]]) -> list[GraphPairs]:
    """Nodes of the main graphs with the same outputs, without those that a differ calls removed."""
    gone = {tuple(outputs) for outputs in removed}
    there = {node.output: place for place, node in enumerate(_graph(target).node)}
    return [
        GraphPairs(
            MAIN,
            MAIN,
            [UNMATCHED if node.output in gone else there.get(node.output, UNMATCHED) for node in _graph(base).node],
        )
    ]


def pairs_by_names(base: Model, target: Model) -> list[GraphPairs]:
    """Nodes of graphs at the same address that make values of the same names: what a differ by names can find."""
    others = Index(target).by_address
    found = []
    for scope in Index(base).scopes:
        if scope.address in others:
            there = {node.output: place for place, node in enumerate(others[scope.address].graph.node)}
            target_of = [there.get(node.output, UNMATCHED) for node in scope.graph.node]
            found.append(GraphPairs(scope.address, scope.address, target_of))
    return found
