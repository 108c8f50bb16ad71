"""Records whose repr fits on a line."""

from collections.abc import Iterator
from typing import Any

from onnxjson.model.methods import TypeMethods

_LINE = 120
_WORD = 60


class Brief:
    """A record whose repr fits on a line: the fields that differ from their defaults, long ones as their lengths."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return one line, which ends in ``...`` where fields did not fit."""
        text = f"{type(self).__name__}("
        for count, (name, value) in enumerate(_different_fields(self)):
            word = f"{', ' * (count > 0)}{name}={_brief(value)}"
            if len(text) + len(word) > _LINE:
                return f"{text}{', ' * (count > 0)}...)"
            text += word
        return f"{text})"


def _different_fields(record: Any) -> Iterator[tuple[str, Any]]:
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    for number, name in enumerate(names, len(defaults) - len(names)):
        value = getattr(record, name)
        if number < 0 or value != defaults[number]:
            yield name, value


def _brief(value: object) -> str:
    if isinstance(value, tuple | list):
        items = ", ".join(map(_brief, value)) if len(value) <= 8 else ""
        if len(items) > _WORD or len(value) > 8:
            return f"<{len(value)} item{'s' * (len(value) > 1)}>"
        return f"({items}{',' * (len(value) == 1)})"
    if isinstance(value, TypeMethods):
        return str(value)
    shown = repr(value)
    if len(shown) <= _WORD:
        return shown
    return f"{type(value).__name__}(...)" if isinstance(value, Brief) else f"{shown[: _WORD - 20]}..."
