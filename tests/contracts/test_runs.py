"""``tests/run`` and ``.ci/run``: what they run, what they install, and that no failure is lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

TOOLS = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in *"$FAILING"*) exit 1;; esac
"""
"""Stands for the Python that runs every check: notes what it is asked for, and fails where it shall."""

MAKER = f"""#!/bin/sh
test "$1" = -m || exec {sys.executable} "$@"
echo "$@" >>"$CALLS"
mkdir -p .venv/bin
printf '#!/bin/sh\\n' >.venv/bin/python
printf '#!/bin/sh\\necho pip >>"$CALLS"\\n' >.venv/bin/pip
chmod +x .venv/bin/*
"""
"""Stands for the Python of the system: environments that it makes are empty."""


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """The file in which the stand-ins note what they are asked for."""
    return tmp_path / "calls"


def run_tests(tmp_path: Path, calls: Path, *arguments: str, failing: str = "nothing") -> tuple[int, str]:
    """The exit code of ``tests/run``, and what it ran, a check a line."""
    python = executable(tmp_path / "python", TOOLS)
    environment = os.environ | {"PYTHON": str(python), "CALLS": str(calls), "FAILING": failing}
    result = subprocess.run([ROOT / "tests" / "run", *arguments], env=environment, capture_output=True, timeout=60)
    return result.returncode, calls.read_text()


def test_tests_run_checks_style_imports_types_and_tests(tmp_path: Path, calls: Path) -> None:
    code, ran = run_tests(tmp_path, calls, "-k", "some")
    assert code == 0
    assert all(word in ran for word in ("ruff check", "ruff format", "importlinter", "mypy", "pytest"))
    assert "-m not exhaustive -k some" in ran


def test_tests_run_all_leaves_nothing_out(tmp_path: Path, calls: Path) -> None:
    code, ran = run_tests(tmp_path, calls, "--all", "-x")
    assert code == 0
    assert "exhaustive" not in ran
    assert "--all" not in ran
    assert " -x" in ran


@pytest.mark.parametrize("failing", ["ruff check", "ruff format", "importlinter", "mypy", "pytest"])
def test_tests_run_fails_when_one_check_does_and_runs_the_others(tmp_path: Path, calls: Path, failing: str) -> None:
    code, ran = run_tests(tmp_path, calls, failing=failing)
    assert code == 1
    assert ran.count("-I") == 5


def test_ci_makes_an_environment_once_for_the_same_metadata(tmp_path: Path, calls: Path) -> None:
    top = tmp_path / "clone"
    script = top / ".ci" / "run"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", script)
    settings = Path(shutil.copy(ROOT / "pyproject.toml", top / "pyproject.toml"))
    executable(top / "tests" / "run", '#!/bin/sh\necho tests "$@" >>"$CALLS"\nexit 3\n')
    executable(tmp_path / "bin" / "python3", MAKER)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls)}

    def ran() -> list[str]:
        calls.write_text("")
        assert subprocess.run([script, "-x"], env=environment, cwd="/", timeout=60).returncode == 3
        return calls.read_text().splitlines()

    assert ran() == ["-m venv .venv", "pip", "tests -x"]
    assert ran() == ["tests -x"]
    settings.write_text(settings.read_text().replace("line-length = 120", "line-length = 100"))
    assert ran() == ["tests -x"]
    settings.write_text(settings.read_text().replace('"pytest>=9",', '"pytest>=9.1",'))
    assert ran() == ["-m venv .venv", "pip", "tests -x"]
    (top / ".venv" / "bin" / "python").unlink()
    assert ran() == ["-m venv .venv", "pip", "tests -x"]
