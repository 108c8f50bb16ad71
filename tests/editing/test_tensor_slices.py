"""set-tensor with at: elements, rows and slices of a constant."""

import json
from typing import Any

import ml_dtypes
import numpy
import pytest

from onnxjson import edits
from onnxjson.model.dimensions import parse_slice
from onnxjson.model.document import Graph, Model, Tensor
from onnxjson.model.errors import EditError, ParameterError
from onnxjson.model.tensors import from_numpy, to_numpy

DTYPES = ("float32", "float16", "bfloat16", "int64", "int8", "int4", "bool", "float8_e4m3fn")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("at", "values"),
    [("1,2", 1), ("0", [1, 0, 1, 0]), (":,1", 0), ("::-1,0", [1, 0, 1]), ("-1,-1", 1), ("0:2,1:3", [[1, 0], [0, 1]])],
)
def test_elements_of_a_slice_are_set_and_all_others_keep_their_bits(dtype: str, at: str, values: object) -> None:
    kind = numpy.dtype(getattr(ml_dtypes, dtype, dtype))
    array = (numpy.arange(12).reshape(3, 4) % 2).astype(kind)
    model = Model(ir_version=10, graph=Graph(initializer=(from_numpy(array, "w"),)))
    value = json.loads(json.dumps(values).replace("1", "true").replace("0", "false")) if dtype == "bool" else values
    expected = array.copy()
    places = [
        slice(pick.start, None if pick.stop < 0 else pick.stop, pick.step) if isinstance(pick, range) else pick
        for pick in parse_slice(at, (3, 4))
    ]
    expected[tuple(places)] = numpy.array(values).astype(kind)
    graph = edits.apply(model, edits.SetTensor(tensor="w", at=at, value=value)).graph
    assert graph is not None
    assert to_numpy(graph.initializer[0]).tobytes() == expected.tobytes()
    assert (graph.initializer[0].name, graph.initializer[0].dims) == ("w", (3, 4))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at": "5,5", "value": 1}, "at 5,5: dimension 0 has 3 elements"),
        ({"at": "x", "value": 1}, "at x: dimension 0: x is not an integer"),
        ({"at": "0", "value": [1, 2]}, "found 2 values"),
        ({"at": "0", "value": 0.5}, "int64 cannot represent 0.5"),
        ({"at": "0", "value": 1, "type": "int32"}, "leave out `type`"),
    ],
)
def test_a_slice_that_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    model = Model(ir_version=10, graph=Graph(initializer=(from_numpy(numpy.arange(12).reshape(3, 4), "w"),)))
    with pytest.raises((EditError, ParameterError), match=said):
        edits.apply(model, edits.SetTensor(tensor="w", **given))


def test_one_string_of_a_constant_is_set() -> None:
    tensor = Tensor((3,), data_type=8, string_data=(b"a", b"b", b"c"), name="w")
    model = Model(ir_version=10, graph=Graph(initializer=(tensor,)))
    graph = edits.apply(model, edits.SetTensor(tensor="w", at="1", value="x")).graph
    assert graph is not None
    assert graph.initializer[0].string_data == (b"a", b"x", b"c")
