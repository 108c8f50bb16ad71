"""What changed, as a person sees it: the page of the drawer, the screen, passes before they are taken."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual import events

import onnxjson
from onnxjson.editing.applying import run as run_edits
from onnxjson.editing.declaration import name_of
from onnxjson.editing.spelling import parse_line
from onnxjson.model.types import format_type
from onnxjson.optimizing.passes.catalogue import Entry, Option
from onnxjson_tui.screens.comparison import ComparisonScreen
from onnxjson_tui.screens.comparisons import comparison_of_files
from onnxjson_tui.screens.passes import spec_offers
from onnxjson_tui.workbench.commands import run_line
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run_small
from tests.tui.screens import ASCII, TERMINAL, Shown, shown
from tests.tui.sessions import bytes_of, saved, small

EDIT = "set-attribute op:LeakyRelu alpha 0.5"


def other(path: Path, *lines: str) -> Path:
    return saved(path, run_edits(small(), [parse_line(line) for line in lines]).model)


async def command(found: Bench, line: str) -> None:
    run_line(found.bench, line)
    await found.settle()


async def finished(bench: Bench) -> ComparisonScreen:
    """The comparison on top, when it has something to show."""
    screen = bench.app.screen
    assert isinstance(screen, ComparisonScreen)
    for _ in range(1200):
        await bench.pilot.pause(0.05)
        if not screen.jobs.running:
            break
    await bench.pilot.pause(0.2)
    return screen


def test_braces_go_from_change_to_change(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("}")
        assert "changed since the last save" in bench.footer
        await command(bench, EDIT)
        bench.bench.go("/graph/node/3")
        await bench.press("{")
        assert bench.bench.here is not None
        assert bench.bench.here.position == 2
        await bench.press("}")
        assert "wrapped around" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_unsaved_changes_fill_the_screen_and_a_place_leads_to_the_node(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await command(bench, EDIT)
        await bench.press("c")
        screen = await finished(bench)
        assert "attribute alpha: 0.01 (default) -> 0.5" in bench.text
        await bench.pilot.press("t")
        await finished(bench)
        assert '+    "alpha": 0.5' in bench.text
        await bench.pilot.press("j", "enter")
        await bench.settle()
        assert bench.app.screen is bench.bench
        assert not screen.is_attached
        assert bench.bench.here is not None
        assert bench.bench.here.position == 2

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_another_file_is_compared(tmp_path: Path) -> None:
    path = other(tmp_path / "other.onnx", "delete-node op:Relu --bypass 0")

    async def flow(bench: Bench) -> None:
        await command(bench, f"compare {path}")
        screen = await finished(bench)
        assert "3 -> 4 nodes (+1)" in bench.text
        assert "+ ▾ inserted" in bench.text
        await bench.pilot.press("o")
        await bench.settle()
        assert bench.app.screen is bench.bench
        assert bench.bench.here is not None
        assert bench.bench.here.node.op_type == "Relu"
        assert screen is not None

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_bar_says_what_enter_does_with_the_row_and_how_a_rewrite_is_proved(tmp_path: Path) -> None:
    path = other(tmp_path / "other.onnx", "delete-node op:Relu --bypass 0")

    async def flow(bench: Bench) -> None:
        await command(bench, f"compare {path}")
        screen = await finished(bench)
        about = bench.lines[screen.about.region.y + 1 :]
        assert about[0].startswith(" inserted  ")
        assert about[0].rstrip().endswith("not verified")
        assert " p runs both sides" in about
        assert "enter fold " in bench.lines[-1]
        for key, word in (("enter", "unfold"), ("enter", "fold"), ("j", "go there"), ("k", "fold")):
            await bench.pilot.press(key)
            await bench.pilot.pause()
            assert f"enter {word} " in bench.lines[-1]
        await bench.pilot.press("g", "g")
        await bench.pilot.pause()
        assert "enter" not in bench.lines[-1]

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_file_that_is_not_there_is_said_and_can_be_left(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await command(bench, f"compare {tmp_path / 'gone.onnx'}")
        await finished(bench)
        assert "gone.onnx" in "".join([line.strip() for line in bench.lines])
        await bench.pilot.press("q")
        await bench.settle()
        assert bench.app.screen is bench.bench

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_keys_that_come_faster_than_the_screen_goes_close_only_that_screen(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        run_line(bench.bench, f"compare {bench.session.opened.path}")
        await bench.pilot.pause(0.1)
        screen = bench.app.screen
        assert isinstance(screen, ComparisonScreen)
        for _ in range(4):
            screen.post_message(events.Key("q", "q"))
        await bench.settle()
        assert bench.app.screen is bench.bench
        assert bench.app.is_running

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_pass_shows_what_it_did_and_is_one_step_when_it_is_taken(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        before = bytes_of(bench.session.model)
        await command(bench, "run-pass prune")
        await finished(bench)
        # It changed nothing, so that there is nothing to take.
        assert "a apply" not in bench.text
        await bench.pilot.press("a")
        await bench.pilot.pause()
        assert "there is nothing to apply here" in bench.text
        await bench.pilot.press("q")
        await bench.settle()
        assert bytes_of(bench.session.model) == before
        await command(bench, "run-pass name-nodes")
        await finished(bench)
        assert "= ▾ renamed" in bench.text
        assert " a apply" in bench.text
        await bench.pilot.press("a")
        await bench.settle()
        assert bytes_of(bench.session.model) != before
        assert "optimize -p name-nodes" in bench.footer
        assert len(bench.session.history) == 1
        await bench.press("u")
        assert bytes_of(bench.session.model) == before

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_types_follow_what_a_pass_changed(tmp_path: Path) -> None:
    text = """g (float[2,3,4] x) => (float[4,2,3] y) <float[4,2,3] t> {
        t = Transpose<perm = [2, 0, 1]>(x)
        y = Relu(t)
    }"""
    turn = tmp_path / "turn.py"
    turn.write_text(
        "def optimize(model):\n    model.graph.node[0].attribute[0].ints[:] = [0, 1, 2]\n    return model\n"
    )

    async def flow(bench: Bench) -> None:
        await command(bench, f"run-pass {turn}")
        await finished(bench)
        assert "float32[4,2,3] -> float32[2,3,4]" in bench.text
        await bench.pilot.press("a")
        await bench.settle()
        graph = bench.session.model.graph
        assert graph is not None
        types = {each.name: format_type(each.type) for each in (*graph.value_info, *graph.output) if each.type}
        assert types == {"t": "float32[2,3,4]", "y": "float32[2,3,4]"}
        await bench.press("u")
        assert bench.session.model == onnxjson.load(tmp_path / "m.onnx")

    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_a_pass_that_is_an_edit_is_the_same_step(tmp_path: Path) -> None:
    """Its types are those of the edit, although inference knows less than the output states."""
    text = """g (float[N,4] x, int64[2] s, float[4,9] w, float[9] b) => (float[Gemm1_dim_0,9] y) {
        a = Reshape(x, s)
        y = Gemm(a, w, b)
    }"""

    async def flow(bench: Bench) -> None:
        await command(bench, "run-pass prefix{prefix=p_}")
        await finished(bench)
        await bench.pilot.press("a")
        await bench.settle()
        (step,) = bench.session.history.made
        assert [name_of(each) for each in step.edits] == ["prefix"]

    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_a_pass_sees_what_is_not_saved(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await command(bench, EDIT)
        await command(bench, "run-pass name-nodes")
        screen = await finished(bench)
        assert screen.compared is not None
        assert screen.compared.base.model is bench.session.model
        assert screen.compared.target.model.graph is not None
        assert screen.compared.target.model.graph.node[2].attribute

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_pass_that_crashes_or_hangs_is_said_and_the_model_stays(tmp_path: Path) -> None:
    crash, hang = tmp_path / "crash.py", tmp_path / "hang.py"
    crash.write_text("import os\ndef optimize(model):\n    os.abort()\n")
    hang.write_text("import time\ndef optimize(model):\n    time.sleep(600)\n")

    async def flow(bench: Bench) -> None:
        model = bench.session.model
        await command(bench, f"run-pass {crash}")
        await finished(bench)
        assert "crashed" in bench.text.replace("\n", " ")
        await bench.pilot.press("escape")
        await bench.settle()
        run_line(bench.bench, f"run-pass {hang}")  # without `settle`, which would wait for its end
        for _ in range(200):
            await bench.pilot.pause(0.05)
            screen = bench.app.screen
            if not isinstance(screen, ComparisonScreen):
                continue
            pipeline = getattr(screen._work, "__self__")._pipeline  # noqa: B009 - mypy does not know bound methods
            if pipeline is not None and pipeline._worker._server is not None:
                break
        server = pipeline._worker._server.process
        await bench.pilot.press("escape")
        await bench.settle()
        assert bench.app.screen is bench.bench
        assert server.wait(10) == 0
        assert bench.session.model is model

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_line_that_spells_no_pass_says_what_would(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await command(bench, "run-pass onnxsimm")
        assert "onnxsim" in bench.footer
        assert bench.app.screen is bench.bench

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_session_that_is_read_only_sees_what_a_pass_would_do_and_takes_nothing(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        model = bench.session.model
        await command(bench, "run-pass name-nodes")
        await finished(bench)
        assert "a apply" not in bench.text
        await bench.pilot.press("a")
        await bench.pilot.pause()
        assert "there is nothing to apply here" in bench.text
        assert bench.session.model is model

    run_small(saved(tmp_path / "m.onnx"), flow, readonly=True)


def test_passes_are_picked_and_their_options_put_in(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("p")
        await bench.pilot.press(*"onnxslim", "enter")
        await bench.pilot.pause(0.3)
        assert "options: " in bench.text
        await bench.pilot.press("{", "n", "o", "=", "1", "enter")
        await bench.pilot.pause()
        assert 'no option "no"' in bench.text
        await bench.pilot.press(*["backspace"] * 5, "*", "enter")
        screen = await finished(bench)
        assert screen.compared is not None

    run_small(saved(tmp_path / "m.onnx"), flow)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("onnxsim", "onnxsim{fold="),
        ("onnxsim*", "onnxsim{fold="),
        ("onnxsim{}", "onnxsim{fold="),
        ("onnxsim{check=2}*", "onnxsim{check=2,fold="),
    ],
)
def test_an_option_goes_into_the_braces(line: str, expected: str) -> None:
    fold = Option("fold", "true or false", "", required=False, default=None, choices=())
    assert spec_offers(Entry("pass", "onnxsim", "", (fold,), None, None), line) == [expected]


async def two(tmp_path: Path, flow: Callable[[Shown[ComparisonScreen]], Awaitable[None]], *lines: str) -> None:
    base, target = saved(tmp_path / "a.onnx"), other(tmp_path / "b.onnx", *lines)
    async with shown(comparison_of_files(str(base), str(target), TERMINAL)) as found:
        await flow(found)


def test_two_files_are_compared_and_filtered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def flow(shown: Shown[ComparisonScreen]) -> None:
        assert "a.onnx" in shown.lines[0]
        assert "b.onnx" in shown.lines[0]
        await shown.press("z", "M")
        assert len(shown.first.difference.starts) == 2  # type: ignore[union-attr]
        await shown.press("f")
        await shown.type("op:Relu")
        assert "1 row left out" in shown.text
        assert shown.first.shown.wanted == "op:Relu"
        await shown.press("f", "ctrl+u", "enter")
        await shown.press("g", "g", "]", "c")
        first = shown.first.rows.cursor
        await shown.press("}")
        assert shown.first.rows.cursor > first
        await shown.press("}", "}")
        assert "that was the last change" in shown.text

    asyncio.run(two(tmp_path, flow, EDIT, "delete-node op:Relu --bypass 0"))


def test_both_sides_of_rewrites_are_run_when_asked(tmp_path: Path) -> None:
    async def flow(found: Shown[ComparisonScreen]) -> None:
        await found.press("p")
        assert "DIFFERENT RESULTS" in found.text

    asyncio.run(two(tmp_path, flow, "delete-node op:Relu --bypass 0"))


def test_a_place_of_two_files_opens_the_second_one_there(tmp_path: Path) -> None:
    async def flow(shown: Shown[ComparisonScreen]) -> None:
        await shown.press("o")
        await shown.pilot.pause(0.3)
        from onnxjson_tui.shell.workbench import Workbench

        screen = shown.app.screen
        assert isinstance(screen, Workbench)
        assert screen.session.opened.name.endswith("b.onnx")
        assert screen.here is not None
        assert screen.here.position == 2
        assert screen.session in shown.app.sessions
        screen.session.close()

    asyncio.run(two(tmp_path, flow, EDIT))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (160, 45)])
def test_every_size_has_room(tmp_path: Path, size: tuple[int, int]) -> None:
    base, target = saved(tmp_path / "a.onnx"), other(tmp_path / "b.onnx", EDIT, "delete-node op:Relu --bypass 0")

    async def go() -> None:
        async with shown(comparison_of_files(str(base), str(target), ASCII), size) as found:
            await found.press("t", "?")
            assert "Keys" in found.text
            await found.press("escape", "s", "tab", "j", "G", "tab", "q")

    asyncio.run(go())


def test_models_with_hostile_names_are_compared(tmp_path: Path) -> None:
    model = small()
    hostile = "[/b]\x1b[31m[@click=app.bell]x\u202e\n" + "y" * 300
    graph = model.graph
    assert graph is not None
    node = onnxjson.model.document.Node(op_type="Relu", input=("y",), output=(hostile,), name=hostile)
    changed = onnxjson.model.document.Model(
        **{name: getattr(model, name) for name in ("ir_version", "opset_import")},
        graph=onnxjson.model.document.Graph(
            name=hostile,
            node=(*graph.node, node),
            input=graph.input,
            output=graph.output,
            initializer=graph.initializer,
        ),
    )
    base, target = saved(tmp_path / "a.onnx", model), saved(tmp_path / "b.onnx", changed)

    async def go() -> None:
        async with shown(comparison_of_files(str(base), str(target), TERMINAL)) as found:
            for key in ("t", "z", "R", "}", "}", "t", "}", "tab", "j", "G", "tab", "s", ".", "."):
                await found.pilot.press(key)
            await found.settle()
            assert "\x1b" not in found.text
            assert "\u202e" not in found.text

    asyncio.run(go())
