"""What a second new user met on models of TorchScript, with the keys that were pressed."""

import asyncio
from pathlib import Path
from typing import Any

import onnx
import pytest
from textual import events

from onnxjson import edits
from onnxjson.rendering.tables import plain
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.shell.jobs import Jobs
from tests.editing.graphs import model_of
from tests.tui.benches import SMALL, Bench, bench, run_small
from tests.tui.sessions import saved
from tests.tui.test_form_screen import until
from tests.tui.test_key_order import Slow, burst, slow

__all__ = ["slow"]  # a fixture

MODELS = Path(__file__).parent.parent / "models"

CONSTANT = "g (float[4] x) => (float[4] y) { a = Neg(x) c = Constant<value = float {2.0}>() y = Mul(a, c) }"


def _copy(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes((MODELS / "encoder_ts.onnx").read_bytes())
    return path


def _node_title(found: Bench) -> str:
    return next(line for line in found.lines if line.lstrip(" ▌").startswith("node "))


def test_keys_that_wait_when_the_program_ends_are_dropped(tmp_path: Path) -> None:
    path = _copy(tmp_path)

    async def go() -> None:
        async with bench(path, SMALL) as found:
            found.session.edit(edits.SetMetadata(key="k", value="v"))
            await burst(found, "q", "w", *"jk" * 20)
            assert found.app.return_value == 0
        # The last of them may be delivered when the screens are gone.
        assert not found.app.screen_stack
        found.app.keys._waiting.append(events.Key("j", "j"))
        await found.app.keys._run()
        assert not found.app.keys._waiting

    asyncio.run(go())
    assert [each.key for each in onnx.load(path).metadata_props] == ["k"]


def test_escape_after_an_edit_leaves_no_types_of_the_model_before(tmp_path: Path, slow: Slow) -> None:
    text = "g (float[2,3] x) => (float[a,b] y) { a = Transpose<perm = [1,0]>(x) b = Relu(a) y = Neg(b) }"

    async def flow(found: Bench) -> None:
        await found.type(":set-attribute op:Transpose perm [0,1]")
        assert "f32[2,3]" in found.lines[3]
        slow("onnxjson_tui.rows.derived.read", 1.0)
        found.bench.do(next(each for each in found.bench.actions if each.id == "undo"))
        await found.pilot.press("escape")
        await found.settle()
        assert "cancelled" not in "".join(text for text, _ in found.bench.messages)
        assert "f32[3,2]" in found.lines[3]

    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_the_title_names_the_node_that_is_shown_after_a_step_upstream(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Softmax")
        for _ in range(3):
            await found.press("0", "g", "d")
            ref = found.bench.here
            assert ref is not None
            assert f"node {ref.position}  {ref.node.op_type}" in _node_title(found)
            assert plain(found.bench.inspector.rows.line(0, 70)).split()[0] in found.text

    run_small(_copy(tmp_path), flow)


def test_a_check_from_the_inspector_goes_to_the_drawer_that_hides_it(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        for key, pane in (("tab", "inspector"), ("C", "drawer")):
            await found.press(key)
            assert found.bench.pane == pane

    run_small(_copy(tmp_path), flow)


def test_a_second_check_is_not_called_cancelled(tmp_path: Path, slow: Slow) -> None:
    async def flow(found: Bench) -> None:
        slow("onnxjson_tui.pages.problems._onnx_findings", 0.3)
        page = found.bench.drawer.find(ProblemsPage)
        page.run_onnx_checks()
        await found.press("C")
        assert "cancelled" not in found.text
        assert "onnx finds no problems" in found.text

    run_small(_copy(tmp_path), flow)


def test_the_value_of_a_constant_node_is_shown_without_a_question(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Constant")
        await found.press("t")
        assert "Which tensor" not in found.text
        await found.press("e")
        await found.type("3")
        assert "set-tensor" in found.footer

    run_small(saved(tmp_path / "m.onnx", model_of(CONSTANT)), flow)


def test_a_form_needs_no_more_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def flow(found: Bench) -> None:
        await found.press("a")
        await found.type("set-batch-size")
        await until(found, lambda: "still needed: size" in found.text)
        start, started = Jobs.start, []

        def unanswered(jobs: Jobs, group: str, *rest: Any, **named: Any) -> Any:
            started.append(group)
            return start(jobs, group, *rest, **named) if group != "form" else None

        monkeypatch.setattr(Jobs, "start", unanswered)
        await found.press("3")
        await found.pilot.pause(0.5)
        assert started
        assert "still needed" not in found.text

    run_small(_copy(tmp_path), flow)


def test_the_palette_saves_as_another_file(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("ctrl+p")
        await found.type("save as")
        assert ":save-as" in found.text
        await found.type(str(tmp_path / "other.onnx"))
        assert (tmp_path / "other.onnx").exists()

    run_small(_copy(tmp_path), flow)


def test_a_regular_expression_may_end_where_a_name_ends(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type(r"/Softmax$/")
        ref = found.bench.here
        assert ref is not None
        assert ref.node.op_type == "Softmax"
        assert "match 1 of" in found.footer

    run_small(_copy(tmp_path), flow)


def test_a_search_takes_a_selector_unless_it_is_part_of_a_name(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("op:Mul")
        assert "op:Mul: match 1 of 1" in found.footer
        assert found.bench.here is not None
        assert found.bench.here.position == 2
        await found.press("/")
        await found.type("op:Conv")
        assert "no node matches op:Conv" in found.footer
        await found.press("/")
        await found.type("input:0")
        assert "match 1 of 1" in found.footer
        assert found.bench.here.position == 0

    text = CONSTANT.replace("a = Neg(x)", '"input:0" = Neg(x)').replace("Mul(a, c)", 'Mul("input:0", c)')
    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_what_follows_a_pattern_says_what_to_do_after_a_selector(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("op:Softmax")
        await found.press("g", "a")
        assert "v and V select nodes, and edits apply to all of them" in found.footer

    run_small(_copy(tmp_path), flow)


def test_the_title_counts_parameters_as_costs_and_diffs_do(tmp_path: Path) -> None:
    text = """g (bool c, float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, int64[1] one = {4}> {
        r = Reshape(x, one) a = Mul(r, w)
        y = If(c) <then_branch = t () => (float[4] p) <float[4] v = {1, 2, 3, 4}> { p = Add(a, v) },
                   else_branch = e () => (float[4] q) { q = Neg(a) }>
    }"""
    path = saved(tmp_path / "m.onnx", model_of(text))

    async def go() -> None:
        async with bench(path, (140, 24)) as found:
            assert "8 parameters" in found.lines[0]

    asyncio.run(go())
