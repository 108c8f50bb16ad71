"""Selectors: how a person names nodes and tensors."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from onnx import helper, numpy_helper

import onnxjson
from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.model.errors import AddressError, NoMatchError, SelectorError
from onnxjson.model.index import Index
from onnxjson.model.types import parse_type
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selectors import select, select_nodes, select_tensor


def _value(name: str, elem_type: int) -> ValueInfo:
    return ValueInfo(name=name, type=Type(tensor_type=TensorType(elem_type=elem_type)))


def _conv(name: str, output: str, group: int) -> Node:
    attributes = (
        Attribute(name="group", type=2, i=group),
        Attribute(name="pads", type=7, ints=(1, 1)),
        Attribute(name="auto_pad", type=3, s=b"NOTSET"),
    )
    return Node(op_type="Conv", name=name, input=("x", "w"), output=(output,), attribute=attributes)


ALPHA = Attribute(name="alpha", type=1, f=struct.pack("<f", 0.1))
BRANCH = Graph(node=(_conv("/inner/Conv", "inner", 1),))


def _shaped() -> list[ValueInfo]:
    texts = {"c": "float32[1,N,32]", "d": "float32[1,3,32]", "clash": "seq(float32[1,?,?])", "e[0]": "float32[]"}
    return [ValueInfo(name=name, type=parse_type(text)) for name, text in texts.items()]


CONSTANT = Tensor(dims=(1,), data_type=1, raw_data=bytes(4))
MAIN = Graph(
    node=(
        _conv("/layer1/conv/Conv", "a", 1),
        _conv("/layer1/conv2/Conv", "b", 2),
        Node(op_type="LeakyRelu", name="/layer1.1/act", input=("a",), output=("c",), attribute=(ALPHA,)),
        Node(
            op_type="If", name="if", input=("c",), output=("d",), attribute=(Attribute(name="then", type=5, g=BRANCH),)
        ),
        Node(op_type="Constant", output=("k",), attribute=(Attribute(name="value", type=4, t=CONSTANT),)),
        Node(op_type="Add", name="my node", domain="com.x", input=("d", "k"), output=("clash",)),
        Node(op_type="Sub", name="clash", input=("d",), output=("e[0]",)),
        Node(op_type="Mul", name="a*", input=("d",), output=("op:Conv",)),
        Node(
            op_type="Neg",
            output=("f", ""),
            metadata_props=(
                StringStringEntry(key="namespace", value=": m.Wrap/m.enc: x.Enc/m.enc.0: x.Layer/neg: aten.neg"),
            ),
        ),
    ),
    input=(_value("x", 1), _value("w", 1)),
    output=(_value("f", 10),),
    initializer=(Tensor(name="w"), Tensor(name="if")),
    sparse_initializer=(SparseTensor(values=Tensor(name="s")),),
    value_info=(_value("a", 10), _value("b", 1), *_shaped()),
)
FUNCTION = Function(name="fn", input=("x",), output=("y",), node=(Node(op_type="Relu", input=("x",), output=("y",)),))
MODEL = Model(graph=MAIN, functions=(FUNCTION,))
INDEX = Index(MODEL)
INNER = "/graph/node/3/attribute/then/g/node/0"


def _found(selector: str) -> list[str]:
    return [ref.address.removeprefix("/graph/node/") for ref in select_nodes(MODEL, INDEX, selector)]


INSIDE = INNER.removeprefix("/graph/node/")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("@/graph/node/1", ["1"]),
        (f"@{INNER}", [INSIDE]),
        ("@/graph/node/3/attribute/#0/g/node/0", [INSIDE]),
        ("@/functions/0/node/0", ["/functions/0/node/0"]),
        ("re:/layer1/.*", ["0", "1"]),
        ("re:[ab]", ["0", "1"]),
        ("re:.*Conv", ["0", "1", INSIDE]),
        ("in:main re:.*Conv", ["0", "1"]),
        ("!in:main re:.*Conv", [INSIDE]),
        ("op:Conv", ["0", "1", INSIDE]),
        ("op:Conv in:main", ["0", "1"]),
        ("in:main", [str(position) for position in range(9)]),
        ("!in:main", [INSIDE, "/functions/0/node/0"]),
        ("op:Con?", ["0", "1", INSIDE]),
        ("op:*Relu", ["2", "/functions/0/node/0"]),
        ("op:Conv attr:group=1", ["0", INSIDE]),
        ("op:Conv !attr:group=1", ["1"]),
        ("attr:alpha", ["2"]),
        ("attr:alpha=0.1", ["2"]),
        ("attr:alpha=1e-1", ["2"]),
        ("attr:pads=[1,1] in:main", ["0", "1"]),
        ('attr:pads="[1, 1]" in:main', ["0", "1"]),
        ("attr:auto_pad=NOT* in:main", ["0", "1"]),
        ("attr:g*=2", ["1"]),
        ("name:/layer1/conv/Conv", ["0"]),
        ("name:*conv*", ["0", "1"]),
        ("output:clash", ["5"]),
        ("name:clash", ["6"]),
        ("input:k", ["5"]),
        ("domain:com.x", ["5"]),
        ("domain:ai.onnx op:If", ["3"]),
        ('domain:"" op:If', ["3"]),
        ("dtype:float16", ["0", "8"]),
        ("shape:1,*,32", ["2", "3"]),
        ("shape:[1,N,32]", ["2"]),
        ("shape:1,3,*", ["3"]),
        ("shape:1,?,*", ["5"]),
        ("shape:[]", ["6"]),
        ("!shape:*,*,* in:main", ["0", "1", "4", "6", "7", "8"]),
        ("scope:layer1", ["0", "1", "2"]),
        ("scope:/layer1/", ["0", "1", "2"]),
        ("scope:layer1/conv2", ["1"]),
        ("scope:m.enc.0", ["8"]),
        ("scope:m/enc", ["8"]),
        ("scope:*/conv?", ["1"]),
        ("/layer1/conv/Conv", ["0"]),
        ("/layer1/*", ["0", "1"]),
        ("a", ["0"]),
        ("a*", ["7"]),
        ('"a*"', ["7"]),
        ("e[0]", ["6"]),
        ("e*", ["6"]),
        ("my node", ["5"]),
        ('"my node"', ["5"]),
        ('name:"my node"', ["5"]),
        ('"my node" op:Add', ["5"]),
        ('"op:Conv"', ["7"]),
        ("/layer1/* attr:group=2", ["1"]),
        ("op:Conv !/layer1/*", [INSIDE]),
        ("  op:Conv   attr:group=2 ", ["1"]),
    ],
)
def test_selector_finds(selector: str, expected: list[str]) -> None:
    assert _found(selector) == expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("", "the selector is empty"),
        ("/layer1/conv/Conf", 'nothing is called "/layer1/conv/Conf"; did you mean "/layer1/conv/Conv"'),
        ("zzzzzz", "nothing is called \"zzzzzz\"; `onnxjson show MODEL 'op:*'` lists all nodes"),
        ("/inner/Conv in:main", 'nothing is called "/inner/Conv" in the main graph; there is one elsewhere'),
        ("w", '"w" is an input or a constant, not a node'),
        ("op:Cnov", 'no node has op:Cnov; did you mean "op:Conv"?'),
        ("op:zzz", 'no node has op:zzz; values are "Add", "Constant", "Conv", "If", "LeakyRelu" and 4 more'),
        ("attr:grp", 'no node has attr:grp; did you mean "group"?'),
        ("attr:group=7", 'no node has attr:group=7; values are "1", "2"'),
        ('attr:"group"="1 "', 'no node has attr:"group"="1 "; did you mean "1"?'),
        ('op:"Con*"', 'no node has op:"Con*"; did you mean "op:Conv"?'),
        ("shape:1,32", 'no node has shape:1,32; did you mean "shape:1,N,32" or "shape:1,3,32"'),
        ("dtype:flaot16", 'did you mean "dtype:float16"?'),
        ("op:Conv op:If", "no node matches all of op:Conv op:If; nodes for each: op:Conv 3, op:If 1"),
        ("op:", 'nothing follows op: (for an empty text write op:"")'),
        ("in:other", "the only scope is in:main"),
        ("in:main !in:main", "asks for nodes both inside and outside the main graph"),
        ("op:Conv two names", 'has 2 names without a key; put a name with spaces in quotes: "two names"'),
        ('op:Conv "open', "the quote at character 8 is not closed"),
        ("re:nothing.*", "matches no whole name of a node or tensor"),
        ("re:(", "missing ), unterminated subpattern"),
        ("clash", 'clash is the name of @/graph/node/6 (Sub "clash") and an output of @/graph/node/5 (Add'),
        ("@/graph/nodes/0", 'has no field "nodes"; did you mean "node"?'),
        ("@/graph", "@/graph is a Graph; a node is expected"),
        ("@/graph/node", "@/graph/node is a list of 9; a node is expected"),
        ("@/graph/initializer/0", "is a Tensor; a node is expected"),
        ("x\x1b[2J", 'nothing is called "x\\u{1b}[2J"'),
    ],
)
def test_what_finds_nothing_is_answered_with_what_is_near(selector: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        select_nodes(MODEL, INDEX, selector)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_the_two_spellings_that_settle_an_ambiguous_name_work() -> None:
    with pytest.raises(SelectorError, match="write name:clash or output:clash"):
        _found("clash")
    assert _found("name:clash") != _found("output:clash")


def test_one_node_is_one_node() -> None:
    assert len(select_nodes(MODEL, INDEX, "if", one=True)) == 1
    with pytest.raises(SelectorError, match=r"finds 3 nodes where one node is expected: @/graph/node/0 \(Conv"):
        select_nodes(MODEL, INDEX, "op:Conv", one=True)


def test_address_as_messages_write_it_is_a_selector() -> None:
    assert select_nodes(MODEL, INDEX, "/graph/node/0") == select_nodes(MODEL, INDEX, "@/graph/node/0")
    assert select(MODEL, INDEX, "/graph/node/0") == select(MODEL, INDEX, "@/graph/node/0")
    with pytest.raises(SelectorError, match="has 9 members"):
        select_nodes(MODEL, INDEX, "/graph/node/99")


def test_dtype_without_types_says_so() -> None:
    model = Model(graph=Graph(node=(Node(op_type="Relu", output=("y",)),)))
    with pytest.raises(SelectorError, match="does not state the types"):
        select_nodes(model, Index(model), "dtype:float32")


@pytest.mark.parametrize(
    ("selector", "address"),
    [
        ("w", "/graph/initializer/0"),
        ("if", "/graph/initializer/1"),
        ("s", "/graph/sparse_initializer/0"),
        ("x in:main", "/graph/input/0"),
        ("a", "/graph/node/0/output/0"),
        ("k", "/graph/node/4/attribute/value/t"),
        ("inner", "/graph/node/3/attribute/then/g/node/0/output/0"),
        ("@/graph/initializer/0", "/graph/initializer/0"),
        ("@/graph/node/4/attribute/value", "/graph/node/4/attribute/value/t"),
        ("@/graph/node/4/attribute/value/t", "/graph/node/4/attribute/value/t"),
        ("@/graph/input/0", "/graph/input/0"),
        ("@/graph/value_info/0", "/graph/node/0/output/0"),
        ("@/graph/node/0/input/1", "/graph/initializer/0"),
        ("@/graph/node/0/output/0", "/graph/node/0/output/0"),
        ("@/functions/0/input/0", "/functions/0/input/0"),
        ("re:in.*r", "/graph/node/3/attribute/then/g/node/0/output/0"),
        ("inn*", "/graph/node/3/attribute/then/g/node/0/output/0"),
    ],
)
def test_tensor_is_found(selector: str, address: str) -> None:
    assert select_tensor(MODEL, INDEX, selector).address == address


def test_constant_of_a_tensor_is_at_hand() -> None:
    assert select_tensor(MODEL, INDEX, "k").tensor is CONSTANT
    assert select_tensor(MODEL, INDEX, "w").scope is INDEX.scopes[0]
    assert select_tensor(MODEL, INDEX, "a").tensor is None


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("x", r"finds 2 tensors where one tensor is expected: @/graph/input/0 \(\"x\"\), @/functions/0/input/0"),
        ("op:Conv", "selects nodes; name a tensor"),
        ("ww", 'nothing is called "ww"'),
        ("@/graph/node/0", "@/graph/node/0 is a Node; the address of a node or tensor is expected"),
        ("@/graph/node/0/name", "is a value"),
    ],
)
def test_tensor_that_is_not_one_is_refused(selector: str, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        select_tensor(MODEL, INDEX, selector)


def test_initializers_of_one_name_are_refused_with_all_their_addresses() -> None:
    def twins(*more: Node) -> Graph:
        tensors = tuple(Tensor(dims=(1,), data_type=1, raw_data=bytes(4), name=name) for name in ("A", "B", "A"))
        return Graph(node=more, initializer=tensors, sparse_initializer=(SparseTensor(values=tensors[0]),))

    branch = Node(op_type="If", output=("y",), attribute=(Attribute(name="then", type=5, g=twins()),))
    model = Model(graph=twins(branch))
    index = Index(model)
    inner = "/graph/node/0/attribute/then/g"
    places = [
        f'@{graph}/{place} ("A")'
        for graph in ("/graph", inner)
        for place in ("initializer/0", "initializer/2", "sparse_initializer/0")
    ]
    for find in (select, select_tensor):
        with pytest.raises(SelectorError) as refused:
            find(model, index, "A in:main")
        assert str(refused.value).endswith(f"finds 3 tensors where one tensor is expected: {', '.join(places[:3])}")
        with pytest.raises(SelectorError, match="finds 6 tensors") as refused:
            find(model, index, "A")
        assert ", ".join(places[:5]) in str(refused.value)
        with pytest.raises(SelectorError, match="finds 2 tensors"):
            find(model, index, "B")
        found = find(model, index, "@/graph/initializer/2")
        assert isinstance(found, TensorRef)
        assert (found.address, found.name) == ("/graph/initializer/2", "A")


def test_select_finds_nodes_and_else_the_tensor_that_no_node_makes() -> None:
    assert isinstance(select(MODEL, INDEX, "a"), tuple)
    assert isinstance(select(MODEL, INDEX, "op:Conv"), tuple)
    assert isinstance(select(MODEL, INDEX, "@/graph/node/0"), tuple)
    for selector in ("w", "s", "@/graph/initializer/1", "w*"):
        assert isinstance(select(MODEL, INDEX, selector), TensorRef)


def test_name_of_a_node_and_of_a_tensor_is_settled_by_the_person() -> None:
    with pytest.raises(SelectorError, match="and another tensor; write name:if or @/graph/initializer/1"):
        select(MODEL, INDEX, "if")
    assert isinstance(select(MODEL, INDEX, "name:if"), tuple)
    with pytest.raises(AddressError):
        select(MODEL, INDEX, "@/nope")


@pytest.mark.parametrize("selector", ["/block77*", "re:/block(1|2)+/conv", "op:Conv attr:group=1", "scope:block77"])
@pytest.mark.timeout(120)
def test_hundred_thousand_nodes_are_searched_in_a_moment(selector: str) -> None:
    nodes = tuple(
        Node(
            op_type="Conv", name=f"/block{n}/conv", output=(f"t{n}",), attribute=(Attribute(name="group", type=2, i=1),)
        )
        for n in range(100_000)
    )
    model = Model(graph=Graph(node=nodes))
    index = Index(model)
    assert select_nodes(model, index, selector)


def _layers() -> Model:
    """Three layers of four nodes, which are the rounds of a repeat: the second line of the outline, and that inside."""
    nodes, x = [], "x"
    for layer in range(3):
        h, y, z, out = (f"{name}{layer}" for name in "hyzo")
        for operator, inputs, output in (
            ("MatMul", (x, f"{layer}a"), h),
            ("Relu", (h,), y),
            ("MatMul", (y, f"{layer}b"), z),
            ("Add", (x, z), out),
        ):
            nodes.append(helper.make_node(operator, inputs, [output], f"/layers.{layer}/{output}/{operator}"))
        x = out
    weights = [
        numpy_helper.from_array(np.full((4, 4), layer, np.float32), f"{layer}{part}")
        for layer in range(3)
        for part in "ab"
    ]
    x_type, out_type = (helper.make_tensor_value_info(name, 1, [2, 4]) for name in ("x", x))
    graph = helper.make_graph(nodes, "layers", [x_type], [out_type], weights)
    return onnxjson.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("repeat:layers", range(12)),
        ("repeat:layers[2]", [8, 9, 10, 11]),
        ("repeat:lay*[0] op:MatMul", [0, 2]),
        ("line:3", range(12)),
        ("block:Linear !op:Add !op:Relu", [0, 2, 4, 6, 8, 10]),
        ("!repeat:layers[1] op:Relu", [1, 9]),
    ],
)
def test_lines_of_the_outline_select_their_nodes(selector: str, found: Sequence[int]) -> None:
    model = _layers()
    assert [ref.position for ref in select_nodes(model, Index(model), selector)] == list(found)
    assert [each.address for each in model.select(selector)] == [f"/graph/node/{at}" for at in found]


def test_line_that_the_outline_lacks_is_an_error_with_what_it_has() -> None:
    model = _layers()
    with pytest.raises(NoMatchError, match=r"no node has line:9; the outline has 3 lines"):
        select_nodes(model, Index(model), "line:9")
    with pytest.raises(NoMatchError, match=r'no node has block:Attention; values are "Linear"'):
        select_nodes(model, Index(model), "block:Attention")
    with pytest.raises(NoMatchError, match=r"no node has repeat:layers\[3\]"):
        select_nodes(model, Index(model), "repeat:layers[3]")
