"""Addresses after a change: a renamed node is removed for a patch, but not for the user."""

from typing import Any

from onnxjson.model.addresses import parse_address
from onnxjson.model.document import Node
from onnxjson.model.errors import AddressError
from onnxjson.patching import Patch
from onnxjson.patching.changes import Fields, Members


def place_after(patch: Patch, address: str) -> str | None:
    """Return the address of an element after a change, even if its node was renamed; None if it was removed.

    For a patch, a node with another name or other outputs is another node. If as many nodes are added as removed at a
    position, each added node with the same operator replaces the removed one.
    """
    try:
        found = patch.where(address)
        parts = parse_address(address)
    except AddressError:
        return None
    if found is not None:
        return found
    pieces = address.split("/")
    for length in range(2, len(parts) + 1):
        if parts[length - 2] != "node" or not parts[length - 1].isdigit():
            continue
        # Segment n of the address is piece n + 1, since it begins with a slash.
        node = "/".join(pieces[: length + 1])
        if patch.where(node) is not None:
            continue
        owner = patch.where("/".join(pieces[: length - 1])) if length > 2 else ""
        members = _change_at(patch.root, parts[: length - 1])
        position = _replacement(members, int(parts[length - 1])) if isinstance(members, Members) else None
        if owner is None or position is None:
            return None
        return "/".join([owner, "node", str(position), *pieces[length + 1 :]])
    return None


def _change_at(root: Fields | None, parts: tuple[str, ...]) -> Any:
    """Return the change of the element at an address of the base model."""
    change: Any = root
    for part in parts:
        if isinstance(change, Fields):
            change = change.changes.get(part)
        elif isinstance(change, Members):
            key = part.removeprefix("#")
            change = change.changes.get(part) or (change.changes.get(int(key)) if key.isdigit() else None)
        else:
            return None
    return change


def _replacement(members: Members, position: int) -> int | None:
    """Return the position of the node that replaces a removed one."""
    old = members.removed.get(position)
    if members.sequence is None or not isinstance(old, Node):
        return None
    expected = new_position = 0
    coming: list[tuple[int, Any]] = []
    # The end of the list is an empty run.
    end = max(members.removed, default=0) + 1
    for item in (*members.sequence, range(end, end)):
        if not isinstance(item, range):
            coming.append((new_position, item))
            new_position += 1
            continue
        if expected <= position < item.start:
            going = [each for each in range(expected, item.start) if each in members.removed]
            if len(going) != len(coming) or position not in going:
                return None
            place, new = coming[going.index(position)]
            return place if isinstance(new, Node) and new.op_type == old.op_type else None
        coming = []
        expected = item.stop
        new_position += len(item)
    return None
