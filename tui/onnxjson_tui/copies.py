"""What can be copied of a node: its names, words that find it, its JSON, the command that would make it."""

import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.canonical.writer import TextWriter
from onnxjson.document import Node
from onnxjson.edits.declaration import Edit
from onnxjson.edits.nodes import AddNode
from onnxjson.edits.spelling import spell_line
from onnxjson.edits.values import attribute_values
from onnxjson.index import Index, NodeRef
from onnxjson_tui.forms.words import node_words

LIMIT: Final = 74_000
"""Bytes of base64 that terminals take from a program for their clipboard (OSC 52)."""


class Copy(NamedTuple):
    """One thing to copy."""

    key: str
    label: str
    text: str
    """As the model has it: not to be shown as it is."""


def copies_of(index: Index, ref: NodeRef) -> list[Copy]:
    """What can be copied of a node, in the order in which it is offered."""
    node = ref.node
    found = [Copy("name", "name", node.name)] if node.name else []
    found += [Copy(f"output {slot}", f"output {slot}", name) for slot, name in enumerate(node.output) if name]
    found += [
        Copy("selector", "words that find it", node_words(index, ref)),
        Copy("address", "address", f"@{ref.address}"),
        Copy("json", "JSON of the node", json_of(node)),
        Copy("command", "command that adds such a node", spell_line(command_of(ref))),
    ]
    return found


def json_of(node: Node) -> str:
    """A node as a text has it; big constants in it, too."""
    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    writer.node(node, 0)
    writer.flush()
    return b"".join(parts).decode()


def command_of(ref: NodeRef) -> Edit:
    """The edit that adds a node like this one; its outputs need other names as long as this one is there."""
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
    """Whether terminals can be sent a text for their clipboard."""
    return len(text.encode("utf-8", "surrogateescape")) * 4 // 3 + 4 <= LIMIT


def write_file(text: str) -> Path:
    """Writes what is too big for a clipboard to a new private file, and says where it is."""
    handle, name = tempfile.mkstemp(prefix="onnxjson-copy-", suffix=".txt")
    with os.fdopen(handle, "wb") as opened:
        opened.write(text.encode("utf-8", "surrogateescape"))
    return Path(name)
