"""The box around native and third-party code: the kernel denies everything that a sandboxed process does not need.

A process in the box has no network and starts neither programs nor processes. It can read only the files of Python, of
its packages and of its job, and writes only in the folder of its job. `onnxjson.running.worker_server` limits its
memory and time.

On Linux, Landlock, a seccomp filter and dropped capabilities form the box. Other systems have no box, and some kernels
lack a part of it; `missing` returns those parts.
"""

import os
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_ALL_NEED: Final = (
    # Shared libraries, time zones, locales.
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/alternatives",
    # Facts that numpy and onnxruntime read about the machine, and a process about itself.
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems",
    "/proc/sys/vm", "/proc/sys/kernel/osrelease", "/sys/devices", "/sys/class", "/sys/bus", "/sys/fs/cgroup",
    "/sys/kernel/mm", "/dev/urandom", "/dev/random", "/dev/zero",
)  # fmt: skip
"""Files and folders that every job may read."""

_DEVICES: Final = ("/dev/dri", "/dev/kfd", "/dev/nvidia-caps", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dxg")
"""Devices of graphics processors; the numbered ones of NVIDIA are added in `Box._rules`."""
_DRIVERS: Final = ("/proc/driver", "/proc/devices", "/sys/module", "/opt/rocm")


class BoxError(Exception):
    """The kernel offers a protection and then refuses it, so the job must not run."""


class Box(NamedTuple):
    """Permissions of one job in addition to those of every job."""

    reads: tuple[str, ...] = ()
    """Files, and folders with everything in them."""
    scratch: str | None = None
    """Its own folder, the only one in which it may write."""
    devices: bool = False
    """Whether it may use graphics processors."""

    def prepare(self) -> None:
        """Fill the caches before a fork, so that not every child computes the same again."""
        system_paths()
        if not seccomp_missing():
            from onnxjson.running import box_seccomp

            box_seccomp.compiled(platform.machine(), truncation=_guards_truncation())
        landlock_missing()

    def enter(self) -> None:
        """Put this process into the box, for the rest of its life. It must have only one thread.

        Raises:
            BoxError: the kernel offers a protection and then refuses it.
        """
        if sys.platform != "linux":
            return
        from onnxjson.running import box_landlock, box_seccomp
        from onnxjson.running.box_syscalls import NO_NEW_PRIVS, checked, drop_capabilities, process_control

        try:
            checked(process_control(NO_NEW_PRIVS, 1), "PR_SET_NO_NEW_PRIVS")
            drop_capabilities()
            if not landlock_missing():
                box_landlock.restrict(self._rules(), box_landlock.version())
            if not seccomp_missing():
                box_seccomp.restrict(truncation=_guards_truncation())
        except OSError as error:
            raise BoxError(error.strerror or str(error)) from error

    def _rules(self) -> Iterator[tuple[str, int]]:
        from onnxjson.running.box_landlock import READ, USE, WRITE

        for path in (*system_paths(), *self.reads):
            yield path, READ
        yield "/dev/null", USE
        if self.scratch is not None:
            yield self.scratch, WRITE
        if self.devices:
            for path in _DRIVERS:
                yield path, READ
            for path in (*_DEVICES, *map(str, Path("/dev").glob("nvidia[0-9c]*"))):
                yield path, USE | READ


def confine(reads: Iterable[str], writes: Iterable[str], temporary: str) -> None:
    """Limit the files of this process, and of all that it starts, for the rest of its life, where Landlock exists.

    Unlike in the box, programs can be started. This process must have only one thread.

    Args:
        reads: files and folders that may be read, in addition to Python, its packages and system libraries.
        writes: folders that may be read and written.
        temporary: a folder in which folders may be removed.

    Raises:
        BoxError: the kernel offers Landlock and then refuses it.
    """
    if landlock_missing():
        return
    from onnxjson.running.box_landlock import EXECUTE, READ, REMOVE_FOLDERS, USE, WRITE, restrict, version
    from onnxjson.running.box_syscalls import NO_NEW_PRIVS, checked, process_control

    rules = [(path, READ | EXECUTE) for path in system_paths()]
    rules += [("/proc", READ), ("/dev/null", USE), (temporary, REMOVE_FOLDERS)]
    rules += [*((path, READ) for path in reads), *((path, WRITE) for path in writes)]
    try:
        checked(process_control(NO_NEW_PRIVS, 1), "PR_SET_NO_NEW_PRIVS")
        restrict(rules, version())
    except OSError as error:
        raise BoxError(error.strerror or str(error)) from error


@cache
def system_paths() -> tuple[str, ...]:
    """Return the paths that every job may read: Python, its packages, system libraries, facts about the machine."""
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    package = str(Path(__file__).resolve().parents[1])
    # Without -I or -P, the first entry of sys.path is the folder of the program, which can be any folder.
    packages = [*(sys.path if sys.flags.safe_path else sys.path[1:]), *_editable()]
    named = [each for each in (*prefixes, *packages, *libraries) if os.path.isabs(each) and not is_too_wide(each)]
    # A path inside another listed path is redundant. /proc/self is not resolved here: it must refer to the child.
    paths: list[str] = []
    for path in sorted({os.path.realpath(each) for each in (*named, package, *_ALL_NEED) if each != "/proc/self"}):
        if not (paths and path.startswith(paths[-1].rstrip("/") + "/")):
            paths.append(path)
    return ("/proc/self", *paths)


def _editable() -> list[str]:
    """Return the folders of editable packages that setuptools imports without an entry in `sys.path`."""
    finders = [module for name, module in sys.modules.items() if name.startswith("__editable__")]
    return [path for finder in finders for path in getattr(finder, "MAPPING", {}).values()]


def is_too_wide(folder: str) -> bool:
    """Whether a folder is the user's home or contains it, so that a job must not read all of it."""
    home, folder = (os.path.realpath(each) for each in (os.path.expanduser("~"), folder))
    return folder == "/" or home == folder or home.startswith(folder + "/")


def readable_by_script(file: str) -> str:
    """Return the path that a script may read: its folder, or only the file itself if the folder is too wide."""
    folder = os.path.dirname(file)
    return file if is_too_wide(folder) else folder


@cache
def landlock_missing() -> str:
    """Return why this machine cannot guard files; "" if it can."""
    if sys.platform != "linux":
        return f"{sys.platform} has no Landlock"
    from onnxjson.running.box_landlock import version

    return "" if version() else "the kernel has no Landlock, or Landlock is switched off"


def _guards_truncation() -> bool:
    """Whether Landlock prevents the truncation of files that must not be written."""
    from onnxjson.running import box_landlock

    return not landlock_missing() and box_landlock.version() >= box_landlock.TRUNCATION


@cache
def seccomp_missing() -> str:
    """Return why this machine cannot guard network, programs and processes; "" if it can."""
    if sys.platform != "linux":
        return f"{sys.platform} has no seccomp"
    from onnxjson.running import box_seccomp

    return box_seccomp.missing()


def missing() -> tuple[str, ...]:
    """Return the parts of the box that this machine lacks, each with the reason."""
    files, calls = landlock_missing(), seccomp_missing()
    return (
        *([f"native code can reach files outside its folder: {files}"] if files else []),
        *([f"native code can use the network, start programs and signal other processes: {calls}"] if calls else []),
    )


@cache
def warn_once() -> None:
    """Report on standard error which parts of the box are missing, if any; only the first call has an effect."""
    if lacking := missing():
        import logging

        logging.getLogger("onnxjson").warning(
            "onnxjson: warning: %s; `onnxjson doctor` tries each protection", "; ".join(lacking)
        )
