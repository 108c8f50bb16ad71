"""Values that the base takes and that a side took away without a conflict, since the other side did not need them."""

from collections.abc import Sequence
from typing import Final

from onnxjson.conflicts import Conflict, slot_at
from onnxjson.display import visible
from onnxjson.document import Model, Node, Record
from onnxjson.errors import ConflictError
from onnxjson.index import Index
from onnxjson.merging.broken import Broken

_SHOWN: Final = 3


def require_makers(before: Model, model: Model, left: Sequence[Conflict]) -> None:
    """Do nothing where all that is taken is made, or can still be made by a choice.

    Args:
        before: the model before the base was taken.
        model: the model afterwards.
        left: conflicts that still stand in it.

    Raises:
        ConflictError: values are taken that nothing makes any more.
    """
    known = Broken(Index(before)).undefined.keys() | _made_by(left)
    missing = [name for name in Broken(Index(model)).undefined if name not in known]
    if missing:
        names = ", ".join([f'"{visible(name)}"' for name in missing[:_SHOWN]]) + (", ..." if missing[_SHOWN:] else "")
        raise ConflictError(
            f"the base takes {names}, which nothing makes any more: what made it went without a conflict; take --ours "
            "or --theirs, or all of the base: git checkout-index -f --stage=1 -- FILE"
        )


def _made_by(conflicts: Sequence[Conflict]) -> set[str]:
    """The names of values that may come with a choice."""
    making = [each for each in conflicts if not _is_input(each)]
    values = [getattr(each, side) for each in making for side in ("base", "ours", "theirs")]
    records = [one for each in values for one in (each if isinstance(each, tuple) else (each,))]
    outputs = {name for each in records if isinstance(each, Node) for name in each.output}
    named = [getattr(each, "name", None) for each in records if isinstance(each, Record) and not isinstance(each, Node)]
    return outputs | {each for each in (*named, *records) if isinstance(each, str)}


def _is_input(conflict: Conflict) -> bool:
    """Whether the conflict is about what a node takes, which makes nothing."""
    slot = slot_at(conflict.at)
    return slot.message is Node and slot.name == "input"
