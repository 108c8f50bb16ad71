"""The textconv driver of git: ``python -I -m onnxjson.git.textconv FILE`` prints a model as text.

git runs this for every version of a model that it shows, and aborts all of its output if it fails once. So it never
fails: any error becomes a line with the SHA-256 of the file, which changes when the file does, and exit code 0. The
lines in git's settings (`onnxjson.git.driver_lines`) do the same if not even Python starts.
"""

import hashlib
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Final

from onnxjson.codecs import text_file
from onnxjson.git import lfs, shown_text
from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, LimitError, OnnxJsonError
from onnxjson.model.limits import TEXTCONV_BYTES
from onnxjson.model.payloads import CHUNK
from onnxjson.storage import files

SECONDS: Final = 120
"""Time limit for one file."""


_WORTH_KEEPING: Final = 0.05
"""Minimum time, in seconds, after which a text is kept in the cache."""

_CACHED_FROM: Final = 64 * 1024
"""Minimum size, in bytes, of a file whose text may be in the cache."""

_LONGEST_LINE: Final = 2000
"""Maximum size, in bytes, of a line of a text that is not a model; base64 of weights is longer."""

Pieces = list[bytes | bytearray | memoryview]


class _Text:
    """Collector of the text.

    Raises:
        LimitError: the text is too long.
    """

    def __init__(self) -> None:
        self.pieces: Pieces = []
        self._left = TEXTCONV_BYTES

    def write(self, piece: bytes | bytearray | memoryview, /) -> None:
        """Add a piece."""
        self._left -= len(piece)
        if self._left < 0:
            raise LimitError(f"its text has more than {TEXTCONV_BYTES:,} bytes")
        self.pieces.append(piece)


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
    if not stat.S_ISREG(path.stat().st_mode):
        raise FileError("it is not a regular file")
    with path.open("rb") as file:
        wanted = lfs.pointer(file.read(lfs.POINTER_BYTES))
    if wanted is not None:
        stored = _from_local_store(wanted)
        if stored is None:
            what = f"Git LFS pointer: {wanted.size:,} bytes, sha256 {wanted.sha256}"
            return [f"{what}; weights not fetched: git lfs pull\n".encode()]
        path = stored
    return _model_text(path)


def _model_text(path: Path) -> Pieces:
    started = time.monotonic()
    is_big = path.stat().st_size >= _CACHED_FROM
    sha256 = _sha256(path) if is_big else ""
    if is_big and (text := shown_text.read_cached(sha256)) is not None:
        return [text]
    text_of_model = _Text()
    try:
        loaded = files.load(path, bind=False)
    except OnnxJsonError as error:
        lines = _readable_lines(path)
        if lines is None:
            raise
        return [_reason(path, error).replace(b"not shown", b"shown as it is", 1) + b"\n", *lines]
    shown_text.write(loaded.model, text_of_model.write)
    if not _is_canonical(path, loaded):
        what = "canonical: onnxjson fmt makes it so" if loaded.format == "json" else "as onnxjson writes this model"
        text_of_model.write(f"the file is not {what}; sha256 {sha256 or _sha256(path)}\n".encode())
    if is_big and time.monotonic() - started > _WORTH_KEEPING:
        shown_text.cache(sha256, text_of_model.pieces)
    return text_of_model.pieces


def _is_canonical(path: Path, loaded: files.Loaded) -> bool:
    """Whether no other file has the same text, so that no line has to distinguish them."""
    if loaded.format == "onnx":
        return not loaded.warnings
    return loaded.format == "json" and files.is_canonical(path, loaded)


def _readable_lines(path: Path) -> Pieces | None:
    """Lines of a text that is not a model, long ones as their SHA-256; None if the file is not a text."""
    if path.stat().st_size > TEXTCONV_BYTES:
        return None
    content = path.read_bytes()
    if not text_file.is_printable(content):
        return None
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    lines: Pieces = []
    for line in content.splitlines(keepends=True):
        if len(line) > _LONGEST_LINE:
            digest = hashlib.sha256(line).hexdigest()
            line = b"%b... %d bytes, sha256 %b\n" % (
                line[:80].decode(errors="ignore").encode(),
                len(line),
                digest.encode(),
            )
        lines.append(line)
    if lines and not bytes(lines[-1]).endswith(b"\n"):
        lines.append(b"\n")
    return lines


def _from_local_store(wanted: lfs.Pointer) -> Path | None:
    from onnxjson.git.commands import CommandError, Git

    try:
        return lfs.stored(lfs.storage(Git(Path.cwd())), wanted)
    except (CommandError, OnnxJsonError):
        return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def _line_for(path: Path, error: BaseException) -> Pieces:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return [_reason(path, error) + b"\n"]
        identity = f"{path.stat().st_size:,} bytes, sha256 {_sha256(path)}"
    except (OSError, ValueError) as problem:
        identity = f"it cannot be read: {getattr(problem, 'strerror', problem)}"
    return [_reason(path, error) + f"; {identity}\n".encode()]


def _reason(path: Path, error: BaseException) -> bytes:
    """Explain why a model is not shown, without the name of git's temporary file, which differs each time."""
    if isinstance(error, _OutOfTimeError):
        reason = f"not shown: it takes longer than {SECONDS} s"
    elif isinstance(error, OnnxJsonError):
        reason = f"not shown: {str(error).replace(visible(str(path), None), 'the file')}"
    elif isinstance(error, MemoryError):
        reason = "not shown: not enough memory"
    elif isinstance(error, OSError):
        reason = f"not shown: {error.strerror}"
    else:
        reason = f"not shown: an error in onnxjson itself ({type(error).__name__})"
    return " ".join(visible(reason, 500).split()).encode()


class _OutOfTimeError(BaseException):
    """The time limit is exceeded."""


def _limit_time() -> None:
    """Raise an error after `SECONDS`; the system ends the process after twice that time."""

    def give_up(*_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        raise _OutOfTimeError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SECONDS * 2)


if __name__ == "__main__":
    main()
