"""Whether a conflicted merge leaves a way out: a side that was sound, chosen for all conflicts, gives a sound model."""

from collections.abc import Iterator, Sequence

from onnxjson.checking import Finding
from onnxjson.conflicts import Choice, Conflict
from onnxjson.document import Model
from onnxjson.errors import ConflictError
from onnxjson.merging.interface import interface_names
from onnxjson.merging.resolving import resolve
from onnxjson.structure import check_structure


def mistakes(model: Model) -> Iterator[Finding]:
    """What is wrong with the structure of a model, a missing opset among it."""
    return (each for each in check_structure(model) if each.severity == "error" or each.code == "missing-opset")


def leaves_a_way_out(
    model: Model, conflicts: Sequence[Conflict], base: Model | None, ours: Model, theirs: Model
) -> bool:
    """Whether all conflicts can be settled by ours, and by theirs, and the model is sound where that side is.

    Args:
        model: merged, with what ours has in the slots of the conflicts.
        conflicts: all of them.
        base: what both sides began with, as it was given.
        ours: one side.
        theirs: the other one.
    """
    known = {name for each in (base, ours, theirs) for name in interface_names(each)}
    choices: tuple[tuple[Choice, Model], ...] = (("ours", ours), ("theirs", theirs))
    for choice, side in choices:
        try:
            chosen, _ = resolve(model, conflicts, choice)
        except ConflictError:
            return False
        if not known.issuperset(interface_names(chosen)):
            return False  # a name with a number behind it, by which nobody outside knows the value
        if any(mistakes(chosen)) and not any(mistakes(side)):
            return False
    return True
