"""Parts of a graph to redraw after a change that moved no nodes: lanes, outline, or lines only."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson.model.document import Record
from onnxjson.patching.changes import Change, Fields, Members

_OF_LANES: Final = frozenset({"node", "input", "output"})
_OF_OUTLINE: Final = frozenset({"node", "name", "op_type", "metadata_props"})
_OF_NODES: Final = (_OF_LANES | _OF_OUTLINE) - {"node"}


class Redrawn(NamedTuple):
    """Parts that must be recomputed for all nodes."""

    lanes: bool
    """Whether inputs or outputs of nodes changed."""
    outline: bool
    """Whether scopes or operators of nodes changed."""


def redrawn(change: Fields | None) -> Redrawn:
    """Return the parts to redraw after a change, given as the tree of its patch."""
    fields = frozenset(_fields(change))
    return Redrawn(bool(fields & _OF_LANES), bool(fields & _OF_OUTLINE))


def _fields(change: Fields | None) -> Iterator[str]:
    """Yield the names of all changed fields; ``node`` only if one was added or removed."""
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
    """Yield the fields in which replaced nodes differ; for a patch, a renamed node is another node."""
    added = [each for each in nodes.sequence or () if not isinstance(each, range)]
    if len(added) != len(nodes.removed):
        yield "node"
        return
    for old, new in zip(nodes.removed.values(), added, strict=True):
        for field in _OF_NODES:
            if getattr(old, field) != getattr(new, field) and (field != "name" or _scope(old) != _scope(new)):
                yield field


def _scope(node: Record) -> str:
    """Return the scope of a name as in the outline: all but its last part."""
    name: str = getattr(node, "name", None) or ""
    return name[: max(name.rfind("/"), name.rfind(".")) + 1]
