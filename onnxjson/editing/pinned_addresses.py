"""Addresses with a digest of their element, ``@/graph/node/3#5f0c2a9be1d34c77``: they never mean another element.

A script that selects by position would silently edit whatever is there in another model. With the digest it is refused,
unless the element is the same: a tensor with the same dtype, dims and values, a node with the same text. Of a graph or
function, the digest is that of the node that contains it, or of its name, since edits change what is inside.
"""

import hashlib
import re
from typing import Final

from msgspec.structs import replace

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights
from onnxjson.model.addresses import find_element
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Graph, Model, Node, Record, Tensor
from onnxjson.model.errors import SelectorError

PINNED: Final = re.compile(r"(@?/.+)#([0-9a-f]{16})", re.DOTALL)
"""An address with a digest."""


def unpinned(model: Model, selector: str) -> str:
    """Return an address without its digest, and any other selector as it is.

    Raises:
        SelectorError: the element at the address has another digest.
    """
    match = PINNED.fullmatch(selector)
    if match is None:
        return selector
    if digest(model, match[1].removeprefix("@")) != match[2]:
        raise SelectorError(
            f"{visible(match[1], 200)} is no longer the element that it was when this was written; nothing is changed"
        )
    return match[1]


def digest(model: Model, address: str) -> str:
    """Return the digest of the element at an address.

    Raises:
        AddressError: there is none.
    """
    element = find_element(model, address).value
    while not isinstance(element, Record):
        address = address.rpartition("/")[0]
        element = find_element(model, address).value
    if isinstance(element, Graph):
        owner, _, rest = address.rpartition("/attribute/")
        node = find_element(model, owner).value if rest else None
        element = replace(node, attribute=()) if isinstance(node, Node) else Node()
    elif isinstance(element, Function):
        element = Node(op_type=element.name, domain=element.domain)
    parts: list[bytes] = []
    writer = TextWriter(parts.append, Weights("digest"))
    if isinstance(element, Node):
        writer.node(element, 0)
    elif isinstance(element, Tensor):
        writer.tensor(element, 0, is_item=True)
    else:
        writer.exact(element, 0)
    writer.flush()
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
