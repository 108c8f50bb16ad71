"""Results of two programs compared: equal graphs, or equal outputs of onnxruntime on the same inputs."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import numpy
import onnx
from onnx import helper, numpy_helper

from tests.originals.judging import Outcome, WrongError, require, valid

Demand = Literal["graph", "outputs"]
"""What two results of a job must have in common; "graph" includes all names but those of nodes."""

_SIZE: Final = 2
"""Size of dimensions without a number."""

_ROUNDS: Final = 3


def agree(one: onnx.ModelProto, other: onnx.ModelProto, demand: Demand) -> str:
    """What two models have in common, as far as the job demands it.

    Raises:
        WrongError: they differ.
    """
    difference = _graph_difference(one, other)
    if difference is None:
        return "equal graph"
    if demand == "graph":
        raise WrongError(f"another graph: {difference}")
    for seed in range(_ROUNDS):
        _require_equal_outputs(one, other, seed)
    return "equal outputs"


def _graph_difference(one: onnx.ModelProto, other: onnx.ModelProto) -> str | None:
    parts = [dict(_parts(each)) for each in (one, other)]
    return next((name for name, part in parts[0].items() if part != parts[1][name]), None)


def _parts(proto: onnx.ModelProto) -> Iterator[tuple[str, Any]]:
    graph = proto.graph
    yield "operator sets", sorted({(each.domain, each.version) for each in proto.opset_import})
    yield "inputs", [_value(each) for each in graph.input]
    yield "outputs", [each.name for each in graph.output]
    yield "constants", {each.name: _tensor(each) for each in graph.initializer}
    yield "nodes", Counter(map(_node, graph.node))


def _value(value: onnx.ValueInfoProto) -> tuple[str, bytes]:
    return value.name, value.type.SerializeToString(deterministic=True)


def _tensor(tensor: onnx.TensorProto) -> tuple[int, tuple[int, ...], bytes]:
    array = numpy_helper.to_array(tensor)
    return tensor.data_type, tuple(tensor.dims), array.tobytes()


def _node(node: onnx.NodeProto) -> tuple[Any, ...]:
    attributes = frozenset([(each.name, _attribute(each)) for each in node.attribute])
    domain = "" if node.domain == "ai.onnx" else node.domain
    return domain, node.op_type, tuple(node.input), tuple(node.output), attributes


def _attribute(attribute: onnx.AttributeProto) -> Any:
    if attribute.HasField("t"):
        return _tensor(attribute.t)
    plain = onnx.AttributeProto()
    plain.CopyFrom(attribute)
    plain.doc_string = ""
    return plain.SerializeToString(deterministic=True)


def _require_equal_outputs(one: onnx.ModelProto, other: onnx.ModelProto, seed: int) -> None:
    import onnxruntime

    sessions = [onnxruntime.InferenceSession(each.SerializeToString()) for each in (one, other)]
    values = [_random(each, numpy.random.default_rng(seed)) for each in sessions[0].get_inputs()]
    if len(values) != len(sessions[1].get_inputs()):
        raise WrongError(f"{len(values)} and {len(sessions[1].get_inputs())} inputs")
    results = []
    for session in sessions:
        names = [each.name for each in session.get_inputs()]
        results.append(session.run(None, dict(zip(names, values, strict=True))))
    if len(results[0]) != len(results[1]):
        raise WrongError(f"{len(results[0])} and {len(results[1])} outputs")
    for first, second in zip(*results, strict=True):
        if first.shape != second.shape or first.dtype != second.dtype:
            raise WrongError(f"outputs {first.dtype}{first.shape} and {second.dtype}{second.shape}")
        if not numpy.allclose(first, second, rtol=1e-4, atol=1e-5, equal_nan=True):
            raise WrongError(f"an output differs by {numpy.max(numpy.abs(first - second)):.3g}")


def _random(value: Any, chance: numpy.random.Generator) -> Any:
    """Values of an input of a session: small integers, or numbers around 0."""
    shape = [each if isinstance(each, int) and each > 0 else _SIZE for each in value.shape]
    dtype = helper.tensor_dtype_to_np_dtype(
        onnx.TensorProto.DataType.Value({"float": "FLOAT"}.get(kind := value.type[7:-1], kind.upper()))
    )
    if numpy.issubdtype(dtype, numpy.floating):
        return chance.standard_normal(shape).astype(dtype)
    return chance.integers(0, 2, shape).astype(dtype)


def shrunk(below: int) -> Callable[[Outcome], None]:
    """A judge of optimizers: a valid model with fewer nodes that computes the same as m.onnx."""

    def judge(outcome: Outcome) -> None:
        before, after = onnx.load(outcome.folder / "m.onnx"), valid(outcome.model())
        require(len(after.graph.node) < below, f"{len(after.graph.node)} nodes are left")
        agree(before, after, "outputs")

    return judge


def computes_the_same(outcome: Outcome) -> None:
    """Judges that the model computes the same as m.onnx, and is another."""
    before, after = onnx.load(outcome.folder / "m.onnx"), valid(outcome.model())
    require(before != after, "nothing is changed")
    agree(before, after, "outputs")
