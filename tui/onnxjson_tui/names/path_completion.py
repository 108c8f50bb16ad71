"""Completion of paths: folders, and files that may contain a model."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

MODELS: Final = (".onnx", ".onnx.json", ".onnxjson", ".json", ".pb")
"""File name extensions of models."""

_MOST: Final = 2_000
"""Maximum number of folder members that are read."""


class Member(NamedTuple):
    """A file or folder in a folder."""

    name: str
    is_folder: bool
    size: int
    """Size of a file in bytes; 0 for a folder."""


def members(folder: Path, endings: Sequence[str] = MODELS) -> list[Member]:
    """Return folders, then files with some extensions, each sorted by name; hidden ones last.

    Raises:
        OSError: the folder cannot be read.
    """
    found: list[Member] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(found) >= _MOST:
                break
            try:
                is_folder = entry.is_dir()
                if not is_folder and not entry.name.lower().endswith(tuple(endings)):
                    continue
                found.append(Member(entry.name, is_folder, 0 if is_folder else entry.stat().st_size))
            except OSError:
                continue  # It was removed meanwhile, or is a broken link.
    return sorted(found, key=lambda each: (not each.is_folder, each.name.startswith("."), each.name))


def complete_path(typed: str, endings: Sequence[str] = MODELS) -> list[str]:
    """Return the completions of a path, spelled as it begins; folders end with a slash."""
    head, _, beginning = typed.rpartition("/")
    start = f"{head}/" if "/" in typed else ""
    try:
        found = members(Path(start or ".").expanduser(), endings)
    except (OSError, RuntimeError):
        return []
    wanted = beginning.lower()
    return [
        f"{start}{each.name}{'/' if each.is_folder else ''}"
        for each in found
        if each.name.lower().startswith(wanted) and (beginning.startswith(".") or not each.name.startswith("."))
    ]


def expanded(typed: str) -> Path:
    """Return a typed path with ``~`` expanded to the home folder."""
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        return Path(typed)
