"""Export of the edits of a session as a Python rewrite script, which can be changed and run on other models."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from onnxjson.editing.declaration import Edit


def python_script(edits: Sequence[Edit]) -> str:
    """Return the source of a module with ``rewrite(model)``, for ``onnxjson apply``."""
    steps = "".join([f"        {_call(edit)},\n" for edit in edits])
    listed = f"[\n{steps}    ]" if steps else "[]"
    return (
        '"""Edits of a session of onnxjson tui: onnxjson apply THIS_FILE MODEL -o OUTPUT applies them."""\n\n'
        "from onnxjson import edits\n\n\n"
        "def rewrite(model):\n"
        '    """Return the edits in order; all of them are applied, or none."""\n'
        f"    return {listed}\n"
    )


def _call(edit: Edit) -> str:
    given = [
        f"{field.name}={_value(value)}"
        for field in msgspec.structs.fields(edit)
        if (value := getattr(edit, field.name)) != field.default or field.required
    ]
    return f"edits.{type(edit).__name__}({', '.join(given)})"


def _value(value: Any) -> str:
    """Return a Python literal for exactly this value."""
    match value:
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case Mapping():
            return "{" + ", ".join([f"{_value(key)}: {_value(each)}" for key, each in value.items()]) + "}"
        case tuple():
            return "(" + "".join([f"{_value(each)}, " for each in value]).rstrip(" ") + ")"
        case list():
            return "[" + ", ".join([_value(each) for each in value]) + "]"
    return ascii(value)
