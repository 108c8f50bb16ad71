"""``python -m tests.benchmarks.tui_screen``: what the terminal workbench takes in a real terminal on 100,000 nodes.

The program runs in a pseudo-terminal of 160x45. A key has been answered when nothing more comes for 60 ms; the time
said is that of the last byte. The inspector follows when the cursor has rested for 120 ms, and is counted on its own.
"""

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Final, NamedTuple, Self

import onnxjson
from tests.benchmarks.graphs import transformer
from tests.benchmarks.report import table
from tests.tui.programs import children_of

NODES: Final = 100_000
SIZE: Final = (160, 45)
_QUIET: Final = 0.06
"""Seconds without a byte after which a key has been answered."""

_FIRST: Final = 1.0
"""Seconds within which an answer begins, on a machine with other work, too."""

_FOLLOWS: Final = 0.4
"""Seconds without a byte after which the inspector has followed, too."""

_PROGRAM: Final = """
import sys, time
from pathlib import Path
from onnxjson_tui.session.session import Session
note = Path(sys.argv[1])
real = Session.open.__func__
def measured(kind, *arguments, **options):
    session = real(kind, *arguments, **options)
    session.index
    note.write_text(f"{time.time()} {_memory()}")
    return session
def _memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
Session.open = classmethod(measured)
sys.argv = ["onnxjson", *sys.argv[2:]]
from onnxjson.cli import main
main()
"""
"""Starts the workbench, and notes when the model was read and how much memory that took."""


class Answer(NamedTuple):
    """What came of a key."""

    size: int
    """Bytes."""
    seconds: float
    """Until the last of them."""
    cpu: float
    """Seconds of CPU time, the inspector included."""
    after: int
    """Bytes with which the inspector followed."""


class Terminal:
    """A program in a terminal; reads at most so many bytes a second, as a slow line does."""

    def __init__(self, words: list[str], environment: dict[str, str], size: tuple[int, int] = SIZE) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.started = time.time()
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, close_fds=True
        )
        os.close(slave)
        self.output = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)

    def read(self, quiet: float = _QUIET, most: float = 60.0, rate: float | None = None) -> tuple[int, float]:
        """Reads until nothing comes for `quiet` seconds: the bytes, and when the last one came.

        Args:
            quiet: seconds.
            most: seconds after which reading ends in any case.
            rate: bytes a second.
        """
        begin = last = time.time()
        size = 0
        while time.time() - begin < most:
            ready, _, _ = select.select([self.master], [], [], quiet)
            if not ready:
                break
            try:
                data = os.read(self.master, 1024 if rate else 65536)
            except OSError:
                break
            size += len(data)
            last = time.time()
            self.output = (self.output + data)[-200_000:]
            if rate:
                time.sleep(len(data) / rate)
        return size, last

    def wait_for(self, text: bytes, most: float = 120.0) -> float:
        """Reads until a text has come; when it did."""
        begin = time.time()
        while text not in self.output:
            if time.time() - begin > most or self.process.poll() is not None:
                raise RuntimeError(f"{text!r} never came: {self.output[-2000:]!r}")
            self.read(quiet=0.01, most=0.01)
        return time.time()

    def press(self, keys: bytes, quiet: float = _QUIET) -> Answer:
        """Sends keys, and reads the answer."""
        cpu, begin = self.cpu, time.time()
        os.write(self.master, keys)
        select.select([self.master], [], [], _FIRST)
        size, last = self.read(quiet)
        after, _ = self.read(_FOLLOWS)
        return Answer(size, max(last - begin, 0.0), self.cpu - cpu, after)

    def hold(self, keys: bytes, count: int) -> int:
        """Sends keys 30 times a second, and gives the bytes that came meanwhile."""
        size = 0
        for _ in range(count):
            os.write(self.master, keys)
            size += self.read(quiet=1 / 30, most=1 / 30)[0]
        return size

    @property
    def cpu(self) -> float:
        """Processor seconds of the program and its processes so far."""
        return _cpu(self.process.pid)

    @property
    def memory(self) -> int:
        """Bytes of memory of the program."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096


def _cpu(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, parts[11:15])) / os.sysconf("SC_CLK_TCK")  # with the processes that have ended
    return own + sum(map(_cpu, children_of(pid)))


_DOWN: Final = b"j"
_PAGE: Final = b"\x1b[6~"
_END: Final = b"\x1b[F"
_HOME: Final = b"\x1b[H"


def start(path: Path, folder: Path, *, remote: bool = False, size: tuple[int, int] = SIZE) -> Terminal:
    """Start the workbench on a file in a terminal."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SSH_", "NO_COLOR", "TMUX"))},
        "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(map(str, [Path.cwd(), Path.cwd() / "tui"])),
    }  # fmt: skip
    note = str(folder / "read")
    words = [sys.executable, "-c", _PROGRAM, note, "tui", "--remote", "on" if remote else "off", str(path)]
    return Terminal(words, environment, size)


def measure(path: Path, folder: Path, *, remote: bool) -> list[tuple[str, str, str]]:
    """Everything that is measured in a terminal: what, figure, budget."""
    note = folder / "read"
    found: list[tuple[str, str, str]] = []
    with start(path, folder, remote=remote) as terminal:
        painted = terminal.wait_for(b"LayerNorm")
        read_at, memory = note.read_text().split()
        found.append(("first nodes on the screen after the model was read", _ms(painted - float(read_at)), "400 ms"))
        terminal.read(quiet=2.0)
        found.append(("memory beyond the document and its index", _mb(terminal.memory - int(memory)), "60 MB"))
        inside = [terminal.press(_DOWN) for _ in range(9)]
        found += _figures("a key inside the view", inside, "10 ms, 1 kB")
        found += _figures("a page", [terminal.press(_PAGE) for _ in range(9)], "20 ms, 20 kB")
        found += _figures("end and home", [terminal.press(keys) for keys in (_END, _HOME) * 3], "20 ms, 20 kB")
        found += _figures("G and gg", [terminal.press(keys) for keys in (b"G", b"gg") * 3], "20 ms, 20 kB")
        found.append(("held down, mean of 90 keys", f"{terminal.hold(_DOWN, 90) / 90:,.0f} B", "2 kB"))
        terminal.read(quiet=1.0)
        size, _ = terminal.read(quiet=5.0)
        found.append(("nothing for 5 s", f"{size} B", "0 B"))
        for keys in (b"M", b"\r", b"\r"):
            os.write(terminal.master, keys)
            terminal.read(quiet=3.0)
        found += _figures("a key in the map", [terminal.press(_DOWN) for _ in range(9)], "10 ms, 1 kB")
        os.write(terminal.master, b"q")
        terminal.read(quiet=1.0)
        found.append(("lag after PageDown for 2 s, 50 kB/s", _ms(_lag(terminal, 50_000)), "1,500 ms"))
        found.append(("lag after PageDown for 2 s, 200 kB/s", _ms(_lag(terminal, 200_000)), "500 ms"))
    return found


def _figures(name: str, answers: list[Answer], budget: str) -> list[tuple[str, str, str]]:
    seconds = sorted(each.seconds for each in answers)[len(answers) // 2]
    sizes = sorted(each.size for each in answers)[len(answers) // 2]
    cpu = sum(each.cpu for each in answers) / len(answers)
    after = sorted(each.after for each in answers)[len(answers) // 2]
    text = f"{seconds * 1000:.1f} ms, {sizes:,} B; then {after:,} B; {cpu * 1000:.1f} ms CPU in all"
    return [(name, text, budget)]


def _lag(terminal: Terminal, rate: float) -> float:
    """Seconds from the last of 60 keys, 30 a second, to the last byte, on a line of so many bytes a second."""
    terminal.press(_HOME)
    for _ in range(60):
        os.write(terminal.master, _PAGE)
        begin = time.time()
        while (rest := 1 / 30 - (time.time() - begin)) > 0:
            terminal.read(quiet=rest, most=rest, rate=rate)
    released = time.time()
    _, last = terminal.read(quiet=0.5, rate=rate)
    return max(last - released, 0.0)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def main(arguments: list[str]) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.tui_screen", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"{NODES:,} if left out")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "big.onnx")
        onnxjson.save(transformer(given.nodes), path)
        heads = [f"{given.nodes:,} nodes", "found", "budget"]
        for remote in (False, True):
            rows = measure(path, Path(name), remote=remote)
            where = "on a slow line" if remote else "here"
            print(table(f"The workbench {where}, {SIZE[0]}x{SIZE[1]}", heads, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
