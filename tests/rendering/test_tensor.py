"""What there is to know about one tensor."""

import json
from pathlib import Path

import pytest

from onnxjson.codecs.serde import parse
from onnxjson.model.document import Model, Tensor
from onnxjson.model.dtypes import BITS
from onnxjson.model.elements import byte_length
from onnxjson.model.index import Index
from onnxjson.model.payloads import Digest
from onnxjson.model.tensor_statistics import Statistics
from onnxjson.model.walking import tensors_of
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selectors import select_tensor
from onnxjson.rendering.tensor import TensorView, tensor_lines, view_tensor
from onnxjson.rendering.values import as_json
from onnxjson.storage.external import Resolver
from tests.generation.messages import generate, size_of
from tests.rendering.models import MODEL

INDEX = Index(MODEL)


def _view(selector: str, resolver: Resolver | None = None, *, most: int = 16) -> TensorView:
    return view_tensor(INDEX, select_tensor(MODEL, INDEX, selector), "m.onnx", resolver, most=most)


def _of(tensor: Tensor) -> TensorView:
    return view_tensor(Index(Model()), TensorRef("t", "/t", tensor, None), "m.onnx", None)


def test_constant_has_statistics_values_storage_and_consumers() -> None:
    view = _view("@/graph/initializer/0")
    assert (view.name, view.type, view.dtype, view.dims, view.elements) == ("w", "float32[2,3]", "float32", (2, 3), 6)
    assert view.storage is not None
    assert (view.storage.fields, view.storage.bytes) == (("raw_data",), 24)
    assert isinstance(view.statistics, Statistics)
    assert (view.statistics.nan, view.statistics.positive_infinity, view.statistics.minimum) == (1, 1, -4)
    assert json.loads(as_json(view))["values"] == [1.0, 2.0, 3.0, -4.0, "NaN", "Infinity"]
    assert [each.address for each in view.consumers] == [
        "/graph/node/2/input/0",
        "/graph/node/3/input/0",
        "/graph/node/3/input/1",
        "/graph/node/1/attribute/then_branch/g/node/0/input/0",
        "/training_info/0/algorithm/node/0/input/0",
    ]


def test_values_are_as_many_as_are_asked_for() -> None:
    assert len(_view("@/graph/initializer/0", most=2).values or ()) == 2
    assert _view("@/graph/initializer/0", most=0).values == ()
    assert "  1.0, 2.0, ..." in tensor_lines(_view("@/graph/initializer/0", most=2), 80)


def test_typed_field_strings_and_sparse_tensors_are_read() -> None:
    typed = _view("typed")
    assert typed.storage is not None
    assert typed.storage.fields == ("int32_data",)
    assert json.loads(as_json(typed))["values"] == [1, 2]
    texts = json.loads(as_json(_view("texts")))
    assert texts["values"] == ["a\x1b", {"base64": "/w=="}]
    assert texts["statistics"]["not_utf8"] == 1
    sparse = _view("s")
    assert (sparse.type, sparse.indices, sparse.elements) == ("sparse float32[100]", "int64[1]", 100)
    assert json.loads(as_json(sparse))["values"] == [0.0]


def test_external_data_is_read_where_it_is_and_missed_in_words(tmp_path: Path) -> None:
    missing = _view("outside", Resolver(tmp_path))
    assert missing.statistics is None
    assert "the file is missing" in (missing.problem or "")
    assert any("values cannot be read" in line for line in tensor_lines(missing, 80))
    (tmp_path / "weights.bin").write_bytes(bytes(12) + b"\0\0\x80\x3f")
    assert json.loads(as_json(_view("outside", Resolver(tmp_path))))["values"] == [0.0, 0.0, 0.0, 1.0]


def test_computed_value_has_a_type_and_a_maker() -> None:
    view = _view("o")
    assert (view.type, view.storage, view.statistics) == ("float16", None, None)
    assert "producer  Odd @/graph/node/3" in tensor_lines(view, 80)
    assert "producer  the caller, as an input" in tensor_lines(_view("flag"), 80)


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (Tensor(dims=(3,), data_type=1, raw_data=bytes(4)), "raw_data holds 4 bytes; float32[3] needs 12"),
        (Tensor(dims=(3,), raw_data=bytes(4)), "no data_type"),
        (Tensor(dims=(3,), data_type=99, raw_data=bytes(4)), "onnx defines no data type"),
        (Tensor(dims=(-1,), data_type=1), "dim -1"),
        (Tensor(dims=(1,), data_type=1, raw_data=Digest("ab" * 32, 4)), "only the sha256 of one tensor"),
    ],
)
def test_tensor_that_does_not_hold_what_it_says_is_shown_all_the_same(tensor: Tensor, problem: str) -> None:
    view = _of(tensor)
    assert problem in (view.problem or "")
    assert tensor_lines(view, 80)


@pytest.mark.parametrize("data_type", sorted(BITS))
def test_every_dtype_has_values_and_statistics(data_type: int) -> None:
    raw = bytes(range(1, 61)) if data_type != 9 else bytes([0, 1] * 20)
    count = len(raw) * 8 // BITS[data_type]
    view = _of(Tensor(dims=(count,), data_type=data_type, raw_data=raw[: byte_length(data_type, count)]))
    assert view.problem is None
    assert len(view.values or ()) == min(count, 16)
    assert all(len(line) <= 80 and line.isprintable() for line in tensor_lines(view, 80))


@pytest.mark.parametrize("seed", range(30))
def test_any_tensor_has_a_view_in_lines_and_in_json(seed: int) -> None:
    model = parse(generate(seed, size_of(seed))).model
    for tensor in list(tensors_of(model))[:40]:
        view = _of(tensor)
        assert all(line.isprintable() for line in tensor_lines(view, 80))
        assert json.loads(as_json(view))["kind"] == "tensor"


def test_keys_of_the_json_are_those_of_the_page() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "show.md").read_text(encoding="utf-8")
    for name in json.loads(as_json(_view("s"))):
        assert f"`{name}`" in page, name


def test_statistics_of_a_quantized_weight_are_those_of_its_numbers() -> None:
    import numpy

    from onnxjson.storage.api import from_proto
    from tests.running.decoders import genai_decoder

    model = from_proto(genai_decoder())
    index = Index(model)
    view = view_tensor(index, select_tensor(model, index, "lm_head.qweight"), "m.onnx", None)
    assert view.quantized == "4 bits, block 32, through lm_head.scales: float32[40,32]"
    assert isinstance(view.statistics, Statistics)
    assert view.statistics.elements == 40 * 32
    assert -0.5 < (view.statistics.minimum or 0) < 0 < (view.statistics.maximum or 0) < 0.5
    assert numpy.isclose(view.statistics.mean or 0, 0, atol=0.05)
    assert any([line.startswith("weights   4 bits, block 32") for line in tensor_lines(view, 80)])
    scales = view_tensor(index, select_tensor(model, index, "lm_head.scales"), "m.onnx", None)
    assert scales.quantized is None
