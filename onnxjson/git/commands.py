"""Processes of git: safe environment and options, output, and errors with a cause; pointers of Git LFS.

A repository is untrusted data. Only plumbing commands that read are started here, without the settings by which a
repository names programs, and without network, prompts, pagers and locks.

Of Git LFS only the local store is used; nothing is fetched (docs/spec.md of git-lfs).
"""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError, UntrustedError

if TYPE_CHECKING:
    import subprocess

_KEPT: Final = frozenset((
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CEILING_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_SYSTEM", "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
    "GIT_QUARANTINE_PATH", "GIT_WORK_TREE",
))  # fmt: skip
"""Variables for the place of the repository and the user's settings of git; hooks have some of them set."""

_KEPT_BEGINNINGS: Final = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

_SET: Final = {
    "GIT_ALLOW_PROTOCOL": "none",  # for older versions of git: do not fetch a missing object
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",  # error messages are recognized by their words
}

_OPTIONS: Final = (
    "--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.allow=never",
)  # fmt: skip

_ERROR_LENGTH: Final = 300

POINTER_BYTES: Final = 1024
"""A pointer is shorter than this."""

_VERSION: Final = re.compile(rb"version https://(?:git-lfs|hawser)\.github\.com/spec/v1\n")
_OBJECT: Final = re.compile(rb"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)
_SIZE: Final = re.compile(rb"^size ([0-9]{1,19})$", re.MULTILINE)


class CommandError(Exception):
    """git failed; the text is its error message, on one line and made visible."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code
        """Its exit code if it failed without a message, as ``git grep`` does that finds nothing; else 0."""


class Git:
    """git, started in one folder.

    Raises:
        MissingInputError: git is not installed.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str | None] | None = None) -> None:
        """Prepare to start git in `folder`, with `variables` replacing inherited ones."""
        self.folder = folder
        """Folder in which git is started."""
        mixed = _environment() | dict(variables or {})
        self._environment = {name: value for name, value in mixed.items() if value is not None}
        self._program = _program(self._environment.get("PATH", os.defpath))

    def items(self, *arguments: bytes | str, seconds: float | None = None) -> list[bytes]:
        """Return the items that git prints, each ended by a zero byte (``-z``).

        Raises:
            CommandError: git failed, or takes too long.
            OnnxJsonError: git cannot be started, or refuses the repository.
        """
        return self.output(*arguments, seconds=seconds).split(b"\0")[:-1]

    def output(self, *arguments: bytes | str, seconds: float | None = None, given: bytes = b"") -> bytes:
        """Return all that git prints, with `given` as its input; see `items`."""
        import subprocess  # not at the start of the textconv driver, which seldom needs git

        with self._start(*arguments) as process:
            try:
                printed, message = process.communicate(given, timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise CommandError(f"it takes longer than {seconds:g} s") from None
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            text = " ".join(message.decode("utf-8", "replace").split())
            _raise_if_unusable(text, self.folder)
            shown = visible(text or f"git exited with {process.returncode}", _ERROR_LENGTH)
            raise CommandError(shown, 0 if text else process.returncode)
        return printed

    def line(self, *arguments: bytes | str, seconds: float | None = None) -> bytes:
        """Return the line that git prints, which may contain line feeds itself; see `items`."""
        return self.output(*arguments, seconds=seconds).removesuffix(b"\n")

    def up(self) -> bytes:
        """Path from the folder up to the top of the work tree, ``../../``; b"" at the top and in a bare repository.

        Raises:
            OnnxJsonError: see `items`.
        """
        try:
            return self.line("rev-parse", "--show-cdup")
        except CommandError:
            return b""

    def named(self, revision: str, kind: str) -> bytes | None:
        """Return the hexadecimal name of the object of a revision; None if it is not a ``commit`` or ``tree``."""
        if "\n" in revision or "\0" in revision:
            return None
        # Passed on standard input, where nothing is an option.
        line = os.fsencode(revision) + b"^{" + kind.encode() + b"}\n"
        words = self.output("cat-file", "--batch-check", given=line).splitlines()[-1].split(b" ")
        return words[0] if len(words) == 3 and words[1] == kind.encode() else None

    def setting(self, key: str, *options: str) -> str | None:
        """Return the value of a setting, with more `options` of ``git config``; None if it is not set."""
        try:
            return os.fsdecode(self.output("config", *options, "--null", "--get", key)).removesuffix("\0")
        except CommandError:
            return None

    def write_object(self, identity: bytes, file: IO[bytes]) -> None:
        """Write the content of a blob to an open file; no filter is applied to it.

        Raises:
            FileError: the object is missing or damaged, or git cannot be started.
        """
        with self._start("cat-file", "blob", identity, file=file) as process:
            process.communicate()
        if process.returncode:
            name = identity.decode("ascii", "replace")[:12]
            raise FileError(
                f"git cannot read the object {name}: it is damaged, or missing in a partial clone; "
                "git fsck shows more, git fetch --refetch gets it"
            )

    def merge_file(self, ours: Path, base: Path, theirs: Path, *, marker_size: str) -> int:
        """Merge the lines of three files into `ours`, with markers; return the number of conflicts.

        Raises:
            FileError: git cannot merge them.
        """
        labels = ("-L", "ours", "-L", "base", "-L", "theirs")
        files = map(os.fsencode, (ours, base, theirs))
        with self._start("merge-file", "-q", f"--marker-size={marker_size}", *labels, "--", *files) as process:
            _, message = process.communicate()
        if not 0 <= process.returncode < 128:
            text = visible(" ".join(message.decode("utf-8", "replace").split()), _ERROR_LENGTH)
            raise FileError(f"git cannot merge the lines: {text or process.returncode}")
        return process.returncode

    def _start(self, *arguments: bytes | str, file: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
        from subprocess import PIPE, Popen

        command, output = [self._program, *_OPTIONS, *arguments], PIPE if file is None else file
        try:
            return Popen(command, stdin=PIPE, stdout=output, stderr=PIPE, cwd=self.folder, env=self._environment)
        except OSError as error:
            raise FileError(f"git cannot be started: {error.strerror}") from error


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    kept.pop("LANGUAGE", None)
    # A relative folder on the path would be in the repository.
    kept["PATH"] = os.pathsep.join(
        folder for folder in kept.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)
    )
    return kept | _SET


def _program(path: str) -> str:
    for folder in path.split(os.pathsep):
        program = os.path.join(folder, "git")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    raise MissingInputError("git is not installed, or not on the PATH; REV:path reads a model from git")


def _raise_if_unusable(message: str, folder: Path) -> None:
    """Raise the error for a message about the repository as a whole."""
    where = visible(str(folder), None)
    if "dubious ownership" in message or "unsafe repository" in message:
        named = message.partition("'")[2].partition("'")[0]  # git names the folder
        quoted = visible(shlex.quote(named), None) if named else where
        raise UntrustedError(
            f"git does not trust the repository around {where}, since it belongs to another user; if you trust it, "
            f"run: git config --global --add safe.directory {quoted}"
        )
    if "not a git repository" in message:
        raise MissingInputError(f"{where} is not in a git repository")


class Pointer(NamedTuple):
    """Content of a file in the repository that represents a big file."""

    sha256: str
    """Hexadecimal SHA-256 of the file."""
    size: int
    """Size of the file in bytes."""


def lfs_pointer(content: bytes) -> Pointer | None:
    """Parse the first `POINTER_BYTES` bytes of a file, or all of it; return None if it is not a pointer."""
    if len(content) >= POINTER_BYTES or not _VERSION.match(content):
        return None
    found, size = _OBJECT.search(content), _SIZE.search(content)
    return Pointer(found[1].decode(), int(size[1])) if found and size else None


def lfs_file(storage: Path, wanted: Pointer) -> Path | None:
    """Find the file of a pointer in the folder ``lfs`` of the repository; return None if it was not fetched."""
    name = wanted.sha256
    place = storage / "objects" / name[:2] / name[2:4] / name
    try:
        return place if place.is_file() and place.stat().st_size == wanted.size else None
    except OSError:
        return None


def lfs_storage(git: Git) -> Path:
    """Return the folder ``lfs`` of the repository in which `git` is started; it need not exist.

    Raises:
        CommandError, OnnxJsonError: there is no repository.
    """
    common = os.fsdecode(git.line("rev-parse", "--git-common-dir"))
    return git.folder / common / (git.setting("lfs.storage", "--type=path") or "lfs")
