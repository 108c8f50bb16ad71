"""strip with weights: models that run without their weights."""

import numpy as np
import pytest

from onnxjson.editing.applying import apply, run
from onnxjson.editing.cleaning import Filling, Strip
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import from_numpy
from tests.editing.graphs import exported, sample_inputs
from tests.editing.graphs import run as computed


@pytest.mark.parametrize("filling", ["random", "zeros"])
@pytest.mark.parametrize("name", ["mobile_ts.onnx", "encoder_dynamo.onnx"])
def test_the_model_runs_and_has_none_of_its_weights(name: str, filling: Filling) -> None:
    before = exported(name)
    result = run(before, Strip(weights=filling, seed=3))
    after = result.model
    assert f"tensors replaced by {filling}" in result.outcomes[0].notes[0]
    assert all(np.isfinite(each).all() for each in computed(after, sample_inputs(before)))
    assert before.graph is not None
    assert after.graph is not None
    for old, new in zip(before.graph.initializer, after.graph.initializer, strict=True):
        assert (old.name, old.dims, old.data_type) == (new.name, new.dims, new.data_type)
        is_weight = old.data_type == 1 and old.numpy().size > 64
        assert is_weight == (old.raw_data != new.raw_data)


def test_the_same_seed_gives_the_same_weights() -> None:
    before = exported("mobile_ts.onnx")
    one, same, other = [apply(before, Strip(weights="random", seed=seed)) for seed in (1, 1, 2)]
    assert one == same
    assert one != other


def test_a_skeleton_is_not_called_unchanged() -> None:
    notes = run(exported("mobile_ts.onnx"), Strip(weights="zeros")).outcomes[0].notes
    assert not any(["nothing to strip" in note for note in notes])


def test_nothing_is_read_and_all_dtypes_are_filled() -> None:
    import ml_dtypes

    from onnxjson.model.document import Graph, Model, Tensor

    dtypes = ["float16", "bfloat16", "float64", "int8", "uint8", "int4", "float8_e4m3fn", "int64"]
    tensors = [from_numpy(np.ones(100).astype(getattr(ml_dtypes, each, each)), each) for each in dtypes]
    outside = Tensor(name="w", dims=(500,), data_type=1, data_location=1)
    model = Model(graph=Graph(initializer=(*tensors, outside)))
    graph = apply(model, Strip(weights="random")).graph
    assert graph is not None
    lengths = [len(whole(each.raw_data or b"")) for each in graph.initializer]
    assert lengths == [200, 200, 800, 100, 100, 50, 100, 800, 2000]
    assert graph.initializer[7] == tensors[7]
