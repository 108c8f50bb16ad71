"""Following values, going into graphs and out of them, and jumps, as a person does it."""

from pathlib import Path

from onnxjson_tui.session.history import Jumps
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved

BRANCHES = """g (float[4] x, bool c) => (float[4] y) {
    a = Relu(x)
    d = Neg(x)
    b = If(c) <
        then_branch = t () => (float[4] p) { p = Abs(a) },
        else_branch = e () => (float[4] q) { r = Neg(a)  q = Exp(r) }
    >
    y = Add(b, b)
}"""

CALLS = """g (float[4] x) => (float[4] y) {
    a = Relu(x)
    b = local.twice(a)
    y = local.twice(b)
}
<domain: "local", opset_import: ["" : 20]>
twice (v) => (w) { w = Add(v, v) }"""


def place(found: Bench) -> str:
    here = found.bench.here
    assert here is not None
    return here.address


def test_producer_consumers_and_the_way_back(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("3", "G", "g", "p")
        assert "Go to what produces" in bench.text
        await bench.press("down", "enter")
        assert place(bench) == "/graph/node/2"
        await bench.press("g", "p")
        assert place(bench) == "/graph/node/1"
        await bench.press("0", "g", "p")
        assert place(bench) == "/graph/node/0"
        await bench.press("g", "p")
        assert "x is an input of the graph" in bench.footer
        await bench.press("ctrl+o")
        assert place(bench) == "/graph/node/1"
        await bench.press("ctrl+o")
        assert place(bench) == "/graph/node/2"
        await bench.press("g", "g", "g", "c")
        assert "2 consumers" in bench.text
        await bench.press("escape", "2", "g", "c")
        assert place(bench) == "/graph/node/3"
        await bench.press("g", "c")
        assert "output of the graph" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_definition_says_what_constants_and_inputs_are(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("g", "d")
        assert "x is an input of the graph, float32[N,4] with 1 consumer" in bench.footer
        await bench.press("j", "0", "g", "d")
        assert place(bench) == "/graph/node/0"
        await bench.press("j", "1", "g", "d")
        assert "w" in bench.text
        assert "float32" in bench.text
        assert bench.bench.pane == "drawer"
        await bench.press("escape", "7", "g", "d")
        assert "there is no in[7]" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_into_a_branch_and_out_of_it(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("2", "G", "g", "s")
        assert "Enter" in bench.text
        await bench.press("/")
        await bench.type("else")
        assert place(bench) == "/graph/node/2/attribute/else_branch/g/node/0"
        assert "main > b" in bench.lines[1] or "else_branch" in bench.lines[1]
        await bench.press("g", "p")
        assert place(bench) == "/graph/node/0"
        await bench.press("ctrl+o", "-")
        assert place(bench) == "/graph/node/2"
        await bench.press("-")
        assert "outermost" in bench.footer

    run_small(saved(tmp_path / "m.onnx", model_of(BRANCHES)), flow)


def test_into_a_function_and_out_to_a_call(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", "g", "s")
        assert place(bench) == "/functions/0/node/0"
        assert "function twice" in bench.lines[1]
        await bench.press("0", "g", "d")
        assert "v is an input of the function" in bench.footer
        await bench.press("-")
        assert place(bench) == "/graph/node/1"
        bench.session.places.jumps = Jumps()
        bench.bench.go("/functions/0/node/0", remember=False)
        await bench.press("-")
        assert "2 nodes call it" in bench.text
        await bench.press("down", "enter")
        assert place(bench) == "/graph/node/2"

    run_small(saved(tmp_path / "m.onnx", model_of(CALLS)), flow)
