"""Texts of a node for the clipboard: names, selector, address, JSON, and the command that adds such a node."""

import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.editing.declaration import Edit
from onnxjson.editing.nodes import AddNode
from onnxjson.editing.spelling import spell_line
from onnxjson.editing.values import attribute_values
from onnxjson.model.document import Node
from onnxjson.model.index import Index, NodeRef
from onnxjson_tui.names.editable_names import node_selector

LIMIT: Final = 74_000
"""Maximum bytes of base64 that terminals accept for the clipboard (OSC 52)."""


class Copy(NamedTuple):
    """A text that can be copied."""

    key: str
    label: str
    text: str
    """The original text; escape it before showing it."""


def copies_of(index: Index, ref: NodeRef) -> list[Copy]:
    """Return the texts that can be copied for a node, in the order of the chooser."""
    node = ref.node
    found = [Copy("name", "name", node.name)] if node.name else []
    found += [Copy(f"output {slot}", f"output {slot}", name) for slot, name in enumerate(node.output) if name]
    found += [
        Copy("selector", "selector", node_selector(index, ref)),
        Copy("address", "address", f"@{ref.address}"),
        Copy("json", "JSON of the node", json_of(node)),
        Copy("command", "command that adds such a node", spell_line(command_of(ref))),
    ]
    return found


def json_of(node: Node) -> str:
    """Return a node as JSON, including big constants."""
    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    writer.node(node, 0)
    writer.flush()
    return b"".join(parts).decode()


def command_of(ref: NodeRef) -> Edit:
    """Return the edit that adds a copy of a node; its outputs need other names while the original exists."""
    node = ref.node
    return AddNode(
        op_type=node.op_type or "?",
        input=node.input,
        output=node.output,
        attribute=attribute_values(node) or {},
        name=node.name or None,
        domain=node.domain or None,
        graph=ref.scope.address,
    )


def fits_clipboard(text: str) -> bool:
    """Whether a text is short enough for the clipboard of a terminal."""
    return len(text.encode("utf-8", "surrogateescape")) * 4 // 3 + 4 <= LIMIT


def write_file(text: str) -> Path:
    """Write a text that is too long for the clipboard to a new private file; return its path."""
    handle, name = tempfile.mkstemp(prefix="onnxjson-copy-", suffix=".txt")
    with os.fdopen(handle, "wb") as opened:
        opened.write(text.encode("utf-8", "surrogateescape"))
    return Path(name)
