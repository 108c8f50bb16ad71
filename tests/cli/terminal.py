"""A command on a terminal of its own, answered by the test."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.running import command_line

PATIENCE = 60.0
"""Seconds that a test waits for what it expects."""


def _take_terminal() -> None:
    """Make standard input the terminal that Ctrl-C comes from."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """The command as a process whose standard streams are a terminal of 80 columns and 24 lines."""

    def __init__(self, *arguments: str | Path, more: Mapping[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            command_line(*arguments),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | {"TERM": "xterm"} | dict(more or {}),
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def expect(self, text: str) -> str:
        """Wait until `text` stands on the terminal; all that was shown since the last answer."""
        end = time.monotonic() + PATIENCE
        while text not in self._shown:
            assert time.monotonic() < end, f"{text!r} did not come: {self._shown!r}"
            assert self._read(), f"the command ended before {text!r}: {self._shown!r}"
        return self._shown

    def answer(self, text: str) -> None:
        """Type a line."""
        self._shown = ""
        os.write(self._master, f"{text}\n".encode())

    def until_end(self) -> tuple[str, int]:
        """What is shown from here on, and the exit code."""
        while self._read():
            pass
        return self._shown, self.process.wait(PATIENCE)

    def _read(self) -> bool:
        """Take what is there; False once nobody can write any more."""
        ready, _, _ = select.select([self._master], [], [], 1.0)
        if not ready:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # what Linux says of a terminal that nobody has open
            return False
        self._shown += data.decode(errors="backslashreplace").replace("\r\n", "\n")
        return bool(data)
