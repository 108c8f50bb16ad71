"""The gate's comment: what is in the row of a model, and findings that say the same."""

import pytest

from onnxjson.checking.judging import GateResult, ModelResult
from onnxjson.model.errors import Finding
from onnxjson.rendering.change_words import Part
from onnxjson.rendering.gate_comment import gate_comment


def _finding(number: int, message: str) -> Finding:
    return Finding(severity="warning", code="ONJ208", address=f"/graph/node/{number}", message=message, file="m.onnx")


def _lines(messages: list[str]) -> list[str]:
    found = tuple([_finding(number, message) for number, message in enumerate(messages)])
    result = GateResult("main", "HEAD", (ModelResult("m.onnx", "changed", None, None, found),))
    return [line for line in gate_comment(result, {}, 0).splitlines() if "ONJ208" in line]


def test_findings_that_say_the_same_are_one_line_and_leave_room_for_others() -> None:
    start = "- ⚠️ `m.onnx`: `ONJ208`"
    assert _lines(["a"]) == [f"{start} `a` `@/graph/node/0`"]
    assert _lines(["a", "b", "a", "a"]) == [
        f"{start} `a` `@/graph/node/0` and 2 more",
        f"{start} `b` `@/graph/node/1`",
    ]
    different = _lines([f"value {number}" for number in range(90)])
    assert (len(different), different[-1]) == (4, f"{start} 87 more")
    assert len(_lines([f"value {number}" for number in range(4)])) == 4


@pytest.mark.parametrize(("count", "in_row", "left"), [(1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 2, 2), (9, 2, 7)])
def test_a_line_that_counts_one_more_change_is_that_change(count: int, in_row: int, left: int) -> None:
    result = GateResult("main", "HEAD", (ModelResult("m.onnx", "changed", None, None),))
    text = gate_comment(result, {"m.onnx": [(Part(f"change-{number}"),) for number in range(count)]}, 0)
    (row,) = [line for line in text.splitlines() if "| `m.onnx` |" in line]
    assert row.count("change-") == in_row
    assert (f"and {left} more, below" in row) == bool(left)
    assert text.count("change-") == count
