"""The outline of a graph: scopes of its nodes' names, siblings that repeat each other folded into one row.

``/layers.0/attn/MatMul`` stands in the scopes ``layers``, ``0`` and ``attn``. Twelve such layers with the same
operators, in the same scopes, in the same order are one row, ``layers.0-11 x12``. A scope that holds nothing but
another one shares its row.
"""

import re
from collections.abc import Collection, Sequence
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

_LABEL: Final = 200
"""Characters of a label."""

_MOST_INDENTED: Final = 10
"""Levels that are indented; deeper ones stand below those."""


class Branch:
    """One scope."""

    __slots__ = ("children", "count", "first", "name", "operators", "parent")

    def __init__(self, name: str, parent: "Branch | None") -> None:
        self.name = name
        """The last part."""
        self.parent = parent
        self.children: dict[str, Branch] = {}
        self.operators: list[str | None] = []
        """Of the nodes that stand in it and not deeper."""
        self.first = -1
        """The position of its first node, deeper ones too."""
        self.count = 0
        """Nodes, deeper ones too."""

    @property
    def path(self) -> str:
        """The names of the scopes around it and its own, slashes between them."""
        names: list[str] = []
        branch: Branch | None = self
        while branch is not None and branch.parent is not None:
            names.append(branch.name)
            branch = branch.parent
        return "/".join(reversed(names))


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
    """One scope, or several that repeat each other."""

    members: tuple[Branch, ...]
    label: str

    @property
    def key(self) -> str:
        """See `OutlineRow.key`."""
        return self.members[0].path + (".." if len(self.members) > 1 else "")


class Outline:
    """The scopes of one graph; which of them are open is told when rows are asked for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.root = Branch("", None)
        self._branches: list[Branch] = [self.root]
        self._fill(nodes)
        self._contents = self._compared()

    def rows(self, opened: Collection[str] = ()) -> list[OutlineRow]:
        """The rows that are seen where the scopes and groups of these keys are open."""
        found: list[OutlineRow] = []
        pending = [(item, 0) for item in reversed(self._below(self.root))]
        while pending:
            item, level = pending.pop()
            first = item.members[0]
            key = item.key
            has_more = len(item.members) > 1 or bool(first.children)
            is_open = key in opened if has_more else None
            count = sum(member.count for member in item.members)
            label = visible(item.label, _LABEL)
            found.append(OutlineRow(key, level, label, len(item.members), count, first.first, is_open))
            if is_open:
                inner = [self._item([each]) for each in item.members] if item.members[1:] else self._below(first)
                pending += [(each, level + 1) for each in reversed(inner)]
        return found

    def _fill(self, nodes: Sequence[Node]) -> None:
        known: dict[str, Branch] = {}
        for position, node in enumerate(nodes):
            name = node.name or ""
            # Nodes of one scope have the same start; only the first of them is taken apart.
            where = name[: max(name.rfind("/"), name.rfind(".")) + 1]
            if node.metadata_props:
                said = next((entry.value for entry in node.metadata_props if entry.key == _NAMESPACE), None)
                where = f"\0{said}" if said else where
            branch = known.get(where)
            if branch is None:
                branch = known[where] = self._branch(_parts(where))
            branch.operators.append(node.op_type)
            if branch.first < 0:
                branch.first = position
        for branch in reversed(self._branches):
            branch.count += len(branch.operators)
            for child in branch.children.values():
                branch.count += child.count
                branch.first = child.first if branch.first < 0 else min(branch.first, child.first)

    def _branch(self, parts: Sequence[str]) -> Branch:
        branch = self.root
        for name in parts:
            child = branch.children.get(name)
            if child is None:
                child = branch.children[name] = Branch(name, branch)
                self._branches.append(child)
            branch = child
        return branch

    def _compared(self) -> dict[Branch, int]:
        """A number for each scope; those with the same number hold the same."""
        numbers: dict[object, int] = {}
        found: dict[Branch, int] = {}
        for branch in reversed(self._branches):  # each before the one around it
            below = tuple([(child.name, found[child]) for child in branch.children.values()])
            found[branch] = numbers.setdefault((tuple(branch.operators), below), len(numbers))
        return found

    def _below(self, parent: Branch) -> list[_Item]:
        return [self._item(run) for run in self._runs(parent)]

    def _runs(self, parent: Branch) -> list[list[Branch]]:
        """The scopes in a scope; those that repeat each other under counted names together."""
        found: list[list[Branch]] = []
        last: dict[tuple[str, str, int], tuple[int, list[Branch]]] = {}
        for child in parent.children.values():
            numbered = _NUMBER.fullmatch(child.name)
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

    def _item(self, run: list[Branch]) -> _Item:
        """A row for scopes; one that holds nothing but others of one row shares it with them."""
        labels = [_label(run)]
        while len(run) == 1 and run[0].children and not run[0].operators:
            inner = self._runs(run[0])
            if len(inner) != 1:
                break
            run = inner[0]
            labels += ["." if run[0].name[:1].isdigit() else "/", _label(run)]
        return _Item(tuple(run), "".join(labels))


def _label(run: Sequence[Branch]) -> str:
    name = run[0].name
    numbered = _NUMBER.fullmatch(run[-1].name) if len(run) > 1 else None
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
