"""Nodes are judged by the operators of the imported version, and valid models are never accused."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest
from msgspec.structs import replace
from onnx import defs, helper

from onnxjson.codecs.serde import from_proto, parse
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, OperatorSetId, Tensor, Type, ValueInfo
from onnxjson.model.messages import value_of
from onnxjson.model.operator_checks import check_operators
from onnxjson.model.operators import (
    PATH,
    all_operators,
    attribute_defaults,
    newest_version,
    operator_signature,
    table_signature,
    type_of,
)
from onnxjson.model.opset_checks import check_opsets
from tests.model.operator_table import table

MODELS = sorted((Path(__file__).parents[1] / "models").rglob("*.onnx"))


def value(name: str, kind: str) -> ValueInfo:
    return ValueInfo(name=name, type=type_of(kind))


def model(*nodes: Node, opset: int = 20, inputs: tuple[ValueInfo, ...] = (), **fields: object) -> Model:
    imports = (OperatorSetId("", opset), OperatorSetId("own", 1))
    graph = Graph(node=nodes, input=inputs, **fields)  # type: ignore[arg-type]
    return Model(ir_version=10, opset_import=imports, graph=graph)


def found(of: Model) -> list[str]:
    return [f"{each.address}: {each.message}" for each in check_operators(of)]


FLOAT, HALF, TEXTS = (
    value(*each.split()) for each in ("x tensor(float)", "h tensor(float16)", "q seq(tensor(string))")
)


def test_the_table_is_that_of_the_installed_onnx() -> None:
    assert PATH.read_bytes() == table(), "run: python -m tests.model.operator_table"


def test_the_table_has_what_onnx_has() -> None:
    for domain, name, version in all_operators():
        known, ours = operator_signature(domain, name, version), table_signature(domain, name, version)
        assert known is not None
        assert ours is not None
        assert [sorted(map(repr, each.types)) for each in known.inputs] == [
            sorted(map(repr, each.types)) for each in ours.inputs
        ]
        plain = {key: each._replace(doc="", default=None) for key, each in known.attributes.items()}
        assert ours._replace(inputs=(), outputs=()) == known._replace(doc="", inputs=(), outputs=(), attributes=plain)


def test_defaults_of_the_table_are_those_of_onnx() -> None:
    for domain, name, version in all_operators():
        attributes = defs.get_schema(name, version, domain).attributes.values()
        protos = {each.name: each.default_value for each in attributes if each.default_value.type}
        defaults = attribute_defaults(domain, name, version)
        assert {key: (each.name, each.type) for key, each in defaults.items()} == {
            key: (each.name, each.type) for key, each in protos.items()
        }
        for key, each in defaults.items():
            wanted = helper.get_attribute_value(protos[key])
            texts = [part.decode() if isinstance(part, bytes) else part for part in _several(wanted)]
            assert list(_several(value_of(each))) == texts


def _several(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def test_defaults_are_known_without_onnx() -> None:
    program = (
        "import sys\nfrom onnxjson.model.operators import attribute_defaults\n"
        "assert attribute_defaults('', 'Gemm', 20)['transB'].i == 0 and 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_valid_model_is_checked_without_onnx_and_without_a_process() -> None:
    program = (
        "import sys\nfrom onnxjson.running.checking import check\nassert check(sys.argv[1]) == ()\n"
        "assert not {'onnx', 'numpy', 'onnxjson.running.worker'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(MODELS[0])], check=True)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_exported_models_have_no_mistakes(path: Path) -> None:
    assert check_operators(parse(path.read_bytes()).model) == ()


def test_an_operator_of_another_version_is_unknown() -> None:
    gelu = Node(op_type="Gelu", input=("x",), output=("y",))
    assert found(model(gelu, opset=20)) == []
    hint = "it exists from version 20; the model imports 19; convert-opset changes that"
    assert [each.hint for each in check_operators(model(gelu, opset=19))] == [hint]


@pytest.mark.parametrize(
    "node",
    [
        Node(op_type="Nope", domain="own", input=("x",), output=("y",)),
        Node(op_type="Nope", domain="nowhere", input=("x",), output=("y",)),
        Node(op_type="Softmax", domain="ai.onnx", input=("x",), output=("y",)),
        Node(op_type="ATen", input=("x",), output=("y",)),
        Node(op_type="Softmax", input=("x",), output=("y",), attribute=(Attribute(name="__note", type=2),)),
        Node(op_type="Softmax", input=("x",), output=("y",), attribute=(Attribute(name="axis"),)),
        Node(op_type="Resize", input=("x", "", "s", ""), output=("y",)),
        Node(op_type=None, output=("y",)),
    ],
    ids=str,
)
def test_what_nobody_can_judge_is_no_mistake(node: Node) -> None:
    assert found(model(node)) == []


def test_versions_that_onnx_does_not_know_yet_are_not_judged() -> None:
    nodes = Node(op_type="Future", output=("y",)), Node(op_type="Softmax", output=("z",))
    newest = newest_version("") or 0
    for opset in (newest + 1, 1 << 40, 0, -1):
        assert found(model(*nodes, opset=opset)) == []
    assert len(found(model(*nodes, opset=newest))) == 2


def test_a_function_of_the_model_is_judged_inside_only_and_by_its_own_version() -> None:
    body = Node(op_type="Gelu", input=("a",), output=("b",)), Node(op_type="SoftMax", input=("b",), output=("c",))
    function = Function(
        name="Softmax", domain="", input=("a",), output=("c",), node=body, opset_import=(OperatorSetId("", 17),)
    )
    call = Node(op_type="Softmax", input=("x", "x"), output=("y", "z"))
    whole = msgspec.structs.replace(model(call, opset=20), functions=(function,))
    assert [each.partition(": ")[0] for each in found(whole)] == [
        "/functions/0/node/0/op_type",
        "/functions/0/node/1/op_type",
    ]


def test_dtypes_are_followed_through_nodes_and_into_subgraphs() -> None:
    half = Node(op_type="Cast", input=("x",), output=("c",), attribute=(Attribute(name="to", type=2, i=10),))
    relu = Node(op_type="Relu", input=("c",), output=("r",))
    add = Node(op_type="Add", input=("x", "r"), output=("y",))
    message = 'Add needs one dtype for "x" and "r", but they are float32 and float16'
    assert found(model(half, relu, add, inputs=(FLOAT,))) == [f"/graph/node/2/input/1: {message}"]
    inner = Attribute(name="then_branch", type=5, g=Graph(node=(add,)))
    branch = Node(op_type="If", input=("b",), output=("z",), attribute=(inner, Attribute(name="else_branch", type=5)))
    outer = model(half, relu, branch, inputs=(FLOAT, value("b", "tensor(bool)")))
    assert found(outer) == [f"/graph/node/2/attribute/then_branch/g/node/0/input/1: {message}"]


def test_one_mistake_has_no_consequences() -> None:
    wrong = Node(op_type="MatMul", input=("x", "h"), output=("y",))
    after = [Node(op_type="Add", input=("y", name), output=(f"z{name}",)) for name in ("x", "h")]
    assert len(found(model(wrong, *after, inputs=(FLOAT, HALF)))) == 1


def test_what_has_no_known_dtype_is_not_judged() -> None:
    nodes = [
        Node(op_type="Add", input=("x", "unknown"), output=("y",)),
        Node(op_type="Add", input=("x", "untyped"), output=("z",)),
        Node(op_type="SequenceLength", input=("q",), output=("n",)),
        Node(op_type="Loop", input=("", "", "x", "h"), output=("o", "p"), attribute=(Attribute(name="body", type=5),)),
        Node(op_type="Add", input=("o", "h"), output=("w",)),
    ]
    untyped = ValueInfo(name="untyped", type=Type())
    constants = (Tensor(name="unknown", data_type=0),)
    assert found(model(*nodes, inputs=(FLOAT, HALF, TEXTS, untyped), initializer=constants)) == []


def test_a_tensor_is_not_a_sequence() -> None:
    node = Node(op_type="SequenceLength", input=("x",), output=("n",))
    message = 'input 0 of SequenceLength must be no tensor, but "x" is float32'
    assert found(model(node, inputs=(FLOAT,))) == [f"/graph/node/0/input/0: {message}"]


def test_ten_thousand_wrong_names_take_no_long_time() -> None:
    nodes = [Node(op_type=f"Sofmax{number}", input=("x",), output=(f"y{number}",)) for number in range(2000)]
    assert len(found(model(*nodes))) == 2000


def test_nodes_that_differ_in_values_and_names_are_judged_alike() -> None:
    def relu(number: int) -> Node:
        own = (Attribute(name="own", type=2, i=number),)
        return Node(op_type="Relu", input=("x",), output=(f"r{number}",), attribute=own)

    assert found(model(relu(1), relu(2), inputs=(FLOAT,))) == [
        f'/graph/node/{position}/attribute/own: Relu has no attribute "own"' for position in (0, 1)
    ]
    casts = [Node(("x",), (f"c{to}",), op_type="Cast", attribute=(Attribute("to", i=to, type=2),)) for to in (1, 7)]
    relus = [Node(input=(f"c{to}",), output=(f"d{to}",), op_type="Sqrt") for to in (1, 7)]
    assert found(model(*casts, *relus, inputs=(FLOAT,))) == [
        '/graph/node/3/input/0: input 0 of Sqrt must be bfloat16, float16, float32 or float64, but "c7" is int64'
    ]
    wrong = [Node(input=("h", "x"), output=(f"w{each}",), op_type="Add") for each in "ab"]
    also = Node(input=("i", "x"), output=("wc",), op_type="Add")
    names = found(model(*wrong, also, inputs=(FLOAT, HALF, value("i", "tensor(float16)"))))
    assert [each.count('"h"') for each in names] == [1, 1, 0]


def _text_graph(opset: int, body: str) -> Model:
    return from_proto(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["":{opset}]> g {body}'))


@pytest.mark.parametrize(
    ("opset", "stored", "message"),
    [
        (19, b"wrap", ""),
        (18, b"wrap", 'the attribute "mode" of Pad may be "wrap" since version 19; the model imports 18'),
        (18, b"constnt", 'the attribute "mode" of Pad must not be "constnt"; did you mean "constant"?'),
        (18, b"zzz", 'the attribute "mode" of Pad must not be "zzz"; it may be constant, reflect or edge'),
        (18, b"\xff", 'the attribute "mode" of Pad is not valid UTF-8; in proto-JSON, write bytes'),
    ],
)
def test_texts_of_attributes_are_those_of_the_operator(opset: int, stored: bytes, message: str) -> None:
    pad = Node(
        op_type="Pad", input=("x", "x"), output=("y",), attribute=(Attribute(name="mode", type=3, s=stored),)
    )  # fmt: skip
    problems = [each for each in check_operators(model(pad, opset=opset)) if each.code == "wrong-attribute-value"]
    assert [f"{each.message}; {each.hint}".startswith(message) for each in problems] == [True] * bool(message)
    assert all(each.address == "/graph/node/0/attribute/mode" for each in problems)


def test_nodes_with_the_same_inputs_and_other_texts_are_each_judged() -> None:
    first, second = (
        Node(
            op_type="DepthToSpace", input=("x",), output=(text,),
            attribute=(Attribute(name="blocksize", type=2, i=2), Attribute(name="mode", type=3, s=text.encode())),
        )
        for text in ("CRD", "CDR")
    )  # fmt: skip
    base = model(first, opset=20)
    assert base.graph is not None
    both = replace(base, graph=replace(base.graph, node=(first, second)))
    assert [each.address for each in check_operators(both)] == ["/graph/node/1/attribute/mode"]


def test_texts_of_domains_that_onnx_does_not_know_may_be_bytes() -> None:
    node = Node(
        op_type="Engine", domain="own", input=("x",), output=("y",),
        attribute=(Attribute(name="plan", type=3, s=b"\xff\x00"),),
    )  # fmt: skip
    assert check_operators(model(node, opset=20)) == ()


@pytest.mark.parametrize(
    ("perm", "message"),
    [
        ("0,2,1", ""),
        ("1,0", "perm has 2 axes, but the input has 3 dimensions"),
        ("0,1,1", "perm must have each of the axes 0 to 2 once, but it is [0, 1, 1]"),
    ],
)
def test_a_permutation_has_each_axis_of_its_input_once(perm: str, message: str) -> None:
    body = f"(float[2,3,4] x) => (float[a,b,c] y) {{ y = Transpose<perm=[{perm}]>(x) }}"
    assert [each.message for each in check_operators(_text_graph(17, body))] == [message] * bool(message)


def test_what_one_old_version_causes_at_many_nodes_is_one_finding() -> None:
    nodes = " ".join(f"y{number} = Reshape<allowzero=0>(x, s)" for number in range(34))
    (one,) = check_operators(_text_graph(7, f"(float[2] x, int64[1] s) => (float[2] y0) {{ {nodes} }}"))
    assert one.address == "/graph/node/0/attribute/allowzero"
    assert one.message == (
        'Reshape has no attribute "allowzero", at 34 nodes (/graph/node/0, /graph/node/1, /graph/node/2 and 31 more)'
    )
    assert one.hint == "that exists since version 14; the model imports 7; `stamp-opset 14` corrects a wrong import"


def test_a_version_that_nobody_knows_is_a_warning_that_counts_the_nodes_not_checked() -> None:
    spoiled = model(Node(op_type="Softmax", input=("x",), output=("y",), attribute=(Attribute(name="axes"),)), opset=99)
    (one,) = check_opsets(spoiled)
    assert (one.severity, one.code, one.address) == ("warning", "unknown-opset", "/opset_import/0")
    assert one.message.startswith("version 99 of ai.onnx is newer than the newest known one")
    assert one.hint.startswith("1 node of this domain was not checked")
