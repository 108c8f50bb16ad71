"""Attributes that became inputs, and inputs that became attributes, as new versions of operators do it."""

from onnxjson.diffing.changes import Change, one_sided
from onnxjson.diffing.comparing import BASE, TARGET, Context, Slot
from onnxjson.diffing.events import Detail


def join_attributes(context: Context, plain: list[Slot]) -> list[Slot]:
    """Make such an input part of the change of the attribute; the inputs that are left."""
    left = []
    for slot in plain:
        change = None if slot.base is None else _attribute_change(slot)
        if change is None:
            left.append(slot)
            continue
        side, name = (BASE, slot.old) if slot.old else (TARGET, slot.new)
        constant = slot.graph.constant(side, name)
        new = slot.new if side == TARGET else None
        change.details = (*change.details, Detail(f"input {slot.place}", slot.old or None, new))
        change.pattern = change.pattern.removesuffix(", now an input").removesuffix(", was an input")
        change.pattern += ", now an input" if side == TARGET else ", was an input"
        context.ledger.take(change, [slot.address])
        if constant is not None and not constant.is_paired(side):
            context.ledger.claim(change, *one_sided(side, constant.address))
    return left


def _attribute_change(slot: Slot) -> Change | None:
    """The change of an attribute that went where this input came, or came where it went."""
    if bool(slot.old) == bool(slot.new) or slot.base is None:
        return None
    for change in slot.graph.changes.get(slot.base, ()):
        if change.kind != "attribute-changed" or len(change.details) == 0:
            continue
        detail = change.details[0]
        gone = detail.base is not None and not _is_given(detail.target)
        came = detail.target is not None and not _is_given(detail.base)
        if (gone and slot.new) or (came and slot.old):
            return change
    return None


def _is_given(text: str | None) -> bool:
    return text is not None and not text.endswith(" (default)")
