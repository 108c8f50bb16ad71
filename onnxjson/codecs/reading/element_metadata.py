"""The lines of `element_metadata`: attached to their elements, or reported where the element does not exist.

docs/format.md, section 9. An element that was deleted or renamed by hand leaves several lines behind; they are one
finding. A renamed element is recognised where all others of its kind have metadata: it has none, and is at the old
position.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.codecs.canonical_values import owner_name
from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.tree import Tree
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Record, StringStringEntry

_FIX: Final = "or use --drop-orphans"


def attach_element_metadata(
    elements: Mapping[str, Sequence[Any]], tree: Tree, place: Place, context: Context
) -> dict[str, tuple[Any, ...]]:
    """Attach the lines of `element_metadata` to the elements of a graph or function -> the changed lists, by kind."""
    if not isinstance(tree, list):
        context.wrong_type(tree, place, 'a list of lines such as ["node", "y", "key", "value"]')
        return {}
    owners = _Owners(elements, context)
    for index, line in enumerate(tree):
        found = _read_line(line, place.at(index), context, elements)
        if found is not None:
            kind, owner, entry = found
            owners.add(kind, owner, entry, place.at(index).at(1))
    owners.report_orphans()
    changed: dict[str, list[Any]] = {}
    for (kind, position), entries in owners.added.items():
        elements_of_kind = changed.setdefault(kind, list(elements[kind]))
        record: Record = elements_of_kind[position]
        elements_of_kind[position] = msgspec.structs.replace(record, metadata_props=tuple(entries))
    return {kind: tuple(elements_of_kind) for kind, elements_of_kind in changed.items()}


def _read_line(
    line: Tree, place: Place, context: Context, kinds: Mapping[str, Sequence[Any]]
) -> tuple[str, str, StringStringEntry] | None:
    if not isinstance(line, list) or len(line) != 4:
        context.wrong_type(line, place, 'a line such as ["node", "y", "key", "value"]')
        return None
    for index, item in enumerate(line):
        if not isinstance(item, str):
            context.wrong_type(item, place.at(index), "a string")
    if not all(isinstance(item, str) for item in line):
        return None
    kind, owner, key, value = line
    if kind not in kinds:
        message = f'"{visible(kind)}" is not a kind of element that has metadata here'
        context.error(place.at(0), "unknown-name", message, context.nearest(kind, kinds))
        return None
    return kind, owner, StringStringEntry(key=key, value=value)


class _Orphan(NamedTuple):
    """The lines of an element that does not exist."""

    kind: str
    owner: str
    place: Place
    after: int
    """The position of the element with metadata before it; -1 for none."""
    entries: list[StringStringEntry]


class _Owners:
    """The elements to which lines refer."""

    def __init__(self, elements: Mapping[str, Sequence[Any]], context: Context) -> None:
        self.added: dict[tuple[str, int], list[StringStringEntry]] = {}
        """Metadata of elements, by kind and position."""
        self._elements = elements
        self._context = context
        self._names: dict[str, list[str | None]] = {}
        self._positions: dict[str, dict[str, int]] = {}
        self._counts: dict[str, Counter[str | None]] = {}
        self._refused: set[tuple[str, int]] = set()
        self._latest: dict[str, int] = {}
        self._orphans: dict[tuple[str, str], _Orphan] = {}

    def add(self, kind: str, owner: str, entry: StringStringEntry, place: Place) -> None:
        """Add the content of a line."""
        if kind not in self._names:
            names = self._names[kind] = [owner_name(kind, element) for element in self._elements[kind]]
            self._counts[kind] = Counter(names)
            self._positions[kind] = {name: index for index, name in reversed(list(enumerate(names))) if name}
        position = self._positions[kind].get(owner)
        if position is None:
            orphan = _Orphan(kind, owner, place, self._latest.get(kind, -1), [])
            self._orphans.setdefault((kind, owner), orphan).entries.append(entry)
        elif (kind, position) in self.added or self._is_free(kind, owner, position, place):
            self.added.setdefault((kind, position), []).append(entry)
            self._latest[kind] = position

    def _is_free(self, kind: str, owner: str, position: int, place: Place) -> bool:
        """Whether an element can have lines; report once why not."""
        shown = f'{"" if kind == "node" else kind + " "}"{visible(owner)}"'
        count = self._counts[kind][owner]
        if count == 1 and not self._elements[kind][position].metadata_props:
            return True
        if (kind, position) not in self._refused:
            self._refused.add((kind, position))
            if count > 1:
                message = f'{count} elements of the kind {kind} have the name "{visible(owner)}"'
                hint = "write the metadata inside its element, as metadata_props"
                self._context.error(place, "ambiguous-owner", message, hint)
            else:
                message = f"the {kind} {shown}" if kind == "node" else f"the {shown}"
                hint = "keep its metadata in one place"
                self._context.error(place, "metadata-twice", f"{message} also has metadata_props", hint)
        return False

    def report_orphans(self) -> None:
        """Report the lines without an element: one finding for each renamed element, and one for all others."""
        deleted: list[_Orphan] = []
        for kind in self._names:
            orphans = [each for each in self._orphans.values() if each.kind == kind]
            renamed = self._renamed(kind, orphans)
            deleted += [each for each in orphans if each.owner not in renamed]
            for orphan in orphans:
                if orphan.owner in renamed:
                    self._report_renamed(orphan, renamed[orphan.owner])
        if not deleted:
            return
        first, message = deleted[0], _message(deleted)
        if self._context.drop_orphans:
            self._context.warning(first.place, "dropped-metadata", message, f"--drop-orphans drops {_them(deleted)}")
            return
        positions = self._positions[first.kind]
        unused = [name for name in positions if self._has_none(first.kind, positions[name])]
        near = self._context.suggest(first.owner, unused) if len(deleted) == 1 else ""
        hint = f"{near} write that here too, {_FIX}" if near else f"delete {_them(deleted)}, {_FIX}"
        self._context.error(first.place, "unknown-owner", message, hint)

    def _report_renamed(self, orphan: _Orphan, position: int) -> None:
        name = visible(self._names[orphan.kind][position] or "")
        message = _message([orphan])
        if self._context.drop_orphans:
            self.added[orphan.kind, position] = orphan.entries
            hint = f'--drop-orphans keeps {_them([orphan])} for "{name}", which is at its position'
            self._context.warning(orphan.place, "moved-metadata", message, hint)
        else:
            hint = f'"{name}" is at its position; write that name here too, {_FIX}'
            self._context.error(orphan.place, "unknown-owner", message, hint)

    def _has_none(self, kind: str, position: int) -> bool:
        return (kind, position) not in self.added and not self._elements[kind][position].metadata_props

    def _renamed(self, kind: str, orphans: Sequence[_Orphan]) -> dict[str, int]:
        """Return the positions of renamed elements by their old names, which do not exist any more."""
        unused = [position for position in range(len(self._names[kind])) if self._has_none(kind, position)]
        gaps: dict[int, list[_Orphan]] = {}
        for orphan in orphans:
            gaps.setdefault(orphan.after, []).append(orphan)
        renamed: dict[str, int] = {}
        left = set(unused)
        for after, group in gaps.items():
            positions: list[int] = []
            while after + 1 + len(positions) in left:
                positions.append(after + 1 + len(positions))
            left.difference_update(positions)
            if len(positions) == len(group):
                renamed.update({orphan.owner: position for orphan, position in zip(group, positions, strict=True)})
        return {} if left or len(unused) == len(self._names[kind]) else renamed


def _message(orphans: Sequence[_Orphan]) -> str:
    count = sum(len(each.entries) for each in orphans)
    names = [(each.kind.replace("node", "node that produces"), visible(each.owner)) for each in orphans]
    what = listed([f'the {kind} "{name}"' for kind, name in names], word="and")
    belong = "belongs" if count == 1 else "belong"
    verb = "does" if len(orphans) == 1 else "do"
    return f"{counted(count, 'line')} of metadata {belong} to {what}, which {verb} not exist"


def _them(orphans: Sequence[_Orphan]) -> str:
    return "them" if len(orphans) > 1 or len(orphans[0].entries) > 1 else "it"
