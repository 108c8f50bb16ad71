"""The marked block in a file of git attributes: put in, taken out, everything else as it was."""

import os
import re
from pathlib import Path
from typing import Final

from onnxjson.display import visible
from onnxjson.errors import OutputError
from onnxjson.git.driver_lines import ATTRIBUTES
from onnxjson.identity import reading_error
from onnxjson.saving import save_file

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
    """Let a file end with the block of our lines, made if it is not there; whether anything was written.

    Raises:
        OutputError: the file is a link, which git does not follow, or a folder, or a mark of a block in it is gone.
        OnnxJsonError: it cannot be read or written.
    """
    content, wanted = _wanted(path)
    if wanted == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(path, lambda sink: sink.write(wanted))
    return True


def check_block(path: Path) -> None:
    """Do nothing where `put_block` has no reason to fail that can be seen beforehand; see there for the errors."""
    content, wanted = _wanted(path)
    if wanted == content:
        return
    folder = next(each for each in path.parents if os.path.lexists(each))
    if not folder.is_dir():
        raise OutputError(f"{visible(str(folder), None)} is no folder, and {path.name} cannot be in it; move it away")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{visible(str(path), None)} cannot be written: nothing can be made in its folder")


def _wanted(path: Path) -> tuple[bytes | None, bytes]:
    """What a file has, None where there is none, and what it is to have."""
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


def take_block(path: Path) -> bool:
    """Take the block out of a file again; whether there was one, as in a folder there is none. Errors: `put_block`."""
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
    """Whether there is a block in a file; see `put_block` for the errors."""
    content = _read(path)
    return content is not None and _BLOCK.search(content) is not None


def _read(path: Path) -> bytes | None:
    if os.path.islink(path):
        raise OutputError(f"{visible(str(path), None)} is a link, and git follows none to attributes; make it a file")
    if path.is_dir():
        raise OutputError(f"{visible(str(path), None)} is a folder, and git reads attributes from a file; move it away")
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise reading_error(path, error) from error


def _without_block(path: Path, content: bytes) -> bytes | None:
    """The content as it was before the block; None where there was no file."""
    found = _BLOCK.search(content)
    if found is None:
        if _MARK in content or _END in content:
            name = visible(str(path), None)
            raise OutputError(f"a mark of the lines of onnxjson in {name} is gone; take those lines out by hand")
        return content
    before, after = content[: found.start()], content[found.end() :]
    # What another program, such as `git lfs track`, wrote between the marks is no line of ours.
    strangers = [line for line in found["lines"].splitlines(keepends=True) if line.strip() not in _OURS]
    if strangers:
        return before + b"".join(strangers) + after
    if not before and not after and found["note"].endswith(_NEW_FILE):
        return None
    if found["note"].endswith(_OPEN_LINE):
        before = before.removesuffix(b"\n") if not after else before
    return before + after
