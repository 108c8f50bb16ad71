"""Three-way merge of base, ours and theirs: one model, or one model with conflicts.

Nothing is asked, no side is lost, and equal inputs have equal results.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from onnxjson.merging.additions import Sizes, replace_in_clashes, replaced_names, with_sizes
from onnxjson.merging.naming import Restored, conflicts_of
from onnxjson.merging.records import Keys, TreeMerge
from onnxjson.merging.resolving import resolve
from onnxjson.merging.sides import Side, interface_names, part_names
from onnxjson.merging.slots import Units, rival_units
from onnxjson.merging.soundness import Soundness, keeps_interface
from onnxjson.model.conflicts import Choice
from onnxjson.model.document import Model
from onnxjson.model.errors import Conflict, ConflictError, Finding
from onnxjson.model.structure import check_structure
from onnxjson.patching.applying import apply_fields
from onnxjson.patching.listing import AddressMap

_ROUNDS: Final = 16
"""Number of rounds in which units are tied before the whole model becomes one conflict."""


class Merged(msgspec.Struct, frozen=True):
    """Result of a merge."""

    model: Model
    """The model with both changes; in the slots of conflicts it has the values of ours."""
    conflicts: tuple[Conflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether there are no conflicts."""
        return not self.conflicts


def merge(base: Model | None, ours: Model, theirs: Model) -> Merged:
    """Merge two changes of one model.

    Args:
        base: the common ancestor; None if there is none.
        ours: one side; slots in conflict keep its value.
        theirs: the other side. Swapping the sides swaps the sides of the conflicts; a result without conflicts stays
            the same.

    Raises:
        ChangedUnderneathError, FileError: the payloads in a file cannot be read any more.
    """
    if ours == theirs or base == theirs:
        return Merged(ours)
    if base == ours:
        return Merged(theirs)
    if base is None:
        return _whole_model(base, ours, theirs)
    sides = Side(base, ours), Side(base, theirs)
    # Before `part_names`, whose suffixes depend on which side is ours.
    first = int(sides[1].digest() < sides[0].digest())
    part_names(*sides)
    result = _merged(base, sides, first)
    if result is None or not _is_good(result, base, ours, theirs):
        return _whole_model(base, ours, theirs)
    if not result.is_clean:
        # Names follow ours; the conflicts must be resolvable with the names of theirs as well.
        mirrored = _merged(base, sides[::-1], 1 - first)
        if mirrored is None or not _is_good(mirrored, base, theirs, ours):
            return _whole_model(base, ours, theirs)
    return result


def _whole_model(base: Model | None, ours: Model, theirs: Model) -> Merged:
    return Merged(ours, (Conflict("1", "", base, ours, theirs),))


def _merged(base: Model, sides: tuple[Side, Side], first: int) -> Merged | None:
    """Merge slot by slot; return None where changes do not go together for an unknown cause.

    Args:
        base: the common ancestor.
        sides: ours and theirs, with different names for different new values.
        first: the side that comes first where the order is free; independent of which side is ours.
    """
    changes = sides[0].changes, sides[1].changes
    sizes = replaced_names(base, sides)
    units = Units()
    for keys in rival_units(base, changes):
        units.tie(keys)
    for _ in range(_ROUNDS):
        tree = TreeMerge(units, first)
        fields = tree.record(base, changes, "")
        merged = with_sizes(base if fields is None else apply_fields(base, fields), sizes)
        sound = Soundness(base, sides, merged, tree, sizes)
        problems = list(sound.problems())
        if tree.clashes:
            # The values of theirs in the slots must fit the rest, too, since they may be chosen.
            problems += _problems_of_theirs(base, sides, units, first, sizes)
        if not all(problems):
            return None
        if not any([units.tie(sorted(set(keys))) for keys in problems]):
            break
    else:
        return None
    if problems and not tree.clashes:
        return None
    replace_in_clashes(tree.clashes, sizes)
    restored = Restored(merged, sides, sound.origins, first)
    conflicts = conflicts_of(tree.clashes, AddressMap(fields), units, restored)
    if not conflicts and not keeps_interface(base, sides, sound, restored.model):
        return None
    return Merged(restored.model, conflicts)


def _problems_of_theirs(base: Model, sides: tuple[Side, Side], units: Units, first: int, sizes: Sizes) -> list[Keys]:
    tree = TreeMerge(units, first, swapped=True)
    fields = tree.record(base, (sides[1].changes, sides[0].changes), "")
    merged = with_sizes(base if fields is None else apply_fields(base, fields), sizes)
    return list(Soundness(base, sides, merged, tree, sizes).problems())


def _is_good(result: Merged, base: Model, ours: Model, theirs: Model) -> bool:
    if result.is_clean:
        return _is_sound(result.model, base, ours, theirs)
    return is_resolvable(result.model, result.conflicts, base, ours, theirs)


def _is_sound(merged: Model, *sides: Model) -> bool:
    """Whether every kind of structural error in a model is in one of the others as well."""
    found = {finding.code for finding in structural_errors(merged)}
    return not found or found <= {finding.code for side in sides for finding in structural_errors(side)}


def structural_errors(model: Model) -> Iterator[Finding]:
    """Yield the structural errors of a model, and missing opset imports."""
    return (each for each in check_structure(model) if each.severity == "error" or each.code == "missing-opset")


def is_resolvable(model: Model, conflicts: Sequence[Conflict], base: Model | None, ours: Model, theirs: Model) -> bool:
    """Whether all conflicts can be resolved with ours, and with theirs, to a model that is valid if that side is.

    Args:
        model: the merged model, with the values of ours in the slots of the conflicts.
        conflicts: all conflicts.
        base: the common ancestor.
        ours: one side.
        theirs: the other side.
    """
    known = {name for each in (base, ours, theirs) for name in interface_names(each)}
    choices: tuple[tuple[Choice, Model], ...] = (("ours", ours), ("theirs", theirs))
    for choice, side in choices:
        try:
            chosen, _ = resolve(model, conflicts, choice)
        except ConflictError:
            return False
        if not known.issuperset(interface_names(chosen)):
            return False  # a name followed by a number, which no program outside the model knows
        if any(structural_errors(chosen)) and not any(structural_errors(side)):
            return False
    return True
