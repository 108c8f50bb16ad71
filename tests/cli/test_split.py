"""``onnxjson split`` writes pieces that make the same model again."""

from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from onnx import numpy_helper

import onnxjson
from onnxjson.model.errors import FileError
from onnxjson.storage import files
from tests.cli.running import run


def test_pieces_and_script_make_the_model_again(binary: Path, tmp_path: Path) -> None:
    result = run("split", binary, "--at", "pooled", "-o", tmp_path / "pieces")
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in sorted((tmp_path / "pieces").iterdir())] == [
        "digits.join.json",
        "digits.part1.onnx",
        "digits.part2.onnx",
    ]
    assert result.stdout.splitlines()[0].endswith("digits.part1.onnx: 3 nodes, from image to pooled")
    again = run(
        "apply", tmp_path / "pieces/digits.join.json", tmp_path / "pieces/digits.part1.onnx", "-o", tmp_path / "x.onnx"
    )
    assert again.exit_code == 0, again.stderr
    one, other = onnxjson.load(binary).graph, onnxjson.load(tmp_path / "x.onnx").graph
    assert one is not None
    assert other is not None
    assert (one.node, one.initializer, one.input, one.output) == (
        other.node,
        other.initializer,
        other.input,
        other.output,
    )


def test_only_the_weights_that_a_piece_needs_are_copied(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[1024] x) => (float[1024] y)
        { a = Mul (x, k) b = Neg (a) y = Add (b, w) }"""
    )
    for name in ("k", "w"):
        model.graph.initializer.append(numpy_helper.from_array(numpy.full(1024, 3, numpy.float32), name))
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert run("split", tmp_path / "m.onnx", "--size", "4k", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out/m.part1.data").stat().st_size == 4096
    assert (tmp_path / "out/m.part2.data").stat().st_size == 4096
    for number in (1, 2):
        onnx.checker.check_model(str(tmp_path / f"out/m.part{number}.onnx"))
    joined = run(
        "apply", tmp_path / "out/m.join.json", tmp_path / "out/m.part1.onnx", "-o", tmp_path / "out/again.onnx"
    )
    assert joined.exit_code == 0, joined.stderr
    onnx.checker.check_model(str(tmp_path / "out/again.onnx"))


def test_nothing_is_overwritten(binary: Path, tmp_path: Path) -> None:
    assert run("split", binary, "--at", "pooled", "-o", tmp_path / "out").exit_code == 0
    result = run("split", binary, "--at", "flat", "-o", tmp_path / "out")
    assert result.exit_code == 73
    assert "already exists" in result.stderr


def test_where_to_cut_must_be_said_once(binary: Path, tmp_path: Path) -> None:
    assert run("split", binary, "-o", tmp_path / "out").exit_code == 2
    assert run("split", binary, "--at", "flat", "--size", "1k", "-o", tmp_path / "out").exit_code == 2
    wrong = run("split", binary, "--at", "pooledd", "-o", tmp_path / "out")
    assert wrong.exit_code == 2
    assert 'did you mean "pooled"' in wrong.stderr
    assert not (tmp_path / "out").exists()


def test_a_failed_split_leaves_nothing(binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save, written = files.save, []

    def fail_at_the_second(model: onnxjson.Model, path: Path, *arguments: Any, **more: Any) -> Any:
        written.append(path)
        if len(written) == 2:
            raise FileError("the disk is full")
        return save(model, path, *arguments, **more)

    monkeypatch.setattr(files, "save", fail_at_the_second)
    before = sorted(tmp_path.rglob("*"))
    result = run("split", binary, "--at", "pooled", "-o", tmp_path / "some" / "pieces")
    assert (result.exit_code, len(written)) == (74, 2)
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine").write_text("mine")
    written.clear()
    assert run("split", binary, "--at", "pooled", "-o", tmp_path / "kept").exit_code == 74
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["mine"]
