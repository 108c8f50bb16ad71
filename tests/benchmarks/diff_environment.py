"""The optimizers, run in an environment that has them, and what they wrote kept in a folder."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.tools import HERE

PACKAGES: Final = {
    "onnxsim": "onnxsim", "onnxoptimizer": "onnxoptimizer", "onnxslim": "onnxslim", "onnxscript": "onnxscript",
    "ort-basic": "onnxruntime", "ort-extended": "onnxruntime", "ort-all": "onnxruntime",
}  # fmt: skip
"""The optimizers of `optimizing`, and the package of each."""

LONGEST_RUN: Final = 600.0
"""Seconds after which an optimizer counts as failed."""

_VERSIONS: Final = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class MissingError(Exception):
    """What was asked for cannot be had; the text says why."""


class Environment:
    """An interpreter with other packages."""

    def __init__(self, python: Path | None, cache: Path) -> None:
        """`python`: of the environment, None for the one that runs this. Outputs are kept in `cache`."""
        self._python = Path(sys.executable) if python is None else python
        self._cache = cache
        names = sorted(set(PACKAGES.values()))
        self.versions: dict[str, str] = json.loads(self.run(["-c", _VERSIONS, *names]))
        """Of the packages that are installed there."""

    def optimized(self, optimizer: str, model: Path) -> Path:
        """The output of an optimizer for a model, from the cache if it is there.

        Raises:
            MissingError: the optimizer is not installed, or failed.
        """
        version = self._version(PACKAGES[optimizer])
        digest = hashlib.sha256(model.read_bytes()).hexdigest()[:16]
        output = self._cache / f"{model.stem}.{digest}.{optimizer}-{version}.onnx"
        if not output.exists():
            self._cache.mkdir(parents=True, exist_ok=True)
            made = output.with_suffix(".part")
            self.run(["-P", HERE / "optimizing.py", optimizer, model.resolve(), made.resolve()])
            made.rename(output)
        return output

    def _version(self, package: str) -> str:
        if package not in self.versions:
            raise MissingError(f"{package} is not installed there; name an environment that has it with --python")
        return self.versions[package]

    def run(self, arguments: Sequence[str | Path]) -> str:
        """Run the interpreter with some arguments; return its output."""
        try:
            run = subprocess.run(
                [self._python, *arguments],
                cwd=HERE,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=LONGEST_RUN,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MissingError(f"not done after {LONGEST_RUN:g} s") from None
        if run.returncode:
            raise MissingError((run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1])
        return run.stdout
