"""Opening of models: files of any form, files at a revision, files that are not models, and recently opened files."""

import json
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.codecs.text_file import looks_like_text
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import (
    DecodeError,
    Finding,
    LimitError,
    MissingInputError,
    OnnxJsonError,
    UntrustedError,
    WireError,
)
from onnxjson.storage import files
from onnxjson.storage.files import Format
from onnxjson.storage.identity import Identity, open_source
from onnxjson.storage.saving import save_file
from onnxjson.storage.state import state_folder


class Opened(msgspec.Struct, frozen=True):
    """An opened model and its origin."""

    name: str
    """Name that the user gave."""
    key: str
    """Key of its journals: the real path of the file, or the folder, revision and path."""
    path: Path | None
    """The file that a save replaces; None for a revision."""
    model: Model
    format: Format
    identity: Identity
    """Identity of the opened file."""
    findings: tuple[Finding, ...] = ()
    """Findings of the reader."""
    problems: tuple[str, ...] = ()
    """Problems with files that it depends on, a sentence each."""
    folder: Path | None = None
    """Folder of its external data."""


class Unreadable(msgspec.Struct, frozen=True):
    """A file that does not contain a model."""

    name: str
    path: Path
    message: str
    findings: tuple[Finding, ...]
    """All findings of the reader, with line and column in a text."""
    offset: int | None
    """Offset of the first invalid byte of a binary file, if known."""
    is_text: bool
    """Whether it can be corrected in a text editor."""
    exit_code: int = 65


def open_model(name: str | Path, resources: ExitStack) -> Opened | Unreadable:
    """Open a file or a revision; a file with exactly this name takes precedence.

    Args:
        name: the file, or ``REV:path``.
        resources: receives the resources that the model needs while it is in use.

    Raises:
        MissingInputError: there is neither such a file nor such a revision.
        AccessDeniedError, FileError: the file cannot be read.
    """
    text = str(name)
    if ":" in text and not os.path.lexists(text):
        from onnxjson.git import repository

        if repository.is_revision_spec(text):
            found = resources.enter_context(repository.open_revision(text))
            key = f"{os.path.realpath(Path.cwd())}:{text}"
            return _opened(text, key, None, found.loaded, tuple(found.problems), found.path.parent)
    return open_file(Path(name))


def open_file(path: Path) -> Opened | Unreadable:
    """Open a file; see `open_model`."""
    problems: tuple[str, ...] = ()
    try:
        try:
            loaded = files.load(path)
        except (MissingInputError, UntrustedError) as error:
            if not path.is_file():
                raise
            # Digests replace missing blobs; a text with digests can be read, edited and saved.
            loaded = files.load(path, bind=False)
            problems = (str(error),)
    except (DecodeError, LimitError) as error:
        return _unreadable(path, error)
    real = Path(os.path.realpath(path))
    return _opened(str(path), str(real), path, loaded, problems, real.parent)


def _opened(
    name: str, key: str, path: Path | None, loaded: files.Loaded, problems: tuple[str, ...], folder: Path
) -> Opened:
    return Opened(name, key, path, loaded.model, loaded.format, loaded.identity, loaded.warnings, problems, folder)


def _unreadable(path: Path, error: OnnxJsonError) -> Unreadable:
    source = open_source(path)
    is_text = source.size == 0 or looks_like_text(source.read_at(0, min(source.size, 4096)))
    findings = error.findings if isinstance(error, DecodeError) else ()
    return Unreadable(
        visible(str(path), None), path, str(error), findings, _offset(error), is_text, type(error).exit_code
    )


def _offset(error: BaseException | None) -> int | None:
    while error is not None:
        if isinstance(error, WireError):
            return error.offset
        error = error.__cause__
    return None


KEPT: Final = 50
"""Maximum number of remembered files."""

_LONGEST: Final = 1 << 20
"""Maximum bytes of a list; a longer file is not from onnxjson."""


def recent_files() -> list[Path]:
    """Return recently opened files that still exist, newest first."""
    return [path for path in _remembered() if path.is_file()]


def remember(path: Path) -> None:
    """Put a file at the top of the list. Errors are ignored, since they must not prevent opening the model."""
    with suppress(OSError, OnnxJsonError):
        wanted = Path(os.path.abspath(path))
        paths = [wanted, *[each for each in _remembered() if each != wanted]][:KEPT]
        # ASCII with lone surrogates preserves names that are not UTF-8.
        data = json.dumps([str(each) for each in paths], indent=0).encode("ascii")
        folder = state_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        save_file(folder / "recent.json", lambda output: output.write(data), mode=0o600, fsync=False)


def _remembered() -> list[Path]:
    try:
        with (state_folder() / "recent.json").open("rb") as file:
            found = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError, OnnxJsonError):
        return []
    if not isinstance(found, list):
        return []
    return [Path(each) for each in found if isinstance(each, str) and each.startswith("/") and "\0" not in each]
