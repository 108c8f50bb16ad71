"""Processes of git: safe environment and options, output, and errors with a cause.

A repository is untrusted data. Only plumbing commands that read are started here, without the settings by which a
repository names programs, and without network, prompts, pagers and locks.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError, OnnxJsonError, UntrustedError
from onnxjson.model.payloads import CHUNK

_KEPT: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_SYSTEM",
        "GIT_DIR",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_QUARANTINE_PATH",
        "GIT_WORK_TREE",
    }
)
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
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.allow=never",
)

_ERROR_LENGTH: Final = 300


class CommandError(Exception):
    """git failed; the text is its error message, on one line and made visible."""


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

        Args:
            arguments: the command and its arguments.
            seconds: time limit; None for none.

        Raises:
            CommandError: git failed, or takes too long.
            OnnxJsonError: git cannot be started, or refuses the repository.
        """
        return self.output(*arguments, seconds=seconds).split(b"\0")[:-1]

    def output(self, *arguments: bytes | str, seconds: float | None = None, given: bytes = b"") -> bytes:
        """Return all that git prints, with `given` as its input; see `items`."""
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
            raise CommandError(visible(text or f"git ends with {process.returncode}", _ERROR_LENGTH))
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
        """Hexadecimal name of the object that a revision means; None if there is none of that kind.

        Args:
            revision: as the user writes it.
            kind: ``commit`` or ``tree``.

        Raises:
            CommandError, OnnxJsonError: see `items`.
        """
        if "\n" in revision or "\0" in revision:
            return None
        # Passed on standard input, where nothing is an option.
        line = os.fsencode(revision) + b"^{" + kind.encode() + b"}\n"
        words = self.output("cat-file", "--batch-check", given=line).splitlines()[-1].split(b" ")
        return words[0] if len(words) == 3 and words[1] == kind.encode() else None

    def _start(self, *arguments: bytes | str, errors: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [self._program, *_OPTIONS, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                env=self._environment,
            )
        except OSError as error:
            raise FileError(f"git cannot be started: {error.strerror}") from error

    def objects(self) -> "Objects":
        """Start a process that prints the contents of objects; use it in a ``with`` statement."""
        return Objects(self._start("cat-file", "--batch", errors=subprocess.DEVNULL))


class Objects:
    """The contents of objects, streamed by one ``git cat-file --batch``, which applies no filter to them."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def chunks(self, identity: bytes) -> Iterator[bytes]:
        """Yield the content of an object in pieces; read all of it before the next object.

        Args:
            identity: the full hexadecimal name of an object.

        Raises:
            FileError: the object is missing or damaged, or git ended.
        """
        requests, contents = self._pipes()
        try:
            requests.write(identity + b"\n")
            requests.flush()
            header = contents.readline(1000).split()
        except OSError:
            header = []
        if len(header) != 3 or not header[2].isdigit():
            raise self._gone(identity)
        left = int(header[2])
        while left:
            piece = contents.read(min(left, CHUNK))
            if not piece:
                raise self._gone(identity)
            left -= len(piece)
            yield piece
        contents.read(1)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin
        assert self._process.stdout
        return self._process.stdin, self._process.stdout

    def _gone(self, identity: bytes) -> FileError:
        name = identity.decode("ascii", "replace")[:12]
        return FileError(
            f"git cannot read the object {name}: it is damaged, or missing in a partial clone; "
            "git fsck shows more, git fetch --refetch gets it"
        )


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
    problem = _unusable(message, folder)
    if problem is not None:
        raise problem


def _unusable(message: str, folder: Path) -> OnnxJsonError | None:
    where = visible(str(folder), None)
    if "dubious ownership" in message or "unsafe repository" in message:
        return UntrustedError(
            f"git does not trust the repository around {where}, since it belongs to another user; if you trust it, "
            f"run: git config --global --add safe.directory {_quoted(message) or where}"
        )
    if "not a git repository" in message:
        return MissingInputError(f"{where} is not in a git repository")
    return None


def _quoted(message: str) -> str:
    """The folder that git names in its message, quoted for a shell."""
    import shlex

    named = message.partition("'")[2].partition("'")[0]
    return visible(shlex.quote(named), None) if named else ""
