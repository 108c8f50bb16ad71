"""The textconv driver of git: ``python -I -m onnxjson.git.textconv FILE`` prints a model as text.

git runs this for every version of a model that it shows, and aborts all of its output after one failure. So it never
fails: any error becomes a line with the SHA-256 of the file, which changes when the file does, and exit code 0. The
lines in git's settings (`onnxjson.git.driver_lines`) do the same if not even Python starts.

JSON of another program is printed as it is. The text of a model is canonical, without the bytes of weights and without
most of the metadata. Every change of the model changes at least one line: weights are shown as dtype, shape and
SHA-256, the metadata of elements as one line with its count and SHA-256. All other lines are those of the file if the
file is canonical, so that line numbers in diffs lead to them.

Complete texts that took long are kept in a store (`onnxjson.storage.store`), by the SHA-256 of their files. That never
fails: without a text there, git waits a little longer.
"""

import hashlib
import os
import signal
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnxjson.storage.store import Store

if TYPE_CHECKING:  # loaded where it is needed: a text in the cache does without, which is most of the start
    from onnxjson.git.commands import Pointer

SECONDS: Final = 120
"""Time limit for one file."""

_WORTH_KEEPING: Final = 0.05
"""Minimum time, in seconds, after which a text is kept in the cache."""

_CACHED_FROM: Final = 64 * 1024
"""Minimum size, in bytes, of a file whose text may be in the cache."""

Pieces = list[bytes | bytearray | memoryview]

VERSION: Final = 1
"""Version of the texts that `shown_text` writes."""

TEXTS: Final = Store("cache", "texts", bytes_in_all=512 << 20, entries_a_key=1)


def main() -> None:
    """Print the text of the file that the command line names."""
    _limit_time()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "")
    try:
        pieces = convert(path)
    except BaseException as error:  # git must get lines in any case
        pieces = _line_for(path, error)
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except OSError:
        # git has stopped reading; Python would report it once more at exit.
        os._exit(0)


def convert(path: Path) -> Pieces:
    """Return the text of a model in a file, in pieces.

    Raises:
        OnnxJsonError: the file is neither a model nor a text.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        from onnxjson.model.errors import FileError

        raise FileError("it is not a regular file")
    if status.st_size < _CACHED_FROM and (wanted := _pointer(path)) is not None:
        stored = _from_local_store(wanted)
        if stored is None:
            what = f"Git LFS pointer: {wanted.size:,} bytes, sha256 {wanted.sha256}"
            return [f"{what}; weights not fetched: git lfs pull\n".encode()]
        path = stored
    return _model_text(path)


def _model_text(path: Path) -> Pieces:
    started = time.monotonic()
    before = path.stat()
    is_big = before.st_size >= _CACHED_FROM
    sha256 = _sha256(path) if is_big else ""
    if is_big and (text := read_cached(sha256)) is not None:
        return [text]
    from onnxjson.git import shown_text
    from onnxjson.storage.identity import called

    # The name of git's temporary file differs each time.
    pieces, is_complete = shown_text.text_of(called(path, "the file"), _reason)
    if is_complete and is_big and time.monotonic() - started > _WORTH_KEEPING and _facts(path.stat()) == _facts(before):
        cache_text(sha256, pieces)  # The text is that of the file whose hash was read.
    return pieces


def _facts(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _pointer(path: Path) -> "Pointer | None":
    from onnxjson.git.commands import POINTER_BYTES, lfs_pointer

    with path.open("rb") as file:
        return lfs_pointer(file.read(POINTER_BYTES))


def _from_local_store(wanted: "Pointer") -> Path | None:
    from onnxjson.git.commands import CommandError, Git, lfs_file, lfs_storage
    from onnxjson.model.errors import OnnxJsonError

    try:
        return lfs_file(lfs_storage(Git(Path.cwd())), wanted)
    except (CommandError, OnnxJsonError):
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line_for(path: Path, error: BaseException) -> Pieces:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return [_reason(error) + b"\n"]
        identity = f"{path.stat().st_size:,} bytes, sha256 {_sha256(path)}"
    except (OSError, ValueError) as problem:
        identity = f"it cannot be read: {getattr(problem, 'strerror', problem)}"
    return [_reason(error) + f"; {identity}\n".encode()]


def _reason(error: BaseException, what: str = "not shown") -> bytes:
    """Explain why a model is not shown, or shown as `what` says."""
    from onnxjson.model.display import visible
    from onnxjson.model.errors import OnnxJsonError

    if isinstance(error, _OutOfTimeError):
        reason = f"it takes longer than {SECONDS} s"
    elif isinstance(error, OnnxJsonError):
        reason = str(error)
    elif isinstance(error, MemoryError):
        reason = "not enough memory"
    elif isinstance(error, OSError):
        reason = str(error.strerror)
    else:
        reason = f"an error in onnxjson itself ({type(error).__name__})"
    return " ".join(visible(f"{what}: {reason}", 500).split()).encode()


class _OutOfTimeError(BaseException):
    pass


def _limit_time() -> None:
    """Raise an error after `SECONDS`; the system ends the process after twice that time. Windows has no such alarms."""
    if not hasattr(signal, "setitimer"):
        return

    def give_up(*_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        raise _OutOfTimeError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SECONDS * 2)


def read_cached(sha256: str) -> bytes | None:
    """Return the text of the file with that SHA-256; None if it is not kept, or damaged."""
    with suppress(Exception):  # such as of a user without a home folder
        for content in TEXTS.contents(f"{VERSION} {sha256}"):
            return content.read()
    return None


def cache_text(sha256: str, text: Sequence[bytes | bytearray | memoryview]) -> None:
    """Keep a text, given in pieces, for the file with that SHA-256; a full disk is not an error."""
    content = b"".join(text)
    if len(content) <= TEXTS.bytes_in_all // 4:
        with suppress(Exception):
            digest = hashlib.sha256(content).hexdigest()
            TEXTS.keep(f"{VERSION} {sha256}", lambda output: output.write(content), len(content), digest)


if __name__ == "__main__":
    main()
    os._exit(0)  # without taking everything apart, a tenth of the time of a small model
