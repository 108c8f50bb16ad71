"""What is around a node, and how it is drawn: golden text."""

import random
from itertools import pairwise

import pytest

from onnxjson.model.index import Index, NodeRef
from onnxjson.rendering.tables import cells
from onnxjson_tui.rows.beside_nodes import Glyphs
from onnxjson_tui.rows.graph_drawing import NARROW, WIDE, Box, Drawing, Edge, drawing
from onnxjson_tui.rows.graph_parts import MOST, surroundings
from tests.editing.graphs import EXPORTED, exported, model_of


def _drawn(boxes: str, edges: str, glyphs: Glyphs = "unicode") -> list[str]:
    names = boxes.split()
    found = [Edge(names.index(each[0]), names.index(each[1])) for each in edges.split()]
    return drawing([Box(f"[{name * 3}]") for name in names], found, glyphs).text()


def test_a_chain_goes_straight_down() -> None:
    assert _drawn("a b", "ab") == ["[aaa]", "  │", "[bbb]"]


def test_a_line_that_skips_a_layer_passes_beside_it() -> None:
    assert _drawn("a b c", "ab bc ac") == [
        "   [aaa]",
        "  ┌──┴───┐",
        "[bbb]    │",
        "  └──┬───┘",
        "   [ccc]",
    ]


def test_lines_meet_on_one_row_only_where_they_end_together() -> None:
    assert _drawn("a b c", "ac bc") == [
        "[aaa]    [bbb]",
        "  └────┬───┘",
        "     [ccc]",
    ]


def test_there_are_characters_for_terminals_without_boxes() -> None:
    assert _drawn("a b c d", "ab ac bd cd", "ascii") == [
        "     [aaa]",
        "  .----+---.",
        "[bbb]    [ccc]",
        "  '----+---'",
        "     [ddd]",
    ]


def test_lines_that_cross_or_come_down_on_another_one_are_not_joined_to_it() -> None:
    assert _drawn("a b c d", "ad bc ac bd") == [
        "[aaa]    [bbb]",
        "  ├────────│┐",
        "  │┌───────┤│",
        "[ddd]    [ccc]",
    ]


def test_a_long_line_is_cut_to_a_number_at_both_ends() -> None:
    names = "abcdefghijklm"
    boxes = [Box(f"[{name}]") for name in names]
    edges = [Edge(place, place + 1) for place in range(12)] + [Edge(0, 12)]
    found = drawing(boxes, edges)
    assert found.cut == 1
    assert found.text()[0].strip() == "[a]+1"
    assert found.text()[-1].strip() == "[m]+1"


def test_wide_characters_keep_the_columns() -> None:
    found = drawing([Box("[漢字]"), Box("[b]")], [Edge(0, 1)])
    assert [cells(line) for line in found.text()] == [6, 4, 5]


def _require_sound(found: Drawing, boxes: list[Box]) -> None:
    """Boxes stand whole where they are said to be, and do not touch; every row has the same width."""
    for row in found.rows:
        assert len(row) == found.width
    for box, place in zip(boxes, found.places, strict=True):
        assert "".join(found.rows[place.y][place.x : place.x + place.width]).startswith(box.label)
    for one, other in pairwise(sorted(found.places, key=lambda place: (place.y, place.x))):
        assert one.y != other.y or one.x + one.width < other.x


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_is_drawn_soundly(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randrange(1, 40)
    boxes = [Box(f"[{place}{'x' * rng.randrange(20)}]") for place in range(count)]
    # Cycles and loops too: a model may be wrong.
    edges = list({Edge(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randrange(2 * count))})
    for between in (WIDE, NARROW):
        _require_sound(drawing(boxes, sorted(edges), between=between), boxes)


MODEL = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}> {
    a = Relu(x)
    b = Add(a, w)
    c = LeakyRelu(b)
    y = Add(a, c)
}"""


def _around(position: int, hops: int) -> list[str]:
    scope = Index(model_of(MODEL)).scopes[0]
    found = surroundings(NodeRef(scope, position), hops)
    return drawing(found.boxes, found.edges).text()


def test_the_nodes_some_steps_away_are_drawn_with_the_inputs_and_outputs_of_the_graph() -> None:
    assert _around(2, 9) == [
        "          (x)",
        "           │",
        "       [0 Relu]",
        "      ┌────┴─────┐",
        "   [1 Add]       │",
        "      │          │",
        "[2 LeakyRelu]    │",
        "      └────┬─────┘",
        "        [3 Add]",
        "           │",
        "          (y)",
    ]


def test_what_is_further_away_is_a_number() -> None:
    assert _around(2, 1) == [
        "  [1 Add]+1",
        "      │",
        "[2 LeakyRelu]",
        "      │",
        "  [3 Add]+2",
    ]


def test_with_little_room_boxes_stand_closer_to_each_other() -> None:
    boxes = [Box("[a]"), Box("[b]"), Box("[c]")]
    edges = [Edge(0, 1), Edge(0, 2)]
    assert drawing(boxes, edges).text() == ["    [a]", " ┌───┴──┐", "[b]    [c]"]
    assert drawing(boxes, edges, between=NARROW).text() == ["   [a]", " ┌──┴─┐", "[b]  [c]"]


COUSINS = """g (float[N,4] x) => (float[N,4] y) {
    a = Relu(x)
    c = Neg(a)
    d = Abs(a)
    e = Exp(a)
    f = Mul(c, d)
    y = Add(f, e)
}"""


def test_what_only_shares_a_maker_or_a_taker_is_a_number_beside_it() -> None:
    scope = Index(model_of(COUSINS)).scopes[0]
    found = surroundings(NodeRef(scope, 2), 9)
    assert drawing(found.boxes, found.edges).text() == [
        "    (x)",
        "     │",
        "[0 Relu]+2",
        "     │",
        "  [2 Abs]",
        "     │",
        " [4 Mul]+1",
        "     │",
        " [5 Add]+1",
        "     │",
        "    (y)",
    ]
    assert [found.boxes[box].label for box in found.near] == ["[0 Relu]", "[2 Abs]", "[4 Mul]"]


def test_many_that_take_a_value_leave_room_for_what_makes_it() -> None:
    takers = "\n".join(f"y{place} = Relu(b)" for place in range(100))
    makers = "\n".join(f"a{place} = Neg(x)" for place in range(50))
    taken = ", ".join(f"a{place}" for place in range(50))
    text = f"g (float[N,4] x) => (float[N,4] y0) {{ {makers}\n b = Concat<axis = 0>({taken})\n {takers} }}"
    found = surroundings(NodeRef(Index(model_of(text)).scopes[0], 50), 3)
    labels = [box.label for box in found.boxes]
    assert len(labels) == MOST
    assert sum("Neg" in label for label in labels) == 31
    assert sum("Relu" in label for label in labels) == 32
    # The input and the output of the graph, a step further, have no room either.
    assert found.left_out == 19 + 68 + 2
    assert found.boxes[labels.index("[50 Concat]")].more == 19 + 68


@pytest.mark.parametrize("name", EXPORTED)
def test_nothing_stands_between_a_node_and_what_it_is_joined_to(name: str) -> None:
    for scope in Index(exported(name)).scopes:
        for position in range(0, len(scope.graph.node), 7):
            found = surroundings(NodeRef(scope, position), 3)
            places = drawing(found.boxes, found.edges).places
            middle = places[found.positions.index(position)].middle
            for place in [place for box, place in enumerate(places) if box not in found.near]:
                beside = [places[box].middle - middle for box in found.near if places[box].y == place.y]
                far = place.middle - middle
                assert not [each for each in beside if each * far > 0 and abs(each) > abs(far)]


@pytest.mark.parametrize("name", EXPORTED)
def test_the_surroundings_of_every_tenth_node_are_drawn(name: str) -> None:
    index = Index(exported(name))
    for scope in index.scopes:
        for position in range(0, len(scope.graph.node), 10):
            found = surroundings(NodeRef(scope, position), 4)
            assert len(found.boxes) <= MOST
            assert position in found.positions
            _require_sound(drawing(found.boxes, found.edges), list(found.boxes))
