"""The functions of `import onnxjson` say what was wrong about a call, before anything is read or written."""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxjson
from onnxjson.model.document import Graph, Model, Node
from onnxjson.model.errors import MissingInputError

MODEL = Model(ir_version=8, graph=Graph(name="g", node=(Node(op_type="Relu", input=("x",), output=("y",)),)))
PROTO = onnxjson.to_proto(MODEL)

OF_A_MODEL: list[Callable[[Any, Path], object]] = [
    lambda model, path: onnxjson.to_proto(model),
    lambda model, path: onnxjson.dumps(model),
    lambda model, path: onnxjson.save(model, path),
]


@pytest.mark.parametrize("function", OF_A_MODEL, ids=["to_proto", "dumps", "save"])
@pytest.mark.parametrize("other", [MODEL.graph, Node(op_type="Relu"), PROTO, PROTO.graph, None, "m.onnx"])
def test_only_a_model_is_written(function: Callable[[Any, Path], object], other: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=f"expected an onnxjson.Model, not {type(other).__name__}"):
        function(other, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_proto_in_the_place_of_a_model_is_answered_with_the_function_that_turns_it_into_one() -> None:
    with pytest.raises(TypeError, match="not ModelProto; convert it with from_proto"):
        onnxjson.dumps(PROTO)  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [PROTO.graph, onnx.TensorProto(), MODEL, None, b""])
def test_only_a_model_proto_becomes_a_model(other: Any) -> None:
    with pytest.raises(TypeError, match=f"expected an onnx.ModelProto, not {type(other).__name__}"):
        onnxjson.from_proto(other)


@pytest.mark.parametrize("other", [None, 7, Path("m.onnx.json"), {}])
def test_only_text_is_read_as_text(other: Any) -> None:
    with pytest.raises(TypeError, match="expected a string, str or bytes, not "):
        onnxjson.loads(other)


@pytest.mark.parametrize("arguments", [{"format": "JSON"}, {"format": "yaml"}, {"format": ""}, {"weights": "none"}])
def test_a_form_that_does_not_exist_is_refused_with_those_that_do(arguments: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"expected: .*('onnx', 'json', 'protojson'|'inline', 'blobs', 'digest', 'keep')"
    ):
        onnxjson.save(MODEL, tmp_path / "m.json", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_mode_of_weights_that_does_not_exist_is_refused_in_a_text_too() -> None:
    with pytest.raises(ValueError, match="weights is 'none'; expected: 'inline'"):
        onnxjson.dumps(MODEL, weights="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_a_path_that_names_no_file_is_a_missing_input(path: str) -> None:
    with pytest.raises(MissingInputError):
        onnxjson.load(path)


def test_the_empty_path_is_no_folder() -> None:
    with pytest.raises(MissingInputError, match="the path is empty"):
        onnxjson.load("")


def test_convert_writes_another_form_and_copies_external_data(tmp_path: Path) -> None:
    from onnxjson.example import make_example
    from onnxjson.storage.external_files import externalize

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    model = onnxjson.from_proto(make_example())
    apart = externalize(model, tmp_path / "a" / "w.data", threshold=1).model
    onnxjson.save(apart, tmp_path / "a" / "m.onnx")
    place = onnxjson.convert(tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx.json")
    assert onnxjson.load(place) == apart
    assert onnxjson.load(place).tensor("fc.bias").numpy().tolist() == model.tensor("fc.bias").numpy().tolist()
    (tmp_path / "c").mkdir()
    with pytest.warns(UserWarning, match=r"weights of the model remain in 'w\.data' next to .*m\.onnx"):
        onnxjson.save(onnxjson.load(tmp_path / "a" / "m.onnx"), tmp_path / "c" / "m.onnx")
    with warnings.catch_warnings(action="error"):
        onnxjson.save(onnxjson.load(tmp_path / "a" / "m.onnx"), tmp_path / "a" / "n.onnx")


def test_model_goes_to_onnx_ir_and_back() -> None:
    from onnxjson.example import make_example

    model = onnxjson.from_proto(make_example())
    found = onnxjson.to_ir(model)
    assert [node.op_type for node in found.graph] == [place.node.op_type for place in model.select("op:*")]
    assert {event.kind for event in onnxjson.diff(model, onnxjson.from_ir(found)).events} <= {"value-info-changed"}


def test_missing_onnx_ir_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx_ir", None)
    with pytest.raises(ImportError, match="pip install onnx-ir"):
        onnxjson.to_ir(onnxjson.Model())


def test_a_missing_file_is_the_error_of_python_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        onnxjson.load(tmp_path / "missing.onnx")
    assert isinstance(caught.value, MissingInputError)
    assert str(caught.value) == f"{tmp_path / 'missing.onnx'} does not exist"
