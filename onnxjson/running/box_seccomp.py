"""Seccomp: a filter in the kernel of Linux refuses system calls of a process, on x86-64 and ARM64.

A filter is a program of the classic Berkeley Packet Filter over the number, the architecture and the arguments of a
call: https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from onnxjson.running.box_syscalls import SET_PDEATHSIG, checked, process_control

_GET_SECCOMP: Final = 21
_SET_SECCOMP: Final = 22
_FILTER: Final = 2

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL_PROCESS: Final = 0x80000000

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45

_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4
_ARGUMENTS_AT: Final = 16  # The lower half of each; both processors store that first.

_INSTRUCTION: Final = struct.Struct("=HBBI")
_OWN: Final = 0x7FFFFFFE
"""Placeholder for the number of the process; real numbers are never that high."""

_X32_BIT: Final = 0x40000000
"""Set in the numbers of system calls of x32, x86-64 with pointers of 32 bits."""
_CLONE_THREAD: Final = 0x10000
_AF_UNIX, _SOCK_STREAM, _TYPE_OF_SOCKET = 1, 1, 0xF

_OWNERS_BY_FCNTL: Final = (8, 15)
"""F_SETOWN and F_SETOWN_EX: which process gets a signal, of any number, when a file or pipe is ready."""
_OWNERS_BY_IOCTL: Final = (0x8901, 0x8902)
"""FIOSETOWN and SIOCSPGRP: which process gets a signal when a socket is ready."""

_ACCESS_AND_TRUNCATE: Final = 0o1003
_ONLY_TRUNCATE: Final = 0o1000
"""O_RDONLY | O_TRUNC, which empties a file that may only be read."""

_REFUSED: Final = {
    # The network. For socketpair, see `_instructions`.
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242),
    # Programs and processes. For clone, which also starts threads, see `_instructions`.
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None),
    # Other processes.
    "tkill": (200, 130), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "setpriority": (141, 140),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    # Modes, owners, times and attributes of files, which Landlock does not guard.
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466), "file_setattr": (469, 469),
    # Mounts, namespaces and file handles.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "open_tree_attr": (467, 467), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # Large parts of the kernel that no model needs.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "lookup_dcookie": (212, 18), "lsm_set_self_attr": (460, 460), "modify_ldt": (154, None),
    # The machine itself.
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "acct": (163, 89), "iopl": (172, None), "ioperm": (173, None), "syslog": (103, 116), "vhangup": (153, 58),
}  # fmt: skip
"""System calls that fail with EPERM, with their numbers on x86-64 and ARM64."""


_FILTERED: Final = {
    "clone": (56, 220), "clone3": (435, 435), "kill": (62, 129), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "prlimit64": (302, 261), "prctl": (157, 167), "socketpair": (53, 199),
    "fcntl": (72, 25), "ioctl": (16, 29), "open": (2, None), "openat": (257, 56), "openat2": (437, 437),
    "truncate": (76, 45),
}  # fmt: skip
"""System calls whose arguments are filtered, with their numbers on x86-64 and ARM64."""

_PROCESSORS: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Position of a processor in these tables, and its AUDIT_ARCH, as the kernel reports it."""


class _Instruction(NamedTuple):
    code: int
    value: int
    if_true: int = 0
    """Instructions skipped."""
    if_false: int = 0


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def missing() -> str:
    """Return why this machine cannot filter system calls; "" if it can."""
    if platform.machine() not in _PROCESSORS or sys.maxsize < 1 << 32:
        return f"onnxjson has no seccomp filter for this processor ({platform.machine()})"
    if process_control(_GET_SECCOMP) < 0:
        return "the kernel has no seccomp"
    # A kernel with filters gets as far as the address of the program, which is invalid here, so no filter is installed.
    if process_control(_SET_SECCOMP, _FILTER, 0) < 0 and ctypes.get_errno() == errno.EFAULT:
        return ""
    return "the kernel has seccomp without filters"


def restrict(*, truncation: bool) -> None:
    """Install the filter in this process and in all threads that it starts later.

    Args:
        truncation: whether files may be truncated by name, which Landlock guards from its version 3 on.

    Raises:
        OSError: the kernel refuses the filter.
    """
    found = compiled(platform.machine(), truncation=truncation)
    data = found.replace(struct.pack("=I", _OWN), struct.pack("=I", os.getpid()))
    program = _Program(len(data) // _INSTRUCTION.size, data)
    checked(process_control(_SET_SECCOMP, _FILTER, ctypes.addressof(program)), "PR_SET_SECCOMP")


@cache
def compiled(machine: str, *, truncation: bool) -> bytes:
    """Return the filter for a processor, named as by the kernel, with `_OWN` instead of the number of the process."""
    found = _instructions(*_PROCESSORS[machine], truncation)
    return b"".join([_INSTRUCTION.pack(each.code, each.if_true, each.if_false, each.value) for each in found])


def _instructions(column: int, architecture: int, truncation: bool) -> Iterator[_Instruction]:
    refuse = _Instruction(_RETURN, _ERRNO | errno.EPERM)
    allow = _Instruction(_RETURN, _ALLOW)

    def argument(place: int) -> _Instruction:
        return _Instruction(_LOAD, _ARGUMENTS_AT + 8 * place)

    def only(value: int) -> tuple[_Instruction, ...]:
        return _Instruction(_EQUAL, value, 0, 1), allow, refuse

    def call(name: str, *then: _Instruction) -> tuple[_Instruction, ...]:
        number = _FILTERED[name][column]
        return () if number is None else (_Instruction(_EQUAL, number, 0, len(then)), *then)

    yield _Instruction(_LOAD, _ARCHITECTURE_AT)
    yield _Instruction(_EQUAL, architecture, 1, 0)
    yield _Instruction(_RETURN, _KILL_PROCESS)
    yield _Instruction(_LOAD, _NUMBER_AT)
    yield _Instruction(_AT_LEAST, _X32_BIT, 0, 1)
    yield refuse
    yield from call("clone", argument(0), _Instruction(_ANY_BIT, _CLONE_THREAD, 0, 1), allow, refuse)
    # Flags of clone3 are in memory, which a filter cannot read. After ENOSYS, the C library tries clone.
    yield from call("clone3", _Instruction(_RETURN, _ERRNO | errno.ENOSYS))
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        yield from call(name, argument(0), *only(_OWN))
    yield from call("prlimit64", argument(0), _Instruction(_EQUAL, 0, 0, 1), allow, *only(_OWN))
    yield from call("prctl", argument(0), _Instruction(_EQUAL, SET_PDEATHSIG, 0, 1), refuse, allow)
    # A datagram socket of a pair could send to any socket that has a name; a stream cannot.
    stream = (argument(1), _Instruction(_AND, _TYPE_OF_SOCKET), *only(_SOCK_STREAM))
    yield from call("socketpair", argument(0), _Instruction(_EQUAL, _AF_UNIX, 1, 0), refuse, *stream)
    # Landlock protects other processes from these signals only since its version 6.
    for name, (first, second) in (("fcntl", _OWNERS_BY_FCNTL), ("ioctl", _OWNERS_BY_IOCTL)):
        either = _Instruction(_EQUAL, first, 1, 0), _Instruction(_EQUAL, second, 0, 1)
        yield from call(name, argument(1), *either, refuse, allow)
    if not truncation:
        opening = (_Instruction(_AND, _ACCESS_AND_TRUNCATE), _Instruction(_EQUAL, _ONLY_TRUNCATE, 0, 1), refuse, allow)
        yield from call("truncate", refuse)
        yield from call("openat", argument(2), *opening)
        yield from call("open", argument(1), *opening)
        yield from call("openat2", _Instruction(_RETURN, _ERRNO | errno.ENOSYS))  # Its flags are in memory.
    present = [number for each in _REFUSED.values() if (number := each[column]) is not None]
    for place, number in enumerate(present):
        yield _Instruction(_EQUAL, number, len(present) - place, 0)
    yield allow
    yield refuse
