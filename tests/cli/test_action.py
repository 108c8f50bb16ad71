"""The steps of action.yml, run with a stand-in for the files of a runner."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.cli.test_gate import repository as repository

ROOT = Path(__file__).parents[2]


def _action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


def _run_gate(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str], str]:
    """Run the step of the gate; return its code, its log, its outputs and its summary."""
    action = _action()
    step = next(each for each in action["runs"]["steps"] if each["id"] == "gate")
    given = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    runner = folder.parent / "runner"
    runner.mkdir()
    files = {name: str(runner / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    names = {key: given[value.removeprefix("${{ inputs.").removesuffix(" }}")] for key, value in step["env"].items()}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **files, **names, "PATH": path, "PYTHONPATH": f"{ROOT}:{ROOT / 'tui'}"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    written = {name: Path(file).read_text() if Path(file).exists() else "" for name, file in files.items()}
    outputs = dict(line.split("=", 1) for line in written["GITHUB_OUTPUT"].splitlines())
    return done.returncode, done.stdout, outputs, written["GITHUB_STEP_SUMMARY"]


def test_change_that_breaks_the_policy_fails_with_annotations_and_a_summary(repository: Path) -> None:
    code, log, outputs, summary = _run_gate(repository, base="main", policy="policy.toml")
    assert (code, outputs["verdict"]) == (1, "fail")
    assert (repository / outputs["comment"]).read_text() == summary
    assert all((repository / outputs[name]).exists() for name in ("page", "sarif"))
    lines = log.splitlines()
    start = next(line for line in lines if line.startswith("::stop-commands::"))
    end = lines.index(f"::{start.removeprefix('::stop-commands::')}::")
    assert all(line.startswith(("::error ", "::warning ")) for line in lines[end + 1 :])
    assert not any("::set-output" in line and line.lstrip().startswith("::") for line in lines)


def test_wrong_revision_is_an_error_and_not_a_verdict(repository: Path) -> None:
    code, _, outputs, summary = _run_gate(repository, base="nowhere")
    assert (code, outputs, summary) == (66, {}, "")


def test_action_is_composite_and_uses_nothing_but_pip() -> None:
    steps = _action()["runs"]["steps"]
    assert [each["id"] for each in steps] == ["install", "gate"]
    assert not [each for each in steps if "uses" in each]
    assert "${{" not in "".join(each["run"] for each in steps), "inputs reach scripts as variables only"


def test_page_names_every_output() -> None:
    text = (ROOT / "docs" / "gate.md").read_text()
    assert [name for name in _action()["outputs"] if f"`{name}`" not in text] == []
