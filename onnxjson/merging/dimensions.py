"""Names of dimensions that one side replaced everywhere, which what the other side adds still uses.

A name such as ``batch`` stands for one size in all of a graph. Where one side gives it a size or another name, that
holds of what the other side adds, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from onnxjson import document as d
from onnxjson.edits.dimensions import IDENTIFIER, with_dimension_names
from onnxjson.merging.sides import Side
from onnxjson.merging.slots import Clash
from onnxjson.patching.changes import Fields, Members
from onnxjson.walking import walk

LISTS: Final = ("input", "output", "value_info")
"""The lists of a graph that say types of values."""

Sizes = Mapping[str, int | str | None]
"""Names of dimensions that one side has no more -> what stands in their place; None where that is not one thing."""


def replaced_names(base: d.Model, sides: tuple[Side, Side]) -> Sizes:
    """What became of names of dimensions of the main graph that one side, and only one, has replaced everywhere."""
    found: dict[str, int | str | None] = {}
    for side, other in (sides, sides[::-1]):
        candidates = set(_changed_names(base, side.changes))
        if not candidates or side.model.graph is None or other.model.graph is None or base.graph is None:
            continue
        gone = candidates - _names(side.model.graph)
        if gone := gone & _names(other.model.graph):
            found.update(_replacements(base.graph, side.model.graph, gone))
    return found


def _changed_names(base: d.Model, changes: Fields | None) -> Iterator[str]:
    """Names in types of values of the main graph that are not as they were."""
    graph = None if changes is None else changes.changes.get("graph")
    for field in LISTS if type(graph) is Fields else ():
        members = graph.changes.get(field)  # type: ignore[union-attr]
        if type(members) is not Members:
            continue
        records = getattr(base.graph, field)
        for position, below in members.changes.items():
            if "type" in below.changes:
                yield from [each for each in _shape(records[position]) if isinstance(each, str)]


def _shape(info: d.ValueInfo) -> list[int | str | None]:
    if info.type is None or info.type.tensor_type is None or info.type.tensor_type.shape is None:
        return []
    return [each.dim_param or each.dim_value for each in info.type.tensor_type.shape.dim]


def _names(record: d.Record) -> set[str]:
    """All names of dimensions, also those within expressions."""
    texts = {each.dim_param for each in walk(record, d.Dimension)}
    texts |= {each.dim_param for each in walk(record, d.SimpleShardedDim)}
    return {name for text in texts if text for name in (text, *IDENTIFIER.findall(text))}


def _replacements(base: d.Graph, graph: d.Graph, names: set[str]) -> dict[str, int | str | None]:
    found: dict[str, set[int | str | None]] = {}
    for field in LISTS:
        there = {each.name: each for each in getattr(graph, field)}
        for info in getattr(base, field):
            if info.name in there:
                old, new = _shape(info), _shape(there[info.name])
                for name, size in zip(old, new, strict=False) if len(old) == len(new) else ():
                    if name in names:
                        found.setdefault(str(name), set()).add(size)
    return {name: sizes.pop() if len(sizes) == 1 else None for name, sizes in found.items()}


def with_sizes(model: d.Model, sizes: Sizes) -> d.Model:
    """A model whose main graph has what stands in the place of names."""
    if not _known(sizes) or model.graph is None:
        return model
    from msgspec.structs import replace

    return replace(model, graph=_followed(model.graph, sizes))


def follow(clashes: list[Clash], sizes: Sizes) -> None:
    """Put into what the sides have in conflicts what stands in the place of names."""
    if _known(sizes):
        for clash in clashes:
            if not clash.owner.startswith("/functions"):
                clash.ours, clash.theirs = _followed(clash.ours, sizes), _followed(clash.theirs, sizes)


def _known(sizes: Sizes) -> dict[str, int | str]:
    return {name: size for name, size in sizes.items() if size is not None}


def _followed(value: Any, sizes: Sizes) -> Any:
    if isinstance(value, tuple):
        return tuple([_followed(each, sizes) for each in value])
    if not isinstance(value, d.Record) or isinstance(value, d.Function):
        return value
    return with_dimension_names(value, _known(sizes))


def uses_name(info: Any, name: str) -> bool:
    """Whether the type of a value has a name among its dimensions, or within an expression there."""
    return isinstance(info, d.ValueInfo) and any(
        isinstance(each, str) and name in (each, *IDENTIFIER.findall(each)) for each in _shape(info)
    )
