"""Failing machines: system calls that fail, no memory, kills at any call and at any moment."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import count as numbers
from pathlib import Path
from random import Random

from tests.hostile.campaign.children import Ended, Outcome, ended, in_child, started, warm_up, workplace
from tests.hostile.campaign.saves import SAVINGS, Bench
from tests.hostile.campaign.short_of_memory import memory_of_the_workbench

CALLS = {
    "write": "write,?pwrite64,?writev,?copy_file_range,?sendfile,?ftruncate",
    "fsync": "fsync,?fdatasync",
    "rename": "?rename,?renameat,?renameat2,?link,?linkat",
    "open": "openat,?open,?mkdir,?mkdirat",
    "attributes": "?fchmod,?fchown,?fsetxattr,?chmod,?flock,?utimensat",
    "unlink": "?unlink,?unlinkat,?rmdir",
    "close": "close",
    "read": "read,?pread64,?getdents64",
    "stat": "?newfstatat,?fstat,?statx,?lstat,?stat,?readlink",
}
"""Groups of system calls, in the words of strace."""

ERRORS = ("ENOSPC", "EIO", "EPERM", "EROFS", "EDQUOT", "EINTR")


def traced(bench: Bench, calls: str, injected: str) -> tuple[Ended, int]:
    """Save under strace, which injects something into calls; how it ended, and how often that was."""
    log, out = bench.place / "strace", bench.place / "out"
    child = started(bench.saving.run, out, stopped=True)
    os.waitpid(child, os.WUNTRACED)
    words = [
        "strace",
        "-f",
        "-o",
        str(log),
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={calls}:{injected}",
        "-p",
        str(child),
    ]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr
        for line in tracer.stderr:
            if "attached" in line:
                break
        os.kill(child, signal.SIGCONT)
        end = ended(child, out)
        tracer.wait()
    return end, log.read_text(errors="replace").count("(INJECTED)")


def _some(cases: Iterator[tuple[str, str, str]], count: int, total: int) -> Iterator[tuple[str, str, str]]:
    """About `count` of `total` cases, evenly."""
    step = max(1, total // max(count, 1))
    return (case for number, case in enumerate(cases) if number % step == 0)


def faults(count: int, first: int = 0) -> Iterator[Outcome]:
    """The Nth system call of a group fails: once, or from then on; N grows until the save succeeds without."""
    warm_up()
    groups = [(saving, group, error, once) for group in CALLS for once in (True, False) for error in ERRORS
              for saving in SAVINGS if once or error != "EINTR"]  # fmt: skip
    # A call that is interrupted is tried again, for ever if it always is.
    rng = Random(first)
    rng.shuffle(groups)
    done = 0
    with workplace() as place:
        benches = {saving.name: Bench(saving, place) for saving in SAVINGS}
        for saving, group, error, once in groups:
            bench = benches[saving.name]
            for number in numbers(1):
                bench.reset()
                end, injected = traced(bench, CALLS[group], f"error={error}:when={number}{'' if once else '+'}")
                persistent = not once or group in ("unlink", "close", "open", "stat", "attributes")
                name = f"{saving.name}: {group} {number}{'' if once else '+'} {error}"
                yield Outcome(name, bench.wrong(end, may_leave=persistent), end.seconds, end.peak)
                done += 1
                if done >= count:
                    return
                if not injected or number > 400:
                    break


def killed_calls(count: int, first: int = 0) -> Iterator[Outcome]:
    """A kill at each system call of each way to save; the next save succeeds and cleans up."""
    warm_up()
    with workplace() as place:
        benches = {saving.name: Bench(saving, place) for saving in SAVINGS}
        calls = ",".join(value for key, value in CALLS.items() if key not in ("read", "stat"))
        per_saving = max(1, count // len(SAVINGS))
        for saving in SAVINGS:
            bench = benches[saving.name]
            bench.reset()
            total = len(_log(bench, calls))
            step = max(1, total // per_saving)
            for number in range(1 + first % step, total + 1, step):
                bench.reset()
                end, _ = traced(bench, calls, f"signal=SIGKILL:when={number}")
                yield Outcome(f"{saving.name}: killed at call {number}", after_a_kill(bench), end.seconds, end.peak)


def _log(bench: Bench, calls: str) -> list[str]:
    traced(bench, calls, "delay_enter=0:when=1")
    return [line for line in (bench.place / "strace").read_text(errors="replace").splitlines()
            if re.search(r"\w+\(", line)]  # fmt: skip


def after_a_kill(bench: Bench) -> str:
    """What is wrong after a kill, and after the next save; "" for nothing."""
    if found := bench.torn():
        return found
    for path in Path().glob(".*"):
        os.utime(path, (0, 0))  # the number of its process may be that of another one already
    end = in_child(bench.saving.run, bench.place)
    if bench.saving.name == "driver":
        return ""
    if end.code == 0 and bench.left():
        return f"the next save leaves {bench.left()}"
    return bench.torn() if end.code == 0 else f"the next save: exit code {end.code}: {end.output[-300:]}"


def kills(count: int, first: int = 0) -> Iterator[Outcome]:
    """A kill at a random moment of a save; after every tenth, the next save succeeds and cleans up."""
    warm_up()
    rng = Random(first)
    with workplace() as place:
        benches = [Bench(saving, place) for saving in SAVINGS]
        for number in range(count):
            bench, before = (benches[each * len(benches) // count] for each in (number, max(number - 1, 0)))
            if not number % 10 or bench is not before:
                bench.reset()
            begin = time.monotonic()
            child = started(bench.saving.run, place / "out")
            time.sleep(rng.uniform(0, bench.seconds))
            os.kill(child, signal.SIGKILL)
            ended(child, place / "out")
            problem = after_a_kill(bench) if number % 10 == 9 else bench.torn()
            yield Outcome(f"{bench.saving.name}: kill {number}", problem, time.monotonic() - begin)


def memory(count: int, first: int = 0) -> Iterator[Outcome]:
    """Saves with less and less memory, until they fail, and further; a seventh of the cases are the workbench."""
    yield from memory_of_the_workbench(count // 7, first)
    warm_up()
    with workplace() as place:
        for saving in SAVINGS:
            if saving.name == "workbench":  # a fork without its threads: Python waits for ever for one to start
                continue
            bench = Bench(saving, place)
            now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            steps = max(2, (count - count // 7) // (len(SAVINGS) - 1))
            for number in range(steps):
                bench.reset()
                limit = now + (number + first % 7) * (96 << 10)
                end = in_child(saving.run, place, memory=limit)
                yield Outcome(f"{saving.name}: {limit:,} bytes", bench.wrong(end), end.seconds, end.peak)


def has_strace() -> bool:
    """Whether system calls can be made to fail here."""
    return shutil.which("strace") is not None
