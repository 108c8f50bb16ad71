"""Commands read no byte of weights that they do not need, counted where the resolver opens files."""

from pathlib import Path

import pytest

from onnxjson.model.payloads import SourceFile
from onnxjson.storage import external
from tests.benchmarks.llama import Llama, write
from tests.cli.running import run

SIZES = Llama(hidden=128, inner=256, vocabulary=1000)
NODE = "/layers.0.softmax/Softmax"

COMMANDS = {
    "show": "show m.onnx",
    "a node": f"show m.onnx {NODE}",
    "check": "check m.onnx",
    "convert": "convert m.onnx -o copy.onnx",
    "text": "convert m.onnx --weights digest -o m.onnx.json",
    "fmt": "fmt m.onnx.json",
    "an edit": f"rewrite set-attribute m.onnx {NODE} axis 3 -o ours.onnx",
    "another edit": "rewrite set-doc m.onnx other -o theirs.onnx",
    "a renaming": "rewrite rename m.onnx tensor logits scores -o renamed.onnx",
    "diff": "diff m.onnx ours.onnx",
    "diff of names": "diff m.onnx renamed.onnx",
    "diff as text": "diff m.onnx ours.onnx --format unified",
    "merge": "merge m.onnx ours.onnx theirs.onnx -o merged.onnx",
    "find": "find m.onnx MatMul($x,$y)",
    "cost": "show m.onnx --cost",
    "skeleton": "rewrite strip m.onnx --weights zeros -o skeleton.onnx",
}


def test_only_weights_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    total = write(Path("m.onnx"), SIZES, shards=2)
    small = SIZES.hidden * 4  # those of normalizations, which inference of shapes may read
    read: list[int] = []

    def counted(self: external._OpenFile, offset: int, length: int) -> bytes:
        read.append(length)
        return SourceFile.read_at(self, offset, length)

    monkeypatch.setattr(external._OpenFile, "read_at", counted, raising=False)
    for name, command in COMMANDS.items():
        result = run(*command.split())
        assert result.exit_code in (0, 1), (name, result.stderr)
        assert max(read, default=0) <= small, f"{name} read {sum(read):,} bytes"
        read.clear()
    # A patch has the hashes of data files, each read once, and is applied where they are the same.
    for words in ("diff m.onnx ours.onnx --format patch -o p.json", "apply p.json m.onnx -o again.onnx"):
        assert run(*words.split()).exit_code in (0, 1)
        assert sum(read) == sum([path.stat().st_size for path in Path().glob("*.data")])
        read.clear()
    # What needs one tensor reads that one; what needs all reads each once.
    assert run("show", "m.onnx", "norm.weight").exit_code == 0
    assert 0 < sum(read) <= 3 * small  # twice for the histogram, once for values
    read.clear()
    # What changes shapes is loaded in onnxruntime before it is written.
    assert run("rewrite", "set-dim", "m.onnx", "--dim", "past", "--size", "16", "-o", "fixed.onnx").exit_code == 0
    assert sum(read) <= total + 100 * small  # inference reads the small ones, too
    read.clear()
    assert run("convert", "m.onnx", "--internalize", "-o", "whole.onnx").exit_code == 0
    assert sum(read) == total
