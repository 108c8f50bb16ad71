"""The table of dtypes against onnx, numpy and ml_dtypes."""

import ml_dtypes
import numpy
import onnx
import pytest
from onnx import defs, helper

from onnxjson.model.dtypes import BITS, COMPLEX_PARTS, DTYPES, INTEGERS, SIGNED, STORAGE
from onnxjson.model.tensors import numpy_dtype


def test_table_has_every_dtype_of_onnx_under_its_name() -> None:
    assert {each.onnx_name: number for number, each in DTYPES.items()} == dict(onnx.TensorProto.DataType.items())


@pytest.mark.parametrize("number", BITS, ids=lambda number: DTYPES[number].name)
def test_sizes_kinds_and_fields_are_those_of_onnx_and_numpy(number: int) -> None:
    dtype = numpy_dtype(number)
    assert dtype.name == DTYPES[number].name
    assert dtype.itemsize == -(-BITS[number] // 8)
    assert STORAGE[number] == helper.tensor_dtype_to_field(number)
    try:
        integers = numpy.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        assert number not in INTEGERS
    else:
        assert number in INTEGERS
        assert (number in SIGNED) is (integers.min < 0)
        assert integers.bits == BITS[number]
    assert (number in COMPLEX_PARTS) is (dtype.kind == "c")


def test_element_names_are_those_in_the_type_strings_of_operators() -> None:
    used = {
        text.removeprefix("tensor(").removesuffix(")")
        for schema in defs.get_all_schemas()
        for each in schema.type_constraints
        for text in each.allowed_type_strs
        if text.startswith("tensor(")
    }
    assert used <= {dtype.onnx_name.lower() for dtype in DTYPES.values()}
