"""Blocks: some nodes of a model as a separate text, which can be edited, read and put back into the model.

::

    {
    "format": "onnxjson-nodes/1",
    "/graph/node/1":
      {"op_type": "LeakyRelu", "output": ["active"],
       "input": ["features"],
       "name": "/activation",
       "attribute": {
         "alpha": 0.01
       }}
    }

The key of a block is the address of its node. The node is written as in a whole text (docs/format.md), but with its
metadata within it and big tensors as their SHA-256. A list of blocks replaces the node by several; an empty list, or no
entry at all, deletes it. Consecutive nodes of one graph are one block: a list under a range such as
``/graph/node/1-3``, first and last one. The list that is read replaces all of them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.codecs.canonical_values import string
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.reading.context import ROOT, Context, Place, has_format
from onnxjson.codecs.reading.exact_reader import path_of, positions, read_document
from onnxjson.codecs.reading.model import read_node
from onnxjson.codecs.reading.tree import Key, Tree
from onnxjson.codecs.tensor_text import Weights
from onnxjson.model.addresses import attribute_segments, escape, parse_address, resolve
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Model, Node, Record
from onnxjson.model.errors import OnnxJsonError

FORMAT: Final = "onnxjson-nodes/1"
"""The value of the key "format"."""

_RANGE: Final = re.compile(r"(.*/)(0|[1-9][0-9]{0,17})-([1-9][0-9]{0,17})", re.ASCII | re.DOTALL)
"""The address of the first one of several nodes, and the position of the last one."""


class Block(NamedTuple):
    """One node that was read."""

    node: Node
    path: tuple[Key, ...]
    """Path to it in the text."""


def outermost(addresses: Iterable[str]) -> tuple[str, ...]:
    """The addresses that are not inside another one of them: a block includes the subgraphs of its node."""
    given = dict.fromkeys(addresses)
    return tuple([address for address in given if not _has_outer(address, given)])


def _has_outer(address: str, given: Collection[str]) -> bool:
    segments = address.split("/")
    return any("/".join(segments[:length]) in given for length in range(1, len(segments)))


def block_addresses(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses of blocks for some nodes: a range for consecutive nodes of a graph, else that of the node.

    The addresses may be of nodes or of blocks, in any order; those inside others are left out.
    """
    graphs: dict[str, list[int]] = {}
    for address in outermost([each for given in addresses for each in node_addresses(given)]):
        graph, _, position = address.rpartition("/")
        graphs.setdefault(graph, []).append(int(position))
    return tuple([_run(graph, *each) for graph, positions in graphs.items() for each in runs(positions)])


def runs(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of consecutive positions."""
    for _, run in groupby(enumerate(sorted(positions)), lambda each: each[1] - each[0]):
        members = [position for _, position in run]
        yield members[0], members[-1]


def _run(graph: str, first: int, last: int) -> str:
    return f"{graph}/{first}" if first == last else f"{graph}/{first}-{last}"


def is_range(address: str) -> bool:
    """Whether an address is that of a block of several nodes."""
    return _RANGE.fullmatch(address) is not None


def node_addresses(address: str) -> list[str]:
    """The addresses of the nodes of a block."""
    block_range = _RANGE.fullmatch(address)
    if block_range is None:
        return [address]
    return [f"{block_range[1]}{position}" for position in range(int(block_range[2]), int(block_range[3]) + 1)]


def write_blocks(model: Model, addresses: Sequence[str], remark: str) -> bytes:
    """Write the text of some blocks (see `block_addresses`), not inside one another, after a comment, `remark`."""
    written = _written([(each, node_addresses(each), is_range(each)) for each in addresses], model)
    return b"// " + visible(remark, None).encode() + b"\n" + written


def compared_blocks(before: Model, after: Model, places: Mapping[str, Sequence[str]]) -> tuple[bytes, bytes]:
    """Write the nodes of some blocks as two models have them, in the same form and without a remark.

    `places` has the address of each block in `before` -> the addresses in `after` of the nodes that replace it.
    """
    former, latter = [], []
    for block, nodes in places.items():
        # One form for both: a line that differs only in its indentation is not a change.
        is_list = is_range(block) or len(nodes) != 1
        former.append((block, node_addresses(block), is_list))
        latter.append((block, nodes, is_list))
    return _written(former, before), _written(latter, after)


def _written(blocks: Iterable[tuple[str, Sequence[str], bool]], model: Model) -> bytes:
    """Write a document of blocks, each given by its key, the addresses of its nodes, and whether they are a list."""
    parts = [b'{\n"format": "' + FORMAT.encode() + b'"']
    writer = TextWriter(parts.append, Weights("digest"))
    for key, addresses, is_list in blocks:
        parts.append(b",\n" + string(key) + (b": [\n  " if is_list else b":\n  "))
        for number, node in enumerate([resolve(model, each) for each in addresses]):
            assert isinstance(node, Node), key
            parts.append(b",\n  " if number else b"")
            writer.node(node, 2)
        parts.append(b"\n]" if is_list else b"")
    parts.append(b"\n}\n")
    return b"".join(parts)


def read_blocks(text: bytes, addresses: Collection[str], *, file: str = "") -> dict[str, tuple[Block, ...]]:
    """Read the nodes that replace each block at `addresses`; none for a block that is not in the text."""
    context = Context()
    context.has_digests = True
    return read_document(text, lambda tree, context: _read(tree, addresses, context), context, file=file)[0]


def canonical_node(text: str, indent: int) -> str | None:
    """Return the text of one node in canonical form, with unchanged weights; None if it is not valid by itself."""
    try:
        blocks = read_blocks(f'{{"format": "{FORMAT}", "/": {text}}}'.encode(), ["/"])["/"]
    except (OnnxJsonError, UnicodeError):
        return None
    parts: list[bytes] = []
    for block in blocks:
        TextWriter(parts.append, Weights("keep", has_digests=True)).node(block.node, indent)
    return b"".join(parts).decode("utf-8", "surrogatepass") or None


def _read(tree: Tree, addresses: Collection[str], context: Context) -> dict[str, tuple[Block, ...]] | None:
    if not has_format(tree, FORMAT, "a document of blocks", context):
        return None
    blocks: dict[str, tuple[Block, ...]] = dict.fromkeys(addresses, ())
    for key, value in tree.items():
        if key == "format":
            continue
        if key not in blocks:
            context.unknown_key(key, ROOT.at(key), blocks, "the document")
            continue
        members = enumerate(value) if isinstance(value, list) else [(None, value)]
        paths: list[tuple[tuple[Key, ...], Tree]] = [
            ((key,) if position is None else (key, position), member) for position, member in members
        ]
        nodes = [(read_node(member, Place.of(*path), context), path) for path, member in paths]
        blocks[key] = tuple([Block(node, path) for node, path in nodes if node is not None])
    return blocks


class Replaced(NamedTuple):
    """A model in which nodes were replaced."""

    model: Model
    places: dict[str, tuple[Key, ...]]
    """The address of each new node -> the path to it in the text."""

    def by_block(self) -> dict[Key, list[str]]:
        """The key of each block in the text -> the addresses of its new nodes."""
        addresses: dict[Key, list[str]] = {}
        for address, path in self.places.items():
            addresses.setdefault(path[0], []).append(address)
        return addresses

    def locate(self, text: bytes, addresses: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Line and column in the text, from 1, of those addresses of the model that are inside its blocks."""
        return positions(text, lambda tree: {each: path for each in addresses if (path := self._path(tree, each))})

    def _path(self, tree: Tree, address: str) -> tuple[Key, ...]:
        segments = address.split("/")
        for length in range(len(segments), 0, -1):
            start = self.places.get("/".join(segments[:length]))
            if start is not None:
                for key in start:
                    tree = tree[key]  # type: ignore[index]
                rest = "".join(f"/{segment}" for segment in segments[length:])
                return (*start, *path_of(tree, rest))
        return ()


def put_back(model: Model, blocks: Mapping[str, Sequence[Block]]) -> Replaced:
    """Replace the nodes of blocks in a model; everything else is shared with it."""
    wanted: dict[str, Any] = {}
    for address, replacement in blocks.items():
        first, *others = node_addresses(address)
        # If the last node of a range exists, so do the others.
        resolve(model, others[-1] if others else first)
        *outer, last = parse_address(first)
        level = wanted
        for segment in outer:
            level = level.setdefault(segment, {})
        level[last] = replacement
        for each in others:
            level[each.rpartition("/")[2]] = ()
    places: dict[str, tuple[Key, ...]] = {}

    def rebuild(value: Any, below: Mapping[str, Any], address: str) -> Any:
        if isinstance(value, Record):
            fields = {name: rebuild(getattr(value, name), each, f"{address}/{name}") for name, each in below.items()}
            return msgspec.structs.replace(value, **fields)
        return tuple(_members(value, below, address, rebuild, places))

    return Replaced(rebuild(model, wanted, "") if wanted else model, places)


def _members(
    members: Sequence[Any],
    below: Mapping[str, Any],
    address: str,
    rebuild: Callable[[Any, Mapping[str, Any], str], Any],
    places: dict[str, tuple[Key, ...]],
) -> Iterator[Any]:
    are_attributes = bool(members) and isinstance(members[0], Attribute)
    segments = attribute_segments(members) if are_attributes else [str(at) for at in range(len(members))]
    count = 0
    for segment, member in zip(segments, members, strict=True):
        wanted = below.get(segment)
        if isinstance(wanted, Mapping):
            yield rebuild(member, wanted, f"{address}/{escape(segment) if are_attributes else count}")
            count += 1
        elif wanted is None:
            yield member
            count += 1
        else:
            for block in wanted:
                places[f"{address}/{count}"] = block.path
                yield block.node
                count += 1
