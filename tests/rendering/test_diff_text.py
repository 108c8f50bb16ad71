"""``rendering.diff_text`` and ``rendering.diff_report``."""

import pytest

from onnxjson.diffing.events import Detail, Event, Member
from onnxjson.rendering.diff_html import node_rows
from onnxjson.rendering.diff_report import Nodes, report
from onnxjson.rendering.diff_text import detail_text, diff_lines
from onnxjson.rendering.tables import cells, plain
from tests.rendering.differences import HOSTILE, Made, align, example, hostile, hostile_names, networks


def lines_of(made: Made, width: int = 80, *, details: bool = False, nodes_only: bool = False) -> list[str]:
    shown = report(made, "before.onnx", "after.onnx", nodes_only=nodes_only)
    return [plain(line) for line in diff_lines(shown, width, details=details)]


def one(event: Event) -> list[str]:
    """The lines of one event."""
    lines = lines_of(Made(align(networks()[0], networks()[0]), [event]))
    return lines[lines.index("") + 1 :]


def test_head_says_names_counts_and_changes() -> None:
    assert lines_of(example())[:4] == [
        "before.onnx -> after.onnx",
        "16 nodes before, 12 after, 7 matched",
        "18 changes, 9 without effect: 1 opset-changed, 1 attribute-changed, 4 fused,",
        "1 eliminated, 1 inserted, 1 weights-changed, 9 renamed",
    ]


def test_table_of_operators_has_what_changed_first_and_sums_last() -> None:
    lines = lines_of(example())
    start = lines.index("") + 1
    assert lines[start : start + 11] == [
        "operators             before   after      change",
        "  Gemm                     .       3          +3",
        "  Add                      3       .          -3",
        "  MatMul                   3       .          -3",
        "  Gelu                     .       1          +1",
        "  BatchNormalization       1       .          -1",
        "  Identity                 1       .          -1",
        "  5 others as before       8       8",
        "nodes                     16      12          -4",
        "parameters             1,072   1,040         -32",
        "bytes                 4.3 kB  4.2 kB  -128 bytes",
    ]


def test_table_is_left_out_where_all_counts_are_the_same() -> None:
    model, _ = networks()
    for details in (False, True):
        assert "operators" not in "".join(lines_of(Made(align(model, model), example().events[:1]), details=details))


def test_event_has_its_count_pattern_verdict_and_places() -> None:
    lines = lines_of(example())
    at = next(place for place, line in enumerate(lines) if "MatMul+Add" in line)
    assert lines[at : at + 4] == [
        "fused              3x MatMul+Add -> Gemm                          verified equal",
        "                   /b0/fc: b0.bias: input 1 of Add -> input 2 of Gemm",
        "                   /b1/fc: b1.bias: input 1 of Add -> input 2 of Gemm",
        "                   /b2/fc: b2.bias: input 1 of Add -> input 2 of Gemm",
    ]


def test_what_many_members_have_in_common_stands_once() -> None:
    detail = (Detail("attribute axis", "1", "-1"),)
    members = tuple(Member((f"/graph/node/{n}",), (f"/graph/node/{n}",), f"/layer{n}", detail) for n in range(30))
    lines = one(Event("attribute-changed", "Softmax.axis", members))
    assert lines[0] == "attribute-changed  30x Softmax.axis"
    assert lines[-1] == "                     attribute axis: 1 -> -1"
    assert lines[-2].endswith("more")
    assert len(lines) == 4


def test_a_member_that_stands_for_many_places_counts_as_many() -> None:
    named = tuple(Detail("node", f"n{n}", f"/conv{n}") for n in range(100))
    member = Member(("/graph",), ("/graph",), "", (*named, Detail("and 9,900 more nodes")), 10_000)
    lines = one(Event("renamed", "nodes", (member,)))
    assert lines == [
        "renamed  10,000x nodes",
        *[f"         node: n{n} -> /conv{n}" for n in range(4)],
        "         ... and 9,996 more",
    ]


def test_different_results_say_why() -> None:
    lines = lines_of(example())
    at = next(place for place, line in enumerate(lines) if line.endswith("DIFFERENT RESULTS"))
    assert lines[at + 1].strip() == "differs by up to 1.1"


def test_what_was_added_removed_and_found_reads_as_that() -> None:
    def text(kind: str, base: str | None, target: str | None) -> str:
        return detail_text(Event(kind, "", ()), Detail("axis", base, target), None)  # type: ignore[arg-type]

    assert text("attribute-changed", "1", "2") == "axis: 1 -> 2"
    assert text("attribute-changed", None, "2") == "axis: added 2"
    assert text("attribute-changed", "1", None) == "axis: removed 1"
    assert text("weights-changed", None, "0.5") == "axis: 0.5"
    assert text("fused", None, None) == "axis"


@pytest.mark.parametrize("room", [30, 40, 60])
def test_long_values_leave_room_for_each_other(room: int) -> None:
    event = Event("attribute-changed", "", ())
    text = detail_text(event, Detail("x", "old" * 100, "new"), room)
    assert cells(text) <= room
    assert text.startswith("x: old")
    assert text.endswith(" -> new")
    text = detail_text(event, Detail("x", "old" * 100, "new" * 100), room)
    assert cells(text) <= room
    assert " -> " in text


def test_a_long_detail_is_wrapped_and_names_in_it_are_whole() -> None:
    old, new = (f"/m/encoder/layer.0/attention/self/{each}_output_0" for each in ("Identity_883", "Gemm_3"))
    member = Member(("/graph/node/1",), (), "/m/encoder/layer.0", (Detail("input 1 of MatMul", old, new),))
    assert one(Event("rewired", "MatMul", (member,))) == [
        "rewired  MatMul",
        "         /m/encoder/layer.0",
        "           input 1 of MatMul:",
        f"               {old} ->",
        f"               {new}",
    ]


def test_few_different_values_at_many_places_are_shown_once() -> None:
    members = tuple(
        Member((f"/graph/node/{n}",), (), f"/layer.{n}", (Detail("pads", "[0]", f"[{n % 2 + 1}]"),)) for n in range(6)
    )
    assert one(Event("attribute-changed", "Conv.pads", members))[-2:] == [
        "                     pads: [0] -> [1]",
        "                     pads: [0] -> [2]",
    ]


def test_equal_places_are_counted() -> None:
    members = tuple(Member((f"/graph/node/{n}",), (), f"/layer.{n // 2}", (Detail("was", str(n)),)) for n in range(6))
    assert one(Event("eliminated", "Identity", members))[1] == "            2x /layer.0, 2x /layer.1, 2x /layer.2"


def test_details_name_every_member_with_its_addresses() -> None:
    text = "\n".join(lines_of(example(), details=True))
    assert text.count("@/graph/node/") >= 20
    assert "@/graph/node/12 @/graph/node/13 -> @/graph/node/8" in text
    assert "nothing -> @/graph/node/10" in text
    assert "4 runs on random inputs gave the same bits" in text


def test_nodes_only_leaves_out_names_weights_and_versions() -> None:
    lines = lines_of(example(), nodes_only=True)
    assert lines[2] == "7 changes: 1 attribute-changed, 4 fused, 1 eliminated, 1 inserted"
    made = example()
    quiet = Made(made.alignment, [event for event in made.events if event.kind == "renamed"])
    assert not report(quiet, "a", "b").equal
    assert report(quiet, "a", "b", nodes_only=True).equal
    assert not report(quiet._replace(incomplete=("weights",)), "a", "b", nodes_only=True).equal


def test_same_models_are_one_line() -> None:
    model, _ = networks()
    assert lines_of(Made(align(model, model), equal=True)) == ["before.onnx and after.onnx are the same: 16 nodes"]


def test_what_was_not_compared_is_said() -> None:
    model, _ = networks()
    assert "! weights not compared: m.data" in lines_of(
        Made(align(model, model), incomplete=["weights not compared: m.data"])
    )


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_of_hostile_names_are_printable_and_fit(width: int, details: bool) -> None:
    for line in diff_lines(report(hostile(), *hostile_names()), width, details=details):
        text = plain(line)
        assert text.isprintable(), text
        assert details or cells(text) <= width or text.startswith("\\u{1b}[2J"), text


def test_pairs_are_listed_by_address() -> None:
    made = example()
    pairs = list(made.alignment.node_pairs())
    assert len(pairs) == made.alignment.matched == 7
    assert pairs[0] == ("/graph/node/2", "/graph/node/1")


def test_addresses_within_a_node_find_it() -> None:
    nodes = Nodes(example().alignment)
    found = nodes.base("/graph/node/3/attribute/node/i")
    assert found is not None
    assert found.address == "/graph/node/3"
    for address in ("/graph/node/99", "/graph/initializer/0", "", "/graph/node/01", HOSTILE[0]):
        assert nodes.base(address) is None


def test_rows_of_nodes_hold_each_node_once_and_say_what_happened() -> None:
    shown = report(example(), "a", "b")
    rows = list(node_rows(shown))
    assert len(rows) == 16 + 12 - 7
    assert [row.base for row in rows if row.base is not None] == [f"/graph/node/{n}" for n in range(16)]
    assert [row.target for row in rows if row.target is not None] == [f"/graph/node/{n}" for n in range(12)]
    gelu = next(row for row in rows if row.operator == "Gelu")
    assert (gelu.state, [shown.events[place].kind for place in gelu.events]) == ("added", ["inserted"])
