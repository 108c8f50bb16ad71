"""What is drawn anew after a change, and what is left as it is."""

from pathlib import Path

import pytest
from rich.color import ColorSystem

from onnxjson import edits
from onnxjson.model.document import Graph, Model, Node, OperatorSetId, ValueInfo
from onnxjson.model.types import parse_type
from onnxjson_tui.session.following import lanes_differ
from onnxjson_tui.shell.frames import Frames
from onnxjson_tui.shell.keyed import AWAITS
from onnxjson_tui.shell.terminal import ANSI, DARK
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run
from tests.tui.screens import TERMINAL
from tests.tui.screenshots import keys as pressed
from tests.tui.sessions import opened, saved

ENCODER = Path(__file__).parent.parent / "models" / "encoder_ts.onnx"


def scoped() -> Model:
    """Three nodes in two scopes."""
    return chain(
        ("/one/first", "Relu", "x", "a"), ("/one/second", "Neg", "a", "b"), ("/two/third", "LeakyRelu", "b", "y")
    )


def chain(*nodes: tuple[str, str, str, str]) -> Model:
    said = parse_type("float[4]")
    graph = Graph(
        tuple([Node((taken,), (made,), name, operator) for name, operator, taken, made in nodes]),
        "g",
        input=(ValueInfo("x", said),),
        output=(ValueInfo("y", said),),
    )
    return Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph)


@pytest.mark.parametrize(
    ("edit", "differ"),
    [
        (edits.SetAttribute(node="/two/third", attribute="alpha", value=0.5), False),
        (edits.Rename(kind="node", from_="/one/first", to="/one/other"), False),
        (edits.Rename(kind="node", from_="/one/first", to="/two/first"), False),
        (edits.Rewire(node="/two/third", input=0, tensor="a"), True),
        (edits.Rename(kind="tensor", from_="b", to="c"), True),
    ],
)
def test_lanes_are_found_again_where_they_differ(tmp_path: Path, edit: edits.Edit, differ: bool) -> None:
    with opened(saved(tmp_path / "m.onnx", scoped())) as session:
        assert session.index.scopes
        changed = session.edit(edit)
        assert changed is not None
        assert not changed.is_restructured
        assert lanes_differ(changed.patch.root) == differ


def test_keys_that_begin_something_are_shown_when_the_person_waits(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("1")
        await bench.pilot.pause(AWAITS + 0.05)
        assert bench.lines[-1].rstrip().endswith(" 1")
        await bench.press("2")
        await bench.pilot.pause(AWAITS + 0.05)
        assert bench.lines[-1].rstrip().endswith(" 12")
        await bench.press("escape")
        assert bench.lines[-1].rstrip().endswith("? keys")

    run(saved(tmp_path / "m.onnx", scoped()), flow)


INNER = """g (bool c, float[4] x) => (float[4] y) {
    a = Relu(x)
    y = If (c) <
        then_branch = yes () => (float[4] t) { s = Neg(a) t = LeakyRelu<alpha = 0.1>(s) },
        else_branch = no () => (float[4] e) { r = Exp(a) e = LeakyRelu<alpha = 0.2>(r) }
    >
    z = Neg(y)
    v = Abs(z)
}"""


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize("keys", ["jgs", "fop:If⏎gs"])
def test_undo_of_a_step_in_another_graph_shows_that_graph(tmp_path: Path, size: tuple[int, int], keys: str) -> None:
    async def listed(found: Bench) -> list[str]:
        await found.settle()
        rows = found.bench.nodes.rows
        return ["".join([span.text for span in rows.line(number, 60)]) for number in range(len(rows))]

    async def flow(bench: Bench) -> None:
        outer = await listed(bench)
        await bench.press(*pressed(keys), "enter")
        inner = await listed(bench)
        assert (len(outer), len(inner)) == (4, 2)
        # A comment moves no nodes, so that a list of the same graph is only looked at again.
        await bench.press("j", ":")
        await bench.type("set-doc inner --node .")
        await bench.press("-", "j", ":")
        await bench.type("set-doc outer --node .")
        await bench.press("g", "g", "j", "g", "s", "enter", "u")
        assert bench.bench.scope is bench.session.index.scopes[0]
        assert len(await listed(bench)) == 4
        await bench.press("u")
        # What is under the cursor stands out, so the lanes may have other characters.
        assert [each.split()[2:] for each in await listed(bench)] == [each.split()[2:] for each in inner]
        await bench.press("g", "g", "G")
        assert bench.bench.here is not None
        assert bench.bench.here.node.op_type == "LeakyRelu"

    run(saved(tmp_path / "m.onnx", model_of(INNER)), flow, size)


@pytest.mark.parametrize("theme", [DARK, ANSI])
def test_keys_send_few_bytes(theme: str) -> None:
    """Those of one key, and of the inspector, which follows when the cursor rests."""

    async def flow(found: Bench) -> None:
        frames = Frames(fills=theme == DARK)

        def sent() -> int:
            strips = found.app.screen._compositor.render_strips()
            return len(frames.changed(strips, ColorSystem.TRUECOLOR).encode())

        sent()
        rest = found.bench.show_details
        for _ in range(8):
            found.bench.after_rest = lambda show: None  # type: ignore[method-assign]
            await found.press("j")
            assert sent() <= 600
            rest()
            await found.press()
            assert sent() <= 600
        for keys, most in ((("Z", "g", "g"), 9_000), (("ctrl+d",), 4_000), (("g", "n"), 6_000), (("escape",), 6_000)):
            await found.press(*keys)
            assert sent() <= most, keys
        for key in ("question_mark", "escape"):
            await found.press(key)
            assert sent() <= 6_000, key

    run(ENCODER, flow, (120, 35), terminal=TERMINAL._replace(theme=theme))
