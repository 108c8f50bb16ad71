"""Commands that are interrupted while the sandboxed process is at work."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.cli.running import command_line


def interrupted(folder: Path, count: int, mark: bytes, *arguments: str | Path) -> tuple[int, dict[str, Any], str]:
    """What a command prints that is interrupted as soon as the sandboxed process has told `mark` so many times."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(
        command_line(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    until = time.monotonic() + 60
    while not any(each.read_bytes().count(mark) >= count for each in folder.glob("onnxjson-run-*/reports")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, f"{mark!r} was not told {count} times in a minute"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    return process.returncode, json.loads(stdout), stderr
