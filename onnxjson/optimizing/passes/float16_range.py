"""Values that float16 does not hold: constants, and what nodes compute on samples."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from onnxjson.model.display import visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.tensors import to_numpy
from onnxjson.optimizing.passes.declaration import graphs
from onnxjson.optimizing.passes.measuring import OFF, Feed, one_line
from onnxjson.running.engines import open_model
from onnxjson.running.tasks import Subject

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, TensorProto

GREATEST: Final = 65504.0
"""The largest float16."""

_FLOAT: Final = DATA_TYPES["float32"]

_SHOWN: Final = 8
_AT_ONCE: Final = 256
"""Values that a run returns together."""


def large_constants(model: "ModelProto") -> dict[str, float]:
    """Return the largest magnitude of each float32 constant that has a finite element beyond float16, by its name."""
    found = {name: _largest(_elements(tensor)) for name, tensor in _constants(model)}
    return {name: size for name, size in found.items() if size > GREATEST}


def large_values(model: "ModelProto", feeds: Iterable[Feed]) -> dict[str, float]:
    """Return the largest magnitude, over all samples, of each value of the main graph that is beyond float16."""
    names = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output if name]
    samples = list(feeds)
    largest: dict[str, float] = {}
    data = bytes(model.SerializeToString())
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        runnable = open_model(Subject(model=data), OFF, one_line, some)
        for feed in samples:
            for name, value in runnable.run(feed, some).items():
                if isinstance(value, Tensor) and value.data_type == _FLOAT:
                    largest[name] = max(largest.get(name, 0.0), _largest(to_numpy(value)))
    return {name: size for name, size in largest.items() if size > GREATEST}


def described(sizes: Mapping[str, float]) -> str:
    """Return the names and magnitudes of values, the first few of them, for a message."""
    texts = [f"{visible(name, 80)} ({size:.3g})" for name, size in list(sizes.items())[:_SHOWN]]
    more = [f"{len(sizes) - _SHOWN:,} more"] if len(sizes) > _SHOWN else []
    return ", ".join([*texts, *more])


def _constants(model: "ModelProto") -> "Iterator[tuple[str, TensorProto]]":
    for graph in graphs(model.graph):
        yield from [(tensor.name, tensor) for tensor in graph.initializer]
        for node in graph.node:
            if node.op_type == "Constant":
                yield from [(node.output[0], each.t) for each in node.attribute if each.HasField("t")]


def _elements(tensor: "TensorProto") -> "NDArray[Any]":
    import numpy

    if tensor.data_type != _FLOAT:
        return numpy.zeros(0, numpy.float32)
    return numpy.frombuffer(tensor.raw_data, "<f4") if tensor.raw_data else numpy.array(tensor.float_data, "<f4")


def _largest(array: "NDArray[Any]") -> float:
    import numpy

    sizes = numpy.abs(array)
    return float(sizes.max(initial=0.0, where=numpy.isfinite(sizes)))
