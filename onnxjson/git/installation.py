"""Installation of the drivers into git: settings, a marked block in a file of attributes, and a check of both."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from onnxjson.git import driver_lines, textconv
from onnxjson.git.commands import CommandError, Git
from onnxjson.git.driver_lines import ALIAS, ATTRIBUTES, OURS, settings_for
from onnxjson.model.display import visible
from onnxjson.model.errors import AccessDeniedError, MissingInputError, OnnxJsonError, OutputError
from onnxjson.storage.identity import reading_error
from onnxjson.storage.saving import save_file

SettingsScope = Literal["local", "global", "worktree"]
"""One repository, all repositories of the user, or one of several work trees."""

SCOPES: Final[tuple[SettingsScope, ...]] = ("local", "global", "worktree")

_KEYS: Final = tuple(settings_for("python"))

_MARK: Final = b"# >>> onnxjson >>>"
_NOTE: Final = b" `onnxjson git uninstall` removes these lines"
_NEW_FILE: Final = b", and the file if nothing else is in it"
_OPEN_LINE: Final = b", and the line feed before them"
_END: Final = b"# <<< onnxjson <<<"

_OURS: Final = frozenset(line.encode() for line in ATTRIBUTES)

_BLOCK: Final = re.compile(
    rb"^# >>> onnxjson >>>(?P<note>[^\n]*)\n(?P<lines>(?:(?!# >>> onnxjson >>>)[^\n]*\n)*?)# <<< onnxjson <<<(?:\n|\Z)",
    re.MULTILINE,
)

_WANTED: Final = {"model.onnx": "onnx", "model.onnx.json": "onnxjson"}
_OLDEST: Final = (2, 30)


class InstallTarget(NamedTuple):
    """Where settings and attributes are written."""

    scope: SettingsScope
    git: Git
    attributes: Path

    def settings(self) -> dict[str, str]:
        """All settings of this scope; the first and the last part of their keys in lower case."""
        try:
            printed = self.git.items("config", f"--{self.scope}", "--null", "--list")
        except CommandError:
            return {}  # the file does not exist yet
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
    if scope == "worktree" and git.setting("extensions.worktreeConfig", "--type=bool") != "true":
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
    ours = installed(target)
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
    section, _, name = key.rpartition(".")
    return f"{section}.{name.lower()}"


def _is_ours(key: str, present: dict[str, str]) -> bool:
    """Whether `install` wrote a setting, or the command of its section."""
    section = key.rpartition(".")[0]
    commands = (ALIAS,) if key == ALIAS else (f"{section}.textconv", f"{section}.driver", f"{section}.cmd")
    return any(mark in present.get(command, "") for command in commands for mark in OURS)


def _users_attributes(git: Git) -> Path:
    if (configured := git.setting("core.attributesFile", "--global", "--type=path")) is not None:
        return Path(configured)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home, "git", "attributes")


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
    block = _BLOCK.search(content)
    if block is None:
        if _MARK in content or _END in content:
            name = visible(str(path), None)
            raise OutputError(f"a mark around the lines of onnxjson in {name} is missing; remove those lines by hand")
        return content
    before, after = content[: block.start()], content[block.end() :]
    # Another program, such as `git lfs track`, may have written between the marks.
    strangers = [line for line in block["lines"].splitlines(keepends=True) if line.strip() not in _OURS]
    if strangers:
        return before + b"".join(strangers) + after
    if not before and not after and block["note"].endswith(_NEW_FILE):
        return None
    if block["note"].endswith(_OPEN_LINE):
        before = before.removesuffix(b"\n") if not after else before
    return before + after


class Observation(NamedTuple):
    """Result of one check."""

    is_well: bool
    text: str
    """A sentence, made visible."""


def diagnose(folder: Path, python: str) -> Iterator[Observation]:
    """Yield the result of every check, seen from a folder.

    Raises:
        OnnxJsonError: git is not installed, or refuses the repository.
    """
    git = Git(folder)
    yield from _versions(git, python)
    if os.environ.get("ONNXJSON_GIT") == "off":
        yield Observation(False, "ONNXJSON_GIT is off: git works without onnxjson; unset ONNXJSON_GIT")
    places = []
    for scope in SCOPES:
        with suppress(OnnxJsonError):
            places.append(target_of(scope, folder))
    installations = [(place, settings) for place in places if (settings := installed(place))]
    for place, settings in installations:
        yield _settings(place, settings, python)
    if not installations:
        yield Observation(False, "git has no settings of onnxjson; onnxjson git install writes them")
    for place in places:
        try:
            if _BLOCK.search(_read(place.attributes) or b""):
                yield Observation(True, f"lines of onnxjson are in {visible(str(place.attributes), None)}")
        except OnnxJsonError as error:
            yield Observation(False, str(error))
    is_in_work_tree = False
    with suppress(CommandError, OnnxJsonError):
        is_in_work_tree = git.line("rev-parse", "--is-inside-work-tree") == b"true"
    if is_in_work_tree:
        yield from _attributes(git)
    if installations:
        tried = {key: value for key in settings_for("python") if (value := git.setting(key)) is not None}
        problems = driver_lines.problems(tried)
        yield from [Observation(False, problem) for problem in problems]
        if not problems:
            yield Observation(True, "the settings work: a small model was shown and merged")


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
    with suppress(AccessDeniedError):
        yield Observation(True, f"texts of big models are kept in {visible(str(textconv.TEXTS.root), None)}")


def _settings(place: InstallTarget, settings: dict[str, str], python: str) -> Observation:
    wanted = settings_for(python)
    missing = [key for key in wanted if key not in settings]
    other = [key for key in settings if settings[key] != wanted[key]]
    again = f"; onnxjson git install --{place.scope} writes them again"
    if missing:
        return Observation(False, f"git lacks {place.scope} settings: {', '.join(missing)}{again}")
    if any(key.endswith(".recursive") for key in other):
        named = ", ".join(f"{key} = {visible(settings[key])}" for key in other if key.endswith(".recursive"))
        what = f"the {place.scope} settings of git are from an earlier version: with {named},"
        return Observation(False, f"{what} a criss-cross merge can undo a revert{again}")
    if other:
        what = f"the {place.scope} settings of git start another Python or are of another version"
        return Observation(False, f"{what}: {', '.join(other)}{again}")
    return Observation(True, f"all {place.scope} settings of git are set")


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
    try:
        return visible(os.fsdecode(git.line("lfs", "version", seconds=10)).split(" ")[0])
    except CommandError:
        return ""
