"""Fills and ranges: kept to the letter in every dtype, or refused."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import onnxjson
from onnxjson import FeedError
from onnxjson.model.dtypes import DATA_TYPE_NAMES, DATA_TYPES
from onnxjson.model.tensors import numpy_dtype
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import InputOptions
from onnxjson.running.model_run import run_cases
from onnxjson.running.random_values import constant_array, random_within
from onnxjson.running.values import as_array
from onnxjson.running.worker import Worker
from tests.running.small_models import identity

NUMBERS = [number for number, name in DATA_TYPE_NAMES.items() if number and name != "string"]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.mark.parametrize("data_type", NUMBERS)
def test_every_dtype_is_filled_and_ranged(data_type: int) -> None:
    assert constant_array(data_type, (2,), 1).astype(np.complex128).tolist() == [1, 1]
    low = 1 if DATA_TYPE_NAMES[data_type] == "float8_e8m0fnu" else 0
    found = random_within(data_type, (50,), (low, 1), np.random.default_rng(0)).astype(np.complex128).real
    assert ((found >= low) & (found <= 1)).all()


@pytest.mark.parametrize("data_type", NUMBERS)
def test_what_a_dtype_does_not_hold_is_refused_and_never_wrapped(data_type: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if numpy_dtype(data_type).name not in ("float64", "complex128"):
            with pytest.raises(ValueError, match="does not have"):
                constant_array(data_type, (2,), 1e300)
        if DATA_TYPE_NAMES[data_type].startswith(("int", "uint", "bool")):
            for wrong in (float("nan"), float("inf"), 0.5, 2**70, -(2**70)):
                with pytest.raises(ValueError, match="does not have"):
                    constant_array(data_type, (2,), wrong)
            with pytest.raises(ValueError, match="which has"):
                random_within(data_type, (2,), (0, 2**70), np.random.default_rng(0))
            with pytest.raises(ValueError, match="no integer"):
                random_within(data_type, (2,), (0.2, 0.8), np.random.default_rng(0))


def test_integers_that_no_float_holds_are_kept() -> None:
    assert constant_array(DATA_TYPES["uint64"], (1,), 2**64 - 1).tolist() == [2**64 - 1]
    found = random_within(DATA_TYPES["uint64"], (9,), (2**64 - 3, 2**64 - 1), np.random.default_rng(0))
    assert (found >= 2**64 - 3).all()


def test_infinity_and_nan_fill_what_has_them() -> None:
    assert np.isinf(constant_array(TensorProto.FLOAT16, (1,), float("inf"))).all()
    assert np.isnan(constant_array(TensorProto.FLOAT, (1,), float("nan"))).all()


def test_sizes_called_by_a_question_mark_are_independent(worker: Worker) -> None:
    proto = onnxjson.to_proto(identity(TensorProto.FLOAT))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.ClearField("shape")
        for size in ({"dim_value": -1}, {"dim_param": "?"}, {"dim_param": "?"}):
            value.type.tensor_type.shape.dim.add(**size)
    options = InputOptions(shapes={"x": (1, 2, 3)})
    case = run_cases(onnxjson.from_proto(proto), None, [DataSet("", {}, {})], input_options=options, worker=worker)
    assert as_array(case.cases[0].inputs["x"]).shape == (1, 2, 3)


def test_refusals_name_the_input_and_strings_pass_over_what_is_for_all(worker: Worker) -> None:
    def inputs(tested: onnxjson.Model, input_options: InputOptions) -> Any:
        result = run_cases(tested, None, [DataSet("", {}, {})], input_options=input_options, worker=worker)
        return as_array(result.cases[0].inputs["x"])

    with pytest.raises(FeedError, match='"x" is int8, which does not have 300'):
        inputs(identity(TensorProto.INT8), InputOptions(fills={"": 300}))
    with pytest.raises(FeedError, match='"x" has strings'):
        inputs(identity(TensorProto.STRING), InputOptions(fills={"x": 1}))
    assert inputs(identity(TensorProto.STRING), InputOptions(fills={"": 1})).shape == (1, 3)
