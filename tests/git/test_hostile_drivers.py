"""A repository full of traps: what `onnxjson git install` set up shows and merges its models, and springs none."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import onnxjson
from tests.cli.running import command_line
from tests.git.conftest import Repository
from tests.git.small_models import binary, text

MODULES = (
    "json.py",
    "onnx.py",
    "sitecustomize.py",
    "usercustomize.py",
    "msgspec.py",
    "click.py",
    "numpy.py",
    "encodings/__init__.py",
    "onnxjson/__init__.py",
    "onnxjson/git/textconv.py",
    "onnxjson/git/merge_driver.py",
    "onnxjson_tui/__init__.py",
    "lib/python3.11/site-packages/trap.pth",
)

PROGRAMS = ("sha256sum", "cat", "rm", "sh", "python", "python3", "git", "git-onnxdiff", "mktemp", "less")

SETTINGS = (
    ".onnxjson",
    ".onnxjson.toml",
    "onnxjson.toml",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    ".pydistutils.cfg",
)

ATTRIBUTES = b"""* conflict-marker-size=2147483647 whitespace=tab-in-indent encoding=evil
[attr]binary diff=evil merge=evil
"""

NAMES = (
    "m.onnx",
    "m.onnx.json",
    "-o.onnx",
    "--git.onnx.json",
    "-c import os.onnx",
    "$(touch sprung).onnx",
    "`touch sprung`.onnx.json",
    "a;touch sprung;.onnx",
    'it\'s a "name".onnx',
    "two\nlines.onnx",
    "%A %O %P %L %%.onnx",
    "HEAD:m.onnx",
    "\x1b[31m\u202e\x1b]52;c;AAAA\x07.onnx.json",
    "folder with $HOME/-m.onnx",
)


GIT = shutil.which("git") or "git"


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


def set_up(top: Path, names: tuple[str, ...] = ("m.onnx",), rival: tuple[float, float] = (0.1, 0.75)) -> Traps:
    """Installed by the command itself; main changes alpha to 0.2, topic has the values of a rival."""
    repository = Traps(top)
    repository.write(".gitattributes", ATTRIBUTES)
    result = repository.call(*command_line("git", "install"))
    assert result.returncode == 0, result.stderr
    for branch, values in (("", (0.1, 0.5)), ("topic", rival), ("main", (0.2, 0.5))):
        if branch:
            repository.git("checkout", "-q", "-B", branch, "main")
        for name in names:
            repository.write(name, (text if name.endswith("json") else binary)(*values))
        repository.commit(f"{values}")
    return repository


def test_set_up_is_looked_at_and_taken_out_again(tmp_path: Path) -> None:
    repository = Traps(tmp_path / "r")
    repository.write("m.onnx", binary())
    for words in (("install",), ("doctor",), ("check-sync", "m.onnx"), ("check-inline", "m.onnx"), ("uninstall",)):
        result = repository.call(*command_line("git", *words))
        assert result.returncode == 0, (words, result.stdout, result.stderr)


def test_models_are_shown_and_merged_and_nothing_runs(tmp_path: Path) -> None:
    repository = set_up(tmp_path / "r", NAMES)
    for words in (("show",), ("log", "-p", "-1"), ("diff", "HEAD~1", "topic"), ("diff", "--word-diff", "HEAD~1")):
        assert repository.call(GIT, *words).stdout.count(b'"alpha": ') >= len(NAMES), words
    for name in NAMES[2:6]:
        assert b'"alpha": 0.2' in repository.call(GIT, "blame", "--", name).stdout
        assert b'"alpha": 0.2' in repository.call(GIT, "grep", "--textconv", "alpha", "--", name).stdout
        assert repository.call(GIT, "onnxdiff", f"HEAD~1:{name}", f"HEAD:{name}").returncode == 1
    result = repository.call(GIT, "onnxdiff", "HEAD~1", "HEAD")
    assert result.returncode == 1
    assert result.stdout.count(b"attribute alpha: 0.1 -> 0.2") == len(NAMES)
    assert b"\x1b" not in result.stdout
    result = repository.call(GIT, "merge", "-q", "-m", "merged", "topic")
    assert result.returncode == 0, result.stderr
    for name in NAMES:
        assert onnxjson.load(repository.top / name) == onnxjson.loads(text(0.2, 0.75)), name


def test_conflicts_are_listed_and_settled_and_nothing_runs(tmp_path: Path) -> None:
    repository = set_up(tmp_path / "r", NAMES, (0.4, 0.5))
    result = repository.call(GIT, "merge", "topic")
    assert result.returncode == 1, result.stderr
    assert b"\x1b" not in result.stderr
    listed = repository.call(*command_line("conflicts"))
    assert listed.returncode == 16
    assert listed.stdout.count(b"/attribute/alpha") == len(NAMES)
    repository.call(GIT, "mergetool", "-y", "-t", "onnxjson")
    for name in NAMES:
        assert repository.call(*command_line("resolve", "--theirs", "--", name)).returncode == 0
        assert onnxjson.load(repository.top / name) == onnxjson.loads(text(0.4, 0.5)), name


def test_encoding_that_attributes_ask_for_is_no_code(tmp_path: Path) -> None:
    repository = set_up(tmp_path / "r")
    repository.write(
        ".gitattributes",
        b"* working-tree-encoding=evil filter=evil ident\n" + (repository.top / ".gitattributes").read_bytes(),
    )
    repository.write("m.onnx", binary(0.9))
    for words in (("diff",), ("status",), ("onnxdiff",), ("merge", "topic"), ("stash",)):
        repository.call(GIT, *words)
