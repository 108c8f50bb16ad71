"""What a person calls the place of a node, and of several nodes."""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Final

from onnxjson.document import Node
from onnxjson.node_properties import scopes_of

_NAME_SCOPES: Final = "pkg.torch.onnx.name_scopes"
"""The key of metadata_props in which PyTorch's exporter keeps the scopes of a node, as a Python list of texts."""

_LONGEST: Final = 20_000
"""Characters of such a list that are read."""

_PARTS: Final = re.compile(r"[/.]+")


def scope_parts(node: Node) -> tuple[str, ...]:
    """The name scopes around a node, outermost first, none where nothing names any."""
    for entry in node.metadata_props:
        if entry.key == _NAME_SCOPES and entry.value and len(entry.value) <= _LONGEST:
            scopes = _listed(entry.value)
            if scopes:
                return _split(scopes[-2]) if len(scopes) > 1 else ()
    scopes = scopes_of(node)
    return _split(scopes[-1]) if scopes else ()


def _split(text: str) -> tuple[str, ...]:
    # A number belongs to the name before it: "layer.0" is one place, as torch writes it.
    parts: list[str] = []
    for part in _PARTS.split(text):
        if part.isdecimal() and parts:
            parts[-1] += f".{part}"
        elif part:
            parts.append(part)
    return tuple(parts)


def _listed(text: str) -> Sequence[str]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else ()


def called(node: Node) -> str:
    """The name of a node, else that of its first output."""
    return node.name or next(filter(None, node.output), "")


def place_of(node: Node) -> str:
    """Where a node is: its name scope, else its name, else its first output."""
    scopes = scope_parts(node)
    if scopes:
        return "/" + "/".join(scopes)
    return called(node)


def common_place(nodes: Iterable[Node]) -> str:
    """Where several nodes are: the innermost scope around all of them, else where the first is."""
    found = list(nodes)
    if not found:
        return ""
    if len(found) == 1:
        return place_of(found[0])
    common: tuple[str, ...] | None = None
    for node in found[:64]:
        scopes = scope_parts(node)
        if common is None:
            common = scopes
        while common != scopes[: len(common)]:
            common = common[:-1]
    return "/" + "/".join(common) if common else place_of(found[0])
