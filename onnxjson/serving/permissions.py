"""What the tools for agents may read, write and run; decided when the server starts."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from onnxjson.codecs.text_file import is_printable
from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.parameters import parameters
from onnxjson.model.display import visible
from onnxjson.model.errors import AccessDeniedError, DecodeError, UntrustedError
from onnxjson.model.system import Folder
from onnxjson.optimizing.passes.declaration import Pass
from onnxjson.optimizing.passes.user import EditPass
from onnxjson.running.box import confine
from onnxjson.running.server_process import scratch_folder
from onnxjson.storage import backups

_HEAD: Final = 1 << 16
"""Bytes of a text in which it says that it is a model."""

_MARKS: Final = (b'"onnxjson/', b'"irVersion"', b'"ir_version"', b'"weight_map"')


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

    def require_readable(self, name: str) -> None:
        """Raise UntrustedError unless a file is in a folder that may be read, and DecodeError for a text of others.

        What other programs wrote would be quoted in errors.
        """
        path = Path(os.path.realpath(name))
        if not any(path.is_relative_to(folder) for folder in self._readable):
            raise UntrustedError(f"'{visible(name)}' is not in a folder that --allow-read names")
        if path.is_file():
            with suppress(OSError), path.open("rb") as file:  # an error of the system is reported when it is loaded
                start = file.read(_HEAD)
                if start and is_printable(start[:4096]) and not any(mark in start for mark in _MARKS):
                    raise DecodeError(f"'{visible(name)}' is not a model")

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
            raise UntrustedError(f"{name_of(subject)}: {what}; `onnxjson mcp --allow-files` allows that")
