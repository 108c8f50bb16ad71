"""Run the command line: in this process, or as one of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from onnxjson.cli.group import onnxjson


class Result(NamedTuple):
    """What a command left behind."""

    exit_code: int
    stdout: str
    stderr: str


def run(*arguments: str | Path) -> Result:
    """The command in this process."""
    result = CliRunner().invoke(onnxjson, [os.fspath(argument) for argument in arguments], prog_name="onnxjson")
    return Result(result.exit_code, result.stdout, result.stderr)


def run_process(*arguments: str | Path, folder: Path | None = None, more: Mapping[str, str] | None = None) -> Result:
    """The command as a process of its own."""
    result = subprocess.run(
        command_line(*arguments),
        cwd=folder,
        env=os.environ | dict(more or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    return Result(result.returncode, result.stdout, result.stderr)


def command_line(*arguments: str | Path) -> list[str]:
    """The words that start the command as a process."""
    return [sys.executable, "-I", "-m", "onnxjson", *(os.fspath(argument) for argument in arguments)]
