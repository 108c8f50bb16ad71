"""A share of `tests.laws.real`, on the smallest models and with a few passes."""

import pytest
from msgspec.structs import replace

import onnxjson
from tests.laws import real
from tests.laws.real_diffs import Pair

PASSES = ("onnxsim", "onnxruntime", "float16")


@pytest.mark.parametrize("name", ["branches_ts", "mobile_ts"])
@pytest.mark.timeout(300)
def test_laws_hold(name: str) -> None:
    row = real.row_of(real.MODELS / f"{name}.onnx", tuple(real.LAWS), PASSES)
    assert row.broken == ()
    assert set(row.cells) == set(real.LAWS)


@pytest.mark.timeout(300)
def test_a_result_that_computes_something_else_or_does_not_load_is_a_broken_law() -> None:
    path = real.MODELS / "mobile_ts.onnx"
    model = onnxjson.load(path)
    other = model.select("op:Clip").delete()
    assert model.graph is not None
    wrong = replace(model, graph=replace(model.graph, node=model.graph.node[:-1]))
    results = real.Results(path, ())
    results._made = [Pair("mobile_ts onnxsim", model, other), Pair("mobile_ts onnxslim", model, wrong)]
    assert [each.partition(":")[0] for each in real.loads(results).broken] == ["mobile_ts onnxslim"]
    assert len(real.verdicts(results).broken) == 2
    assert real.diffs(results).broken == ()
