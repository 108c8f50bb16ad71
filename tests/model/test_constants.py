"""The constant behind a name, and the domain in which a node Constant counts."""

import struct

import pytest
from msgspec.structs import replace

from onnxjson.diffing.matching.models import align
from onnxjson.model.constants import (
    Constant,
    attribute_tensor,
    constant_value,
    copied_constant,
    find_constant,
    is_constant,
    own_constant,
)
from onnxjson.model.document import Attribute, Graph, Model, Node, SparseTensor, Tensor, ValueInfo
from onnxjson.model.index import Index
from onnxjson.patterns.selectors import select_tensor
from onnxjson.storage.constant_reading import find_tensor
from tests.editing.graphs import model_of

VALUE = Tensor(dims=(1,), data_type=1, raw_data=struct.pack("<f", 2.0))
OPERATOR = Node(op_type="Constant", output=("c",), attribute=(Attribute(name="value", type=4, t=VALUE),))
DEFAULT_DOMAINS = (None, "", "ai.onnx")


def model(*nodes: Node, **fields: tuple[object, ...]) -> Model:
    return Model(graph=Graph(node=nodes, **fields))  # type: ignore[arg-type]


def constant(domain: str | None) -> Node:
    return Node(op_type="Constant", output=("c",), attribute=OPERATOR.attribute, domain=domain)


def found(whole: Model, name: str) -> Constant | None:
    return find_constant(Index(whole).scopes[0], name)


@pytest.mark.parametrize("domain", DEFAULT_DOMAINS)
def test_constant_counts_in_every_spelling_of_the_default_domain(domain: str | None) -> None:
    whole = model(constant(domain))
    held = found(whole, "c")
    assert held is not None
    assert held.tensor is VALUE
    assert select_tensor(whole, Index(whole), "c").tensor is VALUE
    assert find_tensor(whole, "c").raw_data == VALUE.raw_data


def test_constant_of_another_domain_is_an_operator_like_any_other() -> None:
    whole = model(constant("com.example"))
    assert found(whole, "c") is None
    assert select_tensor(whole, Index(whole), "c").tensor is None
    with pytest.raises(Exception, match="c"):
        find_tensor(whole, "c")


@pytest.mark.parametrize("domain", ["com.example", "ai.onnx"])
def test_initializer_and_constant_of_one_name_are_a_pair_in_the_default_domain_alone(domain: str) -> None:
    base = model(Node(op_type="Neg", input=("c",), output=("y",)), initializer=(Tensor(dims=(1,), name="c"),))
    target = model(constant(domain), Node(op_type="Neg", input=("c",), output=("y",)))
    alignment = align(base, target)
    assert ("c" in alignment.graphs[0].values) is (domain == "ai.onnx")


COMPUTED = """g (float[2] x, bool k, float[2] d = {1, 2}) => (float[2] y) <float[2] w = {1, 2}, bool one = {1}> {
    copy = Identity(w)
    twice = Identity(copy)
    sum = Add(twice, w)
    own = local.f(w)
    noise = RandomNormalLike(w)
    default = Neg(d)
    size = Shape(x)
    inner = If(one) <then_branch = t () => (float[2] p) { p = Neg(sum) },
                     else_branch = e () => (float[2] q) { q = Neg(w) }>
    varies = If(one) <then_branch = v () => (float[2] r) { r = Neg(x) },
                      else_branch = u () => (float[2] s) { s = Neg(w) }>
    random = If(one) <then_branch = n () => (float[2] z) { z = RandomNormalLike(w) },
                      else_branch = m () => (float[2] o) { o = Neg(w) }>
    y = Add(x, sum)
}"""


def test_what_is_computed_from_constants_alone_is_a_constant() -> None:
    index = Index(model_of(COMPUTED))
    main = next(scope for scope in index.scopes if scope.kind == "main")
    constant = {name for name in main.defined_names if is_constant(main, name)}
    assert constant == {"w", "one", "copy", "twice", "sum", "inner"}
    branch = next(scope for scope in index.scopes if "p" in scope.producers)
    assert [is_constant(branch, name) for name in ("p", "sum", "x", "none")] == [True, True, False, False]


def test_copies_of_constants_are_followed_to_their_elements() -> None:
    scope = Index(model_of(COMPUTED)).scopes[0]
    found = [copied_constant(scope, name) for name in ("w", "copy", "twice", "sum", "x", "none")]
    assert [each and each.name for each in found] == ["w", "w", "w", None, None, None]
    cycle = model(Node(("b",), ("a",), op_type="Identity"), Node(("a",), ("b",), op_type="Identity"))
    assert copied_constant(Index(cycle).scopes[0], "a") is None


def test_what_is_constant_follows_a_changed_graph() -> None:
    whole = model_of("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { c = Neg(w) y = Add(x, c) }")
    scope = Index(whole).scopes[0]
    assert is_constant(scope, "c")
    nodes = scope.graph.node
    scope.follow(replace(scope.graph, node=(replace(nodes[0], input=("x",)), nodes[1])), [0])
    assert not is_constant(scope, "c")


def test_initializers_of_graphs_around_are_found_and_shadowed() -> None:
    inner = Graph(node=(Node(op_type="Neg", input=("w",), output=("n",)),), output=(ValueInfo(name="n"),))
    shadowing = Graph(node=(Node(op_type="Neg", input=("x",), output=("w",)),), output=(ValueInfo(name="w"),))
    owner = Node(
        op_type="If",
        input=("x",),
        output=("y",),
        attribute=(Attribute(name="then_branch", type=5, g=inner), Attribute(name="else_branch", type=5, g=shadowing)),
    )
    index = Index(model(owner, initializer=(Tensor(name="w", data_type=1),)))
    main, then, other = index.scopes
    held = find_constant(then, "w")
    assert held is not None
    assert held.scope is main
    assert own_constant(then, "w") is None
    assert find_constant(other, "w") is None
    assert find_constant(then, "missing") is None


def test_default_of_an_input_is_told_from_a_fixed_constant() -> None:
    whole = model(initializer=(VALUE_NAMED,), input=(ValueInfo(name="w"),))
    held = found(whole, "w")
    assert held is not None
    assert held.is_default


VALUE_NAMED = Tensor(dims=(1,), data_type=1, raw_data=VALUE.raw_data, name="w")


def test_sparse_constants_have_a_value_and_no_dense_tensor() -> None:
    sparse = SparseTensor(values=VALUE_NAMED, dims=(4,))
    held = found(model(sparse_initializer=(sparse,)), "w")
    assert held is not None
    assert (held.value, held.tensor) == (sparse, None)


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (Attribute(name="value", type=4, t=VALUE), VALUE),
        (Attribute(name="value_int", type=2, i=-3), Tensor(data_type=7, raw_data=struct.pack("<q", -3))),
        (Attribute(name="value_ints", type=7, ints=(1, 2)), Tensor((2,), 7, raw_data=struct.pack("<2q", 1, 2))),
        (Attribute(name="value_float", type=1, f=b"abcd"), Tensor(data_type=1, raw_data=b"abcd")),
        (Attribute(name="value_floats", type=6, floats=b"abcdefgh"), Tensor((2,), 1, raw_data=b"abcdefgh")),
        (Attribute(name="value_string", type=3, s=b"a"), Tensor(data_type=8, string_data=(b"a",))),
        (Attribute(name="value_strings", type=8, strings=(b"a", b"b")), Tensor((2,), 8, string_data=(b"a", b"b"))),
        (Attribute(name="value_int", type=2), None),
        (Attribute(name="axis", type=2, i=1), None),
    ],
)
def test_each_attribute_of_constant_is_a_tensor(attribute: Attribute, expected: Tensor | None) -> None:
    assert constant_value(attribute) == expected


def test_numbers_of_any_operator_are_tensors_and_graphs_are_not() -> None:
    assert attribute_tensor(Attribute(name="axis", type=2, i=1)) == Tensor(data_type=7, raw_data=struct.pack("<q", 1))
    assert attribute_tensor(Attribute(name="body", type=5, g=Graph())) is None


@pytest.mark.parametrize("attributes", [(), OPERATOR.attribute * 2, (Attribute(name="value", ref_attr_name="v"),)])
def test_constant_without_one_value_is_a_constant_of_unknown_value(attributes: tuple[Attribute, ...]) -> None:
    held = found(model(Node(op_type="Constant", output=("c",), attribute=attributes)), "c")
    assert held is not None
    assert held.value is None
