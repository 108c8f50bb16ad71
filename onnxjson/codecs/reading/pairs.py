"""Pairs, opset imports and the metadata of elements (docs/format.md, sections 8 and 9)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from onnxjson.codecs.canonical_values import owner_name
from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.exact import read_integer, read_list, read_message
from onnxjson.codecs.reading.strings import read_string, read_text_or_lines
from onnxjson.codecs.reading.tree import Tree
from onnxjson.model.display import visible
from onnxjson.model.document import OperatorSetId, Record, StringStringEntry

Pairs = tuple[StringStringEntry, ...]

ELEMENT_KINDS = ("node", "input", "output", "initializer", "value_info")
"""The lists of a graph whose elements may have metadata in `element_metadata`, in their order."""


def read_pairs(tree: Tree, place: Place, context: Context, *, lines: bool = True) -> Pairs | None:
    """Read pairs: an object, or a list of ``["key", "value"]`` and of objects with the fields of the message.

    With `lines` a value may be the list of its lines. None, after a report, if the tree is neither.
    """
    read_value = read_text_or_lines if lines else read_string
    if isinstance(tree, dict):
        entries = []
        for key, member in tree.items():
            value = read_value(member, place.at(key), context)
            if value is not None:
                entries.append(StringStringEntry(key=key, value=value))
        return tuple(entries)

    def read_item(item: Tree, at: Place, context: Context) -> StringStringEntry | None:
        if not isinstance(item, list):
            return read_message(StringStringEntry, item, at, context)
        if len(item) != 2:
            context.wrong_type(item, at, 'a pair such as ["key", "value"]')
            return None
        key = read_string(item[0], at.at(0), context)
        value = read_value(item[1], at.at(1), context)
        return None if key is None or value is None else StringStringEntry(key=key, value=value)

    return read_list(tree, place, context, read_item, "an object of pairs, or a list of them,")


def read_opset_imports(tree: Tree, place: Place, context: Context) -> tuple[OperatorSetId, ...] | None:
    """Read opset imports: ``{"": 20}``, or a list of objects with the fields of the message."""
    if not isinstance(tree, dict):
        return read_list(
            tree,
            place,
            context,
            lambda item, at, context: read_message(OperatorSetId, item, at, context),
            'an object such as {"": 20}',
        )
    imports = []
    for domain, member in tree.items():
        version = read_integer(member, place.at(domain), context)
        if version is not None:
            imports.append(OperatorSetId(domain=domain, version=version))
    return tuple(imports)


def attach_element_metadata(
    elements: Mapping[str, Sequence[Any]], tree: Tree, place: Place, context: Context
) -> dict[str, tuple[Any, ...]]:
    """Attach the lines of `element_metadata` to the elements of a graph or function -> the changed lists, by kind."""
    if not isinstance(tree, list):
        context.wrong_type(tree, place, 'a list of lines such as ["node", "y", "key", "value"]')
        return {}
    owners = _Owners(elements)
    added: dict[tuple[str, int], list[StringStringEntry]] = {}
    for index, line in enumerate(tree):
        found = _read_line(line, place.at(index), context, owners)
        if found is not None:
            element, entry = found
            added.setdefault(element, []).append(entry)
    changed: dict[str, list[Any]] = {}
    for (kind, position), entries in added.items():
        elements_of_kind = changed.setdefault(kind, list(elements[kind]))
        record: Record = elements_of_kind[position]
        elements_of_kind[position] = msgspec.structs.replace(record, metadata_props=tuple(entries))
    return {kind: tuple(elements_of_kind) for kind, elements_of_kind in changed.items()}


class _Owners:
    """The elements to which a line can refer, by kind and name."""

    def __init__(self, elements: Mapping[str, Sequence[Any]]) -> None:
        self.elements = elements
        self.positions: dict[str, dict[str, int]] = {}
        self.counts: dict[str, Counter[str]] = {}

    def of(self, kind: str) -> dict[str, int]:
        if kind not in self.positions:
            names = [owner_name(kind, element) for element in self.elements[kind]]
            self.counts[kind] = Counter(name for name in names if name)
            self.positions[kind] = {name: index for index, name in reversed(list(enumerate(names))) if name}
        return self.positions[kind]


def _read_line(
    line: Tree, place: Place, context: Context, owners: _Owners
) -> tuple[tuple[str, int], StringStringEntry] | None:
    if not isinstance(line, list) or len(line) != 4:
        context.wrong_type(line, place, 'a line such as ["node", "y", "key", "value"]')
        return None
    for index, item in enumerate(line):
        if not isinstance(item, str):
            context.wrong_type(item, place.at(index), "a string")
    if not all(isinstance(item, str) for item in line):
        return None
    kind, owner, key, value = line
    if kind not in owners.elements:
        message = f'"{visible(kind)}" is not a kind of element that has metadata here'
        context.error(place.at(0), "unknown-name", message, context.nearest(kind, owners.elements))
        return None
    position = _find_owner(kind, owner, place, context, owners)
    return None if position is None else ((kind, position), StringStringEntry(key=key, value=value))


def _find_owner(kind: str, owner: str, place: Place, context: Context, owners: _Owners) -> int | None:
    position = owners.of(kind).get(owner)
    shown = f'{"" if kind == "node" else kind + " "}"{visible(owner)}"'
    if position is None:
        what = f"no node of this graph has the first output {shown}" if kind == "node" else f"this graph has no {shown}"
        if context.drop_orphans:
            context.warning(place.at(1), "dropped-metadata", f"{what}; its metadata is dropped")
            return None
        renamed = f"{'output' if kind == 'node' else kind} renamed? change the owner here too, or use --drop-orphans"
        near = context.suggest(owner, owners.of(kind))
        context.error(place.at(1), "unknown-owner", what, f"{near} {renamed}".strip())
        return None
    if owners.counts[kind][owner] > 1:
        message = f"{owners.counts[kind][owner]} elements of the kind {kind} have the name {shown}"
        hint = "write the metadata inside its element, as metadata_props"
        context.error(place.at(1), "ambiguous-owner", message, hint)
        return None
    if owners.elements[kind][position].metadata_props:
        message = f"the {kind} {shown}" if kind == "node" else f"the {shown}"
        context.error(
            place.at(1), "metadata-twice", f"{message} also has metadata_props", "keep its metadata in one place"
        )
        return None
    return position
