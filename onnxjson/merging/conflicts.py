"""Conflicts of a merge: slots that both sides changed differently, at their addresses in the merged model."""

from typing import Any

from onnxjson.merging.naming import Restored
from onnxjson.merging.slots import Clash, Units
from onnxjson.model.addresses import slot_at, value_at
from onnxjson.model.conflicts import Conflict
from onnxjson.patching.listing import AddressMap


def conflicts_of(clashes: list[Clash], places: AddressMap, units: Units, restored: Restored) -> tuple[Conflict, ...]:
    """Return the clashes as conflicts at addresses of the merged model, sorted, with final names and numbers."""
    entries: list[tuple[list[Any], tuple[int, ...], str, str, tuple[Any, Any, Any]]] = []
    for clash in clashes:
        owner = places.after(clash.owner)
        at = f"{owner}{clash.tail}"
        entries.append((natural(at), clash.rank, at, units.root(clash.key), restored.values(clash, at)))
    for at, root, (base, _, theirs) in restored.clashes:
        # The model may have the name of ours followed by a number if that name is taken.
        entries.append((natural(at), (), at, root, (base, value_at(restored.model, slot_at(at)), theirs)))
    entries.sort(key=lambda entry: entry[:3])
    numbers: dict[str, str] = {}
    return tuple(
        [Conflict(numbers.setdefault(root, str(len(numbers) + 1)), at, *values) for _, _, at, root, values in entries]
    )


def natural(address: str) -> list[Any]:
    """Key that sorts the positions in addresses as numbers."""
    return [(0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in address.split("/")]
