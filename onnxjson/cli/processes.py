"""Other processes that commands start; the one place of the command line that does."""

import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

TIMEOUT: Final = 300.0
"""Seconds after which a process is ended."""


class Completed(NamedTuple):
    """What a process left behind."""

    exit_code: int
    output: str
    """Its standard output and standard error, as they came."""


def run_module(module: str, arguments: list[str], folder: Path) -> Completed:
    """``python -m module arguments`` in `folder`, with this Python and none of the folder's own modules.

    Raises:
        TimeoutError: it was not done after `TIMEOUT` seconds.
        OSError: it could not be started.
    """
    command = [sys.executable, "-I", "-m", module, *arguments]
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{module} {' '.join(arguments)} did not end within {TIMEOUT:.0f} seconds") from error
    return Completed(result.returncode, result.stdout.decode(errors="backslashreplace"))
