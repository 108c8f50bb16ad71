"""Outline of a graph: the scopes in the names of its nodes, with repeated siblings folded into one row.

``/layers.0/attn/MatMul`` is in the scopes ``layers``, ``0`` and ``attn``. Twelve such layers with the same
operators, in the same scopes, in the same order are one row, ``layers.0-11 x12``. A scope that contains only another
scope shares its row.
"""

import re
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.document import Node
from onnxjson.rendering.tables import cells, padded, shortened

_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.S)
_SEPARATORS: Final = re.compile(r"[/.]+")

_NAMESPACE: Final = "namespace"
"""The key of metadata_props in which PyTorch's exporter keeps ``name: class/name: class/...``."""

MOST_LEVELS: Final = 4096  # maximum depth of nested scopes; deeper ones are left out
_LONG: Final = 250  # length from which a scope path is split at once, since it may have thousands of parts
_LABEL: Final = 200  # characters of a label
_MOST_INDENTED: Final = 10  # maximum levels of indentation


class OutlineRow(NamedTuple):
    """One row; its label has no control characters."""

    key: str  # key for opening and closing; stable as long as the scope exists
    level: int
    label: str
    repeats: int  # number of scopes that the row represents
    nodes: int  # number of nodes in it, including deeper ones
    first: int  # the position of its first node
    is_open: bool | None  # none for a row without rows below it


class Item(NamedTuple):
    """One scope, or several repeated ones, by number."""

    members: tuple[int, ...]
    label: str  # not visible


class Outline:
    """The scopes of one graph."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        # Scopes are numbered, outer ones first; the lists store their properties. A big model has as many
        # scopes as nodes, and objects would take four times as long.
        self._added = [""]
        self.parents = array("i", [-1])
        self.firsts = array("i", [0])  # position of the first node of each scope, deeper ones included
        self.counts = array("i", [0])  # number of its nodes, likewise
        self.scopes = array("i")  # the innermost scope of each node
        self._contents = array("i", [0])  # number of the content of each scope; equal for equal contents
        self._fill(nodes)
        # Unlike lists, tuples of strings are not traversed by every garbage collection.
        self.names = tuple(self._added)
        self._added.clear()
        self._inner: tuple[array[int], array[int]] | None = None

    def rows(self, opened: Collection[str] = ()) -> list[OutlineRow]:
        """Return the visible rows if the scopes and groups with these keys are open."""
        found: list[OutlineRow] = []
        pending = [(item, 0) for item in reversed(self.below(0))]
        while pending:
            item, level = pending.pop()
            members, first = item.members, item.members[0]
            key = self.path(first) + (".." if len(members) > 1 else "")
            has_more = len(members) > 1 or bool(self._children(first))
            is_open = key in opened if has_more else None
            nodes = sum([self.counts[each] for each in members])
            label = visible(item.label, _LABEL)
            found.append(OutlineRow(key, level, label, len(members), nodes, self.firsts[first], is_open))
            if is_open:
                inner = [self.item([each]) for each in members] if len(members) > 1 else self.below(first)
                pending += [(each, level + 1) for each in reversed(inner)]
        return found

    def _fill(self, nodes: Sequence[Node]) -> None:
        known = {"": 0}
        places: dict[int, int] = {}
        names: dict[str, int] = {}
        operators: dict[str | None, int] = {}
        counts, contents = self.counts, self._contents
        numbers: dict[int, int] = {}
        for position, node in enumerate(nodes):
            name = node.name
            where = name[: max(name.rfind("/"), name.rfind(".")) + 1] if name else ""
            if node.metadata_props:
                path = next((entry.value for entry in node.metadata_props if entry.key == _NAMESPACE), None)
                where = f"\0{path}" if path else where
            # Nodes of one scope have the same prefix; only the first one is split.
            scope = known.get(where)
            if scope is None:
                scope = self._scope(where, position, known, places, names)
            counts[scope] += 1
            self.scopes.append(scope)
            operator = operators.setdefault(node.op_type, len(operators))
            # The previous content and one more operator, packed into one integer, which is cheaper than a tuple.
            contents[scope] = numbers.setdefault(contents[scope] << 32 | operator, len(numbers) + 1)
        self._sum_up(names, len(numbers) + 1)

    def _sum_up(self, names: dict[str, int], start: int) -> None:
        """Add the nodes and contents of inner scopes to the outer ones; numbers of contents begin at `start`."""
        counts, contents = self.counts, self._contents
        numbers: dict[int, int] = {}
        for scope in range(len(counts) - 1, 0, -1):
            parent = self.parents[scope]
            counts[parent] += counts[scope]
            held = contents[parent] << 64 | names[self._added[scope]] << 32 | contents[scope]
            contents[parent] = numbers.setdefault(held, start + len(numbers))

    def _scope(
        self, where: str, position: int, known: dict[str, int], places: dict[int, int], names: dict[str, int]
    ) -> int:
        """Return the scope of a name prefix or of an exporter's metadata; create it if it is new."""
        if len(where) > _LONG or where[0] == "\0":
            scope, parts = 0, _parts(where)
        else:
            # The outer scopes usually exist already.
            stem = where.rstrip("/.")
            around = stem[: max(stem.rfind("/"), stem.rfind(".")) + 1]
            found = known.get(around)
            scope = self._scope(around, position, known, places, names) if found is None else found
            parts = [stem[len(around) :]] if stem else []
        for name in parts:
            place = scope << 32 | names.setdefault(name, len(names))
            inner = places.get(place)
            if inner is None:
                inner = places[place] = len(self._added)
                self._added.append(name)
                self.parents.append(scope)
                # Nodes come in graph order, so this is the first node of the scope and of new outer scopes.
                self.firsts.append(position)
                self.counts.append(0)
                self._contents.append(0)
            scope = inner
        known[where] = scope
        return scope

    def path(self, scope: int) -> str:
        """Return the names of a scope and those around it, outermost first."""
        names: list[str] = []
        while scope > 0:
            names.append(self.names[scope])
            scope = self.parents[scope]
        return "/".join(reversed(names))

    def _children(self, scope: int) -> "array[int]":
        if self._inner is None:
            # Inner scopes sorted by outer scope, and the start of each group, since a list for each would be too many.
            parents = self.parents
            counts = Counter(parents)
            ends = accumulate([counts[each] for each in range(len(parents))], initial=0)
            self._inner = array("i", sorted(range(1, len(parents)), key=parents.__getitem__)), array("q", ends)
        inner_scopes, begins = self._inner
        return inner_scopes[begins[scope] : begins[scope + 1]]

    def below(self, parent: int) -> list[Item]:
        """Return what is directly in a scope; 0 is the graph."""
        return [self.item(run) for run in self._runs(parent)]

    def _runs(self, parent: int) -> list[list[int]]:
        """Return the scopes in a scope, with repeated ones under numbered names grouped."""
        found: list[list[int]] = []
        last: dict[tuple[str, str, int], tuple[int, list[int]]] = {}
        for child in self._children(parent):
            numbered = _NUMBER.fullmatch(self.names[child])
            if numbered is None:
                found.append([child])
                continue
            before, number, after = numbered.groups()
            kind = (before, after, self._contents[child])
            previous = last.get(kind)
            if previous is not None and previous[0] + 1 == int(number):
                previous[1].append(child)
                last[kind] = (int(number), previous[1])
            else:
                run = [child]
                found.append(run)
                last[kind] = (int(number), run)
        return found

    def item(self, run: list[int]) -> Item:
        """Return the row of some scopes; a scope that only contains another row shares it."""
        labels = [self._label(run)]
        while len(run) == 1 and self.counts[run[0]] == sum([self.counts[each] for each in self._children(run[0])]):
            inner = self._runs(run[0])
            if len(inner) != 1:
                break
            run = inner[0]
            labels += ["." if self.names[run[0]][:1].isdigit() else "/", self._label(run)]
        return Item(tuple(run), "".join(labels))

    def _label(self, run: Sequence[int]) -> str:
        name = self.names[run[0]]
        numbered = _NUMBER.fullmatch(self.names[run[-1]]) if len(run) > 1 else None
        if numbered is None:
            return name
        return name[: len(name) - len(numbered[3])] + f"-{numbered[2]}{numbered[3]}"


def _parts(where: str) -> list[str]:
    """Split a name prefix, or an exporter's metadata, into names of scopes."""
    if where.startswith("\0"):
        # The innermost but the last part, which is the operator itself; each part has the whole path.
        path = where[1:].split("/")[:-1]
        where = next((name for name in (part.partition(":")[0] for part in reversed(path)) if name), "")
    return [part for part in _SEPARATORS.split(where) if part][:MOST_LEVELS]


def outline_line(row: OutlineRow, width: int, *, ascii_only: bool = False) -> str:
    """Return a row as text of `width` columns: fold mark, label, repeats, and the number of nodes on the right."""
    marks = {None: " ", True: "-" if ascii_only else "▾", False: "+" if ascii_only else "▸"}
    repeats = f" x{row.repeats}" if row.repeats > 1 else ""
    count = f" {row.nodes:,}"
    start = "  " * min(row.level, _MOST_INDENTED) + marks[row.is_open] + " "
    room = width - cells(start) - cells(repeats) - cells(count)
    line = start + shortened(row.label, max(room, 1)) + repeats
    return padded(line, max(width - cells(count), 0)) + count
