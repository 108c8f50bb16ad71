"""Changes of constants: in numbers, by kind, and where their bytes stand."""

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.diffing.constant_elements import TensorSource
from onnxjson.diffing.difference import diff_models
from onnxjson.diffing.events import Detail
from onnxjson.diffing.weight_changes import ConstantComparer, TensorChange
from onnxjson.model.document import Tensor
from onnxjson.model.errors import WeightsMissingError
from onnxjson.model.payloads import Digest, Payload
from onnxjson.model.tensors import from_numpy, with_storage
from tests.running.decoders import genai_decoder


def compared(one: Tensor, other: Tensor, **options: Any) -> TensorChange | None:
    sources = TensorSource(None, "the base"), TensorSource(None, "the target")
    return ConstantComparer(*sources, **options).compare(one, other)


def told(change: TensorChange | None) -> dict[str, tuple[str | None, str | None]]:
    assert change is not None
    return {detail.what: (detail.base, detail.target) for detail in change.details}


def floats(*values: float) -> Tensor:
    return from_numpy(numpy.array(values, numpy.float32))


def test_changes_are_told_in_numbers() -> None:
    change = compared(floats(1, 2, 0, -4), floats(1, 3, 0, 0))
    assert change is not None
    assert change.kind == "weights-changed"
    assert told(change) == {
        "max absolute difference": (None, "4"),
        "max relative difference": (None, "1"),
        "elements changed": (None, "2 of 4 (50 %)"),
        "sparsity": ("0.25", "0.5"),
    }


def test_a_difference_from_zero_is_infinite_relative_to_it() -> None:
    change = told(compared(floats(0, 0), floats(0.125, 0.125)))
    assert change["max absolute difference"] == (None, "0.125")
    assert change["max relative difference"] == (None, "inf")
    assert change["elements changed"] == (None, "2 of 2 (100 %)")


def test_what_became_infinite_is_told_apart() -> None:
    change = told(compared(floats(1, 2, 3), floats(1, float("inf"), float("nan"))))
    assert change == {
        "elements that became or were NaN or infinite": (None, "2"),
        "elements changed": (None, "2 of 3 (66.7 %)"),
    }


def test_signs_of_zeros_and_bits_of_nans_count_when_weights_are_compared_exactly() -> None:
    assert "bits" in told(compared(floats(0.0, 1), floats(-0.0, 1)))
    assert compared(floats(0.0, 1), floats(-0.0, 1), mode="tolerance") is None


def test_within_the_tolerance_nothing_changed() -> None:
    one, other = floats(1, 1000), floats(1.000001, 1000.001)
    assert compared(one, other) is not None
    assert compared(one, other, mode="tolerance", rtol=1e-5, atol=0) is None
    assert compared(one, other, mode="tolerance", rtol=1e-9, atol=1e-9) is not None
    assert compared(one, other, mode="skip") is None


def test_with_a_tolerance_the_elements_of_small_constants_are_told_by_deepdiff() -> None:
    one = from_numpy(numpy.array([[1, 2], [3, 4]], numpy.float32))
    other = from_numpy(numpy.array([[1, 2], [3.5, 4]], numpy.float32))
    assert told(compared(one, other, mode="tolerance"))["element [1, 0]"] == ("3.0", "3.5")


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bool", "float64", "complex64", "int64"])
def test_every_dtype_can_change(dtype: str) -> None:
    one, other = numpy.zeros(5, dtype), numpy.zeros(5, dtype)
    other[2] = 1
    assert told(compared(from_numpy(one), from_numpy(other)))["elements changed"] == (None, "1 of 5 (20 %)")


def test_integers_of_64_bits_are_told_apart() -> None:
    one, other = numpy.array([2**60]), numpy.array([2**60 + 1])
    assert told(compared(from_numpy(one), from_numpy(other)))["max absolute difference"] == (None, "1")


def test_four_bits_an_element_are_elements() -> None:
    one = Tensor(dims=(3,), data_type=22, raw_data=b"\x21\x03")
    assert told(compared(one, replace(one, raw_data=b"\x21\x04")))["max absolute difference"] == (None, "1")


def test_large_constants_are_compared_in_pieces() -> None:
    values = numpy.arange(600_000, dtype=numpy.float32)
    other = values.copy()
    other[-1] += 1
    assert told(compared(from_numpy(values), from_numpy(other)))["elements changed"] == (
        None,
        "1 of 600,000 (0.000167 %)",
    )


def test_the_same_elements_in_another_order_are_re_laid() -> None:
    values = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
    turned = compared(from_numpy(values), from_numpy(numpy.ascontiguousarray(values.transpose(2, 0, 1))))
    assert turned is not None
    assert turned.kind == "weights-re-laid"
    assert told(turned)["axes in the order"] == (None, "2, 0, 1")
    mixed = compared(from_numpy(values), from_numpy(values.reshape(-1)[::-1].reshape(2, 3, 4).copy()))
    assert mixed is not None
    assert mixed.kind == "weights-re-laid"


def test_other_dims_of_the_same_bytes_are_a_reshape() -> None:
    values = numpy.arange(6, dtype=numpy.float32)
    assert compared(from_numpy(values), from_numpy(values.reshape(2, 3))) == TensorChange(
        "reshaped", "constant", (Detail("type", "float32[6]", "float32[2,3]"),)
    )


def test_another_dtype_is_told_with_what_was_lost() -> None:
    change = compared(floats(1, 1.0001), from_numpy(numpy.array([1, 1.0001], numpy.float16)))
    assert change is not None
    assert (change.kind, change.pattern) == ("retyped", "float32 -> float16")
    assert told(change)["max absolute difference"] == (None, "0.000100017")


def test_where_bytes_stand_is_storage() -> None:
    one = floats(1, 2)
    assert isinstance(one.raw_data, bytes)
    typed = replace(one, raw_data=None, **with_storage(one.raw_data, 1, "float_data", 2))
    change = compared(one, typed)
    assert change is not None
    assert (change.kind, change.pattern) == ("storage-changed", "raw_data -> float_data")


def test_strings_are_counted() -> None:
    one = Tensor(dims=(2,), data_type=8, string_data=(b"a", b"b"))
    assert told(compared(one, replace(one, string_data=(b"a", b"c")))) == {"elements changed": (None, "1 of 2")}


def test_digests_differ_though_nobody_has_the_bytes() -> None:
    one = Tensor(dims=(2048,), data_type=1, raw_data=Digest("a" * 64, 8192))
    other = replace(one, raw_data=Digest("b" * 64, 8192))
    assert isinstance(one.raw_data, Payload)
    with pytest.raises(WeightsMissingError):
        one.raw_data.read()
    assert compared(one, one) is None
    change = compared(one, other)
    assert change is not None
    assert change.kind == "weights-changed"


def saved(folder: Path, values: Any) -> Path:
    """A model whose one weight is in another file."""
    folder.mkdir()
    tensor = onnx.numpy_helper.from_array(values, "w")
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    info = [onnx.helper.make_tensor_value_info(name, 1, ["N", 64]) for name in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", info[:1], info[1:], [tensor]))
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="m.weights", size_threshold=0)
    return folder / "m.onnx"


def test_files_that_are_the_same_byte_for_byte_can_have_other_weights(tmp_path: Path) -> None:
    weights = numpy.arange(4096, dtype=numpy.float32).reshape(64, 64)
    one, other = saved(tmp_path / "a", weights), saved(tmp_path / "b", weights + numpy.float32(1))
    assert one.read_bytes() == other.read_bytes()
    found = onnxjson.diff(one, other)
    assert [(event.kind, event.pattern) for event in found.events] == [("weights-changed", "MatMul input 1")]
    assert not found.equal
    assert onnxjson.diff(one, saved(tmp_path / "c", weights)).equal
    assert onnxjson.diff(one, other, weights="skip").equal


def test_where_a_file_is_missing_models_are_never_equal(tmp_path: Path) -> None:
    weights = numpy.ones((64, 64), numpy.float32)
    one, other = saved(tmp_path / "a", weights), saved(tmp_path / "b", weights)
    (tmp_path / "b" / "m.weights").unlink()
    difference = onnxjson.diff(one, other)
    assert not difference.events
    assert not difference.equal
    (problem,) = difference.incomplete
    assert problem.startswith("weights not compared: ")
    assert "m.weights" in problem


def test_without_their_files_models_cannot_have_their_weights_compared(tmp_path: Path) -> None:
    path = saved(tmp_path / "a", numpy.ones((64, 64), numpy.float32))
    proto = onnxjson.to_proto(onnxjson.load(path))
    found = onnxjson.diff(onnxjson.from_proto(proto), onnxjson.from_proto(proto))
    assert not found.equal
    assert len(found.incomplete) == 2


def test_loaded_models_know_their_files_and_have_their_weights_compared(tmp_path: Path) -> None:
    weights = numpy.ones((64, 64), numpy.float32)
    models = [onnxjson.load(saved(tmp_path / name, weights * times)) for name, times in (("a", 1), ("b", 1), ("c", 2))]
    assert onnxjson.diff(models[0], models[1]).equal
    assert [event.kind for event in onnxjson.diff(models[0], models[2]).events] == ["weights-changed"]


def test_ranges_that_both_models_have_are_equal_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxjson.model import payloads
    from tests.benchmarks.llama import Llama, write

    place = tmp_path / "m.onnx"
    write(place, Llama(1, 4096, 4096, 4096, 32, transposed=False), sparse=True)
    edited = tmp_path / "edited.onnx"
    edited.write_bytes(place.read_bytes().replace(b"/layers.0.softmax/Softmax", b"/layers.0.softmax/softmax"))

    def refused(_: object, offset: int, length: int) -> bytes:
        raise AssertionError("weights are read")

    monkeypatch.setattr(payloads.SourceFile, "read_at", refused)
    base, target = [onnxjson.from_proto(onnx.load(each, load_external_data=False)) for each in (place, edited)]
    found = diff_models(base, target, paths=(place, edited))
    assert [each.kind for each in found.events] == ["renamed"]
    assert not found.incomplete
    other = tmp_path / "other"
    other.mkdir()
    assert diff_models(base, target, paths=(place, other / "m.onnx")).incomplete


def test_quantized_weights_are_compared_through_their_scales(tmp_path: Path) -> None:
    base, target = genai_decoder(), genai_decoder()
    arrays = {each.name: each for each in target.graph.initializer}

    def change(name: str, by: Any) -> None:
        made = by(onnx.numpy_helper.to_array(arrays[name]).copy())
        arrays[name].CopyFrom(onnx.numpy_helper.from_array(made, name))

    change("model.layers.1.o_proj.qweight", lambda array: array ^ 1)
    change("model.layers.1.o_proj.scales", lambda array: array * numpy.float32(1.5))
    change("lm_head.scales", lambda array: array * numpy.float32(1.1))
    difference = diff_models(onnxjson.from_proto(base), onnxjson.from_proto(target))
    details = [
        detail.target
        for event in difference.events
        for member in event.members
        for detail in member.details
        if detail.what == "through the scales"
    ]
    assert len(details) == 2  # not for the scales of a weight whose elements changed
    assert all([(each or "").startswith("4 bits, block 32: mean |difference| ") for each in details])
    # A tenth more: a tenth of the mean magnitude, which is a fifth to a quarter of the range.
    assert any([1 < float((each or "").split()[-4]) < 3 for each in details])


def test_the_rank_of_a_change_is_how_many_singular_values_explain_it() -> None:
    numbers = numpy.random.default_rng(0)
    before = numbers.standard_normal((300, 200))
    low = numbers.standard_normal((300, 16)) @ numbers.standard_normal((16, 200))

    def rank(change: Any) -> str:
        found = compared(from_numpy(before), from_numpy(before + change), mode="rank")
        return told(found)["rank of the change"][1] or ""

    assert rank(low) == "16 explains 100 % (read twice, 0.017 GFLOP)"
    assert rank(low + 1e-3 * numbers.standard_normal(before.shape)).startswith("16 explains 99.99 %")
    full = rank(numbers.standard_normal(before.shape))
    assert full.startswith("64 explains at least ")
    assert float(full.split()[4]) < 70
    assert "rank of the change" not in told(compared(floats(1, 2), floats(1, 3), mode="rank"))
    assert "rank of the change" not in told(compared(from_numpy(before), from_numpy(before + low)))
    assert compared(from_numpy(before), from_numpy(before), mode="rank") is None
