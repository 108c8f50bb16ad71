"""What the beginning of a path may become: folders, and files that may hold a model."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

MODELS: Final = (".onnx", ".onnx.json", ".onnxjson", ".json", ".pb")
"""How the names of files end that are offered where a model is asked for."""

_MOST: Final = 2_000
"""Members of a folder that are looked at; one who has more types on."""


class Member(NamedTuple):
    """One member of a folder."""

    name: str
    is_folder: bool
    size: int
    """Bytes of a file."""


def members(folder: Path, endings: Sequence[str] = MODELS) -> list[Member]:
    """Folders, then files whose names end so, each by name; hidden ones last.

    Raises:
        OSError: it cannot be read.
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
                continue  # It went meanwhile, or is a link to nowhere.
    return sorted(found, key=lambda each: (not each.is_folder, each.name.startswith("."), each.name))


def complete_path(typed: str, endings: Sequence[str] = MODELS) -> list[str]:
    """The paths that `typed` may become, spelled as it begins; folders end with a slash."""
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
    """The path that a person typed, with their home folder for ``~``."""
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        return Path(typed)
