"""Ways to break a model that leave it valid: verify finds each of them, and nothing in the same model renamed."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxjson import Model, apply, verify
from onnxjson.editing.spelling import parse_line
from tests.running.small_models import model


@pytest.fixture(scope="module")
def network() -> Model:
    """A Conv with its normalization, two branches, and a classifier with square weights."""
    numbers = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return numbers.normal(0, 0.5, shape).astype(np.float32)

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["n"], ["a"], name="average"),
        helper.make_node("Sub", ["p", "a"], ["s"], name="sub"),
        helper.make_node("ReduceMax", ["s", "axes"], ["m"], name="most", keepdims=0),
        helper.make_node("ReduceMean", ["s", "axes"], ["e"], name="mean", keepdims=0),
        helper.make_node("Concat", ["m", "e"], ["f"], name="concat", axis=1),
        helper.make_node("Gemm", ["f", "dense"], ["g"], name="gemm"),
        helper.make_node("Softmax", ["g"], ["y"], name="softmax", axis=1),
    ]
    constants = {
        "w": weights(4, 2, 3, 3),
        "b": weights(4),
        "scale": weights(4),
        "shift": weights(4),
        "mean": weights(4),
        "var": np.abs(weights(4)),
        "dense": weights(8, 8),
        "axes": np.int64([2, 3]),  # type: ignore[arg-type]
    }
    return model(nodes, {"x": (TensorProto.FLOAT, ["N", 2, 8, 8])}, ["y"], constants)


BROKEN = {
    "one weight has the other sign": "set-tensor w 0.75 --at 1,1,1,1",
    "the bias is lost": "set-tensor b 0.0 --at :",
    "another epsilon": "set-attribute norm epsilon 0.1",
    "another activation": "replace-node relu Tanh",
    "a node is missing": "delete-node relu",
    "the padding is on one side": "set-attribute conv pads [0,0,2,2]",
    "another kind of pooling": "replace-node pool AveragePool",
    "inputs in another order": "swap-inputs sub",
    "branches in another order": "swap-inputs concat",
    "transposed weights": "set-attribute gemm transB 1",
    "another axis": "set-attribute softmax axis 0",
}
"""What is wrong, and the edit that makes it so."""


def test_a_model_is_not_taken_for_broken(network: Model) -> None:
    renamed = apply(network, parse_line("rename any --from conv --to first --parts"))
    assert verify(network, renamed).equal


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_a_broken_model_is_found(network: Model, line: str) -> None:
    found = verify(network, apply(network, parse_line(line)))
    assert (found.equal, found.failed) == (False, len(found.runs))
