"""What of a graph has to be drawn anew after a change that moved no nodes: lanes, outline, or lines only."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson.document import Record
from onnxjson.patching.changes import Change, Fields, Members

_OF_LANES: Final = frozenset({"node", "input", "output"})
_OF_OUTLINE: Final = frozenset({"node", "name", "op_type", "metadata_props"})
_OF_NODES: Final = (_OF_LANES | _OF_OUTLINE) - {"node"}


class Redrawn(NamedTuple):
    """What has to be found out anew of all nodes."""

    lanes: bool
    """Whether nodes take or make other values."""
    outline: bool
    """Whether nodes stand in other scopes, or call other operators."""


def redrawn(change: Fields | None) -> Redrawn:
    """What of the graphs of a model differs after a change, given as the tree of its patch."""
    fields = frozenset(_fields(change))
    return Redrawn(bool(fields & _OF_LANES), bool(fields & _OF_OUTLINE))


def _fields(change: Fields | None) -> Iterator[str]:
    """The names of all fields that differ; ``node`` only where one came or went."""
    pending: list[tuple[str, Change]] = [] if change is None else list(change.changes.items())
    while pending:
        field, below = pending.pop()
        if field == "node" and isinstance(below, Members):
            yield from _replaced(below)
        else:
            yield field
        if isinstance(below, Fields):
            pending += below.changes.items()
        elif isinstance(below, Members):
            pending += [(name, inner) for member in below.changes.values() for name, inner in member.changes.items()]


def _replaced(nodes: Members) -> Iterator[str]:
    """In which fields nodes differ for which others stand: a patch takes one with another name for another one."""
    added = [each for each in nodes.sequence or () if not isinstance(each, range)]
    if len(added) != len(nodes.removed):
        yield "node"
        return
    for old, new in zip(nodes.removed.values(), added, strict=True):
        for field in _OF_NODES:
            if getattr(old, field) != getattr(new, field) and (field != "name" or _scope(old) != _scope(new)):
                yield field


def _scope(node: Record) -> str:
    """What the outline makes of a name: all but its last part."""
    name: str = getattr(node, "name", None) or ""
    return name[: max(name.rfind("/"), name.rfind(".")) + 1]
