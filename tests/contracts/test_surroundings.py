"""Nothing outside the folders of the tests changes their results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

SENSITIVE = ("tests/cli/test_fmt.py", "tests/contracts/test_surroundings.py::test_surroundings_are_those_of_the_tests")
"""Tests that write backups, print what may be coloured or cut, and look at the folders above."""

HOSTILE = {
    "HOME": "/nowhere", "XDG_STATE_HOME": "/dev/null", "XDG_CONFIG_HOME": "/dev/null", "GIT_DIR": "/nowhere",
    "GIT_AUTHOR_DATE": "no date", "LC_ALL": "tr_TR.ISO-8859-9", "LANGUAGE": "de", "TERM": "dumb", "NO_COLOR": "1",
    "FORCE_COLOR": "1", "COLUMNS": "11", "PAGER": "false", "EDITOR": "false", "TZ": "Asia/Kathmandu",
    "ONNXJSON_DEBUG": "1", "ONNXJSON_GIT": "off",
}  # fmt: skip


def test_surroundings_are_those_of_the_tests(tmp_path: Path) -> None:
    assert not [name for name, value in HOSTILE.items() if os.environ.get(name) == value]
    assert (tmp_path.parent / "stray.json").exists()
    assert (tmp_path.parent / "broken.onnx.json").exists()
    new = tmp_path / "new"
    new.mkdir()
    assert new.stat().st_mode & 0o777 == 0o755
    assert Path.cwd().is_relative_to(tmp_path.parent)


@pytest.mark.timeout(300)
def test_strange_surroundings_change_no_result(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    (above / "list.json").write_text('[{"blob": 1}]')
    words = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-p",
             "no:cacheprovider", "-m", "not exhaustive", "--basetemp", str(above / "tests")]  # fmt: skip
    environment = os.environ | HOSTILE | {"TMPDIR": str(above), "PYTEST_ADDOPTS": "-n 0"}
    result = subprocess.run(
        [*words, *(str(ROOT / name) for name in SENSITIVE)],
        cwd=above,
        env=environment,
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
