"""What a model consists of."""

import json
from pathlib import Path

import pytest

from onnxjson.codecs.serde import parse
from onnxjson.model.document import Graph, Model, Node, StringStringEntry, Tensor
from onnxjson.model.elements import MOST_ELEMENTS
from onnxjson.model.index import Index
from onnxjson.rendering.summary import Place, Summary, summarise
from onnxjson.rendering.summary_text import comparison_lines, summary_lines
from onnxjson.rendering.tables import cells
from onnxjson.rendering.values import as_json
from onnxjson.storage.external import Resolver
from tests.generation.messages import generate, size_of
from tests.rendering.models import MODEL

PLACE = Place("m.onnx", "onnx", 1234)


def _summary(model: Model, resolver: Resolver | None = None) -> Summary:
    return summarise(model, Index(model), PLACE, resolver)


@pytest.fixture(scope="module")
def summary() -> Summary:
    return _summary(MODEL)


def test_operators_are_counted_through_subgraphs_functions_and_training(summary: Summary) -> None:
    counts = {(each.domain, each.op_type): each for each in summary.operators}
    assert {key: each.nodes for key, each in counts.items()} == {
        ("", "Constant"): 1,
        ("", "If"): 1,
        ("my", "Twice"): 1,
        ("not.imported", "Odd"): 1,
        ("", "Relu"): 1,
        ("", "Add"): 1,
        ("", "Sub"): 1,
    }
    assert counts["", "Relu"].subgraphs == 1
    assert counts["", "Add"].functions == 1
    assert counts["", "Sub"].training == 1
    assert counts["my", "Twice"].is_function
    assert (summary.nodes, summary.nodes_in.main) == (7, 4)


def test_weights_and_constants_are_counted_once_each(summary: Summary) -> None:
    # w, outside, and the values of s; not texts, typed, inner, the indices of s, and the value of an attribute
    assert (summary.weights.tensors, summary.weights.elements) == (3, 6 + 4 + 1)
    assert summary.weights.bytes == 24 + 16 + 4
    assert summary.weights.external_bytes == 16
    assert (summary.constants.tensors, summary.constants.elements) == (5, 2 + 2 + 3 + 1 + 2)
    assert summary.constants.bytes == 3 + 2 + 3 + 8 + 16


def test_initializer_that_many_nodes_use_is_counted_once() -> None:
    weight = Tensor(dims=(2,), data_type=1, name="w", raw_data=bytes(8))
    nodes = tuple(Node(op_type="Add", input=("x", "w"), output=(f"y{n}",)) for n in range(9))
    assert _summary(Model(graph=Graph(node=nodes, initializer=(weight,)))).weights.bytes == 8


def test_dtypes_are_those_of_all_constants(summary: Summary) -> None:
    found = {each.dtype: (each.tensors, each.elements) for each in summary.dtypes}
    assert found == {"float32": (3, 11), "int64": (2, 3), "bool": (1, 3), "string": (1, 2), "int32": (1, 2)}


def test_opsets_tell_what_is_used_and_not_imported(summary: Summary) -> None:
    opsets = [(each.domain, each.version, each.nodes) for each in summary.opsets]
    assert opsets == [("", 17, 5), ("my", 1, 1), ("not.imported", None, 1)]


def test_inputs_with_initializers_are_told_apart(summary: Summary) -> None:
    assert [(each.name, each.type, each.has_initializer) for each in summary.inputs] == [
        ("flag", "bool", False),
        ("w", "float32", True),
    ]
    assert [each.type for each in summary.outputs] == ["float32", None]


def test_functions_have_their_calls(summary: Summary) -> None:
    (function,) = summary.functions
    assert (function.domain, function.name, function.nodes, function.calls) == ("my", "Twice", 1, 1)


def test_external_file_is_looked_at_and_never_read(tmp_path: Path) -> None:
    (missing,) = _summary(MODEL, Resolver(tmp_path)).external
    assert "external data of tensor 'outside' in 'weights.bin': the file is missing" in (missing.problem or "")
    (tmp_path / "weights.bin").write_bytes(bytes(99))
    (found,) = _summary(MODEL, Resolver(tmp_path)).external
    assert (found.location, found.tensors, found.bytes, found.file_bytes, found.problem) == (
        "weights.bin",
        1,
        16,
        99,
        None,
    )
    assert _summary(MODEL).external[0].problem is None


def test_biggest_tensors_come_first(summary: Summary) -> None:
    assert [each.name for each in summary.biggest[:2]] == ["w", "outside"]
    assert summary.biggest[1].location == "weights.bin"


def test_label_as_wide_as_its_column_is_apart_from_its_text() -> None:
    summary = _summary(Model(graph=Graph(), model_version=1))
    assert "model_version 1" in summary_lines(summary, 80)


def test_lines_say_what_the_summary_holds(summary: Summary) -> None:
    text = "\n".join(summary_lines(summary, 80))
    for part in (
        "m.onnx (ONNX binary, 1.2 kB)",
        "ai.onnx 17, my 1, not.imported not imported",
        "main: 7 nodes (1 in subgraphs, 1 in functions, 1 in training)",
        "  and 1 that have initializers",
        "operators 7, nodes 7",
        "11 parameters in 3 tensors, 44 bytes (16 bytes in other files)",
        "author  n\\u{1b}",
        "  Second line.",
        "weights.bin  1 tensor, 16 bytes",
    ):
        assert part in text, part


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_are_never_wider_than_the_terminal(summary: Summary, width: int) -> None:
    for line in (*summary_lines(summary, width), *comparison_lines([summary] * 5, width)):
        assert cells(line) <= width


def test_models_side_by_side_mark_what_differs(summary: Summary) -> None:
    other = _summary(Model(ir_version=8, graph=Graph(name="main", node=(Node(op_type="If"),))))
    lines = comparison_lines([summary, other], 80)
    rows = {line[2:26].strip().split("  ")[0]: line for line in lines}
    assert rows["ir_version"].startswith("  ")
    assert rows["If"].startswith("  ")
    assert rows["nodes"].startswith("* ")
    assert rows["Relu"].startswith("* ")
    assert lines[-1] == "* differs"
    assert "* differs" not in comparison_lines([other, other], 80)


@pytest.mark.parametrize("seed", range(40))
def test_any_model_has_a_summary_in_lines_and_in_json(seed: int) -> None:
    model = parse(generate(seed, size_of(seed))).model
    if model.graph is None:
        return
    summary = _summary(model)
    for line in (*summary_lines(summary, 80), *comparison_lines([summary, summary], 80)):
        assert line.isprintable()
        assert cells(line) <= 80
    assert json.loads(as_json(summary))["kind"] == "summary"


@pytest.mark.timeout(120)
def test_dims_of_thousands_of_digits_are_no_trouble() -> None:
    hostile = Tensor(dims=(2**62,) * 100_000, data_type=1, name="w", data_location=1)
    summary = _summary(Model(graph=Graph(initializer=(hostile, Tensor(dims=(-1, 5), data_type=1)))))
    assert summary.weights.elements == MOST_ELEMENTS
    assert summary_lines(summary, 80)


def test_keys_of_the_json_are_those_of_the_page(summary: Summary) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "show.md").read_text(encoding="utf-8")
    for name in json.loads(as_json(summary)):
        assert f"`{name}`" in page, name


def test_long_lists_are_cut_in_lines_and_whole_in_json() -> None:
    props = tuple(StringStringEntry(f"k{number}", "v") for number in range(500))
    summary = _summary(Model(graph=Graph(), metadata_props=props))
    assert "  ... and 470 more" in summary_lines(summary, 80)
    assert len(json.loads(as_json(summary))["metadata"]) == 500


def test_values_of_all_layers_are_one_line_with_their_count() -> None:
    from onnxjson.storage.api import from_proto
    from tests.benchmarks.llama import Llama, small

    model = from_proto(small(Llama(layers=6)))
    lines = summary_lines(_summary(model), 100)
    rows = [line.split() for line in lines]
    assert ["past_key_values.{0..5}.key", "float32[batch,4,past,8]", "6", "values"] in rows
    assert ["present.{0..5}.value", "float32[batch,4,total,8]", "6", "values"] in rows
    assert "inputs 15" in lines
    assert any([line.startswith("  input_ids ") for line in lines])
    few = summary_lines(_summary(from_proto(small(Llama(layers=5)))), 100)
    assert any([line.startswith("  past_key_values.4.key ") for line in few])
