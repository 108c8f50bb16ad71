"""The hooks for pre-commit, and the commands that they run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from onnxjson.cli import overview
from onnxjson.codecs.tensor_text import WeightsMode
from onnxjson.git import installation
from onnxjson.model import document
from onnxjson.storage import api, files
from tests.cli.running import run
from tests.git.conftest import Repository
from tests.git.small_models import binary, text

HOOKS = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(binary())
    (tmp_path / "m.onnx.json").write_bytes(text())
    return tmp_path


def test_every_hook_is_a_command_and_finds_its_files() -> None:
    entries = re.findall(r"^  entry: onnxjson (.+)$", HOOKS, re.MULTILINE)
    assert re.findall(r"^- id: (.+)$", HOOKS, re.MULTILINE) == [
        f"onnxjson-{name}" for name in ("fmt", "check", "sync", "no-large-inline")
    ]
    for entry in entries:
        assert entry.split()[0] in overview.COMMANDS
        assert run(*entry.split(), "--help").exit_code == 0
    patterns = re.findall(r"^  files: (.+)$", HOOKS, re.MULTILINE)
    assert len(patterns) == len(entries) == 4
    assert all(re.search(pattern, "a/m.onnx.json") and not re.search(pattern, "a/m.json") for pattern in patterns)


@pytest.mark.parametrize("named", [("m.onnx",), ("m.onnx.json",), ("m.onnx", "m.onnx.json")])
def test_pair_that_differs_is_said_once(named: tuple[str, ...], folder: Path) -> None:
    assert run("git", "check-sync", *named)[:2] == (0, "")
    (folder / "m.onnx.json").write_bytes(text(alpha=0.2))
    result = run("git", "check-sync", *named)
    assert result.exit_code == 1
    assert result.stdout.count("m.onnx and m.onnx.json differ") == 1


def test_file_without_the_other_is_fine_and_one_that_cannot_be_read_is_not(folder: Path) -> None:
    (folder / "m.onnx.json").write_bytes(b"{")
    assert run("git", "check-sync", "m.onnx").exit_code == 65
    (folder / "m.onnx.json").unlink()
    assert run("git", "check-sync", "m.onnx", "nothing.onnx.json").exit_code == 0


@pytest.mark.parametrize("mode", ["inline", "blobs", "digest"])
def test_weights_in_a_text_are_found_and_agree_in_every_form(mode: WeightsMode, folder: Path) -> None:
    model = api.loads(text().decode())
    tensor = document.Tensor(name="w", data_type=1, dims=(10_000,), raw_data=bytes(40_000))
    assert model.graph is not None
    model = document.Model(
        ir_version=10,
        opset_import=model.opset_import,
        graph=document.Graph(
            name="g", node=model.graph.node, input=model.graph.input, output=model.graph.output, initializer=(tensor,)
        ),
    )
    files.save(model, folder / "m.onnx")
    files.save(model, folder / "m.onnx.json", weights=mode)
    assert run("git", "check-sync", "m.onnx").exit_code == 0
    assert run("git", "check-inline", "m.onnx", "m.onnx.json").exit_code == 0
    result = run("git", "check-inline", "--limit", "39999", "m.onnx", "m.onnx.json")
    assert result.exit_code == (1 if mode == "inline" else 0)
    assert ("m.onnx.json contains large weights (1 tensor, 40,000 bytes)" in result.stdout) == (mode == "inline")


def test_hook_catches_a_merge_for_which_git_calls_no_driver(repository: Repository) -> None:
    """`git merge A B C` and `git merge -s resolve` merge lines; the hook runs before such a merge is committed."""
    entry = HOOKS.partition("entry: onnxjson check\n")[2].partition("- id")[0]
    assert "stages: [pre-commit, pre-merge-commit, " in entry
    hook = repository.write(".git/hooks/pre-merge-commit", b"")
    changed = "$(git diff --cached --name-only --diff-filter=d HEAD)"
    hook.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -m onnxjson check {changed}\n")
    hook.chmod(0o755)
    installation.install(installation.target_of("local"))
    base = text().decode()
    repository.commit("base", **{"m.onnx.json": base.encode()})
    first = '    {"op_type": "Relu", "output": ["extra"],\n     "input": ["x"]},\n'
    last = ',\n    {"op_type": "Tanh", "output": ["extra"],\n     "input": ["y"]}\n  ]\n}\n}\n'
    versions = {
        "one": base.replace('"node": [\n', f'"node": [\n{first}'),
        "two": base.replace("\n  ]\n}\n}\n", last),
        "three": base.replace('"ir_version": 10', '"ir_version": 11'),
    }
    for branch, version in versions.items():
        repository.git("checkout", "-q", "-b", branch, "main")
        repository.commit(branch, **{"m.onnx.json": version.encode()})
    for onto, words in (("main", ["one", "two", "three"]), ("one", ["-s", "resolve", "two"])):
        repository.git("checkout", "-q", onto)
        before = repository.git("rev-parse", "HEAD")
        with pytest.raises(subprocess.CalledProcessError) as raised:
            repository.git("merge", "--no-edit", *words)
        assert b'"extra" is defined twice' in raised.value.stdout + raised.value.stderr
        assert repository.git("rev-parse", "HEAD") == before
        repository.git("reset", "-q", "--hard")
    # One after the other they go through the driver, which gives each its name.
    for branch in versions:
        repository.git("merge", "-q", "--no-edit", branch)
    assert run("check", repository.top / "m.onnx.json").exit_code == 0
