"""The lane of what the node under the cursor makes stands out in the list of nodes."""

from pathlib import Path

import pytest

from onnxjson.model.index import Index
from onnxjson_tui.rows.nodes import NodeRows
from onnxjson_tui.shell.terminal import plain as drawn_plain
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved

MODEL = """g (float[4] x) => (float[4] y) {
    a = Relu(x)
    b = Neg(a)
    c = Abs(b)
    d = Exp(a)
    e = Add(c, d)
    y = Add(b, e)
}"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return saved(tmp_path / "m.onnx", model_of(MODEL))


def lanes(rows: NodeRows) -> list[str]:
    return [rows.row(each).lanes for each in range(len(rows))]


def test_the_lane_is_heavy_from_below_its_maker_to_the_last_taker() -> None:
    rows = NodeRows(Index(model_of(MODEL)).scopes[0])
    plain = lanes(rows)
    assert plain == ["●", "├─●", "│ ├─●", "● │ │", "●─│─┘", "○─┘"]
    assert rows.light(0)
    heavy = lanes(rows)
    assert heavy[0] == plain[0]
    assert heavy[1] == "┣─●"
    assert heavy[2] == "┃ ├─●"
    # The last one that takes it stands on the lane itself.
    assert heavy[3] == "◉ │ │"
    assert heavy[4:] == plain[4:]
    assert not rows.light(0)
    rows.light(1)
    assert lanes(rows)[1] == plain[1]
    assert lanes(rows)[2:] == ["│ ┣─●", "● ┃ │", "●─┃─┘", "○─┛"]
    rows.light(None)
    assert lanes(rows) == plain


def test_without_other_characters_it_is_drawn_with_a_number_sign() -> None:
    rows = NodeRows(Index(model_of(MODEL)).scopes[0])
    rows.light(0)
    assert [drawn_plain(lane) for lane in lanes(rows)[1:4]] == ["#-*", "# +-*", "@ | |"]


def test_rows_of_a_filter_and_bare_rows_have_nothing_to_stand_out() -> None:
    scope = Index(model_of(MODEL)).scopes[0]
    assert not NodeRows(scope, [0, 1]).light(0)
    assert not NodeRows(scope, is_bare=True).light(0)


def test_it_follows_the_cursor_and_the_edits(path: Path) -> None:
    async def flow(bench: Bench) -> None:
        assert "┣─●" in bench.lines[3]
        await bench.press("j")
        assert "├─●" in bench.lines[3]
        assert "┣─●" in bench.lines[4]
        await bench.press("G")
        assert not any(each in bench.text for each in "┃┣┗◉")
        await bench.press("g", "g")
        assert "┣─●" in bench.lines[3]
        await bench.press(":")
        await bench.type("delete-node . --bypass 0")
        assert bench.session.is_changed
        await bench.press("u")
        assert "┣─●" in bench.lines[3]

    run_small(path, flow)
