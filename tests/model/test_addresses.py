"""Addresses of the records of a model."""

import pytest

from onnxjson.codecs.serde import parse
from onnxjson.model.addresses import (
    attribute_segments,
    escape,
    find_element,
    format_address,
    parse_address,
    resolve,
    walk,
)
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, Record, Tensor
from onnxjson.model.errors import AddressError
from tests.generation.messages import generate, size_of

INNER = Node(op_type="Relu", output=("r",))
BRANCH = Attribute(name="then_branch", type=5, g=Graph(node=(INNER,)))
ATTRIBUTES = (
    BRANCH,
    Attribute(name="a/b~c", type=2, i=1),
    Attribute(name="twice", type=2, i=2),
    Attribute(name="twice", type=2, i=3),
    Attribute(type=2, i=4),
    Attribute(name="#1", type=2, i=5),
    Attribute(name="", type=2, i=6),
)
MODEL = Model(
    ir_version=8,
    graph=Graph(node=(Node(op_type="If", attribute=ATTRIBUTES),), initializer=(Tensor(name="w", dims=(2, 3)),)),
    functions=(
        Function(name="f", attribute=("alpha",), node=(Node(attribute=(Attribute(name="alpha", f=b"abcd"),)),)),
    ),
)


def test_segments_are_escaped_as_in_rfc_6901() -> None:
    assert escape("a/b~c~1") == "a~1b~0c~01"
    address = format_address(["graph", "node", 0, "attribute", "a/b~c"])
    assert address == "/graph/node/0/attribute/a~1b~0c"
    assert parse_address(address) == ("graph", "node", "0", "attribute", "a/b~c")
    assert parse_address("") == ()
    assert format_address([]) == ""


def test_attributes_go_by_name_where_it_is_unique_and_by_position_elsewhere() -> None:
    assert attribute_segments(ATTRIBUTES) == ["then_branch", "a/b~c", "#2", "#3", "#4", "#5", ""]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", MODEL),
        ("/ir_version", 8),
        ("/graph/node/0/attribute/then_branch/g/node/0", INNER),
        ("/graph/node/0/attribute/#0/g/node/0/op_type", "Relu"),
        ("/graph/node/0/attribute/a~1b~0c/i", 1),
        ("/graph/node/0/attribute/#3/i", 3),
        ("/graph/node/0/attribute/#5/i", 5),
        ("/graph/node/0/attribute//i", 6),
        ("/functions/0/node/0/attribute/alpha/f", b"abcd"),
        ("/functions/0/attribute/0", "alpha"),
        ("/graph/initializer/0/dims/1", 3),
        ("/graph/initializer", (Tensor(name="w", dims=(2, 3)),)),
        ("/graph/unknown_fields", b""),
    ],
)
def test_address_leads_to_what_stands_there(address: str, expected: object) -> None:
    assert resolve(MODEL, address) == expected


def test_attribute_that_is_named_by_position_has_its_usual_spelling() -> None:
    found = find_element(MODEL, "/graph/node/0/attribute/#0/g/node/0")
    assert found == ("/graph/node/0/attribute/then_branch/g/node/0", INNER)
    assert find_element(MODEL, "/graph/node/0/attribute/#1").address == "/graph/node/0/attribute/a~1b~0c"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("graph", '"graph" is not an address; an address begins with a slash, such as /graph/node/0'),
        ("/graph/node/0/attribute/a~", '"/graph/node/0/attribute/a~" has a "~" at character 25; in an address write '),
        ("/grahp", 'the model (Model) has no field "grahp"; did you mean "graph"?'),
        ("/graph/zzz", '/graph (Graph) has no field "zzz"; there are node, name, initializer'),
        ("/graph/node/1", '/graph/node has 1 member, 0, none at "1"'),
        ("/graph/node/x", '/graph/node is a list; "x" is not a position; it has 1 member, 0'),
        ("/graph/node/01", '"01" is not a position'),
        ("/graph/node/٣", "is not a position"),
        ("/graph/node/-1", '"-1" is not a position'),
        ("/graph/node/0/attribute/#7", '/graph/node/0/attribute has 7 members, 0 to 6, none at "#7"'),
        ("/graph/node/0/attribute/twice", 'has 2 members called "twice"; write #2 or #3'),
        ("/graph/node/0/attribute/then_brunch", 'has no member "then_brunch"; did you mean "then_branch"?'),
        ("/graph/node/0/attribute/then_branch/t", "then_branch has no t here; it has name, g, type"),
        ("/ir_version/0", '/ir_version is a value and has nothing at "0"'),
        ("/graph/\x1b[2J", 'has no field "\\u{1b}[2J"'),
    ],
)
def test_address_that_leads_nowhere_is_answered_with_what_is_near(address: str, message: str) -> None:
    with pytest.raises(AddressError) as caught:
        resolve(MODEL, address)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_walk_gives_every_record_in_order() -> None:
    assert [address for address, record in walk(MODEL) if isinstance(record, Node | Attribute)][:5] == [
        "/graph/node/0",
        "/graph/node/0/attribute/then_branch",
        "/graph/node/0/attribute/then_branch/g/node/0",
        "/graph/node/0/attribute/a~1b~0c",
        "/graph/node/0/attribute/#2",
    ]


@pytest.mark.parametrize("seed", range(40))
def test_every_record_of_any_model_is_found_again_at_its_address(seed: int) -> None:
    model = parse(generate(seed, size_of(seed))).model
    found: dict[str, Record] = {}
    for address, record in walk(model):
        assert address not in found
        found[address] = record
    for address, record in found.items():
        assert resolve(model, address) is record
        assert format_address(parse_address(address)) == address


@pytest.mark.timeout(120)
def test_node_of_very_many_attributes_takes_no_longer_than_many_nodes() -> None:
    attributes = tuple(Attribute(name=f"a{number}") for number in range(50_000))
    assert sum(1 for _ in walk(Model(graph=Graph(node=(Node(attribute=attributes),))))) == 50_003
