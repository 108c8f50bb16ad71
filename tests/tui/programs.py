"""The real program in a terminal of its own: a pty whose bytes the test reads, or tmux whose screen it reads."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.cli.running import command_line

PATIENCE = 60.0
"""Seconds that a test waits for what it expects."""

ENTER = b"\r"
ESCAPE = b"\x1b"
CTRL_C = b"\x03"
CTRL_S = b"\x13"
CTRL_Q = b"\x11"

UNDO_2 = rb"\x1b\[1;\d+H(?:\x1b\[[\d;]*m)*2"
"""The title says "undo 2" after "undo 1": only what differs is sent."""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's, in a terminal of 256 colours that is not remote."""
    mine = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return mine | {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | dict(more or {})


class Program:
    """``onnxjson tui`` in a pty of 80 columns and 24 lines; a thread reads all that it writes."""

    def __init__(
        self,
        *arguments: str | Path,
        words: Sequence[str] | None = None,
        more: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Starts it.

        Args:
            arguments: of ``onnxjson tui``.
            words: another command line, such as one that logs in to another machine.
            more: environment variables.
            folder: the current one of the program.
        """
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave_name = os.ttyname(slave)
        self.process = subprocess.Popen(
            list(words) if words is not None else command_line("tui", *arguments),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(more),
            cwd=folder,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self.output = b""
        self._changed = threading.Condition()
        self._is_open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.hang_up()

    def _read(self) -> None:
        while True:
            try:
                if not select.select([self._master], [], [], 0.2)[0]:
                    if self._is_open:
                        continue
                    return
                data = os.read(self._master, 1 << 16)
            except (OSError, ValueError):  # nobody has the terminal open any more, or it was closed
                data = b""
            with self._changed:
                self.output += data
                self._changed.notify_all()
            if not data:
                return

    def type(self, keys: bytes) -> None:
        """Sends keys."""
        os.write(self._master, keys)

    def expect(self, pattern: bytes, start: int = 0, patience: float = PATIENCE) -> int:
        """Waits until something that fits is written; where in the output it ends."""
        end = time.monotonic() + patience
        with self._changed:
            while not (found := re.search(pattern, self.output[start:])):
                assert time.monotonic() < end, f"{pattern!r} did not come: {self.output[-3000:]!r}"
                assert self._reader.is_alive(), f"it ended before {pattern!r}: {self.output[-3000:]!r}"
                self._changed.wait(0.1)
        return start + found.end()

    def hang_up(self) -> None:
        """The terminal is gone, as when a line drops."""
        if self._is_open:
            self._is_open = False
            self._reader.join()
            os.close(self._master)

    def end(self, patience: float = PATIENCE) -> int:
        """Waits until it ends; the exit code, negative for a signal."""
        return self.process.wait(patience)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Tmux:
    """A shell in tmux, whose screen can be read as a person sees it."""

    def __init__(
        self, size: tuple[int, int] = (80, 24), *, folder: Path, more: Mapping[str, str] | None = None
    ) -> None:
        self._name = f"onnxjson-{uuid.uuid4().hex[:12]}"
        width, height = size
        command = f"new-session -d -x {width} -y {height}".split()
        subprocess.run(
            ["tmux", "-L", self._name, "-f", "/dev/null", *command, "env PS1='ready$ ' sh -i"],
            cwd=folder,
            env=environment(more),
            check=True,
            timeout=PATIENCE,
        )
        self.expect("ready$")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, *words], capture_output=True, encoding="utf-8", check=False, timeout=PATIENCE
        )
        return done.stdout

    def run(self, words: Sequence[str | Path]) -> None:
        """Types a command line, and enter."""
        import shlex

        self.type(shlex.join([os.fspath(each) for each in words]))
        self.press("Enter")

    def type(self, text: str) -> None:
        """Types a text."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Presses keys by tmux's names, such as Enter, C-s, Escape."""
        self._tmux("send-keys", *keys)

    @property
    def screen(self) -> str:
        """What is seen."""
        return self._tmux("capture-pane", "-p")

    def expect(self, text: str, patience: float = PATIENCE) -> str:
        """Waits until a text is seen; the whole screen then."""
        end = time.monotonic() + patience
        while text not in (seen := self.screen):
            assert time.monotonic() < end, f"{text!r} did not come:\n{seen}"
            time.sleep(0.05)
        return seen


def tmux_or_skip() -> None:
    """Skips a test where there is no tmux."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")


def children_of(pid: int) -> Iterator[int]:
    """The processes that a process has started."""
    with suppress(OSError):
        yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
