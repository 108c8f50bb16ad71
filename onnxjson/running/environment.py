"""Environment of the guarded process: the variables listed here and no others, the packages of the user, a folder.

Variables configure libraries: sympy evaluates ``SYMPY_*`` as Python, onnxsim and onnxruntime write profiles, and the
loader of shared libraries preloads code. Variables also contain secrets, which native code must not read.
"""

import os
import site
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NAMES: Final = frozenset([
    "PATH", "HOME", "TMPDIR", "TZ", "TZDIR", "LANG", "LANGUAGE", "SYSTEMROOT",
    # Folders of shared libraries, often separate ones for graphics processors.
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
    # Selection of graphics processors.
    "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR",
])  # fmt: skip

_PREFIXES: Final = (
    "LC_",
    # Graphics processors.
    "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "HSA_",
    # Threads and instruction sets of linear algebra.
    "OMP_", "KMP_", "MKL_", "OPENBLAS_",
)  # fmt: skip

_FIXED: Final = {
    # Forking is safe only with one thread, so the server must not start others.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Otherwise onnxruntime stores an identifier of this machine in the user's cache and sends events over the network.
    "ORT_DISABLE_TELEMETRY": "1",
}

SERVER_MARK: Final = "ONNXJSON_SERVER"
"""Variable with a unique value in all processes of one server, so that none of them outlives a server that crashed."""

_NEVER: Final = frozenset(["ORT_LOAD_CONFIG_FROM_MODEL"])
"""Removed even for trusted code, since it lets a model configure the session that runs it."""


def server_environment() -> dict[str, str]:
    """Return the variables of the guarded process, which are also all variables of a job that is not trusted."""
    return {name: os.environ[name] for name in os.environ if name in _NAMES or name.startswith(_PREFIXES)} | _FIXED


def trusted_environment() -> tuple[tuple[bytes, bytes], ...]:
    """Return all other variables of the user, for jobs that are trusted."""
    kept = {*map(os.fsencode, server_environment()), *map(os.fsencode, _NEVER)}
    return tuple([each for each in os.environb.items() if each[0] not in kept])


def user_packages() -> list[str]:
    """Return the user's own site-packages, which -I leaves out, if this process uses it."""
    if not site.ENABLE_USER_SITE:
        return []
    folder = site.getusersitepackages()
    return [folder] if folder in sys.path and Path(folder).is_absolute() else []


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Create a private folder for the time of the block."""
    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        yield Path(folder)
    finally:
        _empty(folder)
        os.rmdir(folder)


def _empty(folder: str) -> None:
    """Remove what is in a folder; one folder is open at a time, since jobs can nest them to any depth."""
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
    """Remove everything except folders from a folder; return the names of those folders."""
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
