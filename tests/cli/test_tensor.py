"""``onnxjson tensor``."""

import json
import os
import subprocess
from pathlib import Path

import numpy
import pytest
from click.testing import CliRunner
from onnx.parser import parse_model

from onnxjson import example
from onnxjson.cli.group import onnxjson
from onnxjson.storage import api
from tests.cli.running import Result, command_line, run


def run_with_input(text: bytes, *arguments: str) -> Result:
    result = CliRunner().invoke(onnxjson, ["tensor", *arguments], input=text, prog_name="onnxjson")
    return Result(result.exit_code, result.stdout, result.stderr)


def test_encode_prints_the_base64_and_nothing_else() -> None:
    result = run("tensor", "encode", "[1, 2, 3]", "--type", "int64[3]")
    assert result == (0, "AQAAAAAAAAACAAAAAAAAAAMAAAAAAAAA\n", "")


@pytest.mark.parametrize("kind", [("--type", "int4[3]"), ("--type", "int4"), ("--type", "INT4")])
def test_dims_of_a_type_default_to_the_nesting(kind: tuple[str, ...]) -> None:
    assert run("tensor", "encode", "[1, -6, 7]", *kind).stdout == "oQc=\n"


def test_one_string_is_base64_and_several_are_not() -> None:
    assert run("tensor", "encode", '"h\u00e9llo"', "--type", "string").stdout == "aMOpbGxv\n"
    assert run("tensor", "decode", "aMOpbGxv", "--type", "string").stdout == '"h\\u00e9llo"\n'
    refused = run("tensor", "encode", '["a", "b"]', "--type", "string")
    assert (refused.exit_code, refused.stdout) == (65, "")
    assert "only one string can be written as base64; --json" in refused.stderr


def test_a_pattern_gets_every_constant_each_into_a_file(tmp_path: Path) -> None:
    path, folder = tmp_path / "m.onnx", tmp_path / "weights"
    model = api.from_proto(parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) <float[2] "a/w" = {1, 2}, float[2] "a.w" = {3, 4}, float[2] "a_w" = {5, 6}>
        { b = Add (x, "a/w") c = Add (b, "a.w") y = Add (c, "a_w") }"""))  # fmt: skip
    api.save(model, path)
    assert run("tensor", "get", path, "a?w", "-o", folder).exit_code == 0
    found = {each.name: numpy.load(each).tolist() for each in folder.iterdir()}
    assert found == {"a_w.npy": [1, 2], "a.w.npy": [3, 4], "a_w-2.npy": [5, 6]}
    assert run("tensor", "get", path, "*", "-o", tmp_path / "all.npz").exit_code == 0
    assert set(numpy.load(tmp_path / "all.npz")) == {"a/w", "a.w", "a_w"}
    again = run("tensor", "get", path, "*", "-o", folder)
    assert "exists; choose a new folder" in again.stderr


def test_encode_takes_a_bare_negative_number() -> None:
    assert run("tensor", "encode", "-1", "--type", "int8").stdout == "/w==\n"
    assert run("tensor", "encode", "--type", "float32", "-0.5").stdout == "AAAAvw==\n"


def test_mistyped_option_is_named() -> None:
    result = run("tensor", "encode", "1", "--tpye", "int8")
    assert result.exit_code == 2
    assert "--tpye" in result.stderr
    assert "onnxjson tensor encode --help" in result.stderr


def test_values_and_base64_come_from_standard_input() -> None:
    assert run_with_input(b"[[1], [2]]", "encode", "-", "--type", "uint8").stdout == "AQI=\n"
    assert run_with_input(b"AQI=\r\n", "decode", "-", "--type", "uint8[2,1]").stdout == "[\n  [1],\n  [2]\n]\n"


def test_values_and_base64_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text("[1, 2]")
    (tmp_path / "text").write_text("AQI=\n")
    assert run("tensor", "encode", "--from", tmp_path / "values.json", "--type", "uint8").stdout == "AQI=\n"
    assert run("tensor", "decode", "--from", tmp_path / "text", "--type", "uint8").stdout == "[1, 2]\n"


def test_json_is_ascii_and_can_be_pasted_into_a_text() -> None:
    result = run("tensor", "encode", '["é\U0001f600"]', "--type", "string", "--json", "--name", "ü")
    assert result.stdout.isascii()
    assert json.loads(result.stdout) == {"name": "ü", "type": "string[1]", "values": ["é\U0001f600"]}
    model = api.loads(f'{{"format": "onnxjson/1", "graph": {{"initializer": [{result.stdout}]}}}}')
    assert model.graph is not None
    assert model.graph.initializer[0].string_data == ("é\U0001f600".encode(),)


def test_proto_json_is_that_of_onnx2json() -> None:
    from google.protobuf import json_format
    from onnx import helper

    printed = run(
        "tensor", "encode", "[[0.5], [2]]", "--type", "float32", "--format", "protojson", "--name", "w"
    ).stdout
    message = helper.make_tensor("w", 1, [2, 1], numpy.array([0.5, 2], "<f4").tobytes(), raw=True)
    assert json.loads(printed) == json_format.MessageToDict(message)


def test_lossy_value_is_refused_unless_told() -> None:
    result = run("tensor", "encode", "[1, 16777217]", "--type", "float32")
    assert (result.exit_code, result.stdout) == (65, "")
    assert result.stderr == (
        "onnxjson: error[65]: element [1]: float32 cannot represent 16777217; with --lossy it becomes 16777216.0\n"
    )
    result = run("tensor", "encode", "[1, 16777217]", "--type", "float32", "--lossy")
    assert (result.exit_code, result.stdout) == (0, "AACAPwAAgEs=\n")
    assert result.stderr == "onnxjson: warning: 1 value changed: element [1] was 16777217 and is 16777216.0\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give the values as JSON"),
        (("1", "--from", "x.json"), "give the values as JSON"),
        (("1",), "give the dtype of the values"),
        (("1", "--type", "itn8"), "did you mean int8"),
        (("1", "--type", "int8[N]"), "is not a type of a constant"),
        (("1", "--type", "undefined"), "elements of the dtype undefined are not known"),
        (("1", "--type", "int8", "--json", "--format", "protojson"), "choose one"),
    ],
)
def test_contradictory_arguments_of_encode_are_a_usage_error(arguments: tuple[str, ...], says: str) -> None:
    result = run("tensor", "encode", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("AA==",), 2, "give the type of the bytes"),
        (("--type", "int8"), 2, "give the base64"),
        (("AA==", "--type", "int8[2]"), 65, "has 1 byte, but int8[2] needs 2 bytes"),
        (("A\u202eA=", "--type", "int8"), 65, "'\\u202e'"),
        (("--from", "missing", "--type", "int8"), 66, "missing"),
        (("AA==", "--type", "int8", "-o", "x.txt"), 2, "does not end with .npy, .npz or .json"),
        (("AA==", "--type", "int8", "-o", "x.npy", "--json"), 2, "leave out one"),
    ],
)
def test_wrong_arguments_of_decode_have_their_exit_codes(
    arguments: tuple[str, ...], exit_code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("tensor", "decode", *arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert says in result.stderr
    assert os.listdir(tmp_path) == []


def test_base64_is_written_to_a_file_too(tmp_path: Path) -> None:
    run("tensor", "encode", "[7]", "--type", "uint8", "-o", tmp_path / "x")
    assert (tmp_path / "x").read_text() == "Bw==\n"


def test_array_names_of_npz(tmp_path: Path, binary: Path) -> None:
    run("tensor", "decode", "Bw==", "--type", "uint8", "-o", tmp_path / "x.npz")
    run("tensor", "decode", "Bw==", "--type", "uint8", "--name", "w", "-o", tmp_path / "y.npz")
    run("tensor", "get", binary, "fc.bias", "@/graph/node/0/attribute/pads", "-o", tmp_path / "z.npz")
    names = [numpy.load(tmp_path / name).files for name in ("x.npz", "y.npz", "z.npz")]
    assert names == [["arr_0"], ["w"], ["fc.bias", "/graph/node/0/attribute/pads"]]


@pytest.mark.parametrize("form", ["binary", "text"])
def test_get_gives_the_values_that_onnx_reads(form: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    from onnx import numpy_helper

    path = request.getfixturevalue(form)
    for tensor in example.make_example().graph.initializer:
        expected = numpy_helper.to_array(tensor)
        printed = json.loads(run("tensor", "get", path, tensor.name).stdout)
        assert numpy.array_equal(numpy.array(printed, "f4"), expected)
        assert run("tensor", "get", path, tensor.name, "-o", tmp_path / "x.npy").exit_code == 0
        assert numpy.array_equal(numpy.load(tmp_path / "x.npy"), expected)


def test_get_prints_several_as_one_object_a_line(binary: Path) -> None:
    lines = run("tensor", "get", binary, "fc.weight", "conv.bias", "--json").stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["float32[10,64]", "float32[4]"]
    assert run("tensor", "get", binary, "fc.weight", "conv.bias").exit_code == 2


def test_get_reads_external_data(tmp_path: Path) -> None:
    import onnx

    model = example.make_example()
    path = tmp_path / "m.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="m.data", size_threshold=100)
    assert (tmp_path / "m.data").stat().st_size
    expected = onnx.numpy_helper.to_array(example.make_example().graph.initializer[2])
    printed = json.loads(run("tensor", "get", path, "fc.weight").stdout)
    assert numpy.array_equal(numpy.array(printed, "f4"), expected)
    (tmp_path / "m.data").unlink()
    result = run("tensor", "get", path, "fc.weight", "-o", tmp_path / "x.npy")
    assert result.exit_code == 66
    assert not (tmp_path / "x.npy").exists()


def test_get_takes_weights_from_the_model_that_has_them(binary: Path, tmp_path: Path) -> None:
    text = tmp_path / "d.onnx.json"
    run("convert", binary, "--weights", "digest", "-o", text)
    result = run("tensor", "get", text, "fc.weight", "-o", tmp_path / "x.npy")
    assert result.exit_code == 66
    assert "--weights-from" in result.stderr
    assert not (tmp_path / "x.npy").exists()
    with_weights = run("tensor", "get", text, "fc.weight", "--weights-from", binary)
    assert with_weights.stdout == run("tensor", "get", binary, "fc.weight").stdout


def test_wrong_name_is_answered_with_the_nearest(binary: Path) -> None:
    result = run("tensor", "get", binary, "fc.wieght")
    assert result.exit_code == 66
    assert 'did you mean "fc.weight"' in result.stderr


def test_nobody_reading_the_values_is_no_failure(binary: Path) -> None:
    words = command_line("tensor", "get", binary, "fc.weight")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 141)


def test_help_lists_the_three_commands() -> None:
    listed = run("tensor", "--help").stdout
    for name in ("encode", "decode", "get"):
        assert f"\n  {name} " in listed
        assert f"onnxjson tensor {name}" in listed
        assert run("tensor", name, "--help").exit_code == 0


@pytest.mark.parametrize("name", ["encode", "decode", "get"])
def test_every_option_of_each_command_has_help(name: str) -> None:
    import click

    from onnxjson.cli.tensor import tensor_command as command

    for parameter in command.commands[name].params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter
