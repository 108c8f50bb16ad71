"""The cost of a model: every formula against a computation by hand."""

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.checking.amounts import Amount, UnknownAmountError, as_amount, is_at_least, largest, named, plain
from onnxjson.checking.cost import cost_of
from onnxjson.checking.formulas import FORMULAS
from onnxjson.model.dimensions import substitute, with_dimension_names
from onnxjson.model.document import Attribute, Node, Tensor
from onnxjson.model.errors import ParameterError
from tests.checking.texts import parsed

MS = "com.microsoft"

MODELS = Path(__file__).parents[1] / "models"

WORK = [line.split(" | ") for line in Path(__file__).with_name("work.txt").read_text().splitlines()]
"""Name, MACs, other FLOPs and graph of small models."""


def _computed(text: str) -> int:
    """Return a product or sum of products, written out as by hand."""
    return sum([math.prod(map(int, term.split(" * "))) for term in text.split(" + ")])


@pytest.mark.parametrize(("macs", "other", "graph"), [line[1:] for line in WORK], ids=[line[0] for line in WORK])
def test_formula_agrees_with_a_computation_by_hand(macs: str, other: str, graph: str) -> None:
    cost = cost_of(parsed(f"g {graph}", opset=23 if "Attention" in graph else 21, imports=MS))
    assert (cost.unknown, cost.macs, cost.flops) == ((), _computed(macs), 2 * _computed(macs) + _computed(other))


def test_dimensions_without_a_size_give_formulas_and_sizes_give_numbers() -> None:
    model = parsed("g (float[N,S,4] x, float[4,8] w) => (float[N,S,8] y) {h = MatMul(x, w) y = Relu(h)}")
    cost = cost_of(model)
    assert (cost.macs, cost.flops) == ("32*N*S", "72*N*S")
    assert cost.peak_activation_bytes == "max(48*N*S + 128, 64*N*S)"
    sized = cost_of(model, dims={"N": 2, "S": 3})
    assert (sized.macs, sized.flops, sized.peak_activation_bytes, sized.dims) == (192, 432, 416, {"N": 2, "S": 3})
    with pytest.raises(ParameterError, match='no dimension "M"; it has "N", "S"'):
        cost_of(model, dims={"M": 2})


def test_operator_without_a_formula_is_listed_and_not_zero() -> None:
    cost = cost_of(parsed("g (float[4] x) => (float[4] y) {h = own.Mystery(x) y = own.Mystery(h)}", imports="own"))
    assert [(each.operator, each.nodes, each.reason) for each in cost.unknown] == [("own::Mystery", 2, "no formula")]
    assert cost.unsized == 1


def test_operators_of_a_formula_whose_shapes_are_not_known_are_listed() -> None:
    cost = cost_of(parsed("g (float[4] x) => (float[4] y) {h = own.Mystery(x) y = MatMul(h, h)}", imports="own"))
    assert ("MatMul", 1, "the shape of input 1 is not known") in [
        (each.operator, each.nodes, each.reason) for each in cost.unknown
    ]


def test_peak_is_the_most_that_is_alive_at_once() -> None:
    # x 16 bytes, a 160, b 160, c 8: during Neg x is gone, a and b are alive; s is an output to the end.
    cost = cost_of(
        parsed("g (float[4,1] x, float[1,10] w) => (float[2] c, float[4,10] b) "
               "<float[2] s = {1, 2}> {a = Mul(x, w) b = Neg(a) c = Identity(s)}")
    )  # fmt: skip
    assert (cost.activation_bytes, cost.peak_activation_bytes) == (16 + 40 + 160 + 160 + 8, 320)
    assert cost.peak_at == "/graph/node/1"
    assert (cost.parameters, cost.weight_bytes) == (2, 8)


def test_branches_count_as_the_costlier_one_and_loops_as_often_as_they_run() -> None:
    branches = "then_branch = t () => (float[8] a) {a = Sigmoid(x)}, else_branch = e () => (float[8] b) {b = Gelu(x)}"
    cost = cost_of(parsed(f"g (float[8] x, bool c) => (float[8] y) {{y = If<{branches}>(c)}}"))
    assert (cost.flops, cost.unknown) == (32, ())
    body = "body = l (int64 i, bool k, float[8] h) => (bool k2, float[8] h2) {k2 = Identity(k) h2 = Relu(h)}"
    graph = f"(float[8] x, bool c) => (float[8] y) <int64 n = {{3}}> {{y = Loop<{body}>(n, c, x)}}"
    assert cost_of(parsed(f"g {graph}")).flops == 24
    endless = f"(float[8] x, bool c) => (float[8] y) {{y = Loop<{body}>(, c, x)}}"
    assert [each.operator for each in cost_of(parsed(f"g {endless}")).unknown] == ["Loop"]


def test_functions_count_as_their_bodies() -> None:
    model = parsed(
        'g (float[4] x) => (float[4] y) {h = own.Twice(x) y = own.Twice(h)}\n'
        '<domain: "own", opset_import: ["": 21]> Twice (a) => (c) {b = Relu(a) c = Relu(b)}', imports="own"
    )  # fmt: skip
    cost = cost_of(model)
    assert (cost.flops, cost.unknown) == (16, ())


def test_constants_in_functions_belong_to_the_operators_that_use_them() -> None:
    model = parsed(
        'g (float[4] x) => (float[4] y) {h = own.Shift(x) y = own.Shift(h)}\n'
        '<domain: "own", opset_import: ["": 21]> Shift (a) => (c) {k = Constant<value = float[4] {1, 2, 3, 4}>()'
        " b = Relu(a) c = Add(b, k)}", imports="own"
    )  # fmt: skip
    cost = cost_of(model)
    found = {each.name: (each.nodes, each.weight_bytes) for each in cost.operators}
    assert found == {"Add": (2, 16), "Relu": (2, 0), "Constant": (2, 0)}


def test_types_that_the_model_does_not_state_are_inferred() -> None:
    model = parsed("g (float[2,3] x, float[3,5] w) => (float[2,5] y) {h = MatMul(x, w) y = Relu(h)}")
    assert (cost_of(model).macs, cost_of(model).unknown) == (30, ())


def test_shapes_that_constants_compute_are_known() -> None:
    of_torchscript, of_dynamo = [cost_of(onnxjson.load(MODELS / f"mobile_{each}.onnx")) for each in ("ts", "dynamo")]
    assert (of_torchscript.macs, of_torchscript.unknown) == (of_dynamo.macs, ())
    sizes = {"batch": 2, "length": 8}
    sized = [cost_of(onnxjson.load(MODELS / f"encoder_{each}.onnx"), dims=sizes) for each in ("ts", "dynamo")]
    assert [(each.macs, each.partial) for each in sized] == [(700_416, ()), (700_416, ())]


def test_shapes_are_known_where_onnx_has_no_rule() -> None:
    quantized = "com.microsoft.MatMulNBits<K = 64, N = 10, bits = 4, block_size = 32>(x, w, s)"
    for call, macs in (
        ("GroupNormalization<num_groups = 2>(x, s, s)", 0), ("MeanVarianceNormalization(x)", 0), (quantized, 1280),
    ):  # fmt: skip
        inputs = "float[1,2,64] x, float[2] s, uint8[10,2,16] w"
        cost = cost_of(parsed(f"g ({inputs}) => (float[a,b,c] y) {{h = {call} y = Relu(h)}}", imports=MS))
        assert (cost.macs, cost.unknown, cost.unsized) == (macs, (), 0)


def test_groups_are_sorted_by_their_operations() -> None:
    body = '{["/a/one"] h = Relu(x) ["/a/b/two"] y = Softmax(h)}'
    cost = cost_of(parsed(f"g (float[2,8] x) => (float[2,8] y) {body}"))
    assert [(each.name, each.nodes, each.flops) for each in cost.operators] == [("Softmax", 1, 80), ("Relu", 1, 16)]
    assert [(each.name, each.flops) for each in cost.scopes] == [("a", 96), ("a/b", 80)]


def test_weights_count_for_the_operator_that_uses_them_first() -> None:
    weights = "<float[8] w = {1,2,3,4,5,6,7,8}, float[1] v = {1}>"
    cost = cost_of(
        parsed(f"g (float[2,8] x) => (float[2,8] y) {weights} {{h = Add(x, w) i = Mul(h, w) y = Mul(i, v)}}")
    )
    assert {each.name: each.weight_bytes for each in cost.operators} == {"Add": 32, "Mul": 4}
    assert cost.weight_bytes == 36


def test_weights_of_operators_and_scopes_are_those_of_the_model_and_add_up() -> None:
    size = 4 * 40 * 40
    model = parsed("g (float[40,40] x) => (float[40,40] y) {y = Relu(x)}")
    weights = tuple([Tensor(dims=(40, 40), data_type=1, name=name, raw_data=bytes(size)) for name in ("w", "unused")])
    nodes = (
        Node(op_type="Identity", input=("w",), output=("same",)),
        Node(op_type="MatMul", name="/a/b/one", input=("x", "same"), output=("h",)),
        Node(op_type="Constant", output=("c",), attribute=(Attribute(name="value", type=4, t=weights[0]),)),
        Node(op_type="Add", input=("h", "c"), output=("y",)),
    )
    assert model.graph is not None
    cost = cost_of(replace(model, graph=replace(model.graph, node=nodes, initializer=weights)))
    assert (cost.parameters, cost.weight_bytes, cost.constant_bytes) == (3 * 1600, 3 * size, 0)
    of_operators = {each.name: each.weight_bytes for each in cost.operators}
    assert of_operators == {"MatMul": size, "Add": size, "Identity": 0, "Constant": 0, "": size}
    assert {each.name: each.weight_bytes for each in cost.scopes} == {"a": size, "a/b": size, "": 2 * size}


def test_constants_of_shapes_are_no_parameters() -> None:
    body = "<float[1] w = {1}, int64[2] s = {2, 3}> {h = Reshape(x, s) y = Mul(h, w)}"
    cost = cost_of(parsed(f"g (float[6] x) => (float[2,3] y) {body}"))
    assert (cost.parameters, cost.weight_bytes) == (1, 4)
    assert cost.constant_bytes > 0


def test_shapes_that_the_model_computes_give_formulas_that_hold_for_sizes() -> None:
    body = """<int64[1] z = {0}, int64[1] o = {1}, int64[1] f = {4}, int64[1] r = {-1}, float[8,5] w>
    {s = Shape(x) n = Slice(s, z, o) m = Mul(n, f) t = Concat<axis = 0>(m, r) h = Reshape(x, t) y = MatMul(h, w)}"""
    model = parsed(f"g (float[N,32] x, float[8,5] w) => (float[a,b] y) {body.replace(', float[8,5] w', '')}")
    cost = cost_of(model)
    assert (cost.macs, cost.partial) == ("160*N", ())
    sized = cost_of(model, dims={"N": 8})
    assert (sized.macs, sized.activation_bytes) == (160 * 8, substitute(str(cost.activation_bytes), {"N": 8}))


def test_bytes_of_values_whose_rank_is_found_for_sizes_alone_are_counted() -> None:
    body = """<int64[1] z = {0}, int64[1] o = {1}, int64[1] w = {2}, int64[1] e = {-1}>
    {s = Shape(x) n = Slice(s, o, w, z) f = Cast<to = 1>(n) r = Floor(f) c = Cast<to = 7>(r) b = Slice(s, z, c, z)
    t = Concat<axis = 0>(b, e) h = Reshape(x, t) k = Relu(h) y = Tanh(k)}"""
    cost = cost_of(parsed(f"g (float[N,2,4] x) => (float[a,b,c] y) {body}"))
    assert (cost.unsized, cost.partial) == (0, ())


def test_sizes_that_are_rounded_get_no_formula() -> None:
    body = "{h = MaxPool<kernel_shape = [64], strides = [64], ceil_mode = 1>(x) y = Relu(h)}"
    cost = cost_of(parsed(f"g (float[1,1,N] x) => (float[1,1,c] y) {body}"))
    assert cost.activation_bytes != "4*N + 8"


def test_every_formula_is_that_of_an_operator_which_exists() -> None:
    from onnxjson.model.operators import known_operators

    odd = {"SimplifiedLayerNormalization", "SwiGLU", "Upsample", "Scatter"}
    assert {name for domain, name in FORMULAS if not domain} - known_operators("") - odd == set()


def test_amounts() -> None:
    n, s = named("N"), named("S")
    assert str(3 * n * s + n - 2) == "3*N*S + N - 2"
    assert plain(n - n + 4) == 4
    assert named("2*N") * 1 == as_amount(0) + named("2*N")
    assert (n * 4) // 4 == n
    with pytest.raises(UnknownAmountError):
        Amount({("N",): 3}) // 2
    assert is_at_least(4 * n, n)
    assert not is_at_least(n, s)
    assert largest([n, 4 * n, s, 3]) == [4 * n, s, 3]


def test_names_that_inputs_have_are_sizes_even_if_they_look_invented() -> None:
    assert cost_of(parsed("g (float[unk__7,4] x) => (float[a,b] y) {h = Relu(x) y = Neg(h)}")).flops == "8*unk__7"


def test_dimensions_without_a_name_are_named_after_their_places() -> None:
    model = parsed("g (float[?,4] x, float[q,4] z) => (float[a,b] y, float[c,d] t) {y = Relu(x) t = Relu(z)}")
    assert model.graph is not None
    odd = replace(model, graph=with_dimension_names(model.graph, {"q": "?"}))
    assert cost_of(odd).flops == "4*(x:0) + 4*(z:0)"
    assert cost_of(odd, dims={"x:0": 8, "z:0": 2}).flops == 40


def test_names_with_points_are_whole_names() -> None:
    model = parsed("g (float[q,6] x) => (float[a,b] y) {s = Shape(x) h = Expand(o, s) y = Relu(h)}")
    model = with_dimension_names(model, {"q": "p2o.Size.0"})
    assert model.graph is not None
    one = Tensor(dims=(1,), data_type=1, name="o", raw_data=bytes(4))
    cost = cost_of(replace(model, graph=replace(model.graph, initializer=(one,))))
    assert (cost.flops, cost.partial) == ("6*(p2o.Size.0)", ())
    with pytest.raises(ParameterError):
        cost_of(model, dims={"p2o": 8})


def test_stated_expressions_of_names_of_inputs_are_sizes() -> None:
    model = parsed(
        "g (float[1,1,h] x) => (float[a,b,c] y) {p = MaxPool<kernel_shape = [2], strides = [2]>(x) y = Relu(p)}"
    )
    assert model.graph is not None
    stated = parsed("g (float[1,1,h] p, float[1,1,h] y) => () {}").graph
    assert stated is not None
    infos = with_dimension_names(stated, {"h": "floor(h/2)"}).input
    cost = cost_of(replace(model, graph=replace(model.graph, value_info=infos[:1], output=infos[1:])))
    assert (cost.flops, cost.partial) == ("3*(floor(h/2))", ())
    assert cost_of(model).partial


def test_shapes_that_follow_only_from_other_computed_shapes_are_known() -> None:
    steps = [f"s{n} = Shape(h{n}) t{n} = ReduceProd(s{n}) h{n + 1} = Reshape(h{n}, t{n})" for n in range(3)]
    cost = cost_of(parsed(f"g (float[2,3] x) => (float[b] y) {{h0 = Relu(x) {' '.join(steps)} y = Relu(h3)}}"))
    assert (cost.flops, cost.unknown, cost.unsized) == (16, (), 0)


def test_old_operators_are_computed_by_their_own_definition() -> None:
    body = "s = Shape(x) r = ReduceProd<axes = [0], keepdims = 0>(s) u = Unsqueeze<axes = [0]>(r)"
    cost = cost_of(parsed(f"g (float[2,3] x) => (float[b] y) {{{body} h = Reshape(x, u) y = Relu(h)}}", opset=11))
    assert (cost.unknown, cost.unsized) == ((), 0)


def test_shapes_in_branches_follow_from_constants_outside_and_from_the_branch_that_runs() -> None:
    body = """<int64[2] pads = {0, 3}, int64[1] zero = {0}, int64 two = {2}> {
        s = Shape(x) n = Size(s) c = Equal(n, two)
        h = If(c) <
            then_branch = t () => (float[u] p) {p = Pad(v, pads)},
            else_branch = e () => (float[u, w] q) {q = Unsqueeze(v, zero)}
        >
        y = Relu(h)
    }"""
    cost = cost_of(parsed(f"g (float[3,1] x, float[4] v) => (float[w] y) {body}"))
    assert ([each.flops for each in cost.operators if each.name == "Relu"], cost.unknown) == ([7], ())
