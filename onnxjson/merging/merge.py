"""Base, ours and theirs -> one model, or one model with conflicts; never a prompt, never a side lost, no clock."""

from typing import Final

import msgspec

from onnxjson.conflicts import Conflict
from onnxjson.document import Model
from onnxjson.merging.choosing import leaves_a_way_out, mistakes
from onnxjson.merging.dimensions import Sizes, follow, replaced_names, with_sizes
from onnxjson.merging.interface import keeps_interface
from onnxjson.merging.records import TreeMerge
from onnxjson.merging.restoring import Restored, conflicts_of
from onnxjson.merging.shared_files import rival_units
from onnxjson.merging.sides import Side, part_names
from onnxjson.merging.slots import Units
from onnxjson.merging.soundness import Soundness
from onnxjson.patching.applying import applied
from onnxjson.patching.places import Places

_ROUNDS: Final = 16
"""So often units that do not go together are tied before the whole model is one conflict."""


class Merged(msgspec.Struct, frozen=True):
    """What a merge gives."""

    model: Model
    """Both changes; in the slots of conflicts what ours has."""
    conflicts: tuple[Conflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether there are no conflicts."""
        return not self.conflicts


def merge(base: Model | None, ours: Model, theirs: Model) -> Merged:
    """Merge two changes of one model.

    Args:
        base: what both sides began with; None where each made the model anew.
        ours: one side; slots that both changed keep its value.
        theirs: the other one. Swapping the sides swaps the sides of the conflicts, and changes nothing else of a
            result without conflicts.

    Raises:
        ChangedUnderneathError, FileError: payloads in a file cannot be read any more.
    """
    if ours == theirs or base == theirs:
        return Merged(ours)
    if base == ours:
        return Merged(theirs)
    if base is None:
        return _all_of_it(base, ours, theirs)
    sides = Side(base, ours), Side(base, theirs)
    # Before names are parted, which marks each side as what it is here.
    first = int(sides[1].digest() < sides[0].digest())
    part_names(*sides)
    result = _merged(base, sides, first)
    if result is None or not _is_good(result, base, ours, theirs):
        return _all_of_it(base, ours, theirs)
    if not result.is_clean:
        # Names follow ours; what has no way out with the names of theirs is no merge of slots with those of ours.
        mirrored = _merged(base, sides[::-1], 1 - first)
        if mirrored is None or not _is_good(mirrored, base, theirs, ours):
            return _all_of_it(base, ours, theirs)
    return result


def _all_of_it(base: Model | None, ours: Model, theirs: Model) -> Merged:
    return Merged(ours, (Conflict("1", "", base, ours, theirs),))


def _merged(base: Model, sides: tuple[Side, Side], first: int) -> Merged | None:
    """The merge by slots; None where changes do not go together and nobody can tell which.

    Args:
        base: what both began with.
        sides: ours and theirs, their new values under names of their own.
        first: which of them comes first where the order is nobody's, the same whichever is ours.
    """
    changes = sides[0].changes, sides[1].changes
    sizes = replaced_names(base, sides)
    units = Units()
    for keys in rival_units(base, changes):
        units.tie(keys)
    for _ in range(_ROUNDS):
        tree = TreeMerge(units, first)
        fields = tree.record(base, changes, "")
        merged = with_sizes(base if fields is None else applied(base, fields), sizes)
        sound = Soundness(base, sides, merged, tree, sizes)
        problems = list(sound.problems())
        if tree.clashes:
            # What theirs has in the slots has to go with the rest, too: somebody may take it.
            problems += _problems_of_theirs(base, sides, units, first, sizes)
        if not all(problems):
            return None
        if not any([units.tie(sorted(set(keys))) for keys in problems]):
            break
    else:
        return None
    if problems and not tree.clashes:
        return None
    follow(tree.clashes, sizes)
    restored = Restored(merged, sides, sound, first)
    conflicts = conflicts_of(tree.clashes, Places(fields), units.root, restored)
    if not conflicts and not keeps_interface(base, sides, sound, restored.model):
        return None
    return Merged(restored.model, conflicts)


def _problems_of_theirs(
    base: Model, sides: tuple[Side, Side], units: Units, first: int, sizes: Sizes
) -> list[list[str]]:
    tree = TreeMerge(units, first, swapped=True)
    fields = tree.record(base, (sides[1].changes, sides[0].changes), "")
    merged = with_sizes(base if fields is None else applied(base, fields), sizes)
    return list(Soundness(base, sides, merged, tree, sizes).problems())


def _is_good(result: Merged, base: Model, ours: Model, theirs: Model) -> bool:
    if result.is_clean:
        return _is_sound(result.model, base, ours, theirs)
    return leaves_a_way_out(result.model, result.conflicts, base, ours, theirs)


def _is_sound(merged: Model, *sides: Model) -> bool:
    """Whether a model has no mistake of a kind that none of the others has."""
    found = {finding.code for finding in mistakes(merged)}
    return not found or found <= {finding.code for side in sides for finding in mistakes(side)}
