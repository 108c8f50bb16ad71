"""``onnxjson show``."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.running import run, run_process


def test_summary_of_binary_and_text_is_the_same(binary: Path, text: Path) -> None:
    one, other = (json.loads(run("show", path, "--json").stdout) for path in (binary, text))
    for key in ("file", "format", "file_bytes"):
        one.pop(key)
        other.pop(key)
    assert one == other
    assert one["weights"] == {"tensors": 4, "elements": 690, "bytes": 2760, "external_bytes": 0}


def test_result_goes_to_stdout_and_nothing_else(binary: Path) -> None:
    result = run("show", binary)
    assert result.exit_code == 0
    assert result.stderr == ""
    outline, _, summary = result.stdout.partition("\n\n")
    assert outline.startswith("image: float32[N,1,8,8]\nx = Conv(image,")
    assert all(len(line) <= 100 for line in outline.splitlines())
    assert all(len(line) <= 80 for line in summary.splitlines() if str(binary) not in line)


def test_node_tensor_and_list_are_found(binary: Path) -> None:
    assert json.loads(run("show", binary, "/fc", "--json").stdout)["kind"] == "node"
    assert json.loads(run("show", binary, "fc.weight", "--json").stdout)["kind"] == "tensor"
    assert json.loads(run("show", binary, "!op:Conv", "--json").stdout)["kind"] == "nodes"
    assert run("show", binary, "features").stdout.startswith("node      /conv\n")


def test_shapes_are_those_that_onnx_infers(binary: Path) -> None:
    lines = run("show", binary, "--shapes", "--dim", "N=2").stdout.splitlines()
    assert lines[:3] == [
        "6 nodes",
        "  Conv       /conv        float32[2,4,8,8]",
        "  LeakyRelu  /activation  float32[2,4,8,8]",
    ]
    found = json.loads(run("show", binary, "/f*", "--shapes", "--json").stdout)
    assert [each["outputs"] for each in found["nodes"]] == [{"flat": "float32[N,64]"}, {"scores": "float32[N,10]"}]
    assert "  0  features  float32[N,4,8,8]" in run("show", binary, "op:Conv", "--shapes").stdout
    assert "--dim is for --cost, --shapes" in run("show", binary, "--dim", "N=2").stderr


def test_several_models_are_an_array(binary: Path, text: Path) -> None:
    assert [each["kind"] for each in json.loads(run("show", binary, text, "--json").stdout)] == ["summary"] * 2
    nodes = json.loads(run("show", binary, text, "/fc", "--json").stdout)
    assert [each["file"] for each in nodes] == [str(binary), str(text)]
    assert run("show", binary, text, "/fc").stdout.count("node      /fc\n") == 2


def test_word_behind_two_dashes_is_never_a_file(binary: Path) -> None:
    """A script can pass any name of a model, also one that is the path of a file."""
    secret = binary.with_name("secret")
    secret.write_text("hidden")
    assert "hidden" in run("show", binary, secret).stderr
    result = run("show", binary, "--", secret)
    assert result.exit_code == 2
    assert "nothing is called" in result.stderr
    assert "hidden" not in result.stderr
    assert run("show", "--", binary).exit_code == 0


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("fc.wieght", 'nothing is called "fc.wieght"; did you mean "fc.weight"'),
        ("op:Cnov", 'no node has op:Cnov; did you mean "op:Conv"?'),
        ("@/graph/node/9", "/graph/node has 6 members, 0 to 5"),
        ("@/graph", "@/graph is a Graph; the address of a node or tensor is expected"),
    ],
)
def test_what_is_not_there_is_code_2_and_one_line(binary: Path, selector: str, message: str) -> None:
    result = run("show", binary, selector)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_file_that_is_not_there_is_code_66(binary: Path) -> None:
    assert run("show", binary.with_name("no.onnx")).exit_code == 66
    result = run("show", binary, "no.onnx")
    assert result.exit_code == 66
    assert "name:no.onnx" in result.stderr


def test_weights_that_a_text_names_only_come_from_another_model(binary: Path) -> None:
    text = binary.with_name("digest.onnx.json")
    assert run("convert", binary, "-o", text, "--weights", "digest").exit_code == 0
    assert "only the sha256" in json.loads(run("show", text, "fc.weight", "--json").stdout)["problem"]
    found = json.loads(run("show", text, "fc.weight", "--json", "--weights-from", binary).stdout)
    assert found["statistics"] == json.loads(run("show", binary, "fc.weight", "--json").stdout)["statistics"]


def test_text_whose_blobs_are_not_trusted_is_shown_without_them(binary: Path) -> None:
    text = binary.with_name("blobs.onnx.json")
    assert run("convert", binary, "-o", text, "--weights", "blobs").exit_code == 0
    (folder,) = [path for path in binary.parent.iterdir() if path.is_dir()]
    folder.rename(binary.parent / "elsewhere")
    folder.symlink_to(binary.parent / "elsewhere")
    result = run("show", text)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "690 parameters in 4 tensors" in result.stdout
    assert "is a link" in json.loads(run("show", text, "fc.weight", "--json").stdout)["problem"]


def test_text_without_its_blobs_is_shown_and_only_a_tensor_asks_for_its_own(binary: Path) -> None:
    text = binary.with_name("m.onnx.json")
    assert run("convert", binary, "-o", text, "--weights", "blobs").exit_code == 0
    whole = json.loads(run("show", text, "fc.weight", "--json").stdout)
    assert whole["statistics"]["elements"] == 640
    (blob,) = binary.with_name("m.blobs").iterdir()
    blob.unlink()
    assert "690 parameters in 4 tensors" in run("show", text).stdout
    assert (run("show", text, "op:Conv").exit_code, run("show", text, "op:Conv").stderr) == (0, "")
    result = run("show", text, "fc.weight")
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    assert f"values cannot be read: the blob m.blobs/{blob.name} cannot be used: the file is missing" in shown
    assert json.loads(run("show", text, "conv.bias", "--json").stdout)["problem"] is None


def test_empty_name_is_a_usage_error(binary: Path) -> None:
    assert run("show", "").exit_code == 2
    assert run("show", binary, "").exit_code == 2


def test_documentation_is_asked_for(binary: Path) -> None:
    assert "since opset" not in run("show", binary, "/pool").stdout
    assert "MaxPool, since opset 12" in run("show", binary, "/pool", "--doc").stdout


def test_operator_without_documentation_is_shown_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_model([helper.make_node("Own", ["x"], ["y"], "n", domain="my")]).SerializeToString())
    result = run("show", path, "n", "--doc")
    assert result.exit_code == 0
    assert "onnx has no documentation of 'Own'" in result.stderr


def _model(nodes: list[onnx.NodeProto], **more: object) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.BOOL, [1])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.STRING, None)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, **more))  # type: ignore[arg-type]


def test_models_that_no_runtime_loads_are_shown(tmp_path: Path) -> None:
    """Bool inputs, attributes named value, shared initializers, unknown operators, dangling names."""
    shared = helper.make_tensor("shared", TensorProto.FLOAT, [2], [1.0, 2.0])
    nodes = [
        helper.make_node("Pad", ["x", "shared"], ["p"], value=0.5),
        helper.make_node("Nonsense", ["p", "shared", "dangling"], ["y"], domain="no.such"),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(nodes, initializer=[shared]).SerializeToString())
    found = json.loads(run("show", path, "--json").stdout)
    assert found["weights"]["bytes"] == 8
    assert found["inputs"][0]["type"] == "bool[1]"
    assert "value = 0.5" in run("show", path, "op:Pad").stdout
    assert "no producer" in run("show", path, "op:Nonsense").stdout


def test_missing_external_file_is_said_and_no_failure(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="gone.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(_model([], initializer=[tensor]).SerializeToString())
    assert "the file is missing" in run("show", path).stdout
    result = run("show", path, "w")
    assert result.exit_code == 0
    assert "values cannot be read" in result.stdout


def test_model_above_two_gigabytes_is_shown_without_opening_its_weights(tmp_path: Path) -> None:
    tensors = []
    for number in range(3):
        tensor = TensorProto(name=f"w{number}", data_type=1, dims=[250, 1 << 20], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="weights.bin")
        tensor.external_data.add(key="offset", value=str(number * 1_048_576_000))
        tensor.external_data.add(key="length", value="1048576000")
        tensors.append(tensor)
    path = tmp_path / "m.onnx"
    path.write_bytes(_model([], initializer=tensors).SerializeToString())
    found = json.loads(run("show", path, "--json").stdout)  # the weights are not even there
    assert found["weights"]["external_bytes"] == 3 * 1_048_576_000


def test_types_that_are_stated_are_not_inferred(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = binary.with_name("typed.onnx")
    assert run("rewrite", "infer-shapes", binary, "-o", typed).exit_code == 0
    shown = run("show", typed, "--outline").stdout
    assert shown == run("show", binary, "--outline").stdout
    monkeypatch.setattr("onnxjson.cli.show._typed", lambda *_: pytest.fail("inferred"))
    assert run("show", typed, "--outline").stdout == shown
    assert run("show", typed).stdout.startswith(shown)
    monkeypatch.setattr("onnxjson.cli.show.INFERRED", 3)
    assert run("show", binary).stdout.startswith(shown.partition("=")[0])


def test_hundred_thousand_nodes_are_shown(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", [f"t{n}"], [f"t{n + 1}"], f"/layer{n}/Relu", extra=n) for n in range(1000)] * 100
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(nodes).SerializeToString())
    result = run_process("show", path)
    assert "Relu  100,000" in result.stdout


def test_hostile_strings_reach_no_terminal(tmp_path: Path) -> None:
    evil = "\x1b]52;c;AAAA\x07\u202e[/]"
    model = _model([helper.make_node(evil, [evil], [evil], evil, domain=evil)], doc_string=evil)
    model.producer_name = evil
    model.doc_string = evil
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    for arguments in ((), ("in:main",), (evil,)):
        result = run("show", path, *arguments)
        assert result.exit_code == 0
        assert all(line.isprintable() for line in result.stdout.split("\n"))
        assert run("show", path, *arguments, "--json").stdout.isascii()


def test_numpy_and_onnx_are_left_alone_by_the_summary(binary: Path) -> None:
    result = run_process("show", binary, more={"PYTHONPROFILEIMPORTTIME": "1"})
    assert " numpy" not in result.stderr
    assert " onnx\n" not in result.stderr


def test_a_safetensors_file_is_shown_as_such(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    shown = run("show", tmp_path / "w.safetensors", "--json").stdout
    assert '"format": "safetensors"' in shown
