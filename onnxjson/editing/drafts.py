"""Drafts: texts that the user edits, kept until their changes are saved (`onnxjson.storage.store`).

::

    drafts/4f2a...86/                        a model, by its path
        01760000000000000000-4711-9f.../     one draft
            digits.onnx.json                 the text, as the editor leaves it
            .origin                          the model, and the original text's hash, as JSON

Addresses are positions. A draft of some nodes keeps their `Landmark`s, so that it never replaces other nodes that are
now at the same positions: `Recognition` finds the nodes again by the names of their outputs, else by their own names.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.codecs.node_blocks import block_addresses, is_range, node_addresses
from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model.addresses import format_address, parse_address, resolve
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Model, Node
from onnxjson.model.errors import AddressError, MissingInputError
from onnxjson.storage.files import stem_and_ending
from onnxjson.storage.identity import reading_error
from onnxjson.storage.saving import save_file, system_errors
from onnxjson.storage.store import Store, discard

Member = Node | Function

_ORIGIN: Final = ".origin"

STORE: Final = Store("state", "drafts", bytes_in_all=5 * 10**9, entries_a_key=100)

_FORGOTTEN_AFTER: Final = 24 * 3600
"""Age in seconds after which an unchanged draft is removed."""

_LONGEST_STEM: Final = 40
"""Characters of a file's name that are part of the name of its draft; each has at most four bytes, and names 255."""


class Landmark(msgspec.Struct, frozen=True):
    """Properties by which a node, or a function around it, is recognised."""

    operator: str
    """Operator of a node; domain and overload of a function."""
    name: str
    """"" if it has none."""
    made: tuple[str, ...]
    """Names of the outputs of a node; none for a function."""


NodePath = tuple[Landmark, ...]
"""Landmarks of the nodes and functions along an address, the outermost first; the last one is that of the node."""


def path_of_node(model: Model, address: str) -> NodePath:
    """Return the landmarks of the node at an address and of the nodes and functions around it.

    Raises:
        AddressError: there is no element at the address.
    """
    segments = parse_address(address)
    landmarks = []
    for length in range(2, len(segments) + 1):
        member = resolve(model, format_address(segments[:length]))
        if isinstance(member, Member):
            landmarks.append(_landmark(member))
    return tuple(landmarks)


def paths_of_nodes(model: Model, blocks: Iterable[str]) -> tuple[NodePath, ...]:
    """Return `path_of_node` of each node of some blocks (`onnxjson.codecs.node_blocks`), in their order.

    Raises:
        AddressError: there is no element at an address.
    """
    return tuple([path_of_node(model, address) for block in blocks for address in node_addresses(block)])


def _landmark(member: Member) -> Landmark:
    if isinstance(member, Function):
        return Landmark(f"{member.domain or ''}:{member.overload or ''}", member.name or "", ())
    return Landmark(member.op_type or "", member.name or "", tuple([name for name in member.output if name]))


class Recognition:
    """Finds nodes of a model by landmarks from another state of it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tables: dict[str, _Table] = {}

    def blocks(self, blocks: Sequence[str], ways: Sequence[NodePath]) -> dict[str, str]:
        """Return the current address of each block, by the old one; `ways` is the result of `paths_of_nodes` for them.

        Raises:
            AddressError: a node cannot be recognised, or the nodes of a block are no longer adjacent.
        """
        given = iter(ways)
        addresses: dict[str, str] = {}
        for block in blocks:
            moved = [self.address(each, way) for each, way in zip(node_addresses(block), given, strict=False)]
            if len(set(moved)) != len(node_addresses(block)):
                raise AddressError(_elsewhere(block))
            joined = block_addresses(moved) if is_range(block) else tuple(moved)
            if len(joined) != 1 or [*node_addresses(joined[0])] != moved:
                raise AddressError(f"{_elsewhere(block)}: they are no longer adjacent")
            addresses[block] = joined[0]
        if len(set(addresses.values())) != len(addresses):
            raise AddressError(_elsewhere(", ".join(addresses)))
        return addresses

    def address(self, address: str, way: NodePath) -> str:
        """Return the current address of a node.

        Raises:
            AddressError: it cannot be recognised.
        """
        segments = list(parse_address(address))
        given = iter(way)
        for place, segment in enumerate(segments):
            if place == 0 or not segment.isdigit():
                continue
            outer = format_address(segments[:place])
            try:
                members = resolve(self._model, outer)
            except AddressError as error:
                raise AddressError(f"{_elsewhere(address)}: {error}") from error
            if isinstance(members, tuple) and members and isinstance(members[0], Member):
                if outer not in self._tables:
                    self._tables[outer] = _Table(members)
                landmark = next(given, None)
                position = None if landmark is None else self._tables[outer].position(landmark, int(segment))
                if position is None:
                    raise AddressError(f"{_elsewhere(address)}: {_unknown(landmark)}")
                segments[place] = str(position)
        return format_address(segments)


class _Table:
    """Nodes of one graph, or functions of a model, by their landmarks."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._made: dict[str, list[int]] = {}
        self._named: dict[tuple[str, str], list[int]] = {}
        for position, member in enumerate(members):
            landmark = _landmark(member)
            for name in landmark.made:
                self._made.setdefault(name, []).append(position)
            if landmark.name:
                self._named.setdefault((landmark.operator, landmark.name), []).append(position)

    def position(self, landmark: Landmark, former: int) -> int | None:
        """Return the position of the only member that a landmark fits; None if there is none, or several."""
        positions = {each for name in landmark.made for each in self._made.get(name, ())}
        if not positions and landmark.name:
            positions = set(self._named.get((landmark.operator, landmark.name), ()))
        if former in positions:
            return former
        return positions.pop() if len(positions) == 1 else None


def _elsewhere(block: str) -> str:
    several = "nodes" if is_range(block) else "node"
    return f"the {several} of this text moved or changed (formerly {visible(block, 200)})"


def _unknown(landmark: Landmark | None) -> str:
    if landmark is None:
        return "the text does not record how to recognise it"
    shown = visible(" ".join(each for each in (landmark.operator, landmark.name or next(iter(landmark.made), ""))), 200)
    return f"no node has its outputs or its name ({shown})"


class Origin(msgspec.Struct, frozen=True):
    """Origin of a draft."""

    path: str
    """Absolute path of the file, with surrogates for bytes that are not UTF-8."""
    model: str
    """Hexadecimal SHA-256 of the text of the whole model when the draft was made; "" if that is not checked."""
    handed_out: str
    """Hexadecimal SHA-256 of the unedited draft."""
    addresses: tuple[str, ...] = ()
    """Addresses of the blocks in it; none for the text of a whole model."""
    ways: tuple[NodePath, ...] = ()
    """Landmarks of each node of the blocks, to find it after nodes moved."""


class Draft:
    """A text that is edited: its file, and its origin if that is known."""

    def __init__(self, path: Path, origin: Origin | None) -> None:
        self.path = path
        """File of the text."""
        self.origin = origin
        """None for a file outside the folder of drafts."""
        self.addresses, self.ways = ((), ()) if origin is None else (origin.addresses, origin.ways)
        """See `Origin`."""
        self.places: Mapping[str, str] | None = None
        """Current address of each block in the edited model; None if not determined yet."""

    def content(self) -> bytes:
        """Return the current text; empty if the editor has removed the file.

        Raises:
            OnnxJsonError: the file cannot be read.
        """
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise reading_error(self.path, error) from error

    def is_untouched(self) -> bool:
        """Whether the text is unedited."""
        return self.was_handed_out(self.content())

    def was_handed_out(self, text: bytes) -> bool:
        """Whether a text is the unedited one."""
        return self.origin is not None and sha256_of(text) == self.origin.handed_out

    def restore(self, text: bytes) -> None:
        """Write a text again that an editor has emptied or removed, with its folder if necessary.

        Raises:
            OutputError, FileError, AccessDeniedError: it cannot be written.
        """
        with system_errors(f"no draft can be kept in {visible(str(self.path.parent), None)}"):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.origin is not None:
            _write_origin(self.path.parent, self.origin)
        _write(self.path, text)

    def remove(self) -> None:
        """Remove the draft and the files that the editor left next to it; other files of the user stay."""
        if self.origin is not None:
            discard(self.path.parent)


def make(
    path: Path,
    text: bytes,
    ending: str,
    *,
    model: bytes | None,
    addresses: Sequence[str] = (),
    ways: Sequence[NodePath] = (),
) -> Draft:
    """Write a new draft of the file `path`, which gives it its name, with the text to edit.

    If that is not the whole model, `addresses` are those of the blocks in it, and `ways` the landmarks of each of their
    nodes. `model` is the text of the whole model; None if later changes of it need not be detected.

    Raises:
        OutputError, FileError, AccessDeniedError: it cannot be written.
    """
    real = os.path.realpath(path)
    with system_errors(f"no draft can be kept in {visible(str(STORE.root), None)}"):
        folder, descriptor = STORE.create(real, is_folder=True)
        os.close(descriptor)  # the editor works in it, and perhaps another process later
    stem, _ = stem_and_ending(path)
    draft = folder / f"{stem[:_LONGEST_STEM] or 'model'}{ending}"
    whole = "" if model is None else sha256_of(model)
    origin = Origin(real, whole, sha256_of(text), tuple(addresses), tuple(ways))
    try:
        _write_origin(folder, origin)
        _write(draft, text)
    except BaseException:
        discard(folder)
        raise
    return Draft(draft, origin)


def _write_origin(folder: Path, origin: Origin) -> None:
    _write(folder / _ORIGIN, json.dumps(msgspec.to_builtins(origin)).encode("ascii"))


def _write(path: Path, content: bytes) -> None:
    save_file(path, lambda output: output.write(content), mode=0o600)


def open_draft(path: Path) -> Draft:
    """Return the draft in a file, with its origin if it is in the folder of drafts.

    Raises:
        MissingInputError: there is no such file.
    """
    if not path.is_file():
        raise MissingInputError(f"{visible(str(path), None)} does not exist, so it is not a draft")
    path = Path(os.path.abspath(path))
    is_ours = path.is_relative_to(STORE.root) and STORE.is_own()
    return Draft(path, _origin_of(path.parent) if is_ours else None)


def unsaved_drafts(path: Path) -> list[Path]:
    """Return the drafts of a file that were edited and not saved, oldest first.

    Unedited drafts that are older than a day are removed.
    """
    unsaved = []
    for folder in STORE.entries(os.path.realpath(path)):
        origin = _origin_of(folder)
        if origin is None:
            continue
        texts = [each for each in folder.iterdir() if each.name != _ORIGIN]
        edited = [each for each in texts if each.is_file() and not Draft(each, origin).is_untouched()]
        if edited:
            # Editors may leave copies next to the text; the newest file is the one that was written last.
            unsaved.append(max(edited, key=lambda each: (each.suffix == ".json", each.stat().st_mtime_ns)))
        elif time.time() - folder.stat().st_mtime > _FORGOTTEN_AFTER:
            discard(folder)
    return sorted(unsaved, key=lambda each: each.stat().st_mtime_ns)


def _origin_of(folder: Path) -> Origin | None:
    try:
        # With json, since file names that are not UTF-8 have lone surrogates, which msgspec refuses.
        return msgspec.convert(json.loads((folder / _ORIGIN).read_bytes()), Origin)
    except (OSError, ValueError):
        return None
