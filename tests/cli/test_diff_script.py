"""``onnxjson diff --to script`` and what `onnxjson apply` makes of it."""

from pathlib import Path

import msgspec

import onnxjson
from tests.cli.running import run


def test_a_hand_edit_is_replayed_on_another_model(binary: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.onnx"
    edit = ("op:LeakyRelu", "alpha", "0.5")
    assert run("rewrite", "set-attribute", binary, *edit, "-o", changed).exit_code == 0
    script = tmp_path / "change.json"
    result = run("diff", binary, changed, "--format", "script", "-o", script)
    assert result.exit_code == 1, result.stderr
    assert '"edit": "set-attribute", "node": "/activation", "attribute": "alpha", "value": 0.5' in script.read_text()
    again = tmp_path / "again.onnx"
    assert run("apply", script, binary, "-o", again).exit_code == 0
    assert again.read_bytes() == changed.read_bytes()


def test_a_change_that_edits_cannot_say_is_a_patch_and_it_says_so(binary: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.onnx"
    onnxjson.save(msgspec.structs.replace(onnxjson.load(binary), producer_name="somebody"), changed)
    result = run("diff", binary, changed, "--format", "script")
    assert result.exit_code == 1
    assert "edits cannot express this change" in result.stderr
    assert '"format": "onnxjson-patch/1"' in result.stdout


def test_equal_models_give_an_empty_script(binary: Path) -> None:
    result = run("diff", binary, binary, "--format", "script")
    assert result.exit_code == 0
    assert '"edits": []' in result.stdout
