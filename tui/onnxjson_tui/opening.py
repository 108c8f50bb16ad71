"""What is opened: a file of any form, a file at a revision, and what cannot be read as a model."""

import os
from contextlib import ExitStack
from pathlib import Path

import msgspec

from onnxjson import files
from onnxjson.checking import Finding
from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.errors import DecodeError, LimitError, MissingInputError, OnnxJsonError, UntrustedError, WireError
from onnxjson.files import Format
from onnxjson.identity import Identity, open_source
from onnxjson.text_file import looks_like_text


class Opened(msgspec.Struct, frozen=True):
    """A model, and where it comes from."""

    name: str
    """What the person called it."""
    key: str
    """What a journal of it is kept under: the real path of the file, or the repository and the revision."""
    path: Path | None
    """The file that a save replaces; None where it is that of a revision."""
    model: Model
    format: Format
    identity: Identity
    """What was opened."""
    findings: tuple[Finding, ...] = ()
    """What the reader said of it."""
    problems: tuple[str, ...] = ()
    """What stands beside it and could not be had, a sentence each."""
    folder: Path | None = None
    """Where its external data is looked for."""


class Unreadable(msgspec.Struct, frozen=True):
    """A file that holds no model."""

    name: str
    path: Path
    message: str
    findings: tuple[Finding, ...]
    """Every reason that the reader found, with line and column in a text."""
    offset: int | None
    """The byte at which a binary is seen to be wrong, where that is known."""
    is_text: bool
    """Whether an editor can mend it."""
    exit_code: int = 65


def open_model(name: str | Path, resources: ExitStack) -> Opened | Unreadable:
    """Opens what a person named; a file of that very name goes before a revision.

    Args:
        name: the file, or ``REV:path``.
        resources: takes what must be there as long as the model is looked at.

    Raises:
        MissingInputError: there is no such file, nor revision.
        AccessDeniedError, FileError: it cannot be read.
    """
    text = str(name)
    if ":" in text and not os.path.lexists(text):
        from onnxjson.git import repository

        if repository.is_revision_spec(text):
            found = resources.enter_context(repository.opened(text))
            key = f"{os.path.realpath(Path.cwd())}:{text}"
            loaded = found.loaded
            return Opened(
                text,
                key,
                None,
                loaded.model,
                loaded.format,
                loaded.identity,
                loaded.warnings,
                tuple(found.problems),
                found.path.parent,
            )
    return open_file(Path(name))


def open_file(path: Path) -> Opened | Unreadable:
    """Opens a file; see `open_model`."""
    name = str(path)
    problems: tuple[str, ...] = ()
    try:
        try:
            loaded = files.load(path)
        except (MissingInputError, UntrustedError) as error:
            if not path.is_file():
                raise
            # Blobs that are not there leave digests, with which a text can be read, edited and saved.
            loaded = files.load(path, bind=False)
            problems = (str(error),)
    except (DecodeError, LimitError) as error:
        return _unreadable(path, error)
    real = Path(os.path.realpath(path))
    return Opened(
        name,
        str(real),
        path,
        loaded.model,
        loaded.format,
        loaded.identity,
        loaded.warnings,
        problems,
        real.parent,
    )


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
