"""Which execution provider got each node."""

import json
from pathlib import Path

import onnxjson
from onnxjson.example import make_example
from onnxjson.model.index import Index
from onnxjson.running.placement import placement_of
from tests.cli.running import run


def test_recorded_assignment_is_counted_in_terms_of_the_model() -> None:
    index = Index(onnxjson.from_proto(make_example()))
    on = {"/conv": "A", "/activation": "B", "/pool": "A", "/fc": "A", "made": "B"}
    found = placement_of(index, [(name, "Op", provider) for name, provider in on.items()], "A")
    assert found.providers == {"A": 3, "B": 2}
    assert found.cuts == 2
    assert found.kept_off == {"Op": 2}
    assert found.removed == 2
    assert [each.address for each in found.nodes] == [f"/graph/node/{n}" for n in (0, 1, 2, 4)] + [None]


def test_run_reports_the_placement(tmp_path: Path) -> None:
    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    shown = run("run", tmp_path / "m.onnx", "--placement", "-v")
    assert "6 nodes on CPUExecutionProvider" in shown.stdout
    assert "CPUExecutionProvider  Conv /conv" in shown.stdout
    data = json.loads(run("run", tmp_path / "m.onnx", "--placement", "--json").stdout)["placement"]
    assert (data["providers"], data["cuts"], data["removed"]) == ({"CPUExecutionProvider": 6}, 0, 0)
    assert data["nodes"][0]["address"] == "/graph/node/0"
