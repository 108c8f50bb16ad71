"""Names like one that does not exist."""

import difflib

import pytest

from onnxjson.model.display import suggest


def test_the_most_alike_come_first_and_are_at_most_three() -> None:
    assert suggest("conf", ["cone", "relu", "conv", "con"]) == 'did you mean "con" or "conv" or "cone"?'
    assert suggest("abcd", ["abce", "abcf", "abcg", "abch"]).count('"') == 6


def test_spelling_styles_are_alike() -> None:
    assert suggest("opType", ["op_type", "output"]) == 'did you mean "op_type"?'
    assert suggest("OP_TYPE", ["op_type"]) == 'did you mean "op_type"?'


def test_nothing_is_said_where_nothing_is_alike() -> None:
    assert suggest("x", ["weight", "bias"]) == ""
    assert suggest("x", []) == ""


def test_of_a_hundred_thousand_names_a_few_thousand_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"/model/layers.{number}/add" for number in range(100_000)]
    compared: list[str] = []

    def alike(matcher: difflib.SequenceMatcher[str]) -> float:
        compared.append(repr(matcher))
        return 0.0

    monkeypatch.setattr(difflib.SequenceMatcher, "real_quick_ratio", alike)
    suggest("/model/layers.77/ad", names)
    assert 0 < len(compared) <= 5_000
    monkeypatch.undo()
    assert suggest("/model/layers.77/ad", names) != ""


def test_names_are_made_visible() -> None:
    assert suggest("abc\n", ["abc\n1"]).isprintable()


def test_neighbours_by_number_are_no_suggestions() -> None:
    names = [f"permute_{number}" for number in range(30)]
    assert suggest("permute_77", names) == ""
    assert suggest("premute_9", names) == 'did you mean "permute_9"?'
    assert suggest("permute9", names) == 'did you mean "permute_9"?'


def test_names_that_only_end_alike_are_no_suggestions() -> None:
    assert suggest("/l/Softmax_output_0", ["/l/Mul_output_0"]) == ""
    assert suggest("/l/Sofmtax_output_0", ["/l/Softmax_output_0"]) == 'did you mean "/l/Softmax_output_0"?'


def test_a_name_is_none_of_several_that_have_a_number_too() -> None:
    assert suggest("layer_norm", ["layer_norm_1", "layer_norm_8"]) == ""
    assert suggest("layer_norm", ["layer_norm_1", "layer_morn"]) == 'did you mean "layer_norm_1" or "layer_morn"?'
