"""Three-way merge of base, ours and theirs: one model, or one model with conflicts.

It never asks, loses no side, and equal inputs have equal results.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from onnxjson.merging.additions import replace_in_clashes, replaced_names, with_sizes
from onnxjson.merging.conflicts import conflicts_of
from onnxjson.merging.consistency import Consistency, keeps_interface
from onnxjson.merging.naming import Restored
from onnxjson.merging.records import TreeMerge
from onnxjson.merging.resolving import resolve
from onnxjson.merging.sides import Side, interface_names, part_names
from onnxjson.merging.slots import Units, rival_units
from onnxjson.model.addresses import Choice, slot_at, value_at
from onnxjson.model.brief import Brief
from onnxjson.model.conflicts import Conflict, ConflictError
from onnxjson.model.document import Model
from onnxjson.model.errors import AddressError, Finding, OnnxJsonError
from onnxjson.model.methods import Reported
from onnxjson.model.structure import check_structure
from onnxjson.patching.applying import apply_fields
from onnxjson.patching.changes import Fields
from onnxjson.patching.listing import AddressMap
from onnxjson.storage.api import model_and_file

_ROUNDS: Final = 16
"""Number of rounds in which units are tied before the whole model becomes one conflict."""

_BOTH: Final[tuple[Choice, ...]] = ("ours", "theirs")


class Merged(Brief, Reported, msgspec.Struct, frozen=True):
    """Result of a merge."""

    verdict_name: ClassVar = ".is_clean"

    model: Model
    """The model with both changes; in the slots of conflicts it has the values of ours."""
    conflicts: tuple[Conflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether the merge has no conflicts."""
        return not self.conflicts


def merge(base: Model | str | Path | None, ours: Model | str | Path, theirs: Model | str | Path) -> Merged:
    """Merge two changes of one model.

    Args:
        base: the common ancestor, or its file; None if there is none.
        ours: one side; its values are kept in slots with conflicts.
        theirs: the other side. Swapping the sides swaps the sides of the conflicts; a result without conflicts stays
            the same.

    Raises:
        ChangedUnderneathError, FileError: a file that contains tensors can no longer be read.
        MissingInputError, AccessDeniedError, DecodeError, LimitError: a file cannot be read as a model.
    """
    base = None if base is None else model_and_file(base)[0]
    ours, theirs = model_and_file(ours)[0], model_and_file(theirs)[0]
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
        # Names follow ours, but the conflicts must also be resolvable with the names of theirs.
        mirrored = _merged(base, sides[::-1], 1 - first)
        if mirrored is None or not _is_good(mirrored, base, theirs, ours):
            return _whole_model(base, ours, theirs)
    return result


def _whole_model(base: Model | None, ours: Model, theirs: Model) -> Merged:
    return Merged(ours, (Conflict("1", "", base, ours, theirs),))


def _merged(base: Model, sides: tuple[Side, Side], first: int) -> Merged | None:
    """Merge slot by slot; return None if changes are incompatible for an unknown reason.

    Where any order is possible, `first` is the side that comes first, independent of which side is ours.
    """
    sizes = replaced_names(base, sides)
    units = Units()
    for keys in rival_units(base, (sides[0].changes, sides[1].changes)):
        units.tie(keys)

    def attempt(tree: TreeMerge) -> tuple[Fields | None, Consistency]:
        lead, other = [sides[side].changes for side in tree.sides]
        fields = tree.record(base, (lead, other), "")
        merged = with_sizes(base if fields is None else apply_fields(base, fields), sizes)
        return fields, Consistency(base, sides, merged, tree, sizes)

    for _ in range(_ROUNDS):
        tree = TreeMerge(units, first)
        fields, checked = attempt(tree)
        problems = list(checked.problems())
        if tree.clashes:
            # The values of theirs in the slots must fit the rest, too, since they may be chosen.
            problems += attempt(TreeMerge(units, first, swapped=True))[1].problems()
        if not all(problems):
            return None
        if not any([units.tie(sorted(set(keys))) for keys in problems]):
            break
    else:
        return None
    if problems and not tree.clashes:
        return None
    replace_in_clashes(tree.clashes, sizes)
    restored = Restored(checked.index, sides, checked.origins, first)
    conflicts = conflicts_of(tree.clashes, AddressMap(fields), units, restored)
    if not conflicts and not keeps_interface(base, sides, checked, restored.model):
        return None
    return Merged(restored.model, conflicts)


def _is_good(result: Merged, base: Model, ours: Model, theirs: Model) -> bool:
    if not result.is_clean:
        return is_resolvable(result.model, result.conflicts, base, ours, theirs)
    # Every kind of structural error is in one of the others as well.
    codes = {finding.code for finding in structural_errors(result.model)}
    return not codes or codes <= {each.code for side in (base, ours, theirs) for each in structural_errors(side)}


def structural_errors(model: Model) -> Iterator[Finding]:
    """Yield the structural errors of a model, and missing opset imports."""
    return (each for each in check_structure(model) if each.severity == "error" or each.code == "missing-opset")


def is_resolvable(model: Model, conflicts: Sequence[Conflict], base: Model | None, ours: Model, theirs: Model) -> bool:
    """Whether all conflicts can be resolved with ours, and with theirs, to a model that is valid if that side is."""
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


def merge_uncertain(base: Merged | None, ours: Merged, theirs: Merged) -> Merged:
    """Merge two changes of a model, where each of the three models may have conflicts of another merge.

    If histories cross, git merges the common ancestors first, and the result, with its conflicts, is the base. In such
    a base a slot in conflict has one value or the other. So the merge is done with each of them, and its result is
    accepted only if it is the same for both: anything else would be a choice that the user did not make.

    Args:
        base: the common ancestor; None if there is none.
        ours, theirs: the two sides, of which only one may have conflicts.

    Raises:
        ConflictError: both sides have conflicts, or those of a side cannot be resolved.
        OnnxJsonError: see `merge`.
    """
    if not ours.is_clean and not theirs.is_clean:
        raise ConflictError("both sides have conflicts of earlier merges", (*ours.conflicts, *theirs.conflicts))
    sides = _resolutions(ours), _resolutions(theirs)
    results = [merge(*each) for each in product(_bases(base), *sides)]
    for result in results:
        if all(_covers(result, other) for other in results):
            return result
    if ours.is_clean and theirs.is_clean:
        return merge(None, ours.model, theirs.model)
    return _all_possible(results, "theirs" if ours.is_clean else "ours")


def _resolutions(merged: Merged) -> list[Model]:
    if merged.is_clean:
        return [merged.model]
    # In a conflict of the whole model the base is possible; in any other both sides have replaced it.
    is_whole = any(not conflict.at and conflict.base is not None for conflict in merged.conflicts)
    choices: tuple[Choice, ...] = (*_BOTH, "base") if is_whole else _BOTH
    return [resolve(merged.model, merged.conflicts, choice)[0] for choice in choices]


def _bases(base: Merged | None) -> list[Model | None]:
    with suppress(OnnxJsonError):
        return [None] if base is None else list(_resolutions(base))
    return [None]  # the common ancestor is unknown


def _covers(result: Merged, other: Merged) -> bool:
    """Whether every resolution of another result is a resolution of this one."""
    if result is other:
        return True
    try:
        return all(_resolves_to(result, resolve(other.model, other.conflicts, choice)[0]) for choice in _BOTH)
    except OnnxJsonError:
        return False


def _resolves_to(result: Merged, wanted: Model) -> bool:
    """Whether some choice of sides resolves a result to a model."""
    if result.is_clean:
        return result.model == wanted
    if any(resolve(result.model, result.conflicts, choice)[0] == wanted for choice in _BOTH):
        return True
    theirs = {conflict.id for conflict in result.conflicts if _has(wanted, conflict)}
    model, left = resolve(result.model, result.conflicts, "theirs", theirs)
    return resolve(model, left, "ours")[0] == wanted


def _has(model: Model, conflict: Conflict) -> bool:
    try:
        return bool(value_at(model, slot_at(conflict.at)) == conflict.theirs)
    except (AddressError, ValueError, IndexError, AttributeError):
        return conflict.theirs is None


def _all_possible(results: Sequence[Merged], uncertain: Choice) -> Merged:
    """Return one conflict of the whole model whose three models have every possible value of a slot."""
    certain: Choice = "ours" if uncertain == "theirs" else "theirs"
    first, last = results[0], results[-1]
    models = [
        resolve(each.model, each.conflicts, choice)[0]
        for each, choice in ((first, certain), (first, uncertain), (last, uncertain))
    ]
    return Merged(models[1], (Conflict("1", "", *models),))
