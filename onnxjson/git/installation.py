"""What `onnxjson git install` writes, and `uninstall` takes out again: settings of git, lines of .gitattributes."""

import os
import sys
from pathlib import Path
from typing import Final, Literal, NamedTuple

from onnxjson.display import visible
from onnxjson.errors import MissingInputError, OnnxJsonError, OutputError
from onnxjson.git import attribute_files, self_test
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.driver_lines import ALIAS, OURS, settings_for

Scope = Literal["local", "global", "worktree"]
"""One repository, everything that the user has, one work tree of several."""

SCOPES: Final[tuple[Scope, ...]] = ("local", "global", "worktree")

_KEYS: Final = tuple(settings_for("python"))


class Place(NamedTuple):
    """Where something is written."""

    scope: Scope
    git: Git
    attributes: Path
    """The file of attributes."""

    def settings(self) -> dict[str, str]:
        """Every setting of this scope, by key; the name of a setting and the first part of its key in lower case."""
        try:
            printed = self.git.items("config", f"--{self.scope}", "--null", "--list")
        except CommandError:
            return {}  # the file is not there yet
        pairs = (os.fsdecode(item).partition("\n") for item in printed)
        return {key: value for key, _, value in pairs}


def place_of(scope: Scope, folder: Path | None = None) -> Place:
    """Where a scope keeps its settings and attributes, seen from `folder` (the current one where it is None).

    Raises:
        MissingInputError: there is no work tree around.
        OutputError: the repository has several work trees and the same settings for all of them.
        OnnxJsonError: git cannot be started, or refuses the repository.
    """
    git = Git(folder or Path.cwd())
    if scope == "global":
        return Place(scope, git, _users_attributes(git))
    try:
        top = os.fsdecode(git.line("rev-parse", "--show-toplevel"))
    except CommandError as error:
        raise MissingInputError(f"there is no work tree here: {error}; go to one, or use --global") from error
    if scope == "worktree" and not _has_own_settings(git):
        raise OutputError(
            "the work trees of this repository share their settings; git config extensions.worktreeConfig true gives "
            "each its own (see git help worktree), or leave out --worktree"
        )
    return Place(scope, git, Path(top, ".gitattributes"))


def install(place: Place, python: str = sys.executable) -> list[str]:
    """Write what is missing, after the very lines were tried out; what was written, a sentence each.

    Raises:
        OutputError: a line does not work, or git has another setting of somebody else there.
        OnnxJsonError: a file cannot be read or written.
    """
    if not os.path.isabs(python):
        raise OutputError("Python does not say where it is, so git could not start it; call onnxjson by its whole path")
    wanted = settings_for(python)
    present = place.settings()
    for key in wanted:
        if (value := present.get(_listed(key))) is not None and value != wanted[key] and not _is_ours(key, present):
            raise OutputError(
                f"git has {key} = {visible(value, 100)} already; git config --{place.scope} --unset {key} takes it out"
            )
    attribute_files.check_block(place.attributes)
    problems = self_test.problems(wanted)
    if problems:
        raise OutputError(f"nothing was written, since the lines do not work: {'; '.join(problems)}")
    said = []
    try:
        changed = [key for key in wanted if present.get(_listed(key)) != wanted[key]]
        for key in changed:
            place.git.output("config", f"--{place.scope}", "--replace-all", key, wanted[key])
    except CommandError as error:
        raise OutputError(f"git does not write its {place.scope} settings: {error}") from error
    if changed:
        said.append(f"wrote {len(changed)} {place.scope} settings of git")
    if attribute_files.put_block(place.attributes):
        said.append(f"wrote {visible(str(place.attributes), None)}")
    return said


def uninstall(place: Place) -> list[str]:
    """Take out what `install` wrote and nothing else; what was changed, a sentence each.

    Raises:
        OnnxJsonError: a file cannot be read or written. What is elsewhere was taken out, and the error says so.
    """
    said = []
    present = place.settings()
    ours = [key for key in _KEYS if _listed(key) in present and _is_ours(key, present)]
    failures: list[OnnxJsonError] = []
    try:
        for key in ours:
            place.git.output("config", f"--{place.scope}", "--unset-all", key)
        if ours:
            said.append(f"took {len(ours)} {place.scope} settings out of git")
    except CommandError as error:
        failures.append(OutputError(f"git does not write its {place.scope} settings: {error}"))
    try:
        if attribute_files.take_block(place.attributes):
            said.append(f"took the lines out of {visible(str(place.attributes), None)}")
    except OnnxJsonError as error:
        failures.append(error)
    if failures:
        failures[0].args = ("; ".join([*(str(each) for each in failures), *said]),)
        raise failures[0]
    return said


def installed(place: Place) -> dict[str, str]:
    """The settings of a scope that were written here, by key as `settings_for` spells it."""
    present = place.settings()
    return {key: present[_listed(key)] for key in _KEYS if _listed(key) in present and _is_ours(key, present)}


def _listed(key: str) -> str:
    """A key as git lists it."""
    section, _, name = key.rpartition(".")
    return f"{section}.{name.lower()}"


def _is_ours(key: str, present: dict[str, str]) -> bool:
    """Whether a setting, or that of its section which git runs, was written here."""
    section = key.rpartition(".")[0]
    commands = (ALIAS,) if key == ALIAS else (f"{section}.textconv", f"{section}.driver", f"{section}.cmd")
    return any(mark in present.get(command, "") for command in commands for mark in OURS)


def _users_attributes(git: Git) -> Path:
    try:
        return Path(os.fsdecode(git.line("config", "--global", "--type=path", "--get", "core.attributesFile")))
    except CommandError:
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return Path(home, "git", "attributes")


def _has_own_settings(git: Git) -> bool:
    try:
        return git.line("config", "--type=bool", "--get", "extensions.worktreeConfig") == b"true"
    except CommandError:
        return False
