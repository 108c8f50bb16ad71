"""A repository whose every file is a trap; models are committed to it by the tests."""

import os
import stat
import subprocess
from pathlib import Path

from tests.git.conftest import Repository

MODULES = (
    "json.py", "onnx.py", "sitecustomize.py", "usercustomize.py", "msgspec.py", "click.py", "numpy.py",
    "encodings/__init__.py", "onnxjson/__init__.py", "onnxjson/git/textconv.py", "onnxjson/git/merge_driver.py",
    "onnxjson_tui/__init__.py", "lib/python3.11/site-packages/trap.pth",
)  # fmt: skip

PROGRAMS = ("sha256sum", "cat", "rm", "sh", "python", "python3", "git", "git-onnxdiff", "mktemp", "less")

SETTINGS = (
    ".onnxjson", ".onnxjson.toml", "onnxjson.toml", "pyproject.toml", "setup.cfg", "tox.ini", ".pydistutils.cfg",
)  # fmt: skip

ATTRIBUTES = b"""* conflict-marker-size=2147483647 whitespace=tab-in-indent encoding=evil
[attr]binary diff=evil merge=evil
"""


class Traps(Repository):
    """A repository whose every file is after whoever reads it; anything that runs leaves a mark."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.mark = top.parent / "sprung"
        program = top.parent / "trap"
        program.write_text(f"#!/bin/sh\ntouch '{self.mark}'\ncat\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        code = f"import os\nos.close(os.open({str(self.mark)!r}, os.O_CREAT))\nraise SystemExit(16)\n".encode()
        for name in MODULES:
            self.write(name, code.replace(b"\n", b";") if name.endswith(".pth") else code)
        for name in PROGRAMS:
            self.write(name, program.read_bytes()).chmod(0o755)
        for name in SETTINGS:
            self.write(
                name, f'[tool.onnxjson]\npython = "{program}"\ntextconv = "{program}"\nplugins = ["json"]\n'.encode()
            )
        self.environment = os.environ | {
            "PYTHONPATH": str(top),
            "PYTHONHOME": str(top),
            "PYTHONUSERBASE": str(top),
            "PYTHONSTARTUP": str(top / "json.py"),
            "PYTHONINSPECT": "1",
            "PYTHONBREAKPOINT": "json.trap",
            "PYTHONWARNINGS": "error::json.Trap",
            "PYTHONPLATLIBDIR": "lib",
            "PYTHONCASEOK": "1",
            "PYTHONOPTIMIZE": "2",
            "ONNXJSON_PYTHON": str(program),
            "ONNXJSON_CONFIG": str(top / ".onnxjson"),
        }

    def call(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        """A command at the top of the repository, in an environment full of traps."""
        result = subprocess.run(
            command, cwd=self.top, env=self.environment, capture_output=True, timeout=110, stdin=subprocess.DEVNULL
        )
        assert not self.mark.exists(), command
        assert not list(self.top.rglob("sprung*")), command
        return result
