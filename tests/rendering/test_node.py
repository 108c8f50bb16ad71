"""What there is to know about one node."""

import json
import struct
from pathlib import Path

import pytest

from onnxjson.codecs.serde import parse
from onnxjson.model.document import Attribute, Graph, Model, Node
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.operators import operator_signature
from onnxjson.rendering.node import (
    NodeView,
    attribute_value_text,
    documentation_fields,
    node_lines,
    nodes_lines,
    opset_of,
    view_attribute,
    view_node,
)
from onnxjson.rendering.values import as_json, node_name
from tests.generation.messages import generate, size_of
from tests.rendering.models import FUNCTION, MODEL

INDEX = Index(MODEL)
MAIN = INDEX.scopes[0]


def _view(position: int) -> NodeView:
    return view_node(MODEL, INDEX, NodeRef(MAIN, position), "m.onnx")


def test_inputs_say_who_makes_them() -> None:
    made = [(each.name, each.produced_by, each.type, each.address) for each in _view(1).inputs]
    assert made == [
        ("flag", "input", "bool", "/graph/input/0"),
        ("", "absent", None, None),
        ("nowhere", "unknown", None, None),
    ]
    weight = _view(2).inputs[0]
    assert (weight.produced_by, weight.type, weight.address) == ("initializer", "float32", "/graph/initializer/0")


def test_values_of_nodes_constant_have_the_type_of_their_constant() -> None:
    constant = Node(op_type="Constant", output=("w",), attribute=(Attribute(name="value_ints", type=7, ints=(1, 2)),))
    whole = Model(graph=Graph(node=(constant, Node(op_type="Abs", input=("w",), output=("y",)))))
    index = Index(whole)
    views = [view_node(whole, index, NodeRef(index.scopes[0], position), "m.onnx") for position in (0, 1)]
    assert views[0].outputs[0].type == views[1].inputs[0].type == "int64[2]"


def test_outputs_say_who_takes_them_through_subgraphs() -> None:
    index = Index(
        Model(
            graph=Graph(
                node=(
                    Node(op_type="Abs", output=("a",)),
                    Node(
                        attribute=(Attribute(name="g", g=Graph(node=(Node(op_type="Neg", name="n", input=("a",)),))),)
                    ),
                )
            )
        )
    )
    view = view_node(index.model, index, NodeRef(index.scopes[0], 0), "m.onnx")
    (user,) = view.outputs[0].consumers
    assert user.address == "/graph/node/1/attribute/g/g/node/0/input/0"
    assert user.node is not None
    assert (user.node.op_type, user.node.name) == ("Neg", "n")


def test_output_of_the_graph_is_a_consumer() -> None:
    (user,) = _view(1).outputs[0].consumers
    assert (user.address, user.node) == ("/graph/output/0", None)


def test_attributes_have_exact_values() -> None:
    values = {each["name"]: each for each in json.loads(as_json(_view(2)))["attributes"]}
    assert values["alpha"]["value"] == 0.1
    assert values["text"]["value"] == {"base64": "/w=="}
    assert values["floats"]["value"] == [1.0, "NaN"]
    assert (values["given"]["value"], values["given"]["reference"]) == (None, "outer")
    assert values["alpha"]["address"] == "/graph/node/2/attribute/alpha"


def test_attribute_called_value_that_is_no_tensor_is_shown() -> None:
    graph, number = json.loads(as_json(_view(1)))["attributes"]
    assert graph["value"] == {"graph": "branch", "nodes": 1}
    assert (number["name"], number["value"]) == ("value", 3)


def test_small_constant_is_shown_with_its_values() -> None:
    (constant,) = json.loads(as_json(_view(0)))["attributes"]
    assert constant["value"] == {"tensor": "int64[2]", "values": [5, str(2**60)]}
    assert "  value = tensor int64[2] [5, 1152921504606846976]" in node_lines(_view(0), 80)


def test_call_of_a_function_leads_to_it() -> None:
    assert _view(2).function == "/functions/0"
    assert _view(1).function is None


def test_opset_is_that_of_the_function_around() -> None:
    body = next(scope for scope in INDEX.scopes if scope.graph is FUNCTION)
    assert opset_of(MODEL, NodeRef(body, 0)) == 11
    assert opset_of(MODEL, NodeRef(MAIN, 0)) == 17
    assert opset_of(MODEL, NodeRef(MAIN, 2)) == 1
    assert opset_of(MODEL, NodeRef(MAIN, 3)) is None


def test_lines_hold_what_is_known_and_no_control_characters() -> None:
    text = "\n".join(node_lines(_view(1), 80) + node_lines(_view(2), 80))
    assert "\x1b" not in text
    for part in (
        "node      /block/if\\u{1b}[2J",
        "scope     block",
        "  0  flag  bool\n     input @/graph/input/0",
        "  1  (omitted)",
        "  2  nowhere\n     no producer",
        "     to output 0 of the graph, @/graph/output/0",
        "operator  my::Twice",
        "  given = the function's attribute outer",
        "  floats = [1.0, NaN]",
        "  origin  here",
    ):
        assert part in text, part


def test_of_a_long_list_the_beginning_and_the_number_are_shown() -> None:
    many = Attribute("ids", ints=tuple(range(1000)), type=7)
    weights = Attribute("w", floats=struct.pack("<65f", *[0.5] * 65), type=6)
    assert attribute_value_text(view_attribute(many, "")).endswith("62, 63, ...], 1,000 elements")
    assert attribute_value_text(view_attribute(weights, "")).endswith("0.5, ...], 65 elements")
    view = view_attribute(many, "", None)
    assert (view.value, view.count) == ([*range(1000)], 1000)
    assert attribute_value_text(view).endswith("62, 63, ...], 1,000 elements")


def test_documentation_is_shown_as_of_the_opset() -> None:
    found = operator_signature("", "Relu", 6)
    assert found is not None
    lines = node_lines(view_node(MODEL, INDEX, NodeRef(MAIN, 0), "m.onnx", documentation_fields(found)), 80)
    assert "Relu, since opset 6" in lines
    assert "    X: T" in lines


def test_list_of_nodes_says_where_each_is() -> None:
    refs = list(INDEX.nodes())
    lines = nodes_lines(refs, 80)
    assert lines[0] == "7 nodes"
    assert all(len(line) <= 80 for line in lines)
    nodes = json.loads(as_json(list(map(node_name, refs))))
    assert nodes[2] == {"address": "/graph/node/1/attribute/then_branch/g/node/0", "op_type": "Relu", "name": None}


@pytest.mark.parametrize("seed", range(30))
def test_any_node_has_a_view_in_lines_and_in_json(seed: int) -> None:
    model = parse(generate(seed, size_of(seed))).model
    index = Index(model)
    for ref in list(index.nodes())[:30]:
        view = view_node(model, index, ref, "m.onnx")
        assert all(line.isprintable() for line in node_lines(view, 80))
        assert json.loads(as_json(view))["address"] == ref.address


def test_keys_of_the_json_are_those_of_the_page() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "show.md").read_text(encoding="utf-8")
    for name in json.loads(as_json(_view(0))):
        assert f"`{name}`" in page, name
