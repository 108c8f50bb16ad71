"""What the tools for agents may read, write and run; decided when the server starts."""

import codecs
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.codecs.text_file import is_printable, looks_like_text
from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.parameters import parameters
from onnxjson.model.display import visible
from onnxjson.model.errors import AccessDeniedError, DecodeError, OnnxJsonError, UntrustedError
from onnxjson.model.system import Folder
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.user import EditPass
from onnxjson.running.box import confine
from onnxjson.running.server_process import scratch_folder
from onnxjson.storage import backups, files
from onnxjson.storage.named_files import locations

_HEAD: Final = 1 << 16
"""Bytes by which a text is recognized."""

_OURS: Final = re.compile(rb'\s*\{\s*(?:"\$schema"\s*:\s*"[^"]*"\s*,\s*)?"format"\s*:\s*"onnxjson/')
_KEYS: Final = frozenset({"irVersion", "ir_version", "weight_map"})
"""Keys of which the JSON of a model, or the list of its files, has one at its top level."""


class Permissions:
    """What the tools may read, write and run.

    Args:
        readable: the folders of files that may be read; the current one if there is none.
        writable: the folder in which files may be written; None: nowhere. Its files may be read, too.
        files: whether passes and edits may name files: Python files, scripts, values.
    """

    def __init__(self, readable: Sequence[Path] = (), writable: Path | None = None, *, files: bool = False) -> None:
        folders = [*(readable or [Path()]), *([] if writable is None else [writable])]
        self._readable = [Path(os.path.realpath(folder)) for folder in folders]
        self.writable = None if writable is None else Path(os.path.realpath(writable))
        # Held from the start: a link that replaces the folder later leads nowhere.
        self.folder = None if writable is None else Folder(writable)
        self._files = files

    @contextmanager
    def confined(self) -> Iterator[None]:
        """Let the kernel refuse everything else, whatever links do meanwhile: for the rest of this process."""
        above = tempfile.gettempdir()
        with scratch_folder("onnxjson-mcp-") as scratch:
            tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
            writes = [str(scratch)]
            if self.writable is not None:
                writes.append(str(self.writable))
                with suppress(OSError, AccessDeniedError):  # then a save says why it has no backup
                    writes.append(str(backups.STORE.make_root()))
            confine(map(str, self._readable), writes, above)
            yield

    def require_inside(self, name: str) -> Path:
        """Return the real path of a file; raise UntrustedError unless it is in a folder that may be read."""
        path = Path(os.path.realpath(name))
        if not any(path.is_relative_to(folder) for folder in self._readable):
            raise UntrustedError(
                f"'{visible(name)}' is not in a folder that may be read; `onnxjson mcp --allow-read DIR` allows another"
            )
        return path

    def require_model(self, name: str) -> None:
        """Raise UntrustedError unless a file may be read, and DecodeError if it, or a file of its weights, is a text.

        What other programs wrote would be quoted in errors, or as values.
        """
        path = self.require_inside(name)
        if not path.is_file():
            return
        with suppress(OSError):  # an error of the system is reported when the file is loaded
            if _is_text(path) and not _says_model(path):
                raise DecodeError(f"'{visible(name)}' is not a model")
            for location in _locations(path):
                if _is_text(path.parent / location):
                    raise DecodeError(f"'{visible(name)}' has weights in '{visible(location)}', which is a text")

    def require_no_files(self, subject: Pass | Edit) -> None:
        """Raise UntrustedError if a pass or an edit names a file, or is code of the user, unless that is allowed."""
        if self._files:
            return
        if isinstance(subject, EditPass):
            subject = subject.edit
        named = [
            each.name for each in parameters(type(subject)) if each.role == "file" and getattr(subject, each.field)
        ]
        if named or (isinstance(subject, Pass) and subject.is_own_code):
            what = f'the parameter "{named[0]}" names a file' if named else "it is code of another package"
            raise UntrustedError(f"{what}; `onnxjson mcp --allow-files` allows that", place=name_of(subject))


def _is_text(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return bool(head) and (is_printable(head) or looks_like_text(head))


def _says_model(path: Path) -> bool:
    """Whether a text is a model according to its first key, or to those at its top level."""
    with path.open("rb") as file:
        if _OURS.match(file.read(_HEAD).removeprefix(codecs.BOM_UTF8)):
            return True
    try:
        tree = msgspec.json.decode(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    if not isinstance(tree, dict):
        return False
    return str(tree.get("format")).startswith("onnxjson/") or not _KEYS.isdisjoint(tree)


def _locations(path: Path) -> tuple[str, ...]:
    try:
        return locations(files.load(path, weights_from=None, bind=False, conflicted=True).model)
    except OnnxJsonError:  # the tool reports it
        return ()
