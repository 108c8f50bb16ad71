"""Lines of element_metadata whose element was deleted or renamed by hand: one finding for each cause."""

import json
from typing import Any

import pytest

from onnxjson.codecs.reading.exact_reader import read
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, Finding

NAMES = ("a", "b", "c", "d", "e")
KEYS = ("namespace", "fx_node", "stack_trace")


def text(names: tuple[str, ...], *, about: tuple[str, ...] = NAMES, kind: str = "node") -> bytes:
    """A graph with such nodes or value_info, and lines about some of them, each on a line of its own."""
    graph: dict[str, Any] = {
        kind: [{"op_type": "Relu", "output": [name]} if kind == "node" else {"name": name} for name in names]
    }
    graph["element_metadata"] = [[kind, name, key, f"{name} {key}"] for name in about for key in KEYS]
    lines = json.dumps({"format": "onnxjson/1", "graph": graph}).replace('["node"', '\n["node"')
    return lines.replace('["value_info"', '\n["value_info"').encode()


def errors(*args: Any, **more: Any) -> list[str]:
    with pytest.raises(DecodeError) as caught:
        read(text(*args, **more))
    assert {each.code for each in caught.value.findings} == {"unknown-owner"}
    return [str(each).removeprefix("text:") for each in caught.value.findings]


def dropped(*args: Any, **more: Any) -> tuple[Model, tuple[Finding, ...]]:
    return read(text(*args, **more), drop_orphans=True)


def metadata(model: Model) -> dict[str, int]:
    assert model.graph is not None
    return {node.output[0]: len(node.metadata_props) for node in model.graph.node}


def test_deleted_nodes_are_one_finding() -> None:
    (error,) = errors(("a", "c", "e"))
    assert error == (
        '5:10: 6 lines of metadata belong to the node that produces "b" and the node that produces "d", which do not '
        "exist; delete them, or use --drop-orphans"
    )
    model, (warning,) = dropped(("a", "c", "e"))
    assert (warning.code, warning.severity, warning.line) == ("dropped-metadata", "warning", 5)
    assert metadata(model) == {"a": 3, "c": 3, "e": 3}


@pytest.mark.parametrize("position", range(len(NAMES)))
def test_a_renamed_node_is_one_finding_that_knows_its_new_name(position: int) -> None:
    names = tuple("new" if index == position else name for index, name in enumerate(NAMES))
    (error,) = errors(names)
    assert error.endswith(
        'which does not exist; "new" is at its position; write that name here too, or use --drop-orphans'
    )
    model, (warning,) = dropped(names)
    assert warning.code == "moved-metadata"
    assert metadata(model) == dict.fromkeys(names, 3)
    assert model.graph is not None
    assert model.graph.node[position].metadata_props[0].value == f"{NAMES[position]} namespace"


def test_renamed_neighbours_and_a_deleted_node_are_told_apart() -> None:
    assert [each.rpartition("; ")[2] for each in errors(("x", "y", "c", "e"))] == [
        "write that name here too, or use --drop-orphans",
        "write that name here too, or use --drop-orphans",
        "delete them, or use --drop-orphans",
    ]
    model, warnings = dropped(("x", "y", "c", "e"))
    assert [each.code for each in warnings] == ["moved-metadata", "moved-metadata", "dropped-metadata"]
    assert metadata(model) == {"x": 3, "y": 3, "c": 3, "e": 3}


@pytest.mark.parametrize(
    ("names", "about"),
    [
        (("a", "new", "more", "c", "d", "e"), NAMES),
        (("a", "new", "d", "e"), NAMES),
        (("a", "c", "d", "new", "e"), NAMES),
        (("a", "c", "d", "e", "never"), NAMES),
        (("new",), ("a",)),
    ],
    ids=["two new ones", "one of two", "elsewhere", "others have none", "no other"],
)
def test_what_is_not_certain_is_dropped(names: tuple[str, ...], about: tuple[str, ...]) -> None:
    (error,) = errors(names, about=about)
    assert error.endswith("delete them, or use --drop-orphans")
    model, (warning,) = dropped(names, about=about)
    assert warning.code == "dropped-metadata"
    assert not any(metadata(model)[name] for name in names if name not in about)


def test_a_similar_name_without_metadata_is_suggested() -> None:
    (error,) = errors(("hidden_1", "gelu", "sum"), about=("hidden", "sum"))
    assert 'did you mean "hidden_1"? write that here too' in error


def test_other_kinds_are_named() -> None:
    (error,) = errors(("a",), about=("a", "b"), kind="value_info")
    assert 'the value_info "b", which does not exist' in error


def test_metadata_in_two_places_is_reported_once() -> None:
    node = {"op_type": "Relu", "output": ["a"], "metadata_props": {"k": "v"}}
    lines = [["node", "a", key, "v"] for key in KEYS]
    with pytest.raises(DecodeError) as caught:
        read(json.dumps({"format": "onnxjson/1", "graph": {"node": [node], "element_metadata": lines}}).encode())
    assert [each.code for each in caught.value.findings] == ["metadata-twice"]
