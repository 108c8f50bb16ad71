"""Completion in shells: the script for bash runs in bash, the values of selectors come from the model."""

import os
import pty
import re
import select
import shlex
import shutil
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


def write_model() -> None:
    """Write a model, with names that a shell must not see, as m.onnx."""
    nodes = (
        Node(op_type="Abs", name="harmless", input=("x",), output=("y",)),
        Node(op_type="Neg", name="$(rm -r .)\n`x`", input=("y",), output=("z",)),
        Node(op_type="Neg", name="\x1b[2J", input=("y",), output=("u",)),
    )
    graph = Graph(name="g", node=nodes, input=(ValueInfo(name="x"),), output=(ValueInfo(name="z"),))
    api.save(Model(ir_version=8, graph=graph), "m.onnx")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["optimize", "m.onnx", "-p", "onnxoptimizer", ":", "fuse_bn"], ["fuse_bn_into_conv"]),
        (["show", "m.onnx", "op", ":"], ["Abs", "Neg"]),
        (["show", "m.onnx", "'op:N"], ["op:Neg"]),
        (["rewrite", "set-attribute", "m.onnx", "!op", ":", "A"], ["Abs"]),
        (["show", "m.onnx", "name", ":"], ["harmless"]),
        (["show", "missing.onnx", "op", ":"], [""]),
        (["show", "m.onnx", "line", ":"], ["1", "2", "3"]),
        (["diff", "--format", "=", "ma"], ["markdown"]),
        (["new", "ConvI"], ["ConvInteger"]),
        (["rewrite", "rename", "m.onnx", "te"], ["tensor"]),
        (["rewrite", "rename", "m.on"], ["compopt -o default "]),
        (["new", "--component", "nms-y"], ["nms-yolact"]),
        (["show", "m.on"], ["compopt -o default "]),
    ],
)
def test_bash_completes(
    words: list[str], expected: list[str], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model()
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


CASES = [
    ("show m.onnx 'op:A", "op:Abs"),
    ("diff --ignore metadata,na", "metadata,names"),
    ("diff --format=ma", "--format=markdown"),
    ("rewrite rename m.onnx te", "tensor"),
    ("show m.on", "m.onnx"),
]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model()
    asked = "; ".join(f"complete -C {shlex.quote(f'onnxjson {line}')}; echo END" for line, _ in CASES)
    result = subprocess.run(
        ["fish", "--no-config", "-c", f"source completion.fish; {asked}"],
        env=_environment(program, "fish", tmp_path),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    found = [part.split("\t")[0].strip() for part in result.stdout.split("END\n")]
    assert found[: len(CASES)] == [expected for _, expected in CASES]
    assert result.stderr == ""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line editor completes in a terminal; ^X prints the line."""
    monkeypatch.chdir(tmp_path)
    write_model()
    environment = _environment(program, "zsh", tmp_path) | {"ZDOTDIR": str(tmp_path), "TERM": "dumb"}
    tell = 'tell() { print -r -- "<$BUFFER>"; BUFFER= }; zle -N tell; bindkey "^X" tell'
    (tmp_path / ".zshrc").write_text(f"source completion.zsh; {tell}; print ready\n")
    terminal, inner = pty.openpty()
    with subprocess.Popen(["zsh", "-i"], env=environment, stdin=inner, stdout=inner, stderr=inner) as shell:
        os.close(inner)
        try:
            _until(terminal, "ready")
            for line, expected in CASES:
                os.write(terminal, f"onnxjson {line}\t\x18".encode())
                found = _until(terminal, "<(.*)>")
                assert found.strip(" '").replace("'", "") == f"onnxjson {line.rpartition(' ')[0]} {expected}".replace(
                    "  ", " "
                )
        finally:
            shell.kill()
            os.close(terminal)


def _environment(program: Path, shell: str, folder: Path) -> dict[str, str]:
    (folder / f"completion.{shell}").write_text(run("completion", shell).stdout)
    return os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def _until(terminal: int, pattern: str) -> str:
    """Read until something matches, and return its last group."""
    text = ""
    while (found := re.search(pattern, text)) is None:
        assert select.select([terminal], [], [], 30)[0], text
        text += os.read(terminal, 4096).decode()
    return found[found.re.groups]
