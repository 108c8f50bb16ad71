"""Where an element of the base stands afterwards."""

import pytest

from onnxjson.model import document as d
from onnxjson.model.errors import AddressError
from onnxjson.patching.patch import Patch
from tests.patching.test_deriving import attributes_of, graph_of, number

MOVED = Patch.between(graph_of("a", "b", "c", "d"), graph_of("c", "new", "a", "d"))


@pytest.mark.parametrize(
    ("address", "after"),
    [
        ("", ""), ("/graph", "/graph"), ("/graph/node", "/graph/node"), ("/graph/node/0", "/graph/node/2"),
        ("/graph/node/1", None), ("/graph/node/1/output/0", None), ("/graph/node/2", "/graph/node/0"),
        ("/graph/node/3/output/0", "/graph/node/3/output/0"),
        ("/graph/node/3/attribute/x~1y~0/g/node/7", "/graph/node/3/attribute/x~1y~0/g/node/7"),
        ("/graph/input/0/name", "/graph/input/0/name"), ("/functions/2/node/5", "/functions/2/node/5"),
        ("/graph/node/0/unknown_fields", "/graph/node/2/unknown_fields"),
    ],
)  # fmt: skip
def test_members_are_followed(address: str, after: str | None) -> None:
    assert MOVED.where(address) == after


def test_attributes_are_followed_by_name_and_by_position() -> None:
    base = attributes_of(number("a", 1), number(None, 2), number("b", 3), number(None, 4))
    patch = Patch.between(base, attributes_of(number("c", 1), number(None, 4), number("b", 3)))
    attribute = "/graph/node/0/attribute"
    assert patch.where(f"{attribute}/a") is None
    assert patch.where(f"{attribute}/b/i") == f"{attribute}/b/i"
    assert patch.where(f"{attribute}/#3") == f"{attribute}/#1"
    assert patch.where(f"{attribute}/#1") is None


def test_fields_that_go_are_gone() -> None:
    patch = Patch.between(d.Model(domain="a", graph=d.Graph(name="g")), d.Model(doc_string="x"))
    assert patch.where("/domain") is None
    assert patch.where("/graph") is None
    assert patch.where("/graph/name") is None
    assert patch.where("/graph/node/0") is None
    assert patch.where("/doc_string") is None  # nothing stood there


def test_slots_of_a_field_of_many_values_stay_as_long_as_there_are_so_many() -> None:
    def model(*inputs: str) -> d.Model:
        return d.Model(graph=d.Graph(node=(d.Node(name="n", input=inputs),)))

    patch = Patch.between(model("a", "b", "c"), model("x", "y"))
    assert patch.where("/graph/node/0/input") == "/graph/node/0/input"
    assert patch.where("/graph/node/0/input/1") == "/graph/node/0/input/1"
    assert patch.where("/graph/node/0/input/2") is None


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("graph", "is not an address"),
        ("/graph/nodes/0", 'Graph has no field "nodes"'),
        ("/graph/node/x", '"x" is not a position in a list'),
        ("/graph/node/0/attribute/#x", '"x" is not a position in a list'),
        ("/graph/~2", "write ~0 for it"),
    ],
)
def test_addresses_that_no_model_has_are_refused(address: str, says: str) -> None:
    with pytest.raises(AddressError) as caught:
        MOVED.where(address)
    assert says in str(caught.value)
