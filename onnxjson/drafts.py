"""Drafts: texts that a person is editing, kept in the state folder until what they say is saved.

::

    $XDG_STATE_HOME/onnxjson/drafts/     mode 0700
        4f2a91c07d3be586/                one draft; mode 0700
            digits.onnx.json             the text, as the editor leaves it
            .origin                      the file it belongs to, and what was handed out, as JSON
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.display import visible
from onnxjson.errors import MissingInputError
from onnxjson.identity import reading_error
from onnxjson.node_recognition import Way
from onnxjson.saving import save_file
from onnxjson.sinks import Output, system_errors
from onnxjson.state import state_folder

_ORIGIN: Final = ".origin"

_FORGOTTEN_AFTER: Final = 24 * 3600
"""Seconds after which a draft that nobody changed is no draft of anybody any more."""

_LONGEST_STEM: Final = 40
"""Characters of a file's name that its drafts take over; each has at most four bytes, and names at most 255."""

_ENDINGS: Final = (".onnx.json", ".onnxjson", ".onnx", ".json")


class Origin(msgspec.Struct, frozen=True):
    """What a draft was made from."""

    path: str
    """The file, absolute, surrogates for bytes that are not UTF-8."""
    model: str
    """Hexadecimal SHA-256 of the text of the whole model when the draft was made; "" where nobody asked for that."""
    handed_out: str
    """Hexadecimal SHA-256 of the draft itself before anybody edited it."""
    addresses: tuple[str, ...] = ()
    """Those of the blocks that it holds; none for the text of a whole model."""
    ways: tuple[Way, ...] = ()
    """What each node of the blocks is known by when others stand in their places."""


class Draft:
    """One text that is edited: a file, and what it was made from where that is known."""

    def __init__(self, path: Path, origin: Origin | None) -> None:
        self.path = path
        """The text."""
        self.origin = origin
        """None for a file that does not stand in the folder of drafts."""
        self.addresses = () if origin is None else origin.addresses
        """Those of the blocks that it holds; none for the text of a whole model."""
        self.ways = () if origin is None else origin.ways
        """What each node of the blocks is known by when others stand in their places."""
        self.places: Mapping[str, str] | None = None
        """Where each of the blocks stands in the model that is edited now; None where nobody has looked."""

    def content(self) -> bytes:
        """The text as it is now; empty where the editor has removed the file.

        Raises:
            OnnxJsonError: it cannot be read.
        """
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise reading_error(self.path, error) from error

    def is_untouched(self) -> bool:
        """Whether it still is what was handed out."""
        return self.was_handed_out(self.content())

    def was_handed_out(self, text: bytes) -> bool:
        """Whether a text is the one that nobody has edited yet."""
        return self.origin is not None and sha256(text) == self.origin.handed_out

    def restore(self, text: bytes) -> None:
        """Write a text again that an editor has emptied or removed, with its folder where that is gone.

        Raises:
            OutputError, FileError, AccessDeniedError: it cannot be written.
        """
        with system_errors(f"no draft can be kept in {visible(str(self.path.parent), None)}"):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.origin is not None:
            _write(self.path.parent / _ORIGIN, _written(self.origin))
        _write(self.path, text)

    def remove(self) -> None:
        """Remove it and what the editor left beside it; a file of the person's own stays where it is."""
        if self.origin is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)


def sha256(text: bytes) -> str:
    """Hexadecimal SHA-256 of a text."""
    return hashlib.sha256(text).hexdigest()


def make(
    path: Path,
    text: bytes,
    ending: str,
    *,
    model: bytes | None,
    addresses: Sequence[str] = (),
    ways: Sequence[Way] = (),
) -> Draft:
    """A new draft.

    Args:
        path: the file that it is a draft of; the draft is named after it.
        text: what the person is given.
        ending: how the name of the draft ends.
        model: the text of the whole model; None where it is not to be known whether that is another one later.
        addresses: of the blocks that `text` holds, if it is not the whole model.
        ways: what each node of the blocks is known by, see `onnxjson.node_recognition`.

    Raises:
        OutputError, FileError, AccessDeniedError: it cannot be written.
    """
    root = state_folder() / "drafts"
    folder = root / secrets.token_hex(8)
    with system_errors(f"no draft can be kept in {visible(str(root), None)}"):
        folder.mkdir(mode=0o700, parents=True)
        for place in (state_folder(), root):
            if stat.S_IMODE(place.stat().st_mode) != 0o700:
                place.chmod(0o700)
    stem = next((path.name.removesuffix(each) for each in _ENDINGS if path.name.endswith(each)), path.name)
    draft = folder / f"{stem[:_LONGEST_STEM] or 'model'}{ending}"
    whole = "" if model is None else sha256(model)
    origin = Origin(os.path.realpath(path), whole, sha256(text), tuple(addresses), tuple(ways))
    try:
        _write(folder / _ORIGIN, _written(origin))
        _write(draft, text)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Draft(draft, origin)


def _written(origin: Origin) -> bytes:
    return json.dumps(msgspec.to_builtins(origin)).encode("ascii")


def _write(path: Path, content: bytes) -> None:
    def write(output: Output) -> None:
        output.write(content)

    save_file(path, write, mode=0o600)


def take_up(path: Path) -> Draft:
    """The draft in a file, with its origin if it stands in the folder of drafts.

    Raises:
        MissingInputError: there is no such file.
    """
    if not path.is_file():
        raise MissingInputError(f"{visible(str(path), None)} is not there; it is no draft")
    path = Path(os.path.abspath(path))
    is_ours = path.parent.parent == state_folder() / "drafts"
    return Draft(path, _origin_of(path.parent) if is_ours else None)


def kept_for(path: Path) -> list[Path]:
    """The drafts of a file that were edited and not saved, oldest first.

    Those that nobody edited and that are older than a day are removed.
    """
    original = os.path.realpath(path)
    found = []
    try:
        folders = list((state_folder() / "drafts").iterdir())
    except OSError:
        return []
    for folder in folders:
        origin = _origin_of(folder)
        texts = [each for each in folder.iterdir() if each.name != _ORIGIN] if origin is not None else []
        if origin is None or origin.path != original:
            continue
        edited = [each for each in texts if each.is_file() and not Draft(each, origin).is_untouched()]
        if edited:
            # Editors may leave copies beside the text; the newest is the one that was written last.
            found.append(max(edited, key=lambda each: (each.suffix == ".json", each.stat().st_mtime_ns)))
        elif time.time() - folder.stat().st_mtime > _FORGOTTEN_AFTER:
            shutil.rmtree(folder, ignore_errors=True)
    return sorted(found, key=lambda each: each.stat().st_mtime_ns)


def _origin_of(folder: Path) -> Origin | None:
    try:
        # By json, since names of files that are not UTF-8 have lone surrogates, which msgspec refuses.
        return msgspec.convert(json.loads((folder / _ORIGIN).read_bytes()), Origin)
    except (OSError, ValueError):
        return None
