"""The folder of a guarded job, which is removed with everything that the job left there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Create a private folder for the time of the block.

    Args:
        prefix: how its name begins.

    Raises:
        OSError: it cannot be created or removed.
    """
    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        yield Path(folder)
    finally:
        _empty(folder)
        os.rmdir(folder)


def _empty(folder: str) -> None:
    """Remove what is in a folder; one folder is open at a time, since jobs may nest them as deep as they like."""
    here = _opened(folder)
    try:
        above: list[tuple[str, list[str]]] = []
        left = _without_files(here)
        while left or above:
            if left:
                name = left.pop()
                os.chmod(name, 0o700, dir_fd=here)
                above.append((name, left))
                here = _moved(here, name)
                left = _without_files(here)
            else:
                name, left = above.pop()
                here = _moved(here, "..")
                os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)


def _without_files(folder: int) -> list[str]:
    """Remove everything from a folder but folders; return the names of these."""
    with os.scandir(folder) as found:
        entries = list(found)
    for each in entries:
        if not each.is_dir(follow_symlinks=False):
            os.unlink(each.name, dir_fd=folder)
    return [each.name for each in entries if each.is_dir(follow_symlinks=False)]


def _opened(name: str, beside: int | None = None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=beside)


def _moved(here: int, name: str) -> int:
    """Close a folder and return the one that `name` leads to from there."""
    there = _opened(name, here)
    os.close(here)
    return there


__all__ = ["scratch_folder"]
