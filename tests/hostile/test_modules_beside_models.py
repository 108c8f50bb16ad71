"""Modules next to a model, with the names of all that Python and this program import: none is ever imported."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import anyio
import onnx
import pytest
from onnx import TensorProto, helper

from onnxjson.cli.overview import COMMANDS
from tests.tui.programs import Tmux, tmux_or_skip

PROGRAM = Path(sys.executable).with_name("onnxjson")

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed in this environment")

LINES: list[str] = [
    "show m.onnx", "show m.onnx -o page.html", "find m.onnx Relu", "convert m.onnx -o d.onnx.json", "edit m.onnx",
    "fmt t.onnx.json", "check --deep m.onnx", "diff m.onnx n.onnx", "diff m.onnx n.onnx --format patch",
    "gate --base HEAD -o out", "run m.onnx", "verify m.onnx n.onnx",
    "bench m.onnx --variant one=onnxoptimizer,onnxsim",
    "rewrite prune m.onnx -o r.onnx", "apply p.json m.onnx -o a.onnx",
    "optimize m.onnx -p onnxsim -p onnxslim -p onnxscript -p onnxruntime -p transformers -p symbolic-shapes -o o.onnx",
    "passes", "new Relu -o relu.onnx", "trace m.onnx", "undo-save m.onnx",
    "merge m.onnx m.onnx n.onnx -o merged.onnx",
    "fleet check m.onnx n.onnx -o rows.jsonl", "fleet run m.onnx n.onnx", "git doctor", "conflicts",
    "resolve c.onnx.json --ours",
    "tensor get m.onnx w", "doctor", "schema patch", "completion bash", "demo tour", "mergetool c.onnx.json",
    "lsp", "mcp", "help",
]  # fmt: skip

ALWAYS = frozenset({"show m.onnx", "edit", "check", "gate", "optimize", "fleet check m.onnx n.onnx --out rows.jsonl"})
"""One of each kind: nothing started, an editor, the sandboxed process, git, passes, the workers of a fleet."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with models and, next to them, modules that leave a mark when they are imported."""
    folder = tmp_path_factory.mktemp("beside")
    for name in {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "onnxjson"}:
        if name.isidentifier():
            (folder / f"{name}.py").write_text("import sys\nopen('mark', 'a').write(__name__ + ' ')\n")
    for name, operator in (("m", "Relu"), ("n", "Tanh"), ("o", "Exp")):
        x, y = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [2]) for value in "xy"]
        weight = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
        nodes = [helper.make_node("Mul", ["x", "w"], ["z"]), helper.make_node(operator, ["z"], ["y"])]
        opset = helper.make_opsetid("", 17)
        graph = helper.make_graph(nodes, "g", [x], [y], [weight])
        onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / f"{name}.onnx")
    for words in (["init", "-q"], ["add", "m.onnx"], ["commit", "-q", "-m", "one"]):
        git(folder, *words)
    assert onnxjson(folder, "convert", "m.onnx", "-o", "t.onnx.json").returncode == 0
    assert onnxjson(folder, "merge", "m.onnx", "n.onnx", "o.onnx", "-o", "c.onnx.json").returncode == 16
    (folder / "p.json").write_text('{"format": "onnxjson-rewrite/1", "edits": [{"edit": "prune"}]}')
    return folder


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False)


def onnxjson(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed program, which unlike `python -I -m` passes no -I on to processes that it starts."""
    return subprocess.run(
        [PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"EDITOR": "true"},
    )  # fmt: skip


def copy(planted: Path, tmp_path: Path) -> Path:
    return shutil.copytree(planted, tmp_path / "copy")


def test_a_module_next_to_a_model_is_imported_where_it_can_be(planted: Path, tmp_path: Path) -> None:
    folder = copy(planted, tmp_path)
    subprocess.run([sys.executable, "-c", "import json"], cwd=folder, check=False, capture_output=True)
    assert "json" in (folder / "mark").read_text()


def test_every_command_has_a_line() -> None:
    assert {line.split()[0] for line in LINES} | {"tui"} == set(COMMANDS)


def marked(line: str) -> object:
    """A line, of the long part of the proof if another one stands for its kind."""
    return line if {line, line.split()[0]} & ALWAYS else pytest.param(line, marks=pytest.mark.exhaustive)


@pytest.mark.parametrize("line", [marked(line) for line in LINES])
def test_no_command_imports_it(line: str, planted: Path, tmp_path: Path) -> None:
    folder = copy(planted, tmp_path)
    done = onnxjson(folder, *line.split())
    assert done.returncode not in {2, 70}, done.stderr
    assert not (folder / "mark").exists(), (folder / "mark").read_text()


def test_processes_that_share_the_work_of_a_command_do_not_import_it(planted: Path, tmp_path: Path) -> None:
    folder = copy(planted, tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "from onnxjson.cli import processes\nprocesses._SLOW = -1\nprocesses._fitting = lambda: 2\n"
        "if __name__ == '__main__':\n    print(processes.spread(len, ['a', 'bb', 'ccc']))\n"
    )
    for setting in ({}, {"PYTHONSAFEPATH": ""}):
        done = subprocess.run(
            [sys.executable, script], cwd=folder, capture_output=True, text=True, check=True, env=os.environ | setting
        )
        assert done.stdout == "[1, 2, 3]\n"
        assert not (folder / "mark").exists(), (folder / "mark").read_text()


def test_git_drivers_do_not_import_it(planted: Path, tmp_path: Path) -> None:
    folder = copy(planted, tmp_path)
    assert onnxjson(folder, "git", "install").returncode == 0
    (folder / "m.onnx").write_bytes((folder / "n.onnx").read_bytes())
    assert "Tanh" in git(folder, "diff").stdout
    git(folder, "checkout", "-q", "-b", "other")
    git(folder, "commit", "-qam", "two")
    git(folder, "checkout", "-q", "-")
    onnxjson(folder, "rewrite", "set-doc", "m.onnx", "three", "--in-place")
    git(folder, "commit", "-qam", "three")
    merged = git(folder, "merge", "--no-edit", "other")
    assert merged.returncode == 0, merged.stdout + merged.stderr
    assert "Tanh" in onnxjson(folder, "show", "m.onnx").stdout
    assert not (folder / "mark").exists(), (folder / "mark").read_text()


def test_the_workbench_does_not_import_it(planted: Path, tmp_path: Path) -> None:
    tmux_or_skip()
    folder = copy(planted, tmp_path)
    with Tmux(folder=folder) as tmux:
        tmux.run([str(PROGRAM), "tui", "m.onnx"])
        tmux.expect("Relu")
        tmux.type("q")
        tmux.expect("ready$")
    assert not (folder / "mark").exists(), (folder / "mark").read_text()


def messages(bodies: Sequence[dict[str, object]]) -> bytes:
    texts = [json.dumps({"jsonrpc": "2.0", **body}) for body in bodies]
    return "".join(f"Content-Length: {len(text)}\r\n\r\n{text}" for text in texts).encode()


def test_servers_do_not_import_it(planted: Path, tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    folder = copy(planted, tmp_path)
    text = (folder / "t.onnx.json").read_text()
    document = {"uri": f"file://{folder}/t.onnx.json", "languageId": "onnxjson", "version": 1, "text": text}
    setup: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    given = messages([
        {"id": 1, "method": "initialize", "params": setup}, {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
        {"id": 2, "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": document["uri"]}}},
        {"id": 3, "method": "shutdown"}, {"method": "exit"},
    ])  # fmt: skip
    done = subprocess.run([PROGRAM, "lsp"], cwd=folder, input=given, capture_output=True, check=False)
    assert b'"id": 2' in done.stdout.replace(b'"id":2', b'"id": 2'), done.stderr

    async def ask() -> None:
        started = StdioServerParameters(command=str(PROGRAM), args=["mcp"], cwd=folder)
        async with Client(stdio_client(started)) as client:
            for tool, words in (
                ("show", {"model": "m.onnx"}),
                ("verify", {"before": "m.onnx", "after": "m.onnx"}),
                ("optimize", {"model": "m.onnx", "passes": ["onnxsim", "prune"]}),
            ):
                assert not (await client.call_tool(tool, words)).is_error

    anyio.run(ask)
    assert not (folder / "mark").exists(), (folder / "mark").read_text()
