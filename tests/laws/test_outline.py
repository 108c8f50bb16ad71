"""Laws of outlines over the models of the repository, and over graphs of extreme shapes."""

from pathlib import Path

import pytest
from onnx import parser

import onnxjson
from onnxjson.model.document import Graph, Model, Node, ValueInfo
from onnxjson.outline.lines import outline_of
from tests.diffing.mutations import mutated
from tests.laws.outline import MODELS, SHARE, forms, parted, share, typed

PATHS = sorted(MODELS.rglob("*.onnx"))


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_every_node_is_in_one_line_and_names_and_order_do_not_matter(path: Path) -> None:
    model = onnxjson.load(path)
    outline = outline_of(model)
    assert parted(model, outline) == ""
    scrambled = mutated(model, [], 3).target
    other = outline_of(scrambled)
    assert parted(scrambled, other) == ""
    assert forms(outline) == forms(other)


@pytest.mark.parametrize("name", ["encoder", "mobile"])
def test_both_exports_of_a_network_have_the_same_lines(name: str) -> None:
    one, other = [typed(onnxjson.load(MODELS / f"{name}_{exporter}.onnx")) for exporter in ("ts", "dynamo")]
    assert share(forms(outline_of(one)), forms(outline_of(other))) >= SHARE


def nodes(kind: str, count: int) -> tuple[Node, ...]:
    if kind == "chain":
        return tuple([Node(op_type="Relu", input=(f"v{at}",), output=(f"v{at + 1}",)) for at in range(count)])
    if kind == "star":
        return tuple([Node(op_type="Relu", input=("v0",), output=(f"w{at}",)) for at in range(count)])
    if kind == "circle":
        names = [(f"v{at}", f"v{(at + 7) % count}", f"v{(at + 1) % count}") for at in range(count)]
        return tuple([Node(op_type="Add", input=(one, other), output=(result,)) for one, other, result in names])
    if kind == "undefined":
        return tuple([Node(op_type="Add", input=(f"u{at}", ""), output=(f"w{at}", "")) for at in range(count)])
    return tuple([Node(op_type="Relu", input=("v0",), output=("same",)) for at in range(count)])


@pytest.mark.parametrize("kind", ["chain", "star", "circle", "undefined", "one name"])
def test_graphs_of_any_shape_have_an_outline(kind: str) -> None:
    model = Model(ir_version=9, graph=Graph(node=nodes(kind, 2_000)))
    assert parted(model, outline_of(model)) == ""


def test_a_cast_without_its_attribute_is_shown() -> None:
    node = Node(op_type="Cast", input=("a",), output=("b",))
    graph = Graph(node=(node,), output=(ValueInfo(name="b"),))
    assert outline_of(Model(ir_version=9, graph=graph)).texts() == ["b = Cast(a)"]


@pytest.mark.parametrize("model", [Model(), Model(graph=Graph())])
def test_a_model_without_nodes_has_no_lines(model: Model) -> None:
    assert outline_of(model).texts() == []


def test_functions_and_names_of_any_kind_are_made_visible() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 20, "own" : 1]>
    agraph (float[2] x) => (float[2] y) { t = own.twice(x) y = own.twice(t) }
    <opset_import: ["" : 20], domain: "own"> twice (a) => (b) { b = Add(a, a) }
    """
    model = onnxjson.from_proto(parser.parse_model(text))
    assert outline_of(model).texts() == [
        "x: float32[2]", "y = own::twice(own::twice(x)): float32[2]",
        "function own::twice(a) -> b", "  a", "  b = a + a",
    ]  # fmt: skip
    hostile = Node(op_type="Relu\x1b[31m", input=("x\x1b]0;t\x07",), output=("y\u202e",), name="a\nb")
    shown = str(outline_of(Model(graph=Graph(node=(hostile,)))))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown.splitlines()) == 1
