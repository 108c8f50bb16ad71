"""``diffing.unified``."""

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from onnxjson import example
from onnxjson.diffing.unified import DiffLine, diff_models, diff_texts, digest_text
from onnxjson.model.document import Attribute, Model, Node
from onnxjson.storage import api
from tests.work import count_calls


@pytest.fixture(scope="module")
def model() -> Model:
    return api.from_proto(example.make_example())


def with_node(model: Model, position: int, node: Node | None) -> Model:
    """The model with another node at a position, or without it."""
    assert model.graph is not None
    nodes = (*model.graph.node[:position], *(() if node is None else (node,)), *model.graph.node[position + 1 :])
    return msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, node=nodes))


def node_of(model: Model, position: int) -> Node:
    assert model.graph is not None
    return model.graph.node[position]


def text_of(old: bytes, new: bytes, context: int = 3) -> str:
    return "".join(f"{line.text}\n" for line in diff_texts(old, new, "a", "b", context=context))


def test_hunk_names_the_node_of_its_first_change(model: Model) -> None:
    alpha = msgspec.structs.replace(node_of(model, 1).attribute[0], f=b"\0\0\0\x3f")
    changed = with_node(model, 1, msgspec.structs.replace(node_of(model, 1), attribute=(alpha,)))
    assert [line.text for line in diff_models(model, changed, "m.onnx", "m.onnx.json", context=1)] == [
        "--- m.onnx",
        "+++ m.onnx.json",
        '@@ -25,3 +25,3 @@ {"op_type": "LeakyRelu", "output": ["active"]',
        '      "attribute": {',
        '-       "alpha": 0.01',
        '+       "alpha": 0.5',
        "      }},",
    ]


def test_hunk_after_the_nodes_names_the_tensor_it_is_in(model: Model) -> None:
    text = digest_text(model)
    changed = text.replace(b'"name": "conv.bias"', b'"name": "conv.offset"')
    hunks = [line.text for line in diff_texts(text, changed, "a", "b") if line.kind == "hunk"]
    assert len(hunks) == 1
    assert '@@ {"name": "conv.bias", "type": "float32[4]"' in hunks[0]


def test_deleted_node_is_one_run_of_lines_from_its_brace(model: Model) -> None:
    lines = list(diff_models(model, with_node(model, 2, None), "a", "b"))
    removed = [line.text for line in lines if line.kind == "removed"]
    assert removed[0].startswith('-    {"op_type": "MaxPool"')
    assert [line.kind for line in lines if line.kind in ("removed", "added")] == ["removed"] * len(removed)


def test_same_models_have_no_lines(model: Model) -> None:
    assert list(diff_models(model, model, "a", "b")) == []


def test_names_are_made_visible(model: Model) -> None:
    lines = list(diff_models(model, with_node(model, 0, None), "a\x1b[2J\n", "b\u202e"))
    assert [line.text for line in lines[:2]] == ["--- a\\u{1b}[2J\\u{a}", "+++ b\\u{202e}"]


def test_strings_of_a_model_stay_on_their_line_and_move_no_cursor(model: Model) -> None:
    node = msgspec.structs.replace(node_of(model, 0), name="a\x1b]52;c;\x07\n\u202e\u2028")
    for line in diff_models(model, with_node(model, 0, node), "a", "b"):
        assert line.text.isprintable(), line


@pytest.mark.parametrize("context", [0, 1, 3, 1000])
@pytest.mark.parametrize("program", [["git", "apply", "--unidiff-zero", "-"], ["patch", "-s", "-p0", "a"]])
def test_other_programs_can_apply_it(model: Model, tmp_path: Path, program: list[str], context: int) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not installed")
    node = Node(output=("new",), op_type="Relu", input=("image",), attribute=(Attribute(name="x", type=2, i=1),))
    old = digest_text(model)
    new = digest_text(with_node(with_node(model, 4, node), 0, None)).replace(b"digits", b"numbers")
    (tmp_path / "a").write_bytes(old)
    diff = text_of(old, new, context)
    if program[0] == "git":
        diff = diff.replace("--- a\n+++ b\n", "--- a/a\n+++ b/a\n")
    subprocess.run(program, cwd=tmp_path, input=diff.encode(), check=True, capture_output=True)
    assert (tmp_path / "a").read_bytes() == new


def test_typed_storage_of_equal_values_shows(model: Model) -> None:
    assert model.graph is not None
    tensor = msgspec.structs.replace(model.graph.initializer[0], raw_data=None, float_data=b"\0" * 4)
    initializer = (tensor, *model.graph.initializer[1:])
    changed = msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, initializer=initializer))
    assert list(diff_models(model, changed, "a", "b"))


def test_change_in_a_long_text_is_found_without_a_call_for_each_line() -> None:
    block = b'    {"op_type": "Relu", "output": ["v%d"],\n     "input": ["v%d"],\n     "name": "n%d"},\n'
    old = b"{\n" + b"".join([block % (at, at - 1, at) for at in range(20_000)]) + b"}\n"
    new = old.replace(b'"n7000"', b'"other"').replace(b'"n300"', b'"another"')
    lines: list[DiffLine] = []
    assert count_calls(lambda: lines.extend(diff_texts(old, new, "a", "b"))) < old.count(b"\n") / 2
    assert [line.text for line in lines if line.kind == "added"] == [
        '+     "name": "another"},',
        '+     "name": "other"},',
    ]
