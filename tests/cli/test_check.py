"""``onnxjson check``."""

import json
from pathlib import Path

import msgspec
import onnx

from onnxjson.checking import Finding
from tests.cli.running import run

FIELDS = set(Finding.__struct_fields__)


def _misspell(text: Path) -> None:
    text.write_text(text.read_text().replace('"op_type": "Gemm"', '"op_typ": "Gemm"'))


def _rename_output(text: Path) -> None:
    text.write_text(text.read_text().replace('"output": ["active"]', '"output": ["activated"]'))


def test_sound_model_is_code_0_and_nothing_on_standard_output(binary: Path) -> None:
    result = run("check", binary)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "1 file: nothing wrong\n")


def test_mistake_in_a_text_is_a_line_with_its_place_and_code_1(text: Path) -> None:
    _misspell(text)
    result = run("check", text)
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    number = 1 + text.read_text().partition('"op_typ"')[0].count("\n")
    assert line.startswith(f"{text}:{number}:")
    assert ": error[" in line
    assert "op_type" in line
    assert result.stderr == "1 file: 1 error\n"


def test_value_that_nobody_makes_is_found_in_the_text_and_in_the_binary(text: Path) -> None:
    _rename_output(text)
    result = run("check", text)
    assert result.exit_code == 1
    assert "'active'" in result.stdout or '"active"' in result.stdout
    run("convert", text)
    of_binary = run("check", text.with_name("digits.onnx"))
    assert of_binary.exit_code == 1
    assert "/graph/node/2" in of_binary.stdout


def test_file_that_is_no_model_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    result = run("check", tmp_path / "m.onnx")
    assert result.exit_code == 1
    assert ": error[not-a-model]: " in result.stdout


def test_missing_file_is_code_66_and_the_others_are_still_checked(text: Path) -> None:
    _misspell(text)
    result = run("check", text.with_name("none.onnx"), text)
    assert result.exit_code == 66
    assert "error[66]" in result.stderr
    assert "op_type" in result.stdout


def test_json_is_ascii_and_has_every_field_of_every_finding(text: Path) -> None:
    text.write_text(text.read_text().replace('"op_type": "Gemm"', '"öp_type": "Gemm"'))
    result = run("check", "--json", text)
    assert result.exit_code == 1
    assert result.stdout.isascii()
    found = json.loads(result.stdout)
    assert [set(finding) for finding in found] == [FIELDS]
    assert found[0]["file"] == str(text)
    assert msgspec.convert(found, list[Finding])[0].severity == "error"


def test_json_of_a_sound_model_is_an_empty_array(binary: Path) -> None:
    assert run("check", "--json", binary).stdout == "[]\n"


def test_warnings_alone_are_code_0_and_strict_makes_them_1(text: Path) -> None:
    text.write_text(text.read_text().replace('"opset_import": {"": 17},\n', ""))
    result = run("check", text)
    assert (result.exit_code, result.stderr) == (0, "1 file: 1 warning\n")
    assert ": warning[" in result.stdout
    assert run("check", "--strict", text).exit_code == 1


def test_comment_is_nothing_wrong(text: Path) -> None:
    text.write_text("// a remark\n" + text.read_text())
    result = run("check", "--strict", text)
    assert (result.exit_code, result.stdout) == (0, "")


def test_deep_finds_nothing_in_a_sound_model(binary: Path) -> None:
    result = run("check", "--deep", binary)
    assert (result.exit_code, result.stdout) == (0, "")


def test_deep_finds_the_external_data_of_a_binary_and_of_its_text(binary: Path) -> None:
    onnx.save(onnx.load(binary), binary, save_as_external_data=True, location="w.bin", size_threshold=100)
    run("convert", binary)
    text = binary.with_name("digits.onnx.json")
    assert run("check", "--deep", binary, text).exit_code == 0
    binary.with_name("w.bin").unlink()
    for path in (binary, text):
        result = run("check", "--deep", path)
        assert result.exit_code == 1
        assert "w.bin" in result.stdout


def test_deep_finds_what_only_onnx_knows(text: Path) -> None:
    text.write_text(text.read_text().replace('"kernel_shape": [2, 2]', '"kernel_shape": [2, 2, 2]'))
    assert run("check", text).exit_code == 0
    result = run("check", "--deep", text)
    assert result.exit_code == 1
    assert str(text) in result.stdout


def test_checking_changes_nothing(binary: Path) -> None:
    before = binary.read_bytes()
    run("check", "--deep", binary)
    assert [path.name for path in binary.parent.iterdir()] == ["digits.onnx"]
    assert binary.read_bytes() == before
    onnx.checker.check_model(onnx.load(binary))
