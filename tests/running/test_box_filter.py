"""The filter of system calls, run step by step as the kernel runs it, for both processors."""

import errno
import os
import struct

import pytest

from onnxjson.running.box_seccomp import compiled

OWN = 0x7FFFFFFE
ALLOWED = "allowed"
KILLED = "killed"
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
THREAD, PROCESS = 0x10000 | 0x100, 17

# Numbers from the tables of the kernel: of x86-64, of ARM64.
ORDINARY = {
    "read": (0, 63), "write": (1, 64), "openat": (257, 56), "mmap": (9, 222), "futex": (202, 98), "getpid": (39, 172),
    "exit_group": (231, 94), "rt_sigaction": (13, 134), "ioctl": (16, 29), "getrandom": (318, 278), "wait4": (61, 260),
    "sched_setaffinity": (203, 122), "unlinkat": (263, 35), "ftruncate": (77, 46), "renameat2": (316, 276),
}  # fmt: skip
REFUSED = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "mount": (165, 40), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280),
    "keyctl": (250, 219), "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "init_module": (175, 105), "kexec_load": (246, 104), "process_vm_writev": (311, 271), "fchmodat": (268, 53),
    "utimensat": (280, 88), "vhangup": (153, 58),
}  # fmt: skip


def answer(machine: str, number: int, *arguments: int, architecture: int | None = None, truncation: bool = True) -> str:
    """What the filter decides about a call."""
    architecture = ARCHITECTURES[machine] if architecture is None else architecture
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    program = list(struct.iter_unpack("=HBBI", compiled(machine, truncation=truncation)))
    place, value = 0, 0
    while True:
        code, if_true, if_false, operand = program[place]
        place += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                place += if_true if value == operand else if_false
            case 0x35:
                place += if_true if value >= operand else if_false
            case 0x45:
                place += if_true if value & operand else if_false
            case 0x06:
                kinds = {0x7FFF0000: ALLOWED, 0x80000000: KILLED}
                return kinds.get(operand) or errno.errorcode[operand & 0xFFFF]
            case _:
                raise AssertionError(hex(code))


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_computing_needs_is_allowed_and_the_rest_refused(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    assert {name: answer(machine, each[column]) for name, each in ORDINARY.items()} == dict.fromkeys(ORDINARY, ALLOWED)
    assert {name: answer(machine, each[column]) for name, each in REFUSED.items()} == dict.fromkeys(REFUSED, "EPERM")


@pytest.mark.parametrize(
    ("machine", "clone", "kill", "tgkill", "prlimit", "prctl", "socketpair"),
    [("x86_64", 56, 62, 234, 302, 157, 53), ("aarch64", 220, 129, 131, 261, 167, 199)],
)
def test_arguments_decide(
    machine: str, clone: int, kill: int, tgkill: int, prlimit: int, prctl: int, socketpair: int
) -> None:
    found = [answer(machine, clone, flags) for flags in (THREAD, PROCESS)]
    assert found == [ALLOWED, "EPERM"]
    assert answer(machine, 435) == "ENOSYS"  # clone3
    for number in (kill, tgkill):
        assert [answer(machine, number, target) for target in (OWN, 1, (1 << 32) - 1)] == [ALLOWED, "EPERM", "EPERM"]
    assert [answer(machine, prlimit, target) for target in (0, OWN, 1)] == [ALLOWED, ALLOWED, "EPERM"]
    assert [answer(machine, prctl, option) for option in (1, 15)] == ["EPERM", ALLOWED]
    kinds = [(1, 1), (1, 0o2000001), (1, 2), (1, 5), (2, 1)]  # of family and type
    assert [answer(machine, socketpair, *each) for each in kinds] == [ALLOWED, ALLOWED, "EPERM", "EPERM", "EPERM"]


@pytest.mark.parametrize(("machine", "fcntl", "ioctl"), [("x86_64", 72, 16), ("aarch64", 25, 29)])
def test_no_other_process_can_be_named_for_the_signals_of_a_file(machine: str, fcntl: int, ioctl: int) -> None:
    commands = (0, 3, 4, 10, 8, 15)  # F_DUPFD, F_GETFL, F_SETFL, F_SETSIG; F_SETOWN, F_SETOWN_EX
    assert [answer(machine, fcntl, 5, each) for each in commands] == [ALLOWED] * 4 + ["EPERM"] * 2
    requests = (0x5401, 0x541B, 0x8901, 0x8902)  # TCGETS, FIONREAD; FIOSETOWN, SIOCSPGRP
    assert [answer(machine, ioctl, 5, each) for each in requests] == [ALLOWED] * 2 + ["EPERM"] * 2


@pytest.mark.parametrize(
    ("machine", "open_", "openat", "truncate"), [("x86_64", 2, 257, 76), ("aarch64", None, 56, 45)]
)
def test_files_are_not_cut_where_landlock_does_not_guard_that(
    machine: str, open_: int | None, openat: int, truncate: int
) -> None:
    flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC)
    for truncation, expected in ((True, ALLOWED), (False, "EPERM")):
        assert answer(machine, truncate, truncation=truncation) == expected
        decided = [answer(machine, openat, 5, 0, each, truncation=truncation) for each in flags]
        assert decided == [ALLOWED, ALLOWED, expected]
        if open_ is not None:
            assert [answer(machine, open_, 0, each, truncation=truncation) for each in flags] == decided
        assert answer(machine, 437, truncation=truncation) == (ALLOWED if truncation else "ENOSYS")  # openat2


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_calls_of_other_processors_end_the_process(machine: str) -> None:
    assert answer(machine, 0, architecture=0x40000003) == KILLED  # of 32-bit programs


def test_calls_of_programs_with_short_pointers_are_refused() -> None:
    assert answer("x86_64", 0x40000000 | 41) == "EPERM"
