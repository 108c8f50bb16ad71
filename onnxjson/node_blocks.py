"""Some nodes of a model as a text of their own: written, read, and put back in the place of those they came from.

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

Each block stands under the address of its node and is written as in a whole text (docs/format.md), but with its
metadata within it and big tensors as their SHA-256. A list of blocks puts several nodes in the place of the one; an
empty list, or no entry at all, deletes it. Nodes that stand directly one after another in one graph are one block, a
list under a range such as ``/graph/node/1-3``, first and last one: the list as it comes back takes their place.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.addresses import attribute_segments, escape, parse_address, resolve
from onnxjson.canonical.payload_forms import Weights
from onnxjson.canonical.strings import string
from onnxjson.canonical.writer import TextWriter
from onnxjson.display import visible
from onnxjson.document import Attribute, Model, Node, Record
from onnxjson.errors import DecodeError
from onnxjson.reading import tree as json_tree
from onnxjson.reading.context import ROOT, Context, Place
from onnxjson.reading.exact_reader import locate, summary
from onnxjson.reading.location import path_of
from onnxjson.reading.model import read_node
from onnxjson.reading.positions import Key, Lines, find
from onnxjson.reading.scan import Scan, scan
from onnxjson.reading.skimming import skim
from onnxjson.reading.tree import Tree

FORMAT: Final = "onnxjson-nodes/1"
"""What the key "format" of such a text says."""


_RANGE: Final = re.compile(r"(.*/)(0|[1-9][0-9]{0,17})-([1-9][0-9]{0,17})", re.ASCII | re.DOTALL)
"""The address of the first one of several nodes, and the position of the last one."""


class Block(NamedTuple):
    """One node that was read."""

    node: Node
    path: tuple[Key, ...]
    """Keys and positions that lead to it in the text."""


def outermost(addresses: Iterable[str]) -> tuple[str, ...]:
    """The addresses that do not lie inside another one of them: a block holds the subgraphs of its node."""
    given = dict.fromkeys(addresses)
    return tuple([address for address in given if not _has_outer(address, given)])


def _has_outer(address: str, given: Collection[str]) -> bool:
    segments = address.split("/")
    return any("/".join(segments[:length]) in given for length in range(1, len(segments)))


def block_addresses(addresses: Iterable[str]) -> tuple[str, ...]:
    """Where blocks for some nodes stand: of those that follow each other in a graph a range, of others the address.

    Args:
        addresses: of nodes, or what this gave before, in any order; those inside others are left out.
    """
    graphs: dict[str, list[int]] = {}
    for address in outermost([each for given in addresses for each in node_addresses(given)]):
        graph, _, position = address.rpartition("/")
        graphs.setdefault(graph, []).append(int(position))
    return tuple([_run(graph, *each) for graph, positions in graphs.items() for each in _runs(positions)])


def _runs(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last one of positions that follow each other."""
    first = last = -2
    for position in sorted(positions):
        if position != last + 1:
            if last >= 0:
                yield first, last
            first = position
        last = position
    yield first, last


def _run(graph: str, first: int, last: int) -> str:
    return f"{graph}/{first}" if first == last else f"{graph}/{first}-{last}"


def is_range(address: str) -> bool:
    """Whether a block is that of several nodes."""
    return _RANGE.fullmatch(address) is not None


def node_addresses(address: str) -> list[str]:
    """The addresses of the nodes of a block, one for each."""
    found = _RANGE.fullmatch(address)
    if found is None:
        return [address]
    return [f"{found[1]}{position}" for position in range(int(found[2]), int(found[3]) + 1)]


def write_blocks(model: Model, addresses: Sequence[str], remark: str) -> bytes:
    """The text of the nodes at some addresses, UTF-8.

    Args:
        model: the model.
        addresses: of blocks, see `block_addresses`, none inside another.
        remark: what a comment in the first line says, of any characters.

    Raises:
        AddressError: nothing stands at an address.
        ChangedUnderneathError, FileError: a payload's file cannot be read any more.
    """
    written = _written([(each, node_addresses(each), is_range(each)) for each in addresses], model)
    return b"// " + visible(remark, None).encode() + b"\n" + written


def compared_blocks(before: Model, after: Model, places: Mapping[str, Sequence[str]]) -> tuple[bytes, bytes]:
    """The nodes of some blocks as they are in one model and in another, both written alike, without a remark.

    Args:
        before: the model in which the blocks stand.
        after: the model with others in their place.
        places: the address of each block -> those of the nodes of `after` that stand in its place.
    """
    former, latter = [], []
    for block, nodes in places.items():
        # One form for both: a line that is only indented otherwise is no change.
        is_list = is_range(block) or len(nodes) != 1
        former.append((block, node_addresses(block), is_list))
        latter.append((block, nodes, is_list))
    return _written(former, before), _written(latter, after)


def _written(blocks: Iterable[tuple[str, Sequence[str], bool]], model: Model) -> bytes:
    """Blocks as a document: the key of each, the addresses of its nodes, whether they are a list."""
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
    """The nodes that are to stand at each of the addresses, which are those of blocks.

    Raises:
        DecodeError: the text is no such document; `findings` has all reasons, in the order of the text.
    """
    context = Context()
    context.has_digests = True
    is_clean, tree = json_tree.parse(text)
    scanned: Scan | None = None
    if not is_clean:
        scanned = scan(text)
        tree = scanned.tree
    blocks: dict[str, tuple[Block, ...]] = {}
    if scanned is None or (scanned.is_sound and tree is not json_tree.UNREADABLE):
        blocks = _read(tree, addresses, context)
    if not context.remarks and (scanned is None or not scanned.mistakes):
        return blocks
    if scanned is None:
        decoded = text.decode("utf-8")
        scanned = Scan(decoded, root=skim(decoded, [remark.place.path for remark in context.remarks]))
    findings = locate(scanned, context.remarks, file)
    raise DecodeError(summary(findings), findings)


def _read(tree: Tree, addresses: Collection[str], context: Context) -> dict[str, tuple[Block, ...]]:
    if not isinstance(tree, dict):
        context.wrong_type(tree, ROOT, f'a document, {{"format": "{FORMAT}", ...}},')
        return {}
    if "format" not in tree:
        message = "the document does not say its format"
        context.error(ROOT, "no-format", message, f'add the line "format": "{FORMAT}",')
        return {}
    if tree["format"] != FORMAT:
        message = "these are not the blocks of nodes that were handed out"
        context.error(ROOT.at("format"), "other-format", message, f'the line is "format": "{FORMAT}",')
        return {}
    found: dict[str, tuple[Block, ...]] = dict.fromkeys(addresses, ())
    for key, value in tree.items():
        if key == "format":
            continue
        if key not in found:
            context.unknown_key(key, ROOT.at(key), found, "the document")
            continue
        members = enumerate(value) if isinstance(value, list) else [(None, value)]
        blocks = [_read_block(member, key, position, context) for position, member in members]
        found[key] = tuple([block for block in blocks if block is not None])
    return found


def _read_block(tree: Tree, key: str, position: int | None, context: Context) -> Block | None:
    path: tuple[Key, ...] = (key,) if position is None else (key, position)
    place = Place.of(*path)
    try:
        node = read_node(tree, place, context)
    except RecursionError:
        message = "objects and lists nest too deep for the calling program's stack"
        context.error(place, "nesting-too-deep", message, "raise sys.setrecursionlimit")
        return None
    return None if node is None else Block(node, path)


class Replaced(NamedTuple):
    """A model with other nodes in it."""

    model: Model
    places: dict[str, tuple[Key, ...]]
    """The address of each node that was put in -> the path to its block in the text."""

    def by_block(self) -> dict[Key, list[str]]:
        """The key of a block in the text -> the addresses of the nodes that were put in from it."""
        found: dict[Key, list[str]] = {}
        for address, path in self.places.items():
            found.setdefault(path[0], []).append(address)
        return found

    def locate(self, text: bytes, addresses: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Line and column in the text, from 1, of the addresses of the model that lie in its blocks."""
        is_clean, tree = json_tree.parse(text)
        paths = {address: path for address in addresses if (path := self._path(tree, address))} if is_clean else {}
        decoded = text.decode("utf-8", "replace")
        root = skim(decoded, paths.values()) if paths else 0
        lines = Lines(decoded)
        return {address: lines.place(find(root, path)) for address, path in paths.items()}

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
    """`model` with the blocks in the place of the nodes at their addresses, or of all nodes of their ranges.

    Everything else is shared with it.

    Raises:
        AddressError: nothing stands at an address.
    """
    wanted: dict[str, Any] = {}
    for address, put_in in blocks.items():
        first, *others = node_addresses(address)
        # Where the last one is there, so are those before it.
        resolve(model, others[-1] if others else first)
        *outer, last = parse_address(first)
        level = wanted
        for segment in outer:
            level = level.setdefault(segment, {})
        level[last] = put_in
        for each in others:
            level[each.rpartition("/")[2]] = ()
    places: dict[str, tuple[Key, ...]] = {}

    def changed(value: Any, below: Mapping[str, Any], address: str) -> Any:
        if isinstance(value, Record):
            fields = {name: changed(getattr(value, name), each, f"{address}/{name}") for name, each in below.items()}
            return msgspec.structs.replace(value, **fields)
        return tuple(_members(value, below, address, changed, places))

    return Replaced(changed(model, wanted, "") if wanted else model, places)


def _members(
    members: Sequence[Any],
    below: Mapping[str, Any],
    address: str,
    changed: Callable[[Any, Mapping[str, Any], str], Any],
    places: dict[str, tuple[Key, ...]],
) -> Iterator[Any]:
    """The members of a list as they are to be; `address` is that of the list in the new model."""
    are_attributes = bool(members) and isinstance(members[0], Attribute)
    segments = attribute_segments(members) if are_attributes else [str(at) for at in range(len(members))]
    count = 0
    for segment, member in zip(segments, members, strict=True):
        wanted = below.get(segment)
        if isinstance(wanted, Mapping):
            yield changed(member, wanted, f"{address}/{escape(segment) if are_attributes else count}")
            count += 1
        elif wanted is None:
            yield member
            count += 1
        else:
            for block in wanted:
                places[f"{address}/{count}"] = block.path
                yield block.node
                count += 1
