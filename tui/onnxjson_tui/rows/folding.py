"""The folded lines of a graph: the outline as a tree of rows over the positions of its nodes.

A row has a line of the outline and the nodes in it; what is unfolded shows the lines inside it, or its nodes. Lines
that have no node of the graph, such as the titles of functions, are left out. After an edit the rows follow its patch
until the outline of the new model is ready.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.model.index import NodeRef, Scope
from onnxjson.outline.lines import Line, Outline
from onnxjson.patching.changes import Members

_WITHOUT_VALUE: Final = frozenset({"Constant", "Identity", "Shape", "Cast", "Dropout"})
"""Operators whose output is rarely the subject of a line."""


class Fold(NamedTuple):
    """One line with the nodes of the graph that it contains."""

    key: str  # for folding and unfolding; stable as long as the value of the line has its name
    text: str
    positions: tuple[int, ...]  # positions of its nodes, ascending; () for the line of inputs
    result: int  # position of the node that produces its value; -1 without nodes
    inner: tuple["Fold", ...] = ()
    first: tuple[int, ...] = ()  # positions of the nodes of the first round, for a line in a repeat

    @property
    def is_foldable(self) -> bool:
        """Whether it can be unfolded."""
        return len(self.positions) > 1


class Row(NamedTuple):
    """A row of a page: a line, or a node of an unfolded one."""

    level: int
    fold: Fold | None
    position: int  # of the node, or of that which produces the value of the line; -1 for the line of inputs
    is_open: bool = False


def folds_of(outline: Outline, scope: Scope) -> tuple[Fold, ...]:
    """Return the lines of one graph; `scope` is that of the index of the outline."""
    return tuple(_Folding(scope).folds(outline.lines, None))


class _Folding:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._outputs = frozenset(scope.output_names)

    def folds(self, lines: Sequence[Line], within: Collection[NodeRef] | None) -> Iterator[Fold]:
        scope = self._scope
        for line in lines:
            if not line.nodes:
                if scope.owner is None and scope.kind == "main" and within is None:
                    yield Fold("", line.text, (), -1)
                continue
            positions = sorted({ref.position for ref in line.nodes if ref.scope is scope})
            if not positions:
                continue
            if line.nodes[0].scope is not scope or line.block == scope.kind != "main":
                # A node around the graph, or the title of the function.
                yield from self.folds(line.lines, within)
                continue
            shown = [place for place in positions if within is None or NodeRef(scope, place) in within]
            first = frozenset(line.rounds[0]) if line.rounds else None
            if within is not None and first is not None:
                first &= frozenset(within)
            inner = tuple(self.folds(line.lines, within if first is None else first))
            covers = len({place for fold in inner for place in fold.positions}) == len(positions)
            if covers and len(inner) > 1:
                result = inner[-1].result
            else:
                inner = ()
                result = self._result(shown)
            key, text = self._key(result, line.repeat), self._text(line.text, result)
            yield Fold(key, text, tuple(positions), result, inner, tuple(shown))

    def _result(self, positions: Sequence[int]) -> int:
        """Return the last node whose output is used elsewhere, which is not only arithmetic of shapes if possible."""
        inside, nodes = set(positions), self._scope.graph.node
        leaving = [
            place
            for place in positions
            if any([name in self._outputs or self._leaves(name, inside) for name in nodes[place].output if name])
        ]
        computing = [place for place in leaving if nodes[place].op_type not in _WITHOUT_VALUE]
        return (computing or leaving or positions)[-1]

    def _leaves(self, name: str, inside: Collection[int]) -> bool:
        return any([place not in inside for place, _ in self._scope.uses(name)])

    def _key(self, result: int, repeat: int) -> str:
        names = [name for name in self._scope.graph.node[result].output if name]
        return f"{repeat}x {names[0] if names else result}"

    def _text(self, text: str, result: int) -> str:
        """A line without the type after it, which has a column of its own."""
        start, mark, rest = text.rpartition("): ")
        return f"{start})" if mark and "[" in rest and result >= 0 else text


def rows_of(folds: Sequence[Fold], toggled: Collection[str]) -> list[Row]:
    """Return the rows of a page; repeats are unfolded and other lines folded, unless their keys are `toggled`."""
    rows: list[Row] = []
    pending = [(fold, 0) for fold in reversed(folds)]
    while pending:
        fold, level = pending.pop()
        is_open = fold.is_foldable and (fold.key in toggled) != bool(fold.inner)
        rows.append(Row(level, fold, fold.result, is_open))
        if is_open and fold.inner:
            pending += [(each, level + 1) for each in reversed(fold.inner)]
        elif is_open:
            rows += [Row(level + 1, None, position) for position in fold.positions]
    return rows


def folded_around(folds: Sequence[Fold], toggled: Collection[str], position: int) -> set[str]:
    """Return the keys to toggle so that the row of a node is visible."""
    keys: set[str] = set()
    level: Sequence[Fold] = folds
    while (fold := next((each for each in level if position in each.positions), None)) is not None:
        if fold.is_foldable and (fold.key in toggled) == bool(fold.inner):
            keys.add(fold.key)
        level = fold.inner
    return keys


def followed(folds: Sequence[Fold], nodes: Members) -> tuple[Fold, ...]:
    """Return the lines after a change of the list of nodes; an added node is in the line of the one before it."""
    places: dict[int, list[int]] = {}
    last, position = -1, 0
    for item in nodes.sequence or ():
        for old in item if isinstance(item, range) else (last,):
            places.setdefault(old, []).append(position)
            position, last = position + 1, old
    for new in places.pop(-1, ()):
        places.setdefault(min(places, default=0), []).append(new)

    def follow(fold: Fold) -> Fold:
        positions = sorted([place for old in fold.positions for place in places.get(old, ())])
        inner = tuple([each for each in map(follow, fold.inner) if each.positions])
        result = places.get(fold.result, positions[-1:] or [-1])[0]
        first = tuple(sorted([place for old in fold.first for place in places.get(old, ())]))
        return fold._replace(positions=tuple(positions), result=result, inner=inner, first=first)

    return tuple(
        [new for old, new in zip(folds, map(follow, folds), strict=True) if new.positions or not old.positions]
    )
