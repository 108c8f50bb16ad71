"""Checks of `onnxjson git doctor`: versions, settings, attributes, and whether they work."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.git import driver_lines, installation, shown_text
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.driver_lines import settings_for
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError

_WANTED: Final = {"model.onnx": "onnx", "model.onnx.json": "onnxjson"}
_OLDEST: Final = (2, 30)


class Observation(NamedTuple):
    """Result of one check."""

    is_well: bool
    text: str
    """A sentence, made visible."""


def diagnose(folder: Path, python: str) -> Iterator[Observation]:
    """Yield the result of every check, seen from a folder.

    Args:
        folder: a folder in a work tree, or anywhere else.
        python: the interpreter that `install` would set.

    Raises:
        OnnxJsonError: git is not installed, or refuses the repository.
    """
    git = Git(folder)
    yield from _versions(git, python)
    if os.environ.get("ONNXJSON_GIT") == "off":
        yield Observation(False, "ONNXJSON_GIT is off: git works without onnxjson; unset ONNXJSON_GIT")
    places = list(_places(folder))
    found = [(place, settings) for place in places if (settings := installation.installed(place))]
    for place, settings in found:
        yield _settings(place, settings, python)
    if not found:
        yield Observation(False, "git has no settings of onnxjson; onnxjson git install writes them")
    for place in places:
        try:
            if installation.has_block(place.attributes):
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
    lfs = _lfs_version(git)
    yield Observation(True, lfs or "git-lfs is not installed; only repositories with Git LFS need it")
    texts = shown_text.cache_folder()
    if texts is not None:
        yield Observation(True, f"texts of big models are kept in {visible(str(texts), None)}")


def _places(folder: Path) -> Iterator[installation.InstallTarget]:
    for scope in installation.SCOPES:
        try:
            yield installation.target_of(scope, folder)
        except OnnxJsonError:
            continue


def _settings(place: installation.InstallTarget, settings: dict[str, str], python: str) -> Observation:
    wanted = settings_for(python)
    missing = [key for key in wanted if key not in settings]
    other = [key for key in settings if settings[key] != wanted[key]]
    again = f"; onnxjson git install --{place.scope} writes them again"
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
            hint = "onnxjson git install writes its lines at the end, where they take precedence"
            yield Observation(False, f"*{path[5:]} has {name}={visible(value)}, not {driver}; {hint}")
        if values[path, "filter"] == "lfs" and not _lfs_version(git):
            yield Observation(False, f"*{path[5:]} is in Git LFS, and git-lfs is not installed: no weights are fetched")


def _lfs_version(git: Git) -> str:
    """Version of git-lfs, made visible; "" if it is not installed."""
    try:
        return visible(os.fsdecode(git.line("lfs", "version", seconds=10)).split(" ")[0])
    except CommandError:
        return ""


def _trial(git: Git) -> Iterator[Observation]:
    settings = {}
    for key in settings_for("python"):
        try:
            settings[key] = os.fsdecode(git.output("config", "--null", "--get", key)).removesuffix("\0")
        except CommandError:
            continue
    problems = driver_lines.problems(settings)
    for problem in problems:
        yield Observation(False, problem)
    if not problems:
        yield Observation(True, "the settings work: a small model was shown and merged")
