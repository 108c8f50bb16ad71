"""Merges of models in which conflicts of another merge stand.

Where histories cross, git merges the common ancestors first, and what that gives, conflicts and all, is the base. Such
a base says of the slots in conflict that they were one thing or the other. So it is taken once as the one and once as
the other, and a result counts where it holds for both: what only one of them gives would be a choice that nobody made.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

from onnxjson.conflicts import Conflict, slot_at, value_at
from onnxjson.document import Model
from onnxjson.errors import AddressError, ConflictError, OnnxJsonError
from onnxjson.merging.merge import Merged, merge
from onnxjson.merging.resolving import Choice, resolve

_BOTH: Final[tuple[Choice, ...]] = ("ours", "theirs")


def merge_uncertain(base: Merged | None, ours: Merged, theirs: Merged) -> Merged:
    """Merge two changes of a model, each of the three with the conflicts that stand in it.

    Args:
        base: what both sides began with; None where each made the model anew.
        ours: one side.
        theirs: the other one. Conflicts may stand in one of both.

    Raises:
        ConflictError: conflicts stand in both sides, or those of a side cannot be settled.
        OnnxJsonError: see `onnxjson.merging.merge.merge`.
    """
    if not ours.is_clean and not theirs.is_clean:
        raise ConflictError("both sides hold conflicts of other merges", (*ours.conflicts, *theirs.conflicts))
    sides = _settlements(ours), _settlements(theirs)
    results = [merge(*each) for each in product(_bases(base), *sides)]
    for result in results:
        if all(_covers(result, other) for other in results):
            return result
    if ours.is_clean and theirs.is_clean:
        return merge(None, ours.model, theirs.model)
    return _all_that_may_be(results, "theirs" if ours.is_clean else "ours")


def _settlements(found: Merged) -> list[Model]:
    """The models that a text with conflicts may stand for."""
    if found.is_clean:
        return [found.model]
    # A conflict of the whole model has whatever is there; anywhere else the base is what both sides gave up.
    is_whole = any(not conflict.at and conflict.base is not None for conflict in found.conflicts)
    choices: tuple[Choice, ...] = (*_BOTH, "base") if is_whole else _BOTH
    return [resolve(found.model, found.conflicts, choice)[0] for choice in choices]


def _bases(base: Merged | None) -> list[Model | None]:
    if base is None:
        return [None]
    try:
        return list(_settlements(base))
    except OnnxJsonError:
        return [None]  # nobody can tell what both began with


def _covers(result: Merged, other: Merged) -> bool:
    """Whether all that one result has, whichever side is taken, is had from another one by taking sides."""
    if result is other:
        return True
    try:
        return all(_gives(result, resolve(other.model, other.conflicts, choice)[0]) for choice in _BOTH)
    except OnnxJsonError:
        return False


def _gives(result: Merged, wanted: Model) -> bool:
    """Whether some choice of sides makes a result the model that is wanted; what is found is compared as a whole."""
    if result.is_clean:
        return result.model == wanted
    if any(resolve(result.model, result.conflicts, choice)[0] == wanted for choice in _BOTH):
        return True
    theirs = {conflict.id for conflict in result.conflicts if _has(wanted, conflict)}
    model, left = resolve(result.model, result.conflicts, "theirs", theirs)
    return resolve(model, left, "ours")[0] == wanted


def _has(model: Model, conflict: Conflict) -> bool:
    """Whether a model has what theirs has in the slot of a conflict."""
    try:
        return bool(value_at(model, slot_at(conflict.at)) == conflict.theirs)
    except (AddressError, ValueError, IndexError, AttributeError):
        return conflict.theirs is None


def _all_that_may_be(results: Sequence[Merged], uncertain: Choice) -> Merged:
    """One conflict of the whole model, in which every value that a slot may have had is in one of three models.

    Args:
        results: over either value of the side in which conflicts stand.
        uncertain: that side.
    """
    certain: Choice = "ours" if uncertain == "theirs" else "theirs"
    first, last = results[0], results[-1]
    models = [
        resolve(each.model, each.conflicts, choice)[0]
        for each, choice in ((first, certain), (first, uncertain), (last, uncertain))
    ]
    return Merged(models[1], (Conflict("1", "", *models),))
