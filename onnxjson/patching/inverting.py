"""A tree of changes -> the tree that leads back."""

from onnxjson.patching.changes import Change, Fields, Members, Replace
from onnxjson.patching.sequences import Positions, inverted


def inverse(fields: Fields) -> Fields:
    """What undoes the changes of a record."""
    return Fields({name: _inverse(change) for name, change in fields.changes.items()})


def _inverse(change: Change) -> Change:
    if type(change) is Replace:
        return Replace(change.new, change.old)
    if type(change) is Fields:
        return inverse(change)
    assert type(change) is Members
    if change.sequence is None:
        return Members(None, {}, {key: inverse(below) for key, below in change.changes.items()})
    positions = Positions(change.sequence)
    sequence, removed = inverted(change.sequence, change.removed)
    changes: dict[int | str, Fields] = {}
    for key, below in change.changes.items():
        after = positions.after(key) if isinstance(key, int) else key
        assert after is not None  # only members that stay are changed
        changes[after] = inverse(below)
    return Members(sequence, removed, changes)
