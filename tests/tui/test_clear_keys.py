"""Keys that a person expects to work: from closing the drawer to a way through an invalid model."""

import asyncio
import threading
from pathlib import Path

import pytest

import onnxjson
from onnxjson.model.document import Model
from onnxjson.model.tensors import to_numpy
from onnxjson.rendering.tables import plain
from onnxjson.running.model_run import run_cases
from onnxjson_tui.shell.dialogs import PickerScreen
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run, run_small
from tests.tui.sessions import opened, saved

MODELS = Path(__file__).parent.parent / "models"

TRANSPOSED = """g (float[2,3] x, float[3,2] z) => (float[3,2] y) {
    a = Relu(x)
    b = Transpose<perm = [1, 0]>(a)
    y = Add(b, z)
}"""


def test_closing_a_drawer_that_fills_the_screen_shows_the_nodes_again(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f5", "+")
        assert "Relu" not in bench.text
        await bench.press("f5")
        assert "Relu" in bench.text

    run_small(saved(tmp_path / "m.onnx"), flow)


def _types(found: Bench) -> list[str]:
    rows = found.bench.nodes.rows
    return [plain(rows.line(number, 90)).split()[-1] for number in range(len(rows))]


def test_an_attribute_that_breaks_a_later_node_is_applied_by_a_second_enter(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", "e")
        await bench.press("enter")
        await bench.type("[0, 1]")
        assert not bench.session.is_changed
        assert "anyway" in bench.footer
        assert bench.bench.prompt.is_asking
        assert bench.bench.prompt.input.value == "[0, 1]"
        await bench.press("enter")
        assert bench.session.is_changed
        await bench.settle()
        assert "1 error" in bench.lines[0]
        assert plain(bench.bench.nodes.rows.line(2, 80)).startswith("!")
        await bench.press("escape", "ctrl+s")
        assert "The model has 1 error" in bench.text
        await bench.press("s", "u")
        assert not bench.session.is_changed

    run(saved(tmp_path / "m.onnx", model_of(TRANSPOSED)), flow)


def test_a_command_that_breaks_a_node_is_made_by_a_second_enter(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("set-attribute --node output:b perm [0,1]")
        assert not bench.session.is_changed
        assert "anyway" in bench.footer
        await bench.press("enter")
        assert bench.session.is_changed
        await bench.press("u")
        bench.session.discard()

    run(saved(tmp_path / "m.onnx", model_of(TRANSPOSED)), flow)


def test_a_chosen_value_that_breaks_a_node_is_asked_about(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("G", "0", "w")
        await bench.type("a")
        assert "It would break nodes" in bench.text
        await bench.press("y")
        assert bench.session.is_changed
        bench.session.discard()

    run(saved(tmp_path / "m.onnx", model_of(TRANSPOSED)), flow)


def test_focus_changes_no_layout() -> None:
    async def flow(bench: Bench) -> None:
        sizes = [each.size for each in (bench.bench.nodes, bench.bench.inspector)]
        for _ in range(3):
            await bench.press("tab")
            assert [each.size for each in (bench.bench.nodes, bench.bench.inspector)] == sizes

    for size in ((80, 24), (120, 35), (160, 45)):
        run(MODELS / "encoder_ts.onnx", flow, size)


def test_the_title_of_the_pane_with_the_focus_stands_out() -> None:
    async def flow(bench: Bench) -> None:
        def styles() -> list[object]:
            titles = [bench.bench.query_one(f"#{pane}-title").render_line(0) for pane in ("nodes", "inspector")]
            return [next(iter(title)).style for title in titles]

        first = styles()
        assert first[0] != first[1]
        await bench.press("tab")
        assert styles() == first[::-1]

    run_small(MODELS / "encoder_ts.onnx", flow)


def test_a_second_session_on_a_file_is_noticed_by_other_processes(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = saved(tmp_path / "m.onnx")
    code = (
        "import sys; from onnxjson_tui.session.session import Session; print(Session.open(sys.argv[1]).presence.notice)"
    )
    with opened(path):
        result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        assert "another onnxjson has this file open" in result.stdout
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


def test_a_refused_save_names_the_values_of_both_sides(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")

    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("set-attribute --node op:LeakyRelu alpha 0.5")
        with opened(path) as other:
            other.edit(onnxjson.edits.SetAttribute(node="op:LeakyRelu", attribute="alpha", value=0.25))
            other.save()
        await bench.press("ctrl+s")
        await bench.press("m")
        assert "LeakyRelu.alpha" in bench.text
        assert "ours 0.5" in bench.text
        assert "theirs 0.25" in bench.text
        await bench.press("b")
        bench.session.discard()

    run(path, flow)


def test_a_stray_letter_in_a_short_list_does_nothing_and_slots_have_their_own_numbers(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("G", "g", "d")
        assert isinstance(bench.app.screen, PickerScreen)
        await bench.press("x", "q", "2")
        assert isinstance(bench.app.screen, PickerScreen)
        assert "no match" not in bench.text
        assert "0 in[0] a" in bench.text
        await bench.press("1")
        assert bench.bench.here is not None
        assert bench.bench.here.node.op_type == "LeakyRelu"

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_preview_of_a_filter_finds_what_enter_finds(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f", *"LeakyRelu(Add)")
        assert len(bench.bench.nodes.rows) == 1
        await bench.press("enter")
        assert len(bench.bench.nodes.rows) == 1

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_e_after_statistics_means_the_cell(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", "t", "S", "l", "e")
        await bench.type("0.5")
        assert bench.session.is_changed
        assert bench.session.model.graph is not None
        assert to_numpy(bench.session.model.graph.initializer[0]).tolist() == [1.0, 0.5, 3.0, 4.0]
        bench.session.discard()

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_form_has_no_fields_for_scripts_and_begins_with_the_attribute_of_the_node(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", ":")
        await bench.type("edits set-attribute")
        labels = [line.strip("│ *").partition(" ")[0] for line in bench.lines]
        assert "node" in labels
        assert not {"expect", "if", "if-any"} & {label.lower() for label in labels}
        assert "perm" in bench.text
        assert "[1, 0]" in bench.text
        await bench.press("escape")

    run_small(saved(tmp_path / "m.onnx", model_of(TRANSPOSED)), flow)


def test_a_click_on_the_title_of_a_page_opens_it(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f5")
        line = next(number for number, text in enumerate(bench.lines) if "[Problems" in text)
        await bench.pilot.click(offset=(bench.lines[line].index("Tensor") + 1, line))
        await bench.settle()
        assert "[Tensor" in bench.text

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_numbers_of_a_run_do_not_hold_the_keys_and_appear_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onnxjson.running.node_numbers._TELLS", -1.0)
    may_end = threading.Event()

    def waiting(*words: object, **options: object) -> object:
        result = run_cases(*words, **options)  # type: ignore[arg-type]
        assert may_end.wait(60)
        return result

    monkeypatch.setattr("onnxjson.running.node_numbers.run_cases", waiting)

    async def flow(bench: Bench) -> None:
        await bench.pilot.press("g", "n", "1", "j")
        await bench.pilot.pause()
        assert bench.bench.nodes.cursor == 1
        while len(bench.session.figures.get("max", {})) < 4:  # all are measured, the run has not ended
            await asyncio.sleep(0.02)
        assert bench.bench.jobs.is_running("numbers")
        assert "ms" not in bench.session.figures
        await bench.pilot.press("k")
        assert bench.bench.nodes.cursor == 0
        may_end.set()
        await bench.settle()
        assert "ms" in bench.session.figures

    run(saved(tmp_path / "m.onnx"), flow)


def test_panes_begin_at_the_first_change_that_is_more_than_cleanup_and_take_alike_ones_at_once(tmp_path: Path) -> None:
    lines = "\n".join(f"i{each} = Identity(a)\n r{each} = Relu(i{each})" for each in range(8))
    outputs = ", ".join(f"float[4] r{each}" for each in range(8))
    text = f"g (float[4] x) => ({outputs}, float[4] y) {{ a = Neg(x)\n {lines}\n y = LeakyRelu<alpha = {{alpha}}>(a) }}"
    before = _named(model_of(text.replace("{alpha}", "0.1")))
    after = _named(model_of(text.replace("{alpha}", "0.2")))
    first, second = saved(tmp_path / "a.onnx", before), saved(tmp_path / "b.onnx", after)

    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type(f"compare {second}")
        await bench.press("v")
        assert "LeakyRelu" in bench.text
        await bench.press("escape", "escape")

    run(first, flow)


def _named(model: Model) -> Model:
    return model


def test_the_keys_fit_two_pages_of_a_small_terminal(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("question_mark")
        rows = bench.app.screen.query_one("#dialog-rows")
        assert len(rows.rows) <= 2 * rows.page  # type: ignore[attr-defined]
        assert "Every edit is a step" in bench.text

    run_small(saved(tmp_path / "m.onnx"), flow)
