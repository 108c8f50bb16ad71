"""git as a program: how it is started, what it may do, what its complaints mean.

A repository is data that somebody else made. Only plumbing that reads is started here, with the settings switched off
by which a repository names programs, without network, prompts, pagers and locks.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from onnxjson.display import visible
from onnxjson.errors import FileError, MissingInputError, OnnxJsonError, UntrustedError
from onnxjson.payloads import CHUNK

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
"""Variables that say where the repository is and how the user configured git; a hook has some of them set."""

_KEPT_BEGINNINGS: Final = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

_SET: Final = {
    "GIT_ALLOW_PROTOCOL": "none",  # what older gits have to stop the fetch of a missing object
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",  # its complaints are told apart by their words
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
    """git said no; the text is what it said, on one line and made visible."""


class Git:
    """git, as it is started in one folder.

    Raises:
        MissingInputError: it is not installed.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str | None] | None = None) -> None:
        """Prepare to start git in `folder`, with `variables` of the environment in place of those inherited."""
        self.folder = folder
        """Where it is started."""
        mixed = _environment() | dict(variables or {})
        self._environment = {name: value for name, value in mixed.items() if value is not None}
        self._program = _program(self._environment.get("PATH", os.defpath))

    def items(self, *arguments: bytes | str, seconds: float | None = None) -> list[bytes]:
        """What git prints, each ended by a zero byte (``-z``).

        Args:
            arguments: the command and its arguments.
            seconds: how long it may take.

        Raises:
            CommandError: it failed, or takes too long.
            OnnxJsonError: it cannot be started, or the repository cannot be used at all.
        """
        return self.output(*arguments, seconds=seconds).split(b"\0")[:-1]

    def output(self, *arguments: bytes | str, seconds: float | None = None, given: bytes = b"") -> bytes:
        """All that git prints when it is `given` something to read; see `items`."""
        with self._started(*arguments) as process:
            try:
                printed, complaint = process.communicate(given, timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise CommandError(f"it takes longer than {seconds:g} s") from None
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            text = " ".join(complaint.decode("utf-8", "replace").split())
            _raise_if_unusable(text, self.folder)
            raise CommandError(visible(text or f"git ends with {process.returncode}", _ERROR_LENGTH))
        return printed

    def line(self, *arguments: bytes | str, seconds: float | None = None) -> bytes:
        """The one line that git prints, which may hold line feeds itself; see `items`."""
        return self.output(*arguments, seconds=seconds).removesuffix(b"\n")

    def up(self) -> bytes:
        """The way from the folder to the top of the work tree, ``../../``; b"" at the top and in a bare repository.

        Raises:
            OnnxJsonError: see `items`.
        """
        try:
            return self.line("rev-parse", "--show-cdup")
        except CommandError:
            return b""

    def named(self, revision: str, kind: str) -> bytes | None:
        """The hexadecimal name of the object that a revision leads to; None where there is none of that kind.

        Args:
            revision: as a person writes it, without line feeds.
            kind: ``commit`` or ``tree``.

        Raises:
            CommandError, OnnxJsonError: see `items`.
        """
        if "\n" in revision or "\0" in revision:
            return None
        # Asked on standard input, where nothing is an option.
        line = os.fsencode(revision) + b"^{" + kind.encode() + b"}\n"
        words = self.output("cat-file", "--batch-check", given=line).splitlines()[-1].split(b" ")
        return words[0] if len(words) == 3 and words[1] == kind.encode() else None

    def _started(self, *arguments: bytes | str, complaints: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [self._program, *_OPTIONS, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=self.folder,
                env=self._environment,
            )
        except OSError as error:
            raise FileError(f"git cannot be started: {error.strerror}") from error

    def objects(self) -> "Objects":
        """A process that hands out the contents of objects; use it in a ``with`` statement."""
        return Objects(self._started("cat-file", "--batch", complaints=subprocess.DEVNULL))


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
        """The content of an object in pieces; ask for all of it before the next one.

        Args:
            identity: the full hexadecimal name of an object.

        Raises:
            FileError: it is not there, is damaged, or git ended.
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
            f"git does not give the object {name}: it is damaged, or was left out of a partial clone; "
            "git fsck says more, git fetch --refetch gets it"
        )


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    kept.pop("LANGUAGE", None)
    # A relative folder on the path would be one of the repository.
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


def _raise_if_unusable(complaint: str, folder: Path) -> None:
    """The error for a complaint that is about the repository as a whole."""
    problem = _unusable(complaint, folder)
    if problem is not None:
        raise problem


def _unusable(complaint: str, folder: Path) -> OnnxJsonError | None:
    where = visible(str(folder), None)
    if "dubious ownership" in complaint or "unsafe repository" in complaint:
        return UntrustedError(
            f"git does not trust the repository around {where}, since it belongs to another user; if you do, say so "
            f"with: git config --global --add safe.directory {_quoted(complaint) or where}"
        )
    if "not a git repository" in complaint:
        return MissingInputError(f"{where} is not in a git repository")
    return None


def _quoted(complaint: str) -> str:
    """The folder that git names in its complaint, ready for a shell."""
    import shlex

    named = complaint.partition("'")[2].partition("'")[0]
    return visible(shlex.quote(named), None) if named else ""
