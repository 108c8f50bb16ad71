"""The rows of a difference as text: what is seen of it folded and unfolded, in the columns of a width."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson.diffing.events import Detail, Event, Member
from onnxjson.editing.applying import run
from onnxjson.editing.spelling import parse_line
from onnxjson.model.document import Model
from onnxjson.rendering.tables import cells, plain
from onnxjson_tui.rows.difference import Compared, DifferenceRows, Shown, Side, compared, has_words
from onnxjson_tui.rows.side_texts import element_lines, pair_lines, side_by_side_lines, text_of, unified_lines
from onnxjson_tui.screens.event_details import details_of
from tests.tui.sessions import small

EVERYTHING = Shown(opened=range(100))


def edited(*lines: str) -> tuple[Model, Model]:
    model = small()
    return model, run(model, [parse_line(line) for line in lines]).model


def difference(*lines: str) -> Compared:
    before, after = edited(*lines)
    return compared(Side("before.onnx", before), Side("after.onnx", after))


def texts(rows: DifferenceRows, width: int = 80) -> list[str]:
    return [plain(rows.line(number, width)).rstrip() for number in range(len(rows))]


TWO = ("set-attribute op:LeakyRelu alpha 0.5", "delete-node op:Relu --bypass 0")


def test_what_happened_stands_under_a_strip_of_numbers() -> None:
    assert texts(DifferenceRows(difference(*TWO))) == [
        " 4 -> 3 nodes (-1)  4 parameters  16 bytes of weights  3 matched",
        " Relu -1",
        " 2 changes  same interface  - 1 eliminated  ~ 1 attribute-changed",
        "",
        " - ▸ eliminated         Relu  a: consumers use: a -> x",
        " ~ ▸ attribute-changed  LeakyRelu.alpha  c: attribute alpha: 0.01…efault) -> 0.5",
    ]


def test_unfolded_every_place_has_its_addresses_and_what_changed_there() -> None:
    assert texts(DifferenceRows(difference(*TWO), EVERYTHING))[4:] == [
        " - ▾ eliminated         Relu",
        "     a  @/graph/node/0 -> nothing",
        "         consumers use: a -> x",
        " ~ ▾ attribute-changed  LeakyRelu.alpha",
        "     c  @/graph/node/2 -> @/graph/node/1",
        "         attribute alpha: 0.01 (default) -> 0.5",
    ]


def test_signs_alone_tell_what_an_event_does() -> None:
    rows = DifferenceRows(difference("set-attribute op:LeakyRelu alpha 0.5", "rename tensor b beta"))
    assert [line[1] for line in texts(rows) if line[3:4] in ("▸", "▾")] == ["~", "="]


def test_a_row_for_every_operator_when_asked() -> None:
    rows = DifferenceRows(difference(*TWO), Shown(all_operators=True))
    operators = [line.split() for line in texts(rows)[2:5]]
    assert operators == [["Relu", "1", "0", "-1"], ["Add", "2", "2"], ["LeakyRelu", "1", "1"]]


def test_nothing_is_one_row() -> None:
    assert texts(DifferenceRows(difference())) == [" the same: 4 nodes"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("relu", True), ("op:Relu", True), ("op:relu", True), ("op:Rel", False), ("kind:fused", True),
        ("kind:fuse", False), ("-kind:fused", False), ("-Cast encoder", True), ("encoder -relu", False),
        ("cast", False),
    ],
)  # fmt: skip
def test_a_filter_asks_for_words(words: str, found: bool) -> None:
    event = Event("fused", "Conv+Relu -> FusedConv", (Member(("/graph/node/1",), ("/graph/node/0",), "/encoder"),))
    assert has_words(event, words) is found


def test_what_is_left_out_is_counted() -> None:
    rows = DifferenceRows(difference(*TWO), Shown(wanted="op:Relu"))
    assert "1 row left out" in texts(rows)[2]
    assert rows.starts == [4]
    assert len(rows) == 5
    assert len(DifferenceRows(difference("rename tensor b beta"), Shown(without_quiet=True)).starts) == 0


@pytest.mark.parametrize("width", [20, 60, 80, 140])
def test_no_line_is_wider_than_it_may_be(width: int) -> None:
    hostile = "[bold]\x1b[31m" + "x" * 10_000 + "\u202e\n"
    member = Member(("/graph/node/1",), ("/graph/node/0",), hostile, (Detail(hostile, hostile, hostile),), count=9)
    events = (Event("fused", hostile, (member, member), "different", hostile), Event("renamed", "names", (member,)))
    found = difference(*TWO)._replace(events=events, incomplete=(hostile,), notes=("x" * 500,))
    for shown in (Shown(), EVERYTHING, Shown(all_operators=True)):
        rows = DifferenceRows(found, shown)
        for number, line in enumerate(texts(rows, width)):
            row = rows.rows[number]
            if width >= 40 or row.kind not in ("event", "detail", "operator", "more"):
                assert cells(line) <= width, line
            assert line.isprintable()


def test_places_keep_the_number_of_their_layer() -> None:
    place = "/model/encoder/layers.11/attention/self/query"
    member = Member(("/graph/node/1",), ("/graph/node/0",), place)
    found = difference(*TWO)._replace(events=(Event("fused", "Conv+Relu -> FusedConv", (member,)),))
    assert texts(DifferenceRows(found), 60)[-1] == " > ▸ fused  Conv+Relu -> FusedConv  …layers.11…self/query"
    assert (
        texts(DifferenceRows(found, EVERYTHING), 60)[-1]
        == "     …layers.11…self/query  @/graph/node/1 -> @/graph/node/0"
    )


def test_a_rewrite_says_how_it_is_proved_where_it_can_be() -> None:
    event = Event("fused", "Conv+Relu", (), "not-run")
    for given, can_prove, verdict, is_offered in (
        (event, True, "not verified", True),
        (event, False, "not verified", False),
        (replace(event, evidence="it cannot be run"), True, "not verified", False),
        (replace(event, verdict="equal"), True, "verified equal", False),
        (replace(event, verdict=None), True, "Conv+Relu", False),
    ):
        lines = [plain(line) for line in details_of(given, 60, can_prove=can_prove)]
        assert lines[0].endswith(verdict)
        assert ("p runs both sides" in lines) == is_offered


def test_the_text_of_both_sides() -> None:
    before, after = edited(TWO[0])
    pairs = pair_lines(text_of(before, ["/graph/node/2"]), text_of(after, ["/graph/node/2"]))
    assert [plain(line) for line in unified_lines(pairs, 60)] == [
        '  {"op_type": "LeakyRelu", "output": ["c"],',
        '   "input": ["b"],',
        '-  "domain": ""}',
        '+  "domain": "",',
        '+  "attribute": {',
        '+    "alpha": 0.5',
        "+  }}",
    ]
    beside = [plain(line).rstrip() for line in side_by_side_lines(pairs, 83)]
    left = ' "domain": ""}'
    assert beside[3:5] == [f'{left:<40} ~  "domain": "",', " " * 40 + ' +  "attribute": {']


def test_long_lines_of_a_text_go_on_in_the_next_one() -> None:
    lines = [plain(line) for line in unified_lines(pair_lines(["a" * 50], []), 22)]
    assert lines == ["- " + "a" * 20, "-     " + "a" * 16, "-     " + "a" * 14]


def test_constants_are_digests_and_what_is_gone_is_nothing(tmp_path: Path) -> None:
    model = small()
    assert element_lines(model, "/graph/initializer/0") == (
        '{"name": "w", "type": "float32[4]", "storage": "float_data", "values": [1.0, 2.0, 3.0, 4.0]}',
    )
    assert element_lines(model, "/graph/node/9") is None
    assert element_lines(model, "/graph") == ("a graph of 4 nodes",)
