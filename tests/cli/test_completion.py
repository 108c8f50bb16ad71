"""Completion in shells: the script for bash runs in bash, the values of selectors come from the model."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from onnxjson.model.document import Graph, Model, Node, ValueInfo
from onnxjson.storage import api
from tests.cli.running import command_line, run

_TRY = """
source <(printf '%s' "$SCRIPT")
compopt() {{ printf '%s ' compopt "$@"; }}
onnxjson() {{ {program} "$@"; }}
COMP_LINE={line} COMP_POINT={point}
COMP_WORDS=({words}) COMP_CWORD={last}
_onnxjson_completion {program}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bin") / "onnxjson"
    place.write_text(f'#!/bin/sh\nexec {shlex.join(command_line())} "$@"\n')
    place.chmod(0o755)
    return place


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["optimize", "m.onnx", "-p", "onnxoptimizer", ":", "fuse_bn"], ["fuse_bn_into_conv"]),
        (["show", "m.onnx", "op", ":"], ["Abs", "Neg"]),
        (["show", "m.onnx", "'op:N"], ["op:Neg"]),
        (["rewrite", "set-attribute", "m.onnx", "!op", ":", "A"], ["Abs"]),
        (["show", "m.onnx", "name", ":"], ["harmless"]),
        (["show", "missing.onnx", "op", ":"], [""]),
        (["diff", "--format", "=", "ma"], ["markdown"]),
        (["new", "ConvI"], ["ConvInteger"]),
        (["new", "--component", "nms-y"], ["nms-yolact"]),
        (["show", "m.on"], ["compopt -o default "]),
    ],
)
def test_bash_completes(
    words: list[str], expected: list[str], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = (
        Node(op_type="Abs", name="harmless", input=("x",), output=("y",)),
        Node(op_type="Neg", name="$(rm -r .)\n`x`", input=("y",), output=("z",)),
        Node(op_type="Neg", name="\x1b[2J", input=("y",), output=("u",)),
    )
    graph = Graph(name="g", node=nodes, input=(ValueInfo(name="x"),), output=(ValueInfo(name="z"),))
    api.save(Model(ir_version=8, graph=graph), "m.onnx")
    line = "onnxjson"
    for before, word in zip(("", *words), words, strict=False):
        line += word if word in (":", "=") or before in (":", "=") else f" {word}"
    script = _TRY.format(
        program=shlex.quote(str(program)),
        line=shlex.quote(line),
        point=len(line),
        words=shlex.join(["onnxjson", *words]),
        last=len(words),
    )
    result = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=os.environ | {"SCRIPT": run("completion", "bash").stdout},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.strip("\n").splitlines() == [each for each in expected if each]
    assert result.stderr == ""
