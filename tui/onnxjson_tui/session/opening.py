"""Opening of models: files of any form, revisions, files that are not models, recent files, and folders."""

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.codecs.text_file import looks_like_text
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, Finding, LimitError, MissingInputError, OnnxJsonError, UntrustedError
from onnxjson.storage import files
from onnxjson.storage.files import Format
from onnxjson.storage.identity import Identity, open_source
from onnxjson.storage.remote import path_of
from onnxjson.storage.saving import save_file
from onnxjson.storage.store import user_folder
from onnxjson.storage.urls import is_url

KEPT: Final = 50  # maximum number of remembered files

_LONGEST: Final = 1 << 20  # maximum bytes of a list; a longer file is not from onnxjson

MODELS: Final = (".onnx", ".onnx.json", ".onnxjson", ".json", ".pb")  # file name extensions of models

_MOST_MEMBERS: Final = 2_000  # maximum number of folder members that are read


class Opened(msgspec.Struct, frozen=True):
    """An opened model and its origin."""

    name: str  # name that the user gave
    key: str  # key of its journals: the real path of the file, or the folder, revision and path
    path: Path | None  # the file that a save replaces; None for a revision
    model: Model
    format: Format
    identity: Identity  # identity of the opened file
    findings: tuple[Finding, ...] = ()  # findings of the reader
    problems: tuple[str, ...] = ()  # problems with files that it depends on, a sentence each
    folder: Path | None = None  # folder of its external data


class Unreadable(msgspec.Struct, frozen=True):
    """A file that does not contain a model."""

    name: str
    path: Path
    message: str
    findings: tuple[Finding, ...]  # all findings of the reader, with line and column in a text
    is_text: bool  # whether it can be corrected in a text editor
    exit_code: int = 65


def open_model(name: str | Path, resources: ExitStack) -> Opened | Unreadable:
    """Open a file or ``REV:path``; a file with exactly this name takes precedence.

    `resources` receives what the model needs while it is in use.

    Raises:
        MissingInputError: there is neither such a file nor such a revision.
        AccessDeniedError, FileError: the file cannot be read.
    """
    text = str(name)
    if is_url(text):
        return open_file(path_of(text))
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
    return Unreadable(visible(str(path), None), path, str(error), findings, is_text, type(error).exit_code)


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
        folder = user_folder("state")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        save_file(folder / "recent.json", lambda output: output.write(data), mode=0o600, fsync=False)


def _remembered() -> list[Path]:
    try:
        with (user_folder("state") / "recent.json").open("rb") as file:
            names = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError, OnnxJsonError):
        return []
    if not isinstance(names, list):
        return []
    return [Path(each) for each in names if isinstance(each, str) and os.path.isabs(each) and "\0" not in each]


class Member(NamedTuple):
    """A file or folder in a folder."""

    name: str
    is_folder: bool
    size: int  # size of a file in bytes; 0 for a folder


def members(folder: Path, endings: Sequence[str] = MODELS) -> list[Member]:
    """Return folders, then files with some extensions, each sorted by name; hidden ones last.

    Raises:
        OSError: the folder cannot be read.
    """
    listed: list[Member] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(listed) >= _MOST_MEMBERS:
                break
            try:
                is_folder = entry.is_dir()
                if not is_folder and not entry.name.lower().endswith(tuple(endings)):
                    continue
                listed.append(Member(entry.name, is_folder, 0 if is_folder else entry.stat().st_size))
            except OSError:
                continue  # It was removed meanwhile, or is a broken link.
    return sorted(listed, key=lambda each: (not each.is_folder, each.name.startswith("."), each.name))


def path_members(typed: str, folder: Path, endings: Sequence[str] = MODELS) -> list[tuple[str, Member]]:
    """Return the members of folders whose path begins with a text, spelled like it; folders end with a slash.

    `folder` is that of relative paths.
    """
    start, beginning = typed[: typed.rfind("/") + 1], typed[typed.rfind("/") + 1 :]
    try:
        candidates = members(folder / Path(start).expanduser(), endings)
    except (OSError, RuntimeError):
        return []
    return [
        (f"{start}{each.name}{'/' if each.is_folder else ''}", each)
        for each in candidates
        if each.name.lower().startswith(beginning.lower()) and (beginning.startswith(".") or each.name[0] != ".")
    ]


def complete_path(typed: str, endings: Sequence[str] = MODELS) -> list[str]:
    """Return the completions of a path; see `path_members`."""
    return [path for path, _ in path_members(typed, Path(), endings)]


def expanded(typed: str) -> Path:
    """Return a typed path with ``~`` expanded to the home folder."""
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        return Path(typed)
