"""Models of a repository that git has not merged: those with conflicts, and what git left of others."""

import os
import re
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.codecs.text_file import is_other_json
from onnxjson.git.changed_models import ENDINGS
from onnxjson.git.commands import Git
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import CHUNK
from onnxjson.storage.identity import open_source

_BEGINNING: Final = b'{\n"format": "onnxjson/1",\n"conflicts": ['

_MODEL: Final = re.compile(rb"(?:%b)(?:~[^/]*)?\Z" % b"|".join(map(re.escape, ENDINGS)), re.DOTALL)
"""Ending of the name of a model; git appends the name of a branch if a folder has the name."""

_MARKER: Final = b"<<<<<<<"

_KEEP_OR_REMOVE: Final = "git add -- {name} keeps it, git rm -- {name} removes it"

_CHOOSE: Final = "git checkout --ours -- {name} restores one of them, or --theirs; then git add -- {name}"

_MERGE: Final = "onnxjson merge {sides} -o {name} merges it by structure; if the file is right: git add -- {name}"

_STATES: Final = {
    (1, 2): ("UD", "ours changed it, and theirs removed or renamed it", _KEEP_OR_REMOVE),
    (1, 3): ("DU", "theirs changed it, and ours removed or renamed it", _KEEP_OR_REMOVE),
    (2,): ("AU", "ours has it under this name, and theirs does not", _KEEP_OR_REMOVE),
    (3,): ("UA", "theirs has it under this name, and ours does not", _KEEP_OR_REMOVE),
    (1,): ("DD", "both sides removed it, or renamed it", "git rm -- {name} records the removal"),
    (2, 3): ("AA", "both sides added it", _CHOOSE),
    (1, 2, 3): ("UU", "both sides changed it", _MERGE),
}
"""State, cause and advice by the stages in the index."""


class Leftover(NamedTuple):
    """A model that git has not merged, without conflicts written by `onnxjson`."""

    path: Path
    """Path relative to the folder of the call."""
    state: str
    """The two letters of `git status --short`: ``UD`` where theirs removed what ours changed."""
    what: str
    """A description of the cause; made visible."""
    advice: str
    """Commands to use, made visible; paths are quoted for a shell."""


class Unmerged(NamedTuple):
    """Unfinished merges of a repository."""

    models: list[Path]
    """Models with conflicts, relative to the folder of the call: not merged by git, or added with their conflicts."""
    leftovers: list[Leftover]
    """Models that git has not merged, without conflicts to resolve."""


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
        elif is_model and path in stages and not _is_other_json(place):
            leftovers.append(_leftover(git, os.fsdecode(path), shown, place, stages[path]))
    return Unmerged(sorted(models), leftovers)


def _leftover(git: Git, from_top: str, path: Path, place: Path, sides: dict[int, bytes]) -> Leftover:
    name = visible(shlex.quote(str(path)), None)
    spelled = " ".join([visible(shlex.quote(f":{stage}:{from_top}"), None) for stage in (1, 2, 3)])
    state, what, advice = _STATES[tuple(sorted(sides))]
    if {2, 3} <= sides.keys():
        what = _what(git, place, sides, what)
    return Leftover(path, state, what, advice.format(name=name, sides=spelled))


def _what(git: Git, place: Path, sides: dict[int, bytes], both: str) -> str:
    try:
        if not place.is_file() or place.is_symlink():
            return f"{both}, and there is no file"
        if _has_markers(place):
            return f"{both}, and git merged its lines and left markers in it"
    except OSError:
        return f"{both}, and the file cannot be read"
    # The unfiltered bytes: a filter would be a program of the repository.
    content = git.line("hash-object", "--no-filters", "--", os.fsencode(os.path.abspath(place)))
    for stage, side in ((2, "ours"), (3, "theirs")):
        if content == sides[stage]:
            return f"{both}, and the file is that of {side} alone"
    return f"{both}, and it no longer has conflicts"


def _has_markers(path: Path) -> bool:
    with path.open("rb") as file:
        return any(line.startswith(_MARKER) for line in iter(partial(file.readline, CHUNK), b""))


def _is_other_json(path: Path) -> bool:
    with suppress(OnnxJsonError):
        return is_other_json(open_source(path))
    return False


def _begins_with_conflicts(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                return file.read(len(_BEGINNING)) == _BEGINNING
    return False
