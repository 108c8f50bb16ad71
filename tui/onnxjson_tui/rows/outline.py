"""The outline of a graph: scopes of its nodes' names, siblings that repeat each other folded into one row.

``/layers.0/attn/MatMul`` stands in the scopes ``layers``, ``0`` and ``attn``. Twelve such layers with the same
operators, in the same scopes, in the same order are one row, ``layers.0-11 x12``. A scope that holds nothing but
another one shares its row.
"""

import re
from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.document import Node
from onnxjson.rendering.tables import cells, padded, shortened

_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.S)
_SEPARATORS: Final = re.compile(r"[/.]+")

_NAMESPACE: Final = "namespace"
"""The key of metadata_props in which PyTorch's exporter keeps ``name: class/name: class/...``."""

MOST_LEVELS: Final = 4096
"""Scopes within each other; what a name says beyond them is left out."""

_LONG: Final = 250
"""Characters of the start of a name from which it is taken apart at once: it may have thousands of parts."""

_LABEL: Final = 200
"""Characters of a label."""

_MOST_INDENTED: Final = 10
"""Levels that are indented; deeper ones stand below those."""


class OutlineRow(NamedTuple):
    """One row; its label is safe to show."""

    key: str
    """What is opened and closed; stays the same as long as the scope does."""
    level: int
    label: str
    repeats: int
    """How many scopes the row stands for; 1 where it is one."""
    nodes: int
    """How many stand in it, deeper ones too."""
    first: int
    """The position of its first node."""
    is_open: bool | None
    """None where there is nothing below."""


class _Item(NamedTuple):
    """One scope, or several that repeat each other, by their numbers."""

    members: tuple[int, ...]
    label: str


class _Numbers(dict[str, int]):
    """A number for each text that is asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


class Outline:
    """The scopes of one graph; which of them are open is told when rows are asked for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        # Scopes have numbers, each more than the one around it; the lists say the rest of them. A big model has as many
        # scopes as nodes, and objects would take four times as long.
        self._added = [""]
        self._parents = array("i", [-1])
        self._firsts = array("i", [0])
        self._counts = array("i", [0])
        self._contents = array("i", [0])
        """A number for what each scope holds; the same where two hold the same."""
        self._fill(nodes)
        # Tuples of texts are nothing that the collector of garbage looks through again and again, as lists are.
        self._names = tuple(self._added)
        self._added.clear()
        self._inner: tuple[array[int], array[int]] | None = None

    def rows(self, opened: Collection[str] = ()) -> list[OutlineRow]:
        """The rows that are seen where the scopes and groups of these keys are open."""
        found: list[OutlineRow] = []
        pending = [(item, 0) for item in reversed(self._below(0))]
        while pending:
            item, level = pending.pop()
            members, first = item.members, item.members[0]
            key = self._path(first) + (".." if len(members) > 1 else "")
            has_more = len(members) > 1 or bool(self._children(first))
            is_open = key in opened if has_more else None
            nodes = sum([self._counts[each] for each in members])
            label = visible(item.label, _LABEL)
            found.append(OutlineRow(key, level, label, len(members), nodes, self._firsts[first], is_open))
            if is_open:
                inner = [self._item([each]) for each in members] if len(members) > 1 else self._below(first)
                pending += [(each, level + 1) for each in reversed(inner)]
        return found

    def _fill(self, nodes: Sequence[Node]) -> None:
        known = {"": 0}
        places: dict[int, int] = {}
        names = _Numbers()
        operators: dict[str | None, int] = {}
        counts, contents = self._counts, self._contents
        numbers: dict[int, int] = {}
        for position, node in enumerate(nodes):
            name = node.name
            where = name[: max(name.rfind("/"), name.rfind(".")) + 1] if name else ""
            if node.metadata_props:
                said = next((entry.value for entry in node.metadata_props if entry.key == _NAMESPACE), None)
                where = f"\0{said}" if said else where
            # Nodes of one scope have the same start; only the first of them is taken apart.
            scope = known.get(where)
            if scope is None:
                scope = self._scope(where, position, known, places, names)
            counts[scope] += 1
            operator = operators.setdefault(node.op_type, len(operators))
            # What a scope holds up to here and one operator more; numbers in one, since tuples cost collections.
            contents[scope] = numbers.setdefault(contents[scope] << 32 | operator, len(numbers) + 1)
        self._sum_up(names, len(numbers) + 1)

    def _sum_up(self, names: "_Numbers", start: int) -> None:
        """Gives each scope what the scopes in it have; numbers of contents begin at `start`."""
        counts, contents = self._counts, self._contents
        numbers: dict[int, int] = {}
        for scope in range(len(counts) - 1, 0, -1):
            parent = self._parents[scope]
            counts[parent] += counts[scope]
            held = contents[parent] << 64 | names[self._added[scope]] << 32 | contents[scope]
            contents[parent] = numbers.setdefault(held, start + len(numbers))

    def _scope(
        self, where: str, position: int, known: dict[str, int], places: dict[int, int], names: "_Numbers"
    ) -> int:
        """The scope that the start of a name, or the metadata of an exporter, says; a new one where it is not there."""
        if len(where) > _LONG or where[0] == "\0":
            scope, parts = 0, _parts(where)
        else:
            # The scopes around it mostly are there already.
            stem = where.rstrip("/.")
            around = stem[: max(stem.rfind("/"), stem.rfind(".")) + 1]
            found = known.get(around)
            scope = self._scope(around, position, known, places, names) if found is None else found
            parts = [stem[len(around) :]] if stem else []
        for name in parts:
            place = scope << 32 | names[name]
            inner = places.get(place)
            if inner is None:
                inner = places[place] = len(self._added)
                self._added.append(name)
                self._parents.append(scope)
                # Nodes come in their order, so nobody stands in it, or in a scope around it that is new, before.
                self._firsts.append(position)
                self._counts.append(0)
                self._contents.append(0)
            scope = inner
        known[where] = scope
        return scope

    def _path(self, scope: int) -> str:
        """The names of the scopes around one and its own, slashes between them."""
        names: list[str] = []
        while scope > 0:
            names.append(self._names[scope])
            scope = self._parents[scope]
        return "/".join(reversed(names))

    def _children(self, scope: int) -> "array[int]":
        if self._inner is None:
            # Those in one scope after those in the one before it, and where they begin: a list for each would be many.
            parents = self._parents
            counts = Counter(parents)
            ends = accumulate([counts[each] for each in range(len(parents))], initial=0)
            self._inner = array("i", sorted(range(1, len(parents)), key=parents.__getitem__)), array("q", ends)
        inner_scopes, begins = self._inner
        return inner_scopes[begins[scope] : begins[scope + 1]]

    def _below(self, parent: int) -> list[_Item]:
        return [self._item(run) for run in self._runs(parent)]

    def _runs(self, parent: int) -> list[list[int]]:
        """The scopes in a scope; those that repeat each other under counted names together."""
        found: list[list[int]] = []
        last: dict[tuple[str, str, int], tuple[int, list[int]]] = {}
        for child in self._children(parent):
            numbered = _NUMBER.fullmatch(self._names[child])
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

    def _item(self, run: list[int]) -> _Item:
        """A row for scopes; one that holds nothing but others of one row shares it with them."""
        labels = [self._label(run)]
        while len(run) == 1 and self._has_no_nodes(run[0]):
            inner = self._runs(run[0])
            if len(inner) != 1:
                break
            run = inner[0]
            labels += ["." if self._names[run[0]][:1].isdigit() else "/", self._label(run)]
        return _Item(tuple(run), "".join(labels))

    def _has_no_nodes(self, scope: int) -> bool:
        return self._counts[scope] == sum([self._counts[each] for each in self._children(scope)])

    def _label(self, run: Sequence[int]) -> str:
        name = self._names[run[0]]
        numbered = _NUMBER.fullmatch(self._names[run[-1]]) if len(run) > 1 else None
        if numbered is None:
            return name
        return name[: len(name) - len(numbered[3])] + f"-{numbered[2]}{numbered[3]}"


def _parts(where: str) -> list[str]:
    """The names of the scopes that the start of a name, or the metadata of an exporter, says."""
    if where.startswith("\0"):
        # The innermost but the last part, which is the operator itself; each part has the whole path.
        said = where[1:].split("/")[:-1]
        where = next((name for name in (part.partition(":")[0] for part in reversed(said)) if name), "")
    return [part for part in _SEPARATORS.split(where) if part][:MOST_LEVELS]


def outline_line(row: OutlineRow, width: int, *, ascii_only: bool = False) -> str:
    """A row as text of `width` columns: fold mark, label, repeats, and at the right the number of nodes."""
    marks = {None: " ", True: "-" if ascii_only else "▾", False: "+" if ascii_only else "▸"}
    repeats = f" x{row.repeats}" if row.repeats > 1 else ""
    count = f" {row.nodes:,}"
    start = "  " * min(row.level, _MOST_INDENTED) + marks[row.is_open] + " "
    room = width - cells(start) - cells(repeats) - cells(count)
    line = start + shortened(row.label, max(room, 1)) + repeats
    return padded(line, max(width - cells(count), 0)) + count
