"""Installation of the drivers into git: settings, and a marked block of lines in a file of attributes."""

import os
import re
import sys
from pathlib import Path
from typing import Final, Literal, NamedTuple

from onnxjson.git import driver_lines
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.driver_lines import ALIAS, ATTRIBUTES, OURS, settings_for
from onnxjson.model.display import visible
from onnxjson.model.errors import MissingInputError, OnnxJsonError, OutputError
from onnxjson.storage.identity import reading_error
from onnxjson.storage.saving import save_file

SettingsScope = Literal["local", "global", "worktree"]
"""One repository, all repositories of the user, or one of several work trees."""

SCOPES: Final[tuple[SettingsScope, ...]] = ("local", "global", "worktree")

_KEYS: Final = tuple(settings_for("python"))


class InstallTarget(NamedTuple):
    """Where settings and attributes are written."""

    scope: SettingsScope
    git: Git
    attributes: Path
    """The file of attributes."""

    def settings(self) -> dict[str, str]:
        """All settings of this scope; the first and the last part of their keys in lower case."""
        try:
            printed = self.git.items("config", f"--{self.scope}", "--null", "--list")
        except CommandError:
            return {}  # there is no file yet
        pairs = (os.fsdecode(item).partition("\n") for item in printed)
        return {key: value for key, _, value in pairs}


def target_of(scope: SettingsScope, folder: Path | None = None) -> InstallTarget:
    """Find the settings and attributes of a scope, seen from `folder` (None for the current folder).

    Raises:
        MissingInputError: the folder is not in a work tree.
        OutputError: all work trees of the repository share their settings.
        OnnxJsonError: git cannot be started, or refuses the repository.
    """
    git = Git(folder or Path.cwd())
    if scope == "global":
        return InstallTarget(scope, git, _users_attributes(git))
    try:
        top = os.fsdecode(git.line("rev-parse", "--show-toplevel"))
    except CommandError as error:
        raise MissingInputError(f"there is no work tree here: {error}; go to one, or use --global") from error
    if scope == "worktree" and not _has_own_settings(git):
        raise OutputError(
            "the work trees of this repository share their settings; git config extensions.worktreeConfig true gives "
            "each its own (see git help worktree), or leave out --worktree"
        )
    return InstallTarget(scope, git, Path(top, ".gitattributes"))


def install(target: InstallTarget, python: str = sys.executable) -> list[str]:
    """Try the settings, then write those that are missing; return a sentence for each change.

    Raises:
        OutputError: a setting does not work, or git has another value for it that is not ours.
        OnnxJsonError: a file cannot be read or written.
    """
    if not os.path.isabs(python):
        raise OutputError("Python does not know its own path, so git cannot start it; call onnxjson by its full path")
    wanted = settings_for(python)
    present = target.settings()
    for key in wanted:
        if (value := present.get(_listed(key))) is not None and value != wanted[key] and not _is_ours(key, present):
            raise OutputError(
                f"git has {key} = {visible(value, 100)} already; git config --{target.scope} --unset {key} removes it"
            )
    check_block(target.attributes)
    problems = driver_lines.problems(wanted)
    if problems:
        raise OutputError(f"nothing was written, since the settings do not work: {'; '.join(problems)}")
    changes = []
    try:
        changed = [key for key in wanted if present.get(_listed(key)) != wanted[key]]
        for key in changed:
            target.git.output("config", f"--{target.scope}", "--replace-all", key, wanted[key])
    except CommandError as error:
        raise OutputError(f"git does not write its {target.scope} settings: {error}") from error
    if changed:
        changes.append(f"wrote {len(changed)} {target.scope} settings of git")
    if put_block(target.attributes):
        changes.append(f"wrote {visible(str(target.attributes), None)}")
    return changes


def uninstall(target: InstallTarget) -> list[str]:
    """Remove what `install` wrote and nothing else; return a sentence for each change.

    Raises:
        OnnxJsonError: a file cannot be read or written. The rest was removed, as the error reports.
    """
    changes = []
    present = target.settings()
    ours = [key for key in _KEYS if _listed(key) in present and _is_ours(key, present)]
    failures: list[OnnxJsonError] = []
    try:
        for key in ours:
            target.git.output("config", f"--{target.scope}", "--unset-all", key)
        if ours:
            changes.append(f"removed {len(ours)} {target.scope} settings of git")
    except CommandError as error:
        failures.append(OutputError(f"git does not write its {target.scope} settings: {error}"))
    try:
        if remove_block(target.attributes):
            changes.append(f"removed the lines from {visible(str(target.attributes), None)}")
    except OnnxJsonError as error:
        failures.append(error)
    if failures:
        failures[0].args = ("; ".join([*(str(each) for each in failures), *changes]),)
        raise failures[0]
    return changes


def installed(target: InstallTarget) -> dict[str, str]:
    """Settings of a scope that `install` wrote, by key as in `settings_for`."""
    present = target.settings()
    return {key: present[_listed(key)] for key in _KEYS if _listed(key) in present and _is_ours(key, present)}


def _listed(key: str) -> str:
    """Spell a key as git lists it."""
    section, _, name = key.rpartition(".")
    return f"{section}.{name.lower()}"


def _is_ours(key: str, present: dict[str, str]) -> bool:
    """Whether `install` wrote a setting, or the command of its section."""
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


_MARK: Final = b"# >>> onnxjson >>>"
_NOTE: Final = b" `onnxjson git uninstall` takes these lines out"
_NEW_FILE: Final = b", and the file, which they began"
_OPEN_LINE: Final = b", and the line feed before them"
_END: Final = b"# <<< onnxjson <<<"

_OURS: Final = frozenset(line.encode() for line in ATTRIBUTES)

_BLOCK: Final = re.compile(
    rb"^# >>> onnxjson >>>(?P<note>[^\n]*)\n(?P<lines>(?:(?!# >>> onnxjson >>>)[^\n]*\n)*?)# <<< onnxjson <<<(?:\n|\Z)",
    re.MULTILINE,
)


def put_block(path: Path) -> bool:
    """End a file with the block of our lines, creating it if needed; return whether anything was written.

    Raises:
        OutputError: the file is a link, which git does not follow, or a folder, or a mark of its block is missing.
        OnnxJsonError: it cannot be read or written.
    """
    content, wanted = _wanted(path)
    if wanted == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(path, lambda sink: sink.write(wanted))
    return True


def check_block(path: Path) -> None:
    """Raise the errors of `put_block` that can be foreseen."""
    content, wanted = _wanted(path)
    if wanted == content:
        return
    folder = next(each for each in path.parents if os.path.lexists(each))
    if not folder.is_dir():
        raise OutputError(f"{visible(str(folder), None)} is not a folder, so {path.name} cannot be in it; move it away")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{visible(str(path), None)} cannot be written: its folder is read-only")


def _wanted(path: Path) -> tuple[bytes | None, bytes]:
    """The content of a file, None if there is none, and its content with the block."""
    content = _read(path)
    rest = _without_block(path, content) if content is not None else None
    if rest is None:
        note, before = _NEW_FILE, b""
    elif rest and not rest.endswith(b"\n"):
        note, before = _OPEN_LINE, rest + b"\n"
    else:
        note, before = b"", rest
    block = [_MARK + _NOTE + note, *(line.encode() for line in ATTRIBUTES), _END, b""]
    return content, before + b"\n".join(block)


def remove_block(path: Path) -> bool:
    """Remove the block from a file; return whether there was one. Errors: see `put_block`."""
    if path.is_dir() and not path.is_symlink():
        return False
    content = _read(path)
    if content is None or not _BLOCK.search(content):
        return False
    rest = _without_block(path, content)
    if rest is None:
        path.unlink()
    else:
        save_file(path, lambda sink: sink.write(rest))
    return True


def has_block(path: Path) -> bool:
    """Whether a file has the block. Errors: see `put_block`."""
    content = _read(path)
    return content is not None and _BLOCK.search(content) is not None


def _read(path: Path) -> bytes | None:
    if os.path.islink(path):
        raise OutputError(f"{visible(str(path), None)} is a link, which git does not follow here; make it a file")
    if path.is_dir():
        raise OutputError(f"{visible(str(path), None)} is a folder, and git reads attributes from a file; move it away")
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise reading_error(path, error) from error


def _without_block(path: Path, content: bytes) -> bytes | None:
    """Return the content without the block; None if there was no file before it."""
    found = _BLOCK.search(content)
    if found is None:
        if _MARK in content or _END in content:
            name = visible(str(path), None)
            raise OutputError(f"a mark around the lines of onnxjson in {name} is missing; remove those lines by hand")
        return content
    before, after = content[: found.start()], content[found.end() :]
    # Another program, such as `git lfs track`, may have written between the marks.
    strangers = [line for line in found["lines"].splitlines(keepends=True) if line.strip() not in _OURS]
    if strangers:
        return before + b"".join(strangers) + after
    if not before and not after and found["note"].endswith(_NEW_FILE):
        return None
    if found["note"].endswith(_OPEN_LINE):
        before = before.removesuffix(b"\n") if not after else before
    return before + after
