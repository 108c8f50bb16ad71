"""Models of a repository with conflicts of a merge, and models that git has not merged for another reason."""

import os
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.git.changed_models import ENDINGS
from onnxjson.git.commands import Git
from onnxjson.model.display import visible
from onnxjson.model.payloads import CHUNK

_BEGINNING: Final = b'{\n"format": "onnxjson/1",\n"conflicts": ['

_MODEL: Final = re.compile(rb"(?:%b)(?:~[^/]*)?\Z" % b"|".join(map(re.escape, ENDINGS)), re.DOTALL)
"""Ending of the name of a model; git appends the name of a branch if a folder has the name."""

_MARKER: Final = b"\n<<<<<<<"


class Leftover(NamedTuple):
    """A model that git has not merged and that holds no conflicts of `onnxjson`."""

    path: Path
    """Path relative to the folder of the call."""
    state: str
    """The two letters of `git status --short`: ``UD`` where theirs removed what ours changed."""
    what: str
    """The cause, in words made visible."""
    advice: str
    """Commands to use, made visible; paths are quoted for a shell."""


class Unmerged(NamedTuple):
    """Unfinished merges of a repository."""

    models: list[Path]
    """Models with conflicts, relative to the folder of the call: not merged by git, or added with their conflicts."""
    leftovers: list[Leftover]
    """Models that git has not merged, without conflicts to resolve: one side removed it, both renamed it, git left its
    own markers in it, or started no merge driver."""


def unmerged(folder: Path) -> Unmerged:
    """List the unfinished merges of the repository around a folder, in the order of the paths.

    Raises:
        MissingInputError, UntrustedError: there is no repository, or git refuses it.
        CommandError: git failed.
    """
    top = folder / os.fsdecode(Git(folder).line("rev-parse", "--show-cdup"))
    git = Git(top)
    stages: dict[bytes, dict[int, bytes]] = {}
    for entry in git.items("ls-files", "-u", "-z"):
        head, _, path = entry.partition(b"\t")
        _, identity, stage = head.split(b" ")
        stages.setdefault(path, {})[int(stage)] = identity
    models, leftovers = [], []
    # Unmerged paths are tracked, under each of their stages.
    for path in sorted({*git.items("ls-files", "-z")}):
        place = top / os.fsdecode(path)
        shown = Path(os.path.relpath(place, folder))
        is_model = _MODEL.search(path) is not None
        # Texts with conflicts are recognized by their content, so they may have any name of a JSON file.
        if (is_model or path.endswith(b".json")) and _begins_with_conflicts(place):
            models.append(shown)
        elif is_model and path in stages:
            leftovers.append(_leftover(git, os.fsdecode(path), shown, place, stages[path]))
    return Unmerged(sorted(models), leftovers)


def _leftover(git: Git, from_top: str, path: Path, place: Path, sides: dict[int, bytes]) -> Leftover:
    name = visible(shlex.quote(str(path)), None)
    choose = f"git add -- {name} keeps it, git rm -- {name} removes it"
    match sorted(sides):
        case [1]:
            return Leftover(path, "DD", "both sides removed it, or renamed it", f"git rm -- {name} records the removal")
        case [1, 2]:
            return Leftover(path, "UD", "ours changed it, and theirs removed or renamed it", choose)
        case [1, 3]:
            return Leftover(path, "DU", "theirs changed it, and ours removed or renamed it", choose)
        case [2]:
            return Leftover(path, "AU", "ours has it under this name, and theirs does not", choose)
        case [3]:
            return Leftover(path, "UA", "theirs has it under this name, and ours does not", choose)
        case [2, 3]:
            either = f"git checkout --ours -- {name} restores one of them, or --theirs; then git add -- {name}"
            return Leftover(path, "AA", _what(git, place, sides, "both sides added it"), either)
    shown = [visible(shlex.quote(f":{stage}:{from_top}"), None) for stage in (1, 2, 3)]
    again = (
        f"onnxjson merge {' '.join(shown)} -o {name} merges it by structure; if the file is right: git add -- {name}"
    )
    return Leftover(path, "UU", _what(git, place, sides, "both sides changed it"), again)


def _what(git: Git, place: Path, sides: dict[int, bytes], both: str) -> str:
    """Describe what both sides did, and the file."""
    try:
        if not place.is_file() or place.is_symlink():
            return f"{both}, and there is no file"
        if _has_markers(place):
            return f"{both}, and git merged its lines and left markers in it"
    except OSError:
        return f"{both}, and the file cannot be read"
    # The bytes as they are: a filter would be a program of the repository.
    content = git.line("hash-object", "--no-filters", "--", os.fsencode(os.path.abspath(place)))
    for stage, side in ((2, "ours"), (3, "theirs")):
        if content == sides[stage]:
            return f"{both}, and the file is that of {side} alone"
    return f"{both}, and it has no conflicts any more"


def _has_markers(path: Path) -> bool:
    with path.open("rb") as file:
        end = b"\n"
        while piece := file.read(CHUNK):
            if _MARKER in end + piece:
                return True
            end = (end + piece)[-len(_MARKER) :]
    return False


def _begins_with_conflicts(path: Path) -> bool:
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False
