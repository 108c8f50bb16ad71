"""Models of a repository in which conflicts of a merge stand."""

import os
from pathlib import Path
from typing import Final

from onnxjson.git.commands import Git

_ENDINGS: Final = (b".onnx", b".json", b".onnxjson")
_BEGINNING: Final = b'{\n"format": "onnxjson/1",\n"conflicts": ['


def unmerged_models(folder: Path) -> list[Path]:
    """The models with conflicts in the repository around a folder: those that git has not merged, and those that were
    added with their conflicts.

    Raises:
        MissingInputError, UntrustedError: there is no repository that git reads.
        CommandError: git failed.
    """
    top = folder / os.fsdecode(Git(folder).line("rev-parse", "--show-cdup"))
    git = Git(top)
    unmerged = {entry.partition(b"\t")[2] for entry in git.items("ls-files", "-u", "-z")}
    tracked = git.items("ls-files", "-z")
    found = []
    for path in dict.fromkeys([*sorted(unmerged), *tracked]):
        place = top / os.fsdecode(path)
        if path.endswith(_ENDINGS) and _begins_with_conflicts(place):
            found.append(Path(os.path.relpath(place, folder)))
    return sorted(found)


def _begins_with_conflicts(path: Path) -> bool:
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False
