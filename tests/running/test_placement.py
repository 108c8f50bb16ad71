"""Which execution provider got each node."""

import json
from pathlib import Path

import onnxjson
from onnxjson.example import make_example
from onnxjson.model.index import Index
from onnxjson.running.model_run import placement_of
from tests.cli.running import run
from tests.editing.graphs import model_of


def test_recorded_assignment_is_counted_in_terms_of_the_model() -> None:
    index = Index(onnxjson.from_proto(make_example()))
    on = {"/conv": "A", "/activation": "B", "/pool": "A", "/fc": "A", "made": "B"}
    placement = placement_of(index, [(name, "Op", provider) for name, provider in on.items()], "A")
    assert placement.providers == {"A": 3, "B": 2}
    assert placement.cuts == 2
    assert placement.kept_off == {"Op": 2}
    assert placement.removed == 2
    assert [each.address for each in placement.nodes] == [f"/graph/node/{n}" for n in (0, 1, 2, 4)] + [None]


def test_run_reports_the_placement(tmp_path: Path) -> None:
    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    shown = run("run", tmp_path / "m.onnx", "--placement", "-v")
    assert "6 nodes on CPUExecutionProvider" in shown.stdout
    assert "CPUExecutionProvider  Conv /conv" in shown.stdout
    data = json.loads(run("run", tmp_path / "m.onnx", "--placement", "--json").stdout)["placement"]
    assert (data["providers"], data["cuts"], data["removed"]) == ({"CPUExecutionProvider": 6}, 0, 0)
    assert data["nodes"][0]["address"] == "/graph/node/0"


def test_nodes_that_onnxruntime_made_are_followed_back(tmp_path: Path) -> None:
    model = model_of(
        "g (float[2,8] x) => (float[2,4] y) <int64[2] s = {8, 4}, float[4] b = {1.0, 2.0, 3.0, 4.0}> "
        "{ w = ConstantOfShape (s) [product] p = MatMul(x, w) [sum] y = Add(p, b) }"
    )
    found = placement_of(Index(model), [("f", "Gemm", "A")], "A", {"f": ["/graph/node/1", "/graph/node/2"]})
    assert (found.nodes[0].address, found.nodes[0].origins) == (None, ("/graph/node/1", "/graph/node/2"))
    assert found.removed == 1
    onnxjson.save(model, tmp_path / "m.onnx")
    data = json.loads(run("run", tmp_path / "m.onnx", "--placement", "--json").stdout)["placement"]
    assert [each["origins"] for each in data["nodes"]] == [["/graph/node/0", "/graph/node/1", "/graph/node/2"]]
    assert data["removed"] == 0
    assert "joined several to each of 1" in run("run", tmp_path / "m.onnx", "--placement").stdout
