import json
import sys
from pathlib import Path

import onnx
import pytest

from onnxjson import example
from onnxjson.running import box, box_seccomp, box_trial
from onnxjson.running.box_trial import Protection
from tests.cli.running import run, run_process

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or bool(box.missing()),
    reason="this kernel has no Landlock or no seccomp",
)


def test_every_protection_is_tried() -> None:
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "ok  reading files of the user: refused (Landlock)",
        "ok  writing outside of its own folder: refused (Landlock)",
        "ok  the network: refused (seccomp)",
        "ok  running programs: refused (seccomp)",
        "ok  starting processes: refused (seccomp)",
        "ok  stopping other processes: refused (seccomp, Landlock)",
        "ok  memory beyond the limit: refused (limits of the process)",
        "ok  time beyond the limit: refused (limits of the process)",
    ]


def test_programs_read_it_as_json() -> None:
    found = json.loads(run("doctor", "--json").stdout)
    assert found[0] == {"name": "reading files of the user", "by": "Landlock", "is_refused": True, "detail": ""}
    assert len(found) == 8


def test_what_is_missing_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "landlock_missing", lambda: "too old")
    monkeypatch.setattr(box_trial, "landlock_missing", lambda: "too old")
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:3] == [
        "NO  reading files of the user: too old",
        "NO  writing outside of its own folder: too old",
        "ok  the network: refused (seccomp)",
    ]


def test_what_only_seems_to_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_trial, "_ATTEMPTS", {"nothing": ("nobody", lambda _: None)})
    assert box_trial.try_protections()[:1] == [Protection("nothing", "nobody", False, "nothing refuses it")]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(example.make_example(), path)
    return path


def test_the_network_is_open_where_only_tcp_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_seccomp, "missing", lambda: "too old")
    box.seccomp_missing.cache_clear()
    try:
        found = {each.name: each for each in box_trial.try_protections()}
    finally:
        box.seccomp_missing.cache_clear()
    assert (found["the network"].is_refused, found["the network"].detail) == (False, "too old")


def test_trust_lets_a_pass_read_what_the_user_can(model: Path, tmp_path: Path) -> None:
    (tmp_path / "passes").mkdir()
    (tmp_path / "word").write_text("y")
    own = tmp_path / "passes" / "own.py"
    own.write_text(
        f"def optimize(model):\n    model.doc_string = open({str(tmp_path / 'word')!r}).read()\n    return model\n"
    )
    result = run_process("optimize", model, "-p", own, "-o", tmp_path / "out.onnx")
    assert result.exit_code == 76
    assert "own.py:2: PermissionError" in result.stderr
    assert "--trust" in result.stderr
    assert not (tmp_path / "out.onnx").exists()
    result = run_process("optimize", model, "-p", own, "--trust", "-o", tmp_path / "out.onnx")
    assert result.exit_code == 0
    assert onnx.load(tmp_path / "out.onnx").doc_string == "y"


def test_trust_lets_a_score_read_what_the_user_can(model: Path, tmp_path: Path) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "data").write_text("0.5")
    own = tmp_path / "scores" / "own.py"
    own.write_text(f"def evaluate(run):\n    return 0, float(open({str(tmp_path / 'data')!r}).read())\n")
    words: list[str | Path] = ["bench", model, "--score", own, "--repeat", "1", "--format", "json"]
    assert "PermissionError" in json.loads(run(*words).stdout)["rows"][0]["problem"]
    assert json.loads(run(*words, "--trust").stdout)["rows"][0]["scores"]["metric"] == 0.5


def with_external_data(folder: Path, data: str) -> Path:
    """A model whose biggest tensor stands in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    made = example.make_example()
    onnx.save(made, folder / "m.onnx", save_as_external_data=True, location=data, size_threshold=0)
    return folder / "m.onnx"


@pytest.mark.parametrize("command", [["check", "--deep"], ["run"], ["verify"], ["bench", "--repeat", "1"]])
@pytest.mark.parametrize("kind", ["absolute", "relative", "linked folder", "linked model"])
def test_external_data_is_found_wherever_the_model_is_named_from(
    command: list[str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = with_external_data(tmp_path / "models" / "deep", "m.data")
    (tmp_path / "elsewhere").mkdir()
    folder, path = tmp_path, model
    if kind == "relative":
        folder, path = tmp_path / "elsewhere", Path("../models/deep/m.onnx")
    elif kind == "linked folder":
        (tmp_path / "link").symlink_to(tmp_path / "models" / "deep")
        path = tmp_path / "link" / "m.onnx"
    elif kind == "linked model":
        (tmp_path / "elsewhere" / "m.onnx").symlink_to(model)
        (tmp_path / "elsewhere" / "m.data").write_bytes((model.parent / "m.data").read_bytes())
        path = tmp_path / "elsewhere" / "m.onnx"
    models = [path, path] if command == ["verify"] else [path]
    monkeypatch.chdir(folder)
    result = run(*command, *models)
    assert result.exit_code == 0, result
    assert "denied" not in result.stdout + result.stderr


def test_nothing_of_onnxruntime_complains_that_it_cannot_call_home(model: Path, tmp_path: Path) -> None:
    result = run_process(
        "optimize", model, "-p", "onnxruntime", "-o", tmp_path / "out.onnx", more={"HOME": str(tmp_path)}
    )
    assert result.exit_code == 0
    assert "elemetry" not in result.stderr
    assert not (tmp_path / "cache" / "Microsoft").exists()
