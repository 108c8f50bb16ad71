"""Keys that a person expects to work: from closing the drawer to a way through an invalid model."""

import asyncio
import re
import threading
from pathlib import Path

import pytest
from textual.widgets import TextArea

import onnxjson
from onnxjson.merging.conflicted_files import open_session, save
from onnxjson.merging.merge import merge
from onnxjson.model.document import Node
from onnxjson.model.tensors import to_numpy
from onnxjson.rendering.tables import plain
from onnxjson.running.model_run import run_cases
from onnxjson.storage import files
from onnxjson_tui.rows.choices import ChoiceRows
from onnxjson_tui.screens.conflicts import ConflictsScreen
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.screens.panes import PanesScreen
from onnxjson_tui.shell.dialogs import PickerScreen
from onnxjson_tui.shell.keyed import EXPLAINS
from onnxjson_tui.widgets.lines import Bar, LineList
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run, run_small
from tests.tui.screens import TERMINAL, shown
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
    text = f"g (float[4] x) => ({outputs}, float[4] y) {{ a = Neg(x)\n {lines}\n y = LeakyRelu<alpha = 0.1>(a) }}"
    other = re.sub("i[0-9] = Identity.a.", "", text)
    first = saved(tmp_path / "a.onnx", model_of(text))
    second = saved(tmp_path / "b.onnx", model_of(re.sub("Relu.i[0-9].", "Relu(a)", other).replace("0.1", "0.2")))

    async def flow(bench: Bench) -> None:
        await bench.press("c")
        await bench.type(str(second))
        await bench.press("v")
        screen = bench.app.screen
        assert isinstance(screen, PanesScreen)
        assert screen.row is not None
        assert "LeakyRelu" in plain(screen.rows.rows.line(screen.rows.cursor, 118))
        folded = [number for number, row in enumerate(screen.panes.rows if screen.panes else ()) if len(row.places) > 7]
        assert len(folded) == 1
        assert "16 rows  inserted Identity" in bench.text
        await bench.press("g", "g")
        while screen.rows.cursor != folded[0]:
            await bench.press("j")
        await bench.press("d", "o")
        assert sum(node.op_type == "Identity" for node in nodes(bench)) == 0
        await bench.press("u", "escape", "escape")

    run(first, flow, (120, 35))


def nodes(bench: Bench) -> tuple[Node, ...]:
    graph = bench.session.model.graph
    assert graph is not None
    return graph.node


def test_one_key_chooses_a_side_for_all_conflicts_alike(tmp_path: Path) -> None:
    lines = "\n".join(f"v{each} = LeakyRelu<alpha = 0.1>(x)" for each in range(4))
    text = f"g (float[4] x) => (float[4] v0, float[4] v1, float[4] v2, float[4] v3, float[4] y) {{ {lines}\n"
    base, ours, theirs = [
        model_of(f"{text} y = Softmax<axis = {axis}>(x) }}".replace("0.1", alpha))
        for axis, alpha in (("0", "0.1"), ("-1", "0.2"), ("1", "0.3"))
    ]
    merged = merge(base, ours, theirs)
    path = tmp_path / "m.onnx.json"
    save(merged.model, merged.conflicts, path, files.format_for(path))
    resolution = open_session(path)

    async def go() -> None:
        async with shown(ConflictsScreen(resolution, TERMINAL), (80, 24)) as found:
            assert "5 conflicts of 5 left" in found.text
            await found.press("T")
            assert "1 conflict of 5 left" in found.text
            await found.press("u")
            assert len(resolution.choices) < 4

    asyncio.run(go())


def test_types_that_no_model_states_are_dimmed_in_the_list_and_in_the_inspector() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("Z", *"/Softmax", "enter")
        line = bench.bench.nodes.rows.line(bench.bench.nodes.cursor, 118)
        assert [span.style for span in line if "f32[batch," in span.text] == ["quiet"]
        assert any(row.lstrip().startswith("out 0 (f32[batch,") for row in bench.lines)

    run(MODELS / "encoder_ts.onnx", flow, (120, 35))


def test_names_are_cut_only_between_their_parts(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[4] y) { " + "".join(
        f'["node_silu_{each}"] v{each} = Sigmoid({f"v{each - 1}" if each else "x"}) ' for each in range(4)
    )

    async def flow(bench: Bench) -> None:
        for each in range(4):
            assert f"node_silu_{each}" in bench.text

    run_small(saved(tmp_path / "m.onnx", model_of(text + "y = Relu(v3) }")), flow)


def test_forms_have_no_empty_lines_and_common_dtypes_first(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("a")
        await bench.type("Cast")
        await bench.press("enter") if isinstance(bench.app.screen, PickerScreen) else None
        assert isinstance(bench.app.screen, FormScreen)
        assert all(each.size.height <= max(len(each.text.splitlines()), 1) for each in bench.app.screen.query(TextArea))
        await bench.press("escape", "a")
        await bench.type("cast-tensor")
        await bench.press("down", "tab")
        rows = bench.app.screen.query_one(LineList).rows
        assert isinstance(rows, ChoiceRows)
        assert [choice.key for choice in rows.choices[:2]] == ["float32", "float16"]
        await bench.press("escape", "escape")

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_footer_names_runs_and_passes_and_the_first_passes_are_of_several_packages(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        assert {"a add", "gn run"} <= set(re.split("  +", bench.lines[-1].strip()))
        await bench.press("p")
        assert sum("onnxoptimizer" in line for line in bench.lines) <= 2
        assert "single rules" in bench.text
        await bench.press("escape")

    async def wide(bench: Bench) -> None:
        assert {"gn run", "t tensor", "p pass"} <= set(re.split("  +", bench.lines[-1].strip()))

    run_small(saved(tmp_path / "m.onnx"), flow)
    run(tmp_path / "m.onnx", wide, (120, 35))


def test_nodes_that_do_not_differ_have_no_number(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("set-tensor w --at 3 9")
        await bench.press("g", "n", "3")
        assert "diff" in bench.lines[1]
        rows = [line for line in bench.lines[2:6] if "Relu" in line or "Add" in line]
        assert len(rows) > 1
        assert [column(line) for line in rows].count("") >= 1
        assert any(column(line) for line in rows)
        bench.session.discard()

    def column(line: str) -> str:
        return line.rstrip("▁█ ")[-45:-36].strip()

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_keys_that_can_follow_are_whole(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("g")
        await bench.pilot.pause(EXPLAINS + 0.1)
        following = bench.bench.query_one("#following", Bar)
        assert following.visible
        assert "…" not in following.text
        await bench.press("escape")

    run_small(saved(tmp_path / "m.onnx"), flow)
