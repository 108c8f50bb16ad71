"""What `onnxjson git doctor` says: what is set where, and whether it works."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError
from onnxjson.git import attribute_files, installation, self_test, text_cache
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.driver_lines import settings_for

_WANTED: Final = {"model.onnx": "onnx", "model.onnx.json": "onnxjson"}
_OLDEST: Final = (2, 30)


class Observation(NamedTuple):
    """One thing that was looked at."""

    is_well: bool
    text: str
    """A sentence, made visible."""


def diagnose(folder: Path, python: str) -> Iterator[Observation]:
    """Everything there is to say, seen from a folder.

    Args:
        folder: in a work tree, or anywhere else.
        python: the interpreter that `install` would set.

    Raises:
        OnnxJsonError: git is not there, or refuses the repository.
    """
    git = Git(folder)
    yield from _versions(git, python)
    if os.environ.get("ONNXJSON_GIT") == "off":
        yield Observation(False, "ONNXJSON_GIT is off: git does without onnxjson; unset ONNXJSON_GIT")
    places = list(_places(folder))
    found = [(place, settings) for place in places if (settings := installation.installed(place))]
    for place, settings in found:
        yield _settings(place, settings, python)
    if not found:
        yield Observation(False, "git has no settings of onnxjson; onnxjson git install writes them")
    for place in places:
        try:
            if attribute_files.has_block(place.attributes):
                yield Observation(True, f"lines of onnxjson are in {visible(str(place.attributes), None)}")
        except OnnxJsonError as error:
            yield Observation(False, str(error))
    if _is_in_work_tree(git):
        yield from _attributes(git)
    if found:
        yield from _trial(git)


def _versions(git: Git, python: str) -> Iterator[Observation]:
    from importlib.metadata import version

    where = visible(python, None)
    yield Observation(True, f"onnxjson {version('onnxjson')}, Python {platform.python_version()} at {where}")
    printed = os.fsdecode(git.line("version")).removeprefix("git version ")
    numbers = tuple(int(part) for part in printed.split(".")[:2] if part.isdigit())
    old = numbers < _OLDEST
    yield Observation(not old, f"git {visible(printed)}" + ("; 2.30 or newer is needed" if old else ""))
    try:
        lfs = os.fsdecode(git.line("lfs", "version", seconds=10)).split(" ")[0]
        yield Observation(True, visible(lfs))
    except CommandError:
        yield Observation(True, "git-lfs is not installed; only repositories with Git LFS need it")
    texts = text_cache.folder()
    if texts is not None:
        yield Observation(True, f"texts of big models are kept in {visible(str(texts), None)}")


def _places(folder: Path) -> Iterator[installation.Place]:
    for scope in installation.SCOPES:
        try:
            yield installation.place_of(scope, folder)
        except OnnxJsonError:
            continue


def _settings(place: installation.Place, settings: dict[str, str], python: str) -> Observation:
    wanted = settings_for(python)
    missing = [key for key in wanted if key not in settings]
    other = [key for key in settings if settings[key] != wanted[key]]
    again = f"; onnxjson git install --{place.scope} writes them anew"
    if missing:
        return Observation(False, f"of the {place.scope} settings of git {', '.join(missing)} are missing{again}")
    if any(key.endswith(".recursive") for key in other):
        named = ", ".join(f"{key} = {visible(settings[key])}" for key in other if key.endswith(".recursive"))
        what = f"the {place.scope} settings of git are of an earlier version: with {named}"
        return Observation(False, f"{what} a merge of histories that cross can undo a revert{again}")
    if other:
        what = f"the {place.scope} settings of git start another Python or are of another version"
        return Observation(False, f"{what}: {', '.join(other)}{again}")
    return Observation(True, f"all {place.scope} settings of git are there")


def _is_in_work_tree(git: Git) -> bool:
    try:
        return git.line("rev-parse", "--is-inside-work-tree") == b"true"
    except (CommandError, OnnxJsonError):
        return False


def _attributes(git: Git) -> Iterator[Observation]:
    items = [os.fsdecode(item) for item in git.items("check-attr", "-z", "diff", "merge", "filter", "--", *_WANTED)]
    values = {(path, name): value for path, name, value in zip(items[::3], items[1::3], items[2::3], strict=True)}
    for path, driver in _WANTED.items():
        for name in ("diff", "merge"):
            value = values[path, name]
            if value == driver:
                yield Observation(True, f"*{path[5:]} has {name}={driver}")
                continue
            hint = "onnxjson git install puts its lines last, where they win"
            yield Observation(False, f"*{path[5:]} has {name}={visible(value)}, not {driver}; {hint}")
        if values[path, "filter"] == "lfs" and not _has_lfs(git):
            yield Observation(False, f"*{path[5:]} is in Git LFS, and git-lfs is not installed: no weights are fetched")


def _has_lfs(git: Git) -> bool:
    try:
        git.line("lfs", "version", seconds=10)
    except CommandError:
        return False
    return True


def _trial(git: Git) -> Iterator[Observation]:
    settings = {}
    for key in settings_for("python"):
        try:
            settings[key] = os.fsdecode(git.output("config", "--null", "--get", key)).removesuffix("\0")
        except CommandError:
            continue
    problems = self_test.problems(settings)
    for problem in problems:
        yield Observation(False, problem)
    if not problems:
        yield Observation(True, "the lines work: a small model was shown and merged")
