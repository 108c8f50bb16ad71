"""Drawings of graphs: golden text."""

import random
from itertools import pairwise

import pytest

from onnxjson.rendering.tables import cells
from onnxjson_tui.rows.graph_drawing import Box, Drawing, Edge, drawing
from onnxjson_tui.shell.terminal import plain


def _drawn(boxes: str, edges: str) -> list[str]:
    names = boxes.split()
    found = [Edge(names.index(each[0]), names.index(each[1])) for each in edges.split()]
    return drawing([Box(f"[{name * 3}]") for name in names], found).text()


def test_a_line_that_skips_a_layer_passes_beside_it() -> None:
    assert _drawn("a b c", "ab bc ac") == ["   [aaa]", "  ┌──┴───┐", "[bbb]    │", "  └──┬───┘", "   [ccc]"]


def test_there_are_characters_for_terminals_without_boxes() -> None:
    assert [plain(line) for line in _drawn("a b c d", "ab ac bd cd")] == [
        "     [aaa]",
        "  .----+---.",
        "[bbb]    [ccc]",
        "  '----+---'",
        "     [ddd]",
    ]


def test_lines_that_cross_or_come_down_on_another_one_are_not_joined_to_it() -> None:
    assert _drawn("a b c d", "ad bc ac bd") == ["[aaa]    [bbb]", "  ├────────│┐", "  │┌───────┤│", "[ddd]    [ccc]"]


def test_a_long_line_is_cut_to_a_number_at_both_ends() -> None:
    names = "abcdefghijklm"
    boxes = [Box(f"[{name}]") for name in names]
    edges = [Edge(place, place + 1) for place in range(12)] + [Edge(0, 12)]
    found = drawing(boxes, edges)
    assert found.text()[0].strip() == "[a]+1"
    assert found.text()[-1].strip() == "[m]+1"


def test_wide_characters_keep_the_columns() -> None:
    found = drawing([Box("[漢字]"), Box("[b]")], [Edge(0, 1)])
    assert [cells(line) for line in found.text()] == [6, 4, 5]


def _require_sound(drawing: Drawing, boxes: list[Box]) -> None:
    """Boxes stand whole where they are said to be, and do not touch; every row has the same width."""
    for row in drawing.rows:
        assert len(row) == drawing.width
    for box, place in zip(boxes, drawing.places, strict=True):
        assert "".join(drawing.rows[place.y][place.x : place.x + place.width]).startswith(box.label)
    for one, other in pairwise(sorted(drawing.places, key=lambda place: (place.y, place.x))):
        assert one.y != other.y or one.x + one.width < other.x


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_is_drawn_soundly(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(1, 40)
    boxes = [Box(f"[{place}{'x' * rng.randrange(20)}]") for place in range(count)]
    # Cycles and loops too: a model may be wrong.
    edges = list({Edge(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randrange(2 * count))})
    _require_sound(drawing(boxes, sorted(edges)), boxes)
