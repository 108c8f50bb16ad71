"""Drafts: texts that the user edits, kept in the state folder until their changes are saved.

::

    $XDG_STATE_HOME/onnxjson/drafts/     mode 0700
        4f2a91c07d3be586/                one draft; mode 0700
            digits.onnx.json             the text, as the editor leaves it
            .origin                      the file it belongs to, and the original text's hash, as JSON
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

from onnxjson.editing.node_recognition import NodePath
from onnxjson.model.display import visible
from onnxjson.model.errors import MissingInputError
from onnxjson.storage.files import stem_and_ending
from onnxjson.storage.identity import reading_error
from onnxjson.storage.saving import Output, save_file, system_errors
from onnxjson.storage.state import state_folder

_ORIGIN: Final = ".origin"

_FORGOTTEN_AFTER: Final = 24 * 3600
"""Age in seconds after which an unchanged draft is removed."""

_LONGEST_STEM: Final = 40
"""Characters of a file's name that are part of the name of its draft; each has at most four bytes, and names 255."""


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
        self.addresses = () if origin is None else origin.addresses
        """Addresses of the blocks in it; none for the text of a whole model."""
        self.ways = () if origin is None else origin.ways
        """Landmarks of each node of the blocks, to find it after nodes moved."""
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
        return self.origin is not None and sha256(text) == self.origin.handed_out

    def restore(self, text: bytes) -> None:
        """Write a text again that an editor has emptied or removed, with its folder if necessary.

        Raises:
            OutputError, FileError, AccessDeniedError: it cannot be written.
        """
        with system_errors(f"no draft can be kept in {visible(str(self.path.parent), None)}"):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.origin is not None:
            _write(self.path.parent / _ORIGIN, _written(self.origin))
        _write(self.path, text)

    def remove(self) -> None:
        """Remove the draft and the files that the editor left next to it; a file of the user's own stays."""
        if self.origin is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)


def sha256(text: bytes) -> str:
    """Return the hexadecimal SHA-256 of a text."""
    return hashlib.sha256(text).hexdigest()


def make(
    path: Path,
    text: bytes,
    ending: str,
    *,
    model: bytes | None,
    addresses: Sequence[str] = (),
    ways: Sequence[NodePath] = (),
) -> Draft:
    """Write a new draft.

    Args:
        path: the file that it is a draft of, which gives the draft its name.
        text: the text to edit.
        ending: the ending of the draft's name.
        model: the text of the whole model; None if later changes of the model need not be detected.
        addresses: the addresses of the blocks in `text`, if it is not the whole model.
        ways: the landmarks of each node of the blocks, see `onnxjson.editing.node_recognition`.

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
    stem, _ = stem_and_ending(path)
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


def open_draft(path: Path) -> Draft:
    """Return the draft in a file, with its origin if it is in the folder of drafts.

    Raises:
        MissingInputError: there is no such file.
    """
    if not path.is_file():
        raise MissingInputError(f"{visible(str(path), None)} does not exist, so it is not a draft")
    path = Path(os.path.abspath(path))
    is_ours = path.parent.parent == state_folder() / "drafts"
    return Draft(path, _origin_of(path.parent) if is_ours else None)


def unsaved_drafts(path: Path) -> list[Path]:
    """Return the drafts of a file that were edited and not saved, oldest first.

    Unedited drafts that are older than a day are removed.
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
            # Editors may leave copies next to the text; the newest file is the one that was written last.
            found.append(max(edited, key=lambda each: (each.suffix == ".json", each.stat().st_mtime_ns)))
        elif time.time() - folder.stat().st_mtime > _FORGOTTEN_AFTER:
            shutil.rmtree(folder, ignore_errors=True)
    return sorted(found, key=lambda each: each.stat().st_mtime_ns)


def _origin_of(folder: Path) -> Origin | None:
    try:
        # With json, since file names that are not UTF-8 have lone surrogates, which msgspec refuses.
        return msgspec.convert(json.loads((folder / _ORIGIN).read_bytes()), Origin)
    except (OSError, ValueError):
        return None
