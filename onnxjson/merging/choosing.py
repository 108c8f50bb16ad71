"""Whether a conflicted merge leaves a way out: a side that was sound, chosen for all conflicts, gives a sound model."""

from collections.abc import Iterator, Sequence

from onnxjson.checking import Finding
from onnxjson.conflicts import Conflict
from onnxjson.document import Model
from onnxjson.errors import ConflictError
from onnxjson.merging.resolving import Choice, resolve
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
    known = {name for each in (base, ours, theirs) for name in _interface(each)}
    choices: tuple[tuple[Choice, Model], ...] = (("ours", ours), ("theirs", theirs))
    for choice, side in choices:
        try:
            chosen, _ = resolve(model, conflicts, choice)
        except ConflictError:
            return False
        if not known.issuperset(_interface(chosen)):
            return False  # a name with a number behind it, by which nobody outside knows the value
        if any(mistakes(chosen)) and not any(mistakes(side)):
            return False
    return True


def _interface(model: Model | None) -> Iterator[str | None]:
    graph = None if model is None else model.graph
    return (each.name for each in (*graph.input, *graph.output)) if graph is not None else iter(())
