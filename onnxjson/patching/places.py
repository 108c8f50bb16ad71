"""Where something stands after a change: an address of the base -> an address of the target."""

from onnxjson.addresses import format_address, parse_address
from onnxjson.document import Attribute, Model, Record
from onnxjson.errors import AddressError
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, is_absent, plans
from onnxjson.patching.sequences import Positions


class Places:
    """Follows addresses through one tree of changes."""

    def __init__(self, fields: Fields | None) -> None:
        self._fields = fields
        self._positions: dict[int, Positions] = {}

    def after(self, address: str) -> str | None:
        """Where the element at `address` stands afterwards; None where it is gone.

        Raises:
            AddressError: `address` is none, or no model can have an element there.
        """
        passed: list[str] = []
        change: Change | None = self._fields
        message: type[Record] | None = Model
        plan: FieldPlan | None = None
        for name in parse_address(address):
            if plan is not None and plan.is_list:
                after, change = self._member(name, change, plan)
                if after is None:
                    return None
                passed.append(after)
                message, plan = plan.field.message, None
                continue
            if message is None:
                passed.append(name)
                if type(change) is Replace and not _has_item(change.new, name):
                    return None
                continue
            plan = _field(message, name, address)
            passed.append(name)
            change = change.changes.get(name) if type(change) is Fields else None
            message = None if plan is None or plan.is_list else plan.field.message
            if type(change) is Replace:
                repeated = plan is None or plan.field.repeated
                if (message is not None or not repeated) and is_absent(change.new, repeated=repeated):
                    return None
                if is_absent(change.old, repeated=repeated) and not repeated:
                    return None
        return format_address(passed)

    def _member(self, name: str, change: Change | None, plan: FieldPlan) -> tuple[str | None, Change | None]:
        """The segment of a member afterwards and what happens to it."""
        by_name = plan.is_named and not name.startswith("#")
        key: int | str = name if by_name else int(_digits(name.removeprefix("#") if plan.is_named else name))
        if type(change) is not Members:
            return name, None
        below = change.changes.get(key)
        if change.sequence is None:
            return name, below
        if isinstance(key, str):
            gone = any(isinstance(each, Attribute) and each.name == key for each in change.removed.values())
            return (None if gone else name), below
        known = self._positions.get(id(change))
        if known is None:
            known = self._positions[id(change)] = Positions(change.sequence)
        position = known.after(key)
        if position is None:
            return None, None
        return (f"#{position}" if plan.is_named else str(position)), below


def _field(message: type[Record], name: str, address: str) -> FieldPlan | None:
    plan = plans(message).get(name)
    if plan is None and name != "unknown_fields":
        raise AddressError(f'"{address}" is no address of a model: {message.__name__} has no field "{name}"')
    return plan


def _digits(text: str) -> str:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise AddressError(f'"{text}" is no position in a list')
    return text


def _has_item(value: object, position: str) -> bool:
    return isinstance(value, tuple) and position.isascii() and position.isdigit() and int(position) < len(value)
