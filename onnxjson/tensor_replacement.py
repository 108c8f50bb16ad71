"""A model with other tensors in it, wherever tensors can stand; everything else is shared with the model it came from.

That is in initializers, sparse tensors and attributes, in the main graph, in subgraphs, functions and training: the
field table says where, so a field that a later release of onnx adds is not forgotten.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from onnxjson.document import Model, Record, Tensor
from onnxjson.walking import fields_leading_to, walk


def replace_tensors(model: Model, change: Callable[[Tensor], Tensor]) -> Model:
    """`model` with `change` applied to its tensors.

    Args:
        model: stays as it is.
        change: gives the tensor itself where nothing changes. It is asked in the order of `walk`, once for a record
            that stands at several places.

    Returns:
        `model` itself where no tensor changed, else a new record that shares all records above which none did.

    Raises:
        Exception: whatever `change` raises.
    """
    changed: dict[int, Record] = {}
    asked: set[int] = set()
    for tensor in walk(model, Tensor):
        # Identity stands for the record, and is stable because the model keeps all of them alive.
        if id(tensor) not in asked:
            asked.add(id(tensor))
            new = change(tensor)
            if new is not tensor:
                changed[id(tensor)] = new
    return _rebuilt(model, changed) if changed else model


def _rebuilt(model: Model, changed: dict[int, Record]) -> Model:
    """The inner before the outer, without a stack: a subgraph may lie deeper than Python calls do."""
    records: list[Record] = [model]
    for record in records:  # grows while it is walked
        for name, repeated in fields_leading_to(type(record), Tensor):
            value = getattr(record, name)
            if repeated:
                records += value
            elif value is not None:
                records.append(value)
    for record in reversed(records):
        if id(record) not in changed and (updates := _updates(record, changed)):
            changed[id(record)] = msgspec.structs.replace(record, **updates)
    rebuilt = changed[id(model)]
    assert isinstance(rebuilt, Model)
    return rebuilt


def _updates(record: Record, changed: dict[int, Record]) -> dict[str, Any]:
    """The fields of a record that hold something changed, as they are now."""
    updates: dict[str, Any] = {}
    for name, repeated in fields_leading_to(type(record), Tensor):
        value = getattr(record, name)
        if not repeated:
            if id(value) in changed:
                updates[name] = changed[id(value)]
        elif any([id(item) in changed for item in value]):
            updates[name] = tuple([changed.get(id(item), item) for item in value])
    return updates
