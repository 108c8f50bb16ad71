"""Files read together share what they have in common; each is the model that it is when it is read alone."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

import onnxjson
from onnxjson.codecs.wire_reading import sharing_graphs
from onnxjson.model import document as d
from onnxjson.model.payloads import LAZY_FROM
from tests.diffing.stacks import stack

Nodes = list[d.Node]


def _changed(nodes: Nodes) -> Nodes:
    return [msgspec.structs.replace(each, name="new") if place % 40 == 7 else each for place, each in enumerate(nodes)]


def _all_new(nodes: Nodes) -> Nodes:
    return [msgspec.structs.replace(each, name=f"new {each.name}") for each in nodes]


EDITS: dict[str, Callable[[Nodes], Nodes]] = {
    "the first changed": lambda nodes: [msgspec.structs.replace(nodes[0], name="new"), *nodes[1:]],
    "some changed": _changed,
    "all changed": _all_new,
    "some deleted": lambda nodes: [each for place, each in enumerate(nodes) if place not in (0, 30, 31, 99)],
    "some inserted": lambda nodes: [*nodes[:50], *_all_new(nodes[50:90]), *nodes[50:]],
    "the first half": lambda nodes: nodes[: len(nodes) // 2],
    "twice": lambda nodes: [*nodes, *nodes],
    "other order": lambda nodes: nodes[::-1],
    "none": lambda nodes: [],
}


def _with_nodes(model: d.Model, nodes: Sequence[d.Node]) -> d.Model:
    assert model.graph is not None
    return msgspec.structs.replace(model, graph=msgspec.structs.replace(model.graph, node=tuple(nodes)))


def _saved(model: d.Model, path: Path) -> Path:
    onnxjson.save(model, path)
    return path


def _nodes(model: d.Model) -> Nodes:
    assert model.graph is not None
    return list(model.graph.node)


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_file_is_read_as_alone(tmp_path: Path, edit: str) -> None:
    base = stack("mixed", 200)
    paths = [_saved(base, tmp_path / "a.onnx")]
    paths.append(_saved(_with_nodes(base, EDITS[edit](_nodes(base))), tmp_path / "b.onnx"))
    alone = [onnxjson.load(path) for path in paths]
    with sharing_graphs():
        assert [onnxjson.load(path) for path in paths] == alone
    with sharing_graphs():
        assert [onnxjson.load(path) for path in paths[::-1]] == alone[::-1]


def test_equal_records_are_the_same_around_changes(tmp_path: Path) -> None:
    base = stack("mixed", 200)
    changed = EDITS["some deleted"](_changed(_nodes(base)))
    paths = [_saved(base, tmp_path / "a.onnx"), _saved(_with_nodes(base, changed), tmp_path / "b.onnx")]
    with sharing_graphs():
        one, other = [_nodes(onnxjson.load(path)) for path in paths]
    known = {id(each) for each in one}
    assert {each.name for each in other if id(each) not in known} == {"new"}


def test_big_payloads_are_read_from_the_file_of_each_model(tmp_path: Path) -> None:
    value = d.Tensor((LAZY_FROM,), 3, raw_data=bytes(LAZY_FROM))
    node = d.Node((), ("c",), op_type="Constant", attribute=(d.Attribute("value", t=value, type=4),))
    base = stack("mixed", 20)
    paths = [
        _saved(_with_nodes(base, [node, *more, *_nodes(base)]), tmp_path / name)
        for name, more in (("a.onnx", []), ("b.onnx", [msgspec.structs.replace(node, output=("d",))]))
    ]
    with sharing_graphs():
        first, second = [onnxjson.load(path) for path in paths]
    tensors = [_nodes(each)[0].attribute[0].t for each in (first, second)]
    assert tensors == [value, value]
    assert tensors[0] is not tensors[1]
    assert second == onnxjson.load(paths[1])


def test_a_cut_off_file_is_an_error_after_a_whole_one(tmp_path: Path) -> None:
    whole = _saved(stack("mixed", 200), tmp_path / "a.onnx")
    content = whole.read_bytes()
    cut = tmp_path / "b.onnx"
    for size in range(len(content) - 400, len(content), 7):
        cut.write_bytes(content[:size])
        with sharing_graphs():
            onnxjson.load(whole)
            with pytest.raises(onnxjson.DecodeError):
                onnxjson.load(cut)
