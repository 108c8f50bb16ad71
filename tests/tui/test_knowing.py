"""Problems, tensors, documentation and drawings, as a person uses them."""

import re
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
from numpy.typing import NDArray

import onnxjson
from onnxjson.example import make_example
from onnxjson.model.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.errors import Finding
from onnxjson.model.tensors import from_numpy
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.shell.dialogs import TextScreen
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run
from tests.tui.screens import ASCII
from tests.tui.sessions import saved, small

BROKEN = """g (float[N,4] x) => (float[N,4] y) {
    a = Relu(x)
    b = Add(a, nowhere)
    y = Add(a, b)
}"""


_RELU = Node(("w",), ("y",), "relu", "Relu")


def _weights(array: "NDArray[Any]") -> Model:
    tensor = from_numpy(array, "w")
    nodes = (Node(("x", "w"), ("y",), "add", "Add"), Node(("y",), ("z",), "relu", "Relu"))
    graph = Graph(nodes, "g", (tensor,), input=(ValueInfo("x"),), output=(ValueInfo("z"),))
    return Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph)


def _shown(found: Bench) -> list[str]:
    lines = found.bench.drawer.lines
    width = lines.scrollable_content_region.width
    return ["".join(span.text for span in lines.rows.line(each, width)).rstrip() for each in range(len(lines.rows))]


def _problems(found: Bench) -> ProblemsPage:
    page = found.bench.drawer.pages["problems"]
    assert isinstance(page, ProblemsPage)
    return page


# Problems


def test_what_is_wrong_is_counted_at_the_top_and_enter_goes_there(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        assert "1 error" in bench.lines[0]
        await bench.press("f5")
        assert any("nowhere" in line and "error" in line for line in bench.lines)
        bench.bench.focus_pane("drawer")
        await bench.press("enter")
        assert bench.bench.here is not None
        assert bench.bench.here.position == 1
        assert bench.bench.pane == "nodes"

    run(saved(tmp_path / "m.onnx", model_of(BROKEN)), flow)


def test_a_problem_can_be_read_in_full(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f5")
        bench.bench.focus_pane("drawer")
        await bench.press("space")
        assert "at /graph/node/1/input/1" in bench.text
        assert "code unknown-name" in bench.text or "code " in bench.text
        await bench.press("escape")
        assert bench.app.screen is bench.bench

    run(saved(tmp_path / "m.onnx", model_of(BROKEN)), flow, (80, 24))


def test_problems_follow_the_model_and_what_is_old_says_so(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        page = _problems(bench)
        page._checked_revision = 0
        page._take("onnx", (Finding(severity="error", code="check-model", message="onnx minds"),), 0)
        bench.bench.drawer.open("problems")
        await bench.settle()
        assert "2 errors" in bench.lines[0]
        await bench.press(":")
        await bench.type("rewire @/graph/node/1 1 x")
        assert any(line.startswith(" error    old onnx minds") for line in _shown(bench))
        assert any("changed since the check with onnx" in line for line in _shown(bench))
        await bench.pilot.pause(0.5)
        await bench.settle()
        assert "error" not in bench.lines[0]
        assert not any("nowhere" in line for line in _shown(bench))

    run(saved(tmp_path / "m.onnx", model_of(BROKEN)), flow)


def test_onnx_is_asked_in_a_process_and_its_messages_lead_to_nodes(tmp_path: Path) -> None:
    model = model_of("""g (float[2] x) => (float[2] y) {
        a = Relu(x)
        y = Softmax<axis=7>(a)
    }""")

    async def flow(bench: Bench) -> None:
        await bench.press("C")
        assert any("/graph/node/1" in line and "Softmax" in line for line in _shown(bench))
        assert "1 error" in bench.lines[0]

    run(saved(tmp_path / "m.onnx", model), flow)


def test_a_question_to_onnx_can_be_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from onnxjson.running.worker import Worker

    go_on, interrupted = threading.Event(), []
    monkeypatch.setattr(Worker, "check", lambda *_, **__: go_on.wait(20) and ())
    monkeypatch.setattr(Worker, "interrupt", lambda _: interrupted.append(1))

    async def flow(bench: Bench) -> None:
        await bench.pilot.press("C")
        await bench.pilot.pause(0.05)
        assert any("checking with onnx" in line for line in _shown(bench))
        await bench.pilot.press("escape")
        await bench.pilot.pause(0.05)
        assert any("was cancelled" in line for line in _shown(bench))
        assert interrupted
        go_on.set()

    run(saved(tmp_path / "m.onnx"), flow)


# Tensors


def test_a_tensor_of_the_node_is_shown_with_its_values(tmp_path: Path) -> None:
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) / 8

    async def flow(bench: Bench) -> None:
        await bench.press("t")
        assert _shown(bench) == [
            " w  float32[3,4]  12 elements, 48 bytes",
            " raw_data, 48 bytes; consumed by 1: Add add",
            " e edit   4e edit four   S statistics and histogram   s slice",
            " [:, :]      0      1      2      3",
            " [0,:]       0  0.125   0.25  0.375",
            " [1,:]     0.5  0.625   0.75  0.875",
            " [2,:]       1  1.125   1.25  1.375",
        ]
        assert bench.bench.pane == "drawer"
        assert "column" not in bench.lines[bench.text[: bench.text.index("[Tensor")].count("\n")]

    run(saved(tmp_path / "m.onnx", _weights(array)), flow)


def test_columns_are_counted_where_not_all_of_them_are_seen(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("t")
        assert "columns 0 to " in bench.text
        await bench.pilot.resize_terminal(600, 40)
        await bench.settle()
        assert "of 40" not in bench.text
        await bench.pilot.resize_terminal(80, 24)
        await bench.settle()
        assert "columns 0 to " in bench.text

    run(saved(tmp_path / "m.onnx", _weights(numpy.zeros((3, 40), numpy.float32))), flow)


def test_a_slice_is_asked_for_and_a_wrong_one_says_why(tmp_path: Path) -> None:
    array = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)

    async def flow(bench: Bench) -> None:
        await bench.press("t", "s")
        bench.bench.prompt.input.value = ""
        await bench.type("[1, :, 3]")
        assert _shown(bench)[-1] == " [1,0,3]    15  19  23"
        await bench.press("s")
        bench.bench.prompt.input.value = ""
        await bench.type("[7]")
        assert "dimension 0 has 2 elements, so 7 is out of range" in bench.footer
        assert _shown(bench)[-1] == " [1,0,3]    15  19  23"

    run(saved(tmp_path / "m.onnx", _weights(array)), flow)


def test_a_row_that_is_half_a_list_changes_nothing(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("t", "2", "e")
        bench.bench.prompt.input.value = ""
        await bench.type("[1.5, 2")
        assert "found the text [1.5, 2, which begins like JSON but is not" in bench.footer
        assert not len(bench.session.history)
        assert bench.bench.prompt.is_asking
        bench.bench.prompt.input.value = ""
        await bench.type("[1.5, 2]")
        await bench.settle()
        assert "1.5" in bench.text

    run(saved(tmp_path / "m.onnx", _weights(numpy.zeros((3, 2), numpy.float32))), flow)


def test_statistics_stand_beside_a_histogram(tmp_path: Path) -> None:
    array = numpy.repeat(numpy.arange(4, dtype=numpy.float32), [1, 2, 4, 8])
    array = numpy.concatenate([array, numpy.array([numpy.nan], numpy.float32)])

    async def flow(found: Bench) -> None:
        await found.press("t", "S")
        lines = _shown(found)
        assert lines[2].startswith(" minimum  0  ")
        assert lines[3].startswith(" maximum  3  ")
        assert any(line.startswith(" zero     1 (6.2%)") for line in lines)
        assert any(line.startswith(" NaN      1 (6.2%)") for line in lines)
        assert any("█" in line for line in lines)
        assert any("quantiles of all elements:" in line and "50% 3" in line for line in lines)

    run(saved(tmp_path / "m.onnx", _weights(array)), flow, terminal=ASCII)


def test_external_data_is_read_where_it_is_and_a_missing_file_is_said_in_full(tmp_path: Path) -> None:
    array = numpy.arange(4096, dtype=numpy.float32)
    path = saved(tmp_path / "m.onnx", _weights(array))
    onnx.save(
        onnx.load(path), tmp_path / "e.onnx", save_as_external_data=True, location="e.bin", size_threshold=0
    )  # fmt: skip

    async def there(bench: Bench) -> None:
        await bench.press("t")
        assert "in e.bin" in _shown(bench)[1]
        assert _shown(bench)[5].split()[:3] == ["[10]", "10", "11"]

    async def gone(found: Bench) -> None:
        await found.press("t")
        said = " ".join([line.strip() for line in _shown(found)[2:4]])
        assert "the file is missing (No such file or directory); put it next to the model" in said

    run(tmp_path / "e.onnx", there)
    (tmp_path / "e.bin").rename(tmp_path / "other.bin")
    run(tmp_path / "e.onnx", gone, (80, 24))


def test_one_element_a_range_and_a_row_are_edited_at_the_cursor(tmp_path: Path) -> None:
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)

    async def flow(bench: Bench) -> None:
        def commands() -> str:
            return bench.session.history.made[-1].commands[0]

        prompt = bench.bench.prompt
        await bench.press("t", "j", "l", "l", "e")
        assert prompt.input.value == "6.0"
        assert "[1,2] =" in bench.text
        prompt.input.value = "0.5"
        await bench.press("enter")
        assert commands() == "set-tensor w 0.5 --at 1,2"
        assert _shown(bench)[-2] == " [1,:]     4    5  0.5    7"
        await bench.press("h", "h", "2", "e")
        assert prompt.input.value == "[4.0, 5.0]"
        prompt.input.value = "9"
        await bench.press("enter")
        assert commands() == "set-tensor w 9 --at 1,0:2"
        await bench.press("k", "9", "e")
        assert prompt.input.value == "[0.0, 1.0, 2.0, 3.0]"
        prompt.input.value = "[1, 1, 1, 1]"
        await bench.press("enter")
        assert commands() == "set-tensor w '[1, 1, 1, 1]' --at 0,0:4"
        assert len(bench.session.history) == 3
        await bench.press("u", "u", "u")
        assert not bench.session.is_changed
        await bench.press("e", "enter")
        assert not bench.session.is_changed
        await bench.press("S")
        assert "maximum" in bench.text
        # Keys still mean the value where the cursor was.
        await bench.press("e")
        assert prompt.input.value == "0.0"
        await bench.press("escape")

    run(saved(tmp_path / "m.onnx", _weights(array)), flow, (120, 40))


def test_values_that_do_not_fit_stay_in_the_prompt(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        prompt = bench.bench.prompt
        await bench.press("t", "j", "4", "e")
        for typed, reason in (("[1, 2, 3]", "expected int8[4]"), ("[1,", "expected JSON"), ("300", "int8")):
            prompt.input.value = typed
            await bench.press("enter")
            assert reason in bench.text
            assert (prompt.is_asking, prompt.input.value) == (True, typed)
        prompt.input.value = "7"
        await bench.press("enter")
        assert bench.session.history.made[-1].commands == ("set-tensor w 7 --at 1,0:4",)

    run(saved(tmp_path / "m.onnx", _weights(numpy.arange(12, dtype=numpy.int8).reshape(3, 4))), flow, (120, 40))


def test_a_constant_that_is_chosen_in_the_palette_shows_its_values(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("ctrl+p", "w", "enter")
        assert "[Tensor w]" in found.text

    run(saved(tmp_path / "m.onnx"), flow)


def test_a_page_without_a_tensor_has_nothing_to_edit(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f5", "e")
        assert "there is no constant to edit here" in found.footer

    run(saved(tmp_path / "m.onnx"), flow)


def test_the_cell_moves_over_all_columns_and_stands_out_alone(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("t", *"lllll")
        page = bench.bench.drawer.find(TensorPage)
        assert (page.cell, page.column) == (5, 0)
        line = bench.bench.drawer.lines.rows.line(bench.bench.drawer.lines.cursor, 78)
        assert [span.text.strip() for span in line if span.style == "cell"] == ["5"]
        await bench.press("6", "0", "l")
        assert (page.cell, page.column > 0) == (39, True)
        await bench.press("4", "0", "h")
        assert (page.cell, page.column) == (0, 0)

    array = numpy.arange(120, dtype=numpy.float32).reshape(3, 40)
    run(saved(tmp_path / "m.onnx", _weights(array)), flow, (80, 24))


def test_a_tensor_that_goes_says_so(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.bench.go("/graph/node/1")
        await bench.press("t")
        page = bench.bench.drawer.page
        assert isinstance(page, TensorPage)
        assert page.ref is not None
        bench.bench.focus_pane("nodes")
        await bench.press(":")
        await bench.type("rewire @/graph/node/1 1 a")
        await bench.press(":")
        await bench.type("remove-unused")
        if bench.session.model.graph is not None and not bench.session.model.graph.initializer:
            assert "was removed" in _shown(bench)[0]

    run(saved(tmp_path / "m.onnx", small()), flow)


def test_of_several_tensors_one_is_chosen(tmp_path: Path) -> None:
    model = model_of("""g (float[4] x) => (float[4] y)
    <float[4] one = {1, 2, 3, 4}, float[4] two = {5, 6, 7, 8}> { y = Sum(x, one, two) }""")

    async def flow(bench: Bench) -> None:
        await bench.press("t")
        assert "Which tensor?" in bench.text
        await bench.press("down", "enter")
        assert _shown(bench)[0].startswith(" two  float32[4]")
        bench.bench.focus_pane("nodes")
        await bench.press("t")
        await bench.press("end", "escape")
        assert _shown(bench)[0].startswith(" two ")

    run(saved(tmp_path / "m.onnx", model), flow)


def test_sparse_constants_show_their_places(tmp_path: Path) -> None:
    from onnxjson.model.document import SparseTensor

    values = from_numpy(numpy.array([1.5, 2.5], numpy.float32), "w")
    sparse = SparseTensor(values, from_numpy(numpy.array([1, 7], numpy.int64)), (2, 4))
    graph = Graph((_RELU,), "g", sparse_initializer=(sparse,), output=(ValueInfo("y"),))
    model = Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph)

    async def flow(found: Bench) -> None:
        await found.press("t")
        lines = _shown(found)
        assert "sparse float32[2] of [2, 4]" in lines[0]
        assert lines[-2:] == [" [0,1]  1.5", " [1,3]  2.5"]

    run(saved(tmp_path / "m.onnx", model), flow)


# Operators and drawings


def test_the_documentation_of_an_operator_is_wrapped_for_the_screen(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("g", "D")
        assert isinstance(bench.app.screen, TextScreen)
        assert "Relu, since opset 14" in bench.text
        await bench.press("q")
        assert not isinstance(bench.app.screen, TextScreen)

    run(saved(tmp_path / "m.onnx"), flow)


def test_a_function_documents_itself(tmp_path: Path) -> None:
    model = model_of("""g (float[4] x) => (float[4] y) { y = local.Block <alpha = 0.5> (x) }
    <domain: "local", opset_import: ["" : 20]>
    Block <alpha> (X) => (Y) { Y = LeakyRelu <alpha: float = @alpha> (X) }""")

    async def flow(bench: Bench) -> None:
        await bench.press("g", "D")
        assert "local::Block, a function of the model" in bench.text
        assert "Y = local::Block(X)" in bench.text
        assert "alpha" in bench.text

    run(saved(tmp_path / "m.onnx", model), flow)


def test_an_operator_that_nobody_knows_says_so(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("g", "D")
        assert "Unheard is neither an operator" in found.text

    run(saved(tmp_path / "m.onnx", model_of("g (float[4] x) => (float[4] y) { y = Unheard(x) }")), flow)


def test_boxes_that_do_not_fit_into_the_window_are_counted_at_its_edge(tmp_path: Path) -> None:
    takers = "\n".join(f"y{place} = Relu(a)" for place in range(30))
    model = model_of(f"g (float[N,4] x) => (float[N,4] y0) {{ a = Neg(x)\n {takers} }}")

    async def flow(bench: Bench) -> None:
        await bench.press("Z", "g", "g", "1", "M")
        row = next(line.strip("│ ") for line in bench.lines if "Relu]" in line)
        parts = re.fullmatch(r"< (\d+) +((?:\[\d+ Relu\] +)+)(\d+) >", row)
        assert parts is not None
        assert int(parts[1]) + parts[2].count("[") + int(parts[3]) == 30
        await bench.press("j", *["l"] * 30)
        row = next(line.strip("│ ") for line in bench.lines if "Relu]" in line)
        assert row.startswith("< ")
        assert row.endswith("[30 Relu]")

    run(saved(tmp_path / "m.onnx", model), flow, (80, 24))


# Outline


def test_a_model_can_be_saved_that_was_looked_at(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")

    async def flow(found: Bench) -> None:
        await found.press("t", "S", "f5", "ctrl+s")

    before = onnxjson.load(path)
    run(path, flow)
    assert onnxjson.load(path) == before


def test_a_tensor_of_an_unknown_dtype_says_so(tmp_path: Path) -> None:
    model = Model(
        ir_version=10,
        graph=Graph(
            (Node(("w",), ("y",), None, "Relu"),), "g", (Tensor((2,), data_type=99, raw_data=b"ab", name="w"),)
        ),
    )

    async def flow(bench: Bench) -> None:
        await bench.press("t")
        assert "dtype(99)" in _shown(bench)[0]
        assert "cannot be read" in _shown(bench)[2]

    run(saved(tmp_path / "m.onnx", model), flow)


def test_costs_are_a_column_until_the_model_changes(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("g", "n", "5")
        rows = [bench.bench.nodes.rows.line(place, 60) for place in range(5)]
        lines = ["".join([span.text for span in row]) for row in rows]
        assert [line[-9:].strip() for line in lines if "Conv" in line or "Gemm" in line] == ["4.608 k", "1.28 k"]
        assert {len(line) for line in lines} == {60}
        assert "MACs, N=2" in bench.footer
        await bench.press(":")
        await bench.type("costs N=4")
        assert "9.216 k" in bench.text
        await bench.press(":")
        await bench.type("costs M=4")
        assert 'no dimension "M"' in bench.footer
        await bench.press(":")
        await bench.type("costs N=x")
        assert "written as N=8" in bench.footer
        await bench.press(":")
        await bench.type("set-attribute op:LeakyRelu alpha 0.5")
        assert "9.216 k" not in bench.text

    onnxjson.save(onnxjson.from_proto(make_example()), tmp_path / "m.onnx")
    run(tmp_path / "m.onnx", flow)


def test_numbers_of_a_run_are_columns_and_the_cursor_goes_to_the_first_difference(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("g", "n", "1")
        assert bench.lines[1].split()[-4:] == ["ms", "min", "max", "mean"]
        assert re.search(r"Relu .* [\d.]+ +0 +[\d.]+ +[\d.]+$", bench.lines[2].rstrip("▁█ "))
        assert "numbers of 4 nodes" in bench.footer
        await bench.press(":")
        await bench.type("set-tensor w --at 3 9")
        assert "mean" not in bench.lines[1]
        await bench.press("g", "n", "3")
        assert bench.bench.here is not None
        assert bench.bench.here.node.op_type == "Add"
        assert "diff" in bench.lines[1]
        assert "first node that differs" in bench.footer
        await bench.press("M")
        assert "colour: diff" in bench.lines[0]
        await bench.press("escape", "g", "n", "5")
        assert "MACs     diff" in bench.lines[1]
        await bench.press("g", "n", "6")
        assert "diff" not in bench.lines[1]
        await bench.press(":")
        await bench.type("numbers nothing.npy")
        assert "'nothing.npy' does not exist" in bench.footer
        bench.session.discard()

    run(saved(tmp_path / "m.onnx"), flow, (80, 24))
