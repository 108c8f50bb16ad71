"""The model without its big constants that native code gets."""

import numpy as np
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.editing.sandbox import worker
from onnxjson.model.document import Model, Tensor
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.running.inferred_types import inferred_scopes
from onnxjson.running.light_model import Kind, LightModel, with_inputs
from tests.editing.graphs import model_of

LOOKUP = "g (int64[4] i, float[2,9] x) => (int64[4] y, float[2,9] z) { y = Identity(i) z = Identity(x) }"


def with_tables() -> Model:
    model = model_of(LOOKUP)
    assert model.graph is not None
    arrays: dict[str, np.ndarray] = {
        "table": np.arange(5000),
        "w": np.ones((9, 2000), np.float32),
        "perm": np.array([1, 0]),
    }
    tables = tuple([replace(from_numpy(array), name=name) for name, array in arrays.items()])
    return replace(model, graph=replace(model.graph, initializer=tables))


@pytest.mark.parametrize("kind", ["replaced", "typed", "empty"])
def test_big_constants_stay_out_and_small_ones_in(kind: Kind) -> None:
    light = LightModel(with_tables(), None, kind)
    assert len(light.data) < 1000
    graph = light.model.graph
    assert graph is not None
    kept = {each.name: each for each in graph.initializer}
    assert to_numpy(kept["perm"]).tolist() == [1, 0]
    assert ("table" in kept) == (kind != "typed")


def test_results_of_native_code_get_the_constants_back() -> None:
    model = with_tables()
    light = LightModel(model, None)
    assert light.read(light.data) == model


def test_a_long_table_of_integers_is_no_mistake_of_the_node_that_consumes_it() -> None:
    edit = edits.AddNode(op_type="Gather", input=("table", "i"), output=("new",))
    after = onnxjson.apply(with_tables(), [edit])
    scopes, findings = inferred_scopes(after, None, worker())
    assert findings == ()
    shape = scopes["/graph"].types["new"].shape
    assert shape == (4,)


def test_a_runtime_gets_all_of_them_as_inputs() -> None:
    graph = with_tables().graph
    assert graph is not None
    assert [(each.name, each.shape) for each in with_inputs(graph).input[2:]] == [("table", (5000,)), ("w", (9, 2000))]
    assert with_inputs(replace(graph, initializer=())) == replace(graph, initializer=())


def test_an_initializer_that_is_an_input_stays_one_input() -> None:
    graph = with_tables().graph
    assert graph is not None
    names = [each.name for each in with_inputs(with_inputs(replace(graph, input=())), lambda each: True).input]
    assert names == ["table", "w", "perm"]
    doubled = replace(with_inputs(graph), initializer=(Tensor(name="table", dims=(5000,), data_type=7),))
    assert [each.name for each in with_inputs(doubled, lambda each: True).input] == ["i", "x", "table", "w"]
