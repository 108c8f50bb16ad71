"""``onnxjson new``: models from nothing; invalid ones leave no file."""

from pathlib import Path

import onnx
import pytest

import onnxjson
from onnxjson.model.operators import all_operators
from onnxjson.model.types import format_type
from tests.cli.running import run


def test_an_operator_is_made_from_its_schema(tmp_path: Path) -> None:
    out = tmp_path / "gemm.onnx"
    result = run(
        "new", "Gemm", "--opset", "13", "--input", "A:float16[2,3]", "--input", "B:float16[4,3]", "--attr", "transB=1",
        "--output-name", "y", "--name", "product", "-o", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    graph = onnxjson.load(out).graph
    assert graph is not None
    assert (graph.node[0].name, graph.node[0].output) == ("product", ("y",))
    assert [format_type(each.type) for each in graph.output if each.type] == ["float16[2,4]"]
    onnx.checker.check_model(str(out), full_check=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["Gemmm"],
        ["Conv", "--input", "X:float32[1,3,8,8]"],
        ["Conv", "--attr", "pods=[1]"],
        ["Add", "--input", "a:float32[2,3]", "--input", "b:float32[4]"],
        ["Abs", "--type-constraint", "T=foo"],
        ["Abs", "--opset", "1000"],
        ["--component", "Z999"],
    ],
)
def test_what_is_not_valid_is_refused_with_an_exit_code_and_no_file(arguments: list[str], tmp_path: Path) -> None:
    result = run("new", *arguments, "-o", tmp_path / "m.onnx")
    assert result.exit_code in (2, 65)
    assert result.stderr.startswith("onnxjson: error[")
    assert not (tmp_path / "m.onnx").exists()


def test_an_operator_that_onnx_does_not_know_has_the_types_that_are_given(tmp_path: Path) -> None:
    out, typed = tmp_path / "m.onnx", ("--input", "x:float32[2,3]", "--output-name", "y:float32[2,3]")
    made = run("new", "FastGelu", "--domain", "com.microsoft", *typed, "-o", out)
    assert made.exit_code == 0, made.stderr
    onnx.checker.check_model(str(out), full_check=True)
    assert run("run", out).exit_code == 0
    more = ("--input", "w:float32[2]=[1,2]", "--attr", "sizes=[1,2]")
    assert run("new", "Own", "--domain", "my.own", "--opset", "3", *typed, *more, "-o", out).exit_code == 0
    model = onnx.load(out)
    assert [(each.domain, each.version) for each in model.opset_import] == [("my.own", 3)]
    assert list(model.graph.node[0].attribute[0].ints) == [1, 2]
    assert [each.name for each in model.graph.initializer] == ["w"]
    refused = run("new", "Own", "--domain", "my.own", "-o", tmp_path / "no.onnx")
    assert (refused.exit_code, "give it with --output-name y:TYPE" in refused.stderr) == (65, True)


def test_the_version_of_the_format_is_set_or_refused(tmp_path: Path) -> None:
    out = tmp_path / "m.onnx"
    assert run("new", "Relu", "--opset", "13", "--ir-version", "7", "-o", out).exit_code == 0
    assert onnx.load(out).ir_version == 7
    refused = run("new", "Relu", "--opset", "21", "--ir-version", "7", "-o", tmp_path / "no.onnx")
    assert (refused.exit_code, "needs 10" in refused.stderr) == (65, True)
    assert not (tmp_path / "no.onnx").exists()


def test_a_component_is_made_for_any_version(tmp_path: Path) -> None:
    assert run("new", "--component", "nms-yolact", "-o", tmp_path / "a.onnx").exit_code == 0
    assert run("new", "--component", "Z010", "--opset", "18", "-o", tmp_path / "b.onnx.json").exit_code == 0
    assert [each.version for each in onnxjson.load(tmp_path / "b.onnx.json").opset_import] == [18]


def test_a_text_goes_to_standard_output() -> None:
    result = run("new", "If", "-o", "-")
    assert result.exit_code == 0
    assert onnxjson.loads(result.stdout).graph is not None


def test_the_yard_has_a_file_for_every_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = tuple(each for each in all_operators() if each[1] in ("Abs", "Upsample", "LabelEncoder"))
    monkeypatch.setattr("onnxjson.editing.new_models.operator_model.all_operators", lambda: some)
    result = run("new", "--all", tmp_path / "parts", "--to", "json")
    assert result.exit_code == 0, result.stderr
    names = sorted(path.relative_to(tmp_path / "parts").as_posix() for path in (tmp_path / "parts").rglob("*.json"))
    assert names == [
        "ai.onnx.ml/LabelEncoder/LabelEncoder-1.onnx.json",
        "ai.onnx.ml/LabelEncoder/LabelEncoder-2.onnx.json",
        "ai.onnx.ml/LabelEncoder/LabelEncoder-4.onnx.json",
        "ai.onnx/Abs/Abs-1.onnx.json",
        "ai.onnx/Abs/Abs-13.onnx.json",
        "ai.onnx/Abs/Abs-6.onnx.json",
        "ai.onnx/Upsample/Upsample-1.onnx.json",
        "ai.onnx/Upsample/Upsample-7.onnx.json",
        "ai.onnx/Upsample/Upsample-9.onnx.json",
    ]
    again = run("new", "--all", tmp_path / "parts")
    assert again.exit_code == 73


def test_the_list_has_operators_and_components() -> None:
    result = run("new", "--list")
    assert "Z004  nms-yolact" in result.stdout
    assert any(line.split()[:2] == ["ai.onnx", "Relu"] for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    "arguments", [[], ["Abs"], ["Abs", "--all", "x"], ["--component", "Z001", "--attr", "a=1", "-o", "x"]]
)
def test_one_thing_to_make_and_a_place_for_it_must_be_said(arguments: list[str]) -> None:
    assert run("new", *arguments).exit_code == 2


def test_an_operator_that_onnx_does_not_know_names_the_option_for_it(tmp_path: Path) -> None:
    refused = run("new", "NMS_TRT", "-o", tmp_path / "m.onnx")
    assert refused.exit_code == 2
    assert "--domain" in refused.stderr
