"""``onnxjson.editing.drafts``."""

from dataclasses import dataclass

import msgspec
import pytest

from onnxjson.editing.drafts import Recognition, paths_of_nodes
from onnxjson.model.document import Function, Graph, Model, Node
from onnxjson.model.errors import AddressError


def model(*nodes: Node, functions: tuple[Function, ...] = ()) -> Model:
    return Model(graph=Graph(node=nodes), functions=functions)


def node(operator: str, *made: str, name: str | None = None) -> Node:
    return Node(op_type=operator, output=made, name=name)


A, B, C, D = node("Relu", "a", name="one"), node("Neg", "b"), node("Split", "c", "d"), node("Exp", "e", name="two")


@dataclass
class Case:
    block: str
    after: tuple[Node, ...]
    found: str


@pytest.mark.parametrize(
    "case",
    [
        Case("/graph/node/1", (A, B, C, D), "/graph/node/1"),
        Case("/graph/node/1", (D, A, C, B), "/graph/node/3"),
        Case("/graph/node/0", (B, node("Relu", "renamed", name="one")), "/graph/node/1"),
        Case("/graph/node/2", (node("Split", "c2", "d"), A), "/graph/node/0"),
        Case("/graph/node/1-2", (D, A, node("Abs", "x"), B, C), "/graph/node/3-4"),
    ],
)
def test_nodes_are_known_by_what_they_make_else_by_their_names(case: Case) -> None:
    ways = paths_of_nodes(model(A, B, C, D), [case.block])
    assert Recognition(model(*case.after)).blocks([case.block], ways) == {case.block: case.found}


@pytest.mark.parametrize(
    ("block", "after"),
    [
        ("/graph/node/1", (A, C, D)),
        ("/graph/node/0", (B, node("Tanh", "t", name="one"))),
        ("/graph/node/1", (D, A, B, B)),
        ("/graph/node/1-2", (A, B, D, C)),
        ("/graph/node/1-2", (A, C, B, D)),
        ("/graph/node/1-2", (A, B)),
    ],
    ids=["gone", "another operator of the name", "two of it", "apart", "turned round", "one gone"],
)
def test_what_cannot_be_told_is_refused(block: str, after: tuple[Node, ...]) -> None:
    ways = paths_of_nodes(model(A, B, C, D), [block])
    with pytest.raises(AddressError, match="of this text moved or changed"):
        Recognition(model(*after)).blocks([block], ways)


def test_a_node_of_a_function_is_looked_for_in_that_function() -> None:
    first, second = Function(name="f", domain="d", node=(A, B)), Function(name="g", domain="d", node=(A, B))
    ways = paths_of_nodes(model(functions=(first, second)), ["/functions/1/node/0"])
    turned = model(functions=(msgspec.structs.replace(second, node=(D, A)), first))
    assert Recognition(turned).blocks(["/functions/1/node/0"], ways) == {"/functions/1/node/0": "/functions/0/node/1"}
    with pytest.raises(AddressError):
        Recognition(model(functions=(first,))).blocks(["/functions/1/node/0"], ways)
