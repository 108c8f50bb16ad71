"""Merges of models that hold conflicts of another merge.

Where histories cross, git merges the common ancestors first, and the result, with its conflicts, is the base. In such a
base a slot in conflict has one value or the other. So the merge is done with each of them, and a result counts if it
holds for both: anything else would be a choice that the user did not make.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

from onnxjson.merging.merge import Merged, merge
from onnxjson.merging.resolving import Choice, resolve
from onnxjson.model.conflicts import slot_at, value_at
from onnxjson.model.document import Model
from onnxjson.model.errors import AddressError, Conflict, ConflictError, OnnxJsonError

_BOTH: Final[tuple[Choice, ...]] = ("ours", "theirs")


def merge_uncertain(base: Merged | None, ours: Merged, theirs: Merged) -> Merged:
    """Merge two changes of a model, where each of the three models may hold conflicts.

    Args:
        base: the common ancestor; None if there is none.
        ours: one side.
        theirs: the other side. Only one of both may hold conflicts.

    Raises:
        ConflictError: both sides hold conflicts, or those of a side cannot be resolved.
        OnnxJsonError: see `onnxjson.merging.merge.merge`.
    """
    if not ours.is_clean and not theirs.is_clean:
        raise ConflictError("both sides hold conflicts of other merges", (*ours.conflicts, *theirs.conflicts))
    sides = _resolutions(ours), _resolutions(theirs)
    results = [merge(*each) for each in product(_bases(base), *sides)]
    for result in results:
        if all(_covers(result, other) for other in results):
            return result
    if ours.is_clean and theirs.is_clean:
        return merge(None, ours.model, theirs.model)
    return _all_possible(results, "theirs" if ours.is_clean else "ours")


def _resolutions(found: Merged) -> list[Model]:
    """The models that a text with conflicts may represent."""
    if found.is_clean:
        return [found.model]
    # In a conflict of the whole model the base is possible; in any other both sides have replaced it.
    is_whole = any(not conflict.at and conflict.base is not None for conflict in found.conflicts)
    choices: tuple[Choice, ...] = (*_BOTH, "base") if is_whole else _BOTH
    return [resolve(found.model, found.conflicts, choice)[0] for choice in choices]


def _bases(base: Merged | None) -> list[Model | None]:
    if base is None:
        return [None]
    try:
        return list(_resolutions(base))
    except OnnxJsonError:
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
    """Whether a model has the value of theirs in the slot of a conflict."""
    try:
        return bool(value_at(model, slot_at(conflict.at)) == conflict.theirs)
    except (AddressError, ValueError, IndexError, AttributeError):
        return conflict.theirs is None


def _all_possible(results: Sequence[Merged], uncertain: Choice) -> Merged:
    """Return one conflict of the whole model whose three models hold every possible value of a slot.

    Args:
        results: the results for either value of the side with conflicts.
        uncertain: that side.
    """
    certain: Choice = "ours" if uncertain == "theirs" else "theirs"
    first, last = results[0], results[-1]
    models = [
        resolve(each.model, each.conflicts, choice)[0]
        for each, choice in ((first, certain), (first, uncertain), (last, uncertain))
    ]
    return Merged(models[1], (Conflict("1", "", *models),))
