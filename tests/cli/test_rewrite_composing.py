"""extract and combine on the command line."""

from pathlib import Path

import numpy
import onnx
from onnx import numpy_helper

import onnxjson
from tests.cli.running import run


def test_a_part_takes_along_only_the_weights_that_it_needs(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[1024] x) => (float[1024] y)
        { a = Mul (x, k) b = Neg (a) y = Add (b, w) }"""
    )
    for name in ("k", "w"):
        model.graph.initializer.append(numpy_helper.from_array(numpy.full(1024, 3, numpy.float32), name))
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "part").mkdir()
    result = run("rewrite", "extract", tmp_path / "m.onnx", "--outputs", "b", "-o", tmp_path / "part" / "p.onnx")
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "part").iterdir()) == ["p.data", "p.onnx"]
    assert (tmp_path / "part" / "p.data").stat().st_size == 4096
    onnx.checker.check_model(str(tmp_path / "part" / "p.onnx"))
    beside = run("rewrite", "extract", tmp_path / "m.onnx", "--outputs", "b", "-o", tmp_path / "b.onnx")
    assert beside.exit_code == 0
    assert not (tmp_path / "b.data").exists()


def test_the_other_model_stands_last(binary: Path, tmp_path: Path) -> None:
    head, tail = tmp_path / "head.onnx", tmp_path / "tail.onnx"
    assert run("rewrite", "extract", binary, "--outputs", "pooled", "-o", head).exit_code == 0
    parts = ["--inputs", "pooled", "--outputs", "probabilities"]
    assert run("rewrite", "extract", binary, *parts, "-o", tail).exit_code == 0
    result = run("rewrite", "combine", head, tail, "--join", "pooled=pooled", "-o", tmp_path / "whole.onnx")
    assert result.exit_code == 0, result.stderr
    one, other = onnxjson.load(binary).graph, onnxjson.load(tmp_path / "whole.onnx").graph
    assert one is not None
    assert other is not None
    assert (one.node, one.initializer) == (other.node, other.initializer)
    wrong = run("rewrite", "combine", head, tail, "--join", "poold=pooled", "-o", tmp_path / "other.onnx")
    assert wrong.exit_code == 2
    assert 'did you mean "pooled"' in wrong.stderr
    assert not (tmp_path / "other.onnx").exists()
