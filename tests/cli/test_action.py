"""The steps of action.yml, run with a stand-in for the files of a runner."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

from tests.cli.test_gate import repository as repository

ROOT = Path(__file__).parents[2]


def _action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


def _run_step(name: str, folder: Path, runner: Path, **values: str) -> "subprocess.CompletedProcess[str]":
    """Run the script of a step in a checkout, as a runner does; `values` are the variables of the step."""
    (step,) = [each for each in _action()["runs"]["steps"] if each["id"] == name]
    names = {key: values.get(key, value) for key, value in step["env"].items()}
    assert "${{" not in "".join(names.values())
    files = {name: str(runner / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **files, **names, "PATH": path, "RUNNER_TEMP": str(runner), "PIP_NO_INDEX": "1"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=environment | values, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def _run_gate(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str], str]:
    """Run the step of the gate; return its code, its log, its outputs and its summary."""
    runner = folder.parent / "runner"
    program = runner / "onnxjson" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    given = {name: each.get("default", "") for name, each in _action()["inputs"].items()} | inputs
    done = _run_step("gate", folder, runner, **{name.upper().replace("-", "_"): value for name, value in given.items()})
    files = {name: runner / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    written = {name: file.read_text() if file.exists() else "" for name, file in files.items()}
    outputs = dict(line.split("=", 1) for line in written["GITHUB_OUTPUT"].splitlines())
    return done.returncode, done.stdout, outputs, written["GITHUB_STEP_SUMMARY"]


def test_change_that_breaks_the_policy_fails_with_annotations_and_a_summary(repository: Path) -> None:
    code, log, outputs, summary = _run_gate(repository, base="main", policy="policy.toml")
    assert (code, outputs["verdict"]) == (1, "fail")
    assert (repository / outputs["comment"]).read_text() == summary
    assert not Path(outputs["comment"]).is_relative_to(repository), "a link of the checkout could lead elsewhere"
    assert all((repository / outputs[name]).exists() for name in ("page", "sarif"))
    lines = log.splitlines()
    start = next(line for line in lines if line.startswith("::stop-commands::"))
    end = lines.index(f"::{start.removeprefix('::stop-commands::')}::")
    assert all(line.startswith(("::error ", "::warning ")) for line in lines[end + 1 :])
    assert not any("::set-output" in line and line.lstrip().startswith("::") for line in lines)


def test_wrong_revision_is_an_error_and_not_a_verdict(repository: Path) -> None:
    code, _, outputs, summary = _run_gate(repository, base="nowhere")
    assert (code, outputs["verdict"], outputs["sarif"], outputs["page"]) == (66, "error", "", "")
    assert summary.startswith("### ❌ The gate could not judge this change.\n\n    onnxjson: error[66]: ")
    assert Path(outputs["comment"]).read_text() == summary


def test_unset_revision_is_an_error_and_not_a_verdict(repository: Path) -> None:
    code, _, outputs, summary = _run_gate(repository, base="", policy="policy.toml")
    assert (code, outputs["verdict"], "it is empty; name a revision" in summary) == (2, "error", True)


HOSTILE = (
    "secrets", "pip/__init__", "pip/__main__", "onnxjson/__init__", "onnxjson/__main__", "sitecustomize", "json",
    "usercustomize", "venv/__init__", "venv/__main__", "ensurepip/__init__", "ensurepip/__main__", "multiprocessing",
    "encodings/__init__", "runpy", "onnx", "numpy", "threading", "pickle", "distributed", "hatchling/__init__",
)  # fmt: skip


def test_nothing_of_the_checkout_is_run(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for name in HOSTILE:
        module = repository / f"{name}.py"
        module.parent.mkdir(exist_ok=True)
        module.write_text(f"import posix\nposix.open({str(mark)!r}, {os.O_CREAT | os.O_WRONLY}, 384)\n")
    for name in ("python", "git", "mktemp"):
        (repository / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (repository / name).chmod(0o755)
    wheel, info = tmp_path / "empty-1-py3-none-any.whl", "empty-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: empty\nVersion: 1\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    runner = tmp_path / "installing"
    runner.mkdir()
    (tmp_path / "constraints.txt").write_text("empty==1\n")
    values = {"ACTION": str(wheel), "PYTHON": sys.executable, "CONSTRAINTS": str(tmp_path / "constraints.txt")}
    installed = _run_step("install", repository, runner, **values)
    assert (installed.returncode, installed.stderr) == (0, "")
    assert list((runner / "onnxjson").glob("lib/*/site-packages/empty-1.dist-info"))
    assert not mark.exists()
    code, _, outputs, _ = _run_gate(repository, base="main", policy="policy.toml")
    assert (code, outputs["verdict"]) == (1, "fail")
    assert not mark.exists()


def test_action_is_composite_and_uses_nothing_but_python_and_pip() -> None:
    steps = _action()["runs"]["steps"]
    assert [each["id"] for each in steps] == ["python", "install", "gate"]
    assert [each["uses"] for each in steps if "uses" in each] == ["actions/setup-python@v5"]
    assert "${{" not in "".join(each.get("run", "") for each in steps), "inputs reach scripts as variables only"


def test_versions_of_all_dependencies_are_pinned() -> None:
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pinned[requirement.name.replace("_", "-")]), text


def test_time_for_outputs_is_an_input(repository: Path) -> None:
    _, _, outputs, _ = _run_gate(repository, base="main", **{"verify-seconds": "0"})
    assert "Outputs were not compared." in Path(outputs["comment"]).read_text()


def test_page_names_every_output() -> None:
    text = (ROOT / "docs" / "gate.md").read_text()
    assert [name for name in _action()["outputs"] if f"`{name}`" not in text] == []


def test_workflow_of_the_page_uses_declared_inputs_and_outputs() -> None:
    text = (ROOT / "docs" / "gate.md").read_text()
    workflow = yaml.safe_load(text[text.index("on: pull_request") :].partition("```")[0])
    steps = workflow["jobs"]["gate"]["steps"]
    (gate,) = [each for each in steps if each.get("id") == "gate"]
    declared = _action()
    assert set(gate["with"]) <= set(declared["inputs"])
    used = set(re.findall(r"steps\.gate\.outputs\.(\w+)", text))
    assert {"comment", "sarif"} <= used <= set(declared["outputs"])
    assert {"pull-requests", "security-events"} <= set(workflow["permissions"])
    assert "github/codeql-action/upload-sarif@v3" in {each.get("uses") for each in steps}
    writing = [each for each in steps if "gh pr comment" in each.get("run", "") or "sarif" in each.get("uses", "")]
    assert len(writing) == 2
    assert all("env.WRITES == 'true'" in each["if"] for each in writing), "those from forks may not write"
    assert "policy" not in gate["with"], "an empty repository has no such file"
