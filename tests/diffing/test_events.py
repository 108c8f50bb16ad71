"""Events of small models with known changes; the table of kinds."""

import pytest
from msgspec.structs import replace

from onnxjson.diffing.events import KIND_PROPERTIES, KINDS
from onnxjson.model.document import Model
from tests.diffing.written import Said, details, explained, model, said

G = "g (float[N,4] x) => (float[N,4] y) "
SQUARE = "float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}"
W = f"<{SQUARE}, float[4] b = {{1,2,3,4}}>"
IMAGE = "g (float[N,1,4,4] x) => (float[N,1,4,4] y) "
NORM = "float[1] s = {3}, float[1] bb = {4}, float[1] mm = {5}, float[1] v = {6}"
CHAIN = G + "{ a = Relu(x)\n y = Tanh(a) }"
FUNCTION = '<domain: "d", opset_import: ["": 18]> f (a) => (c) { b = Relu(a)\n c = Tanh(b) }'
CALL = G + "{ h = Exp(x)\n r = d.f(h)\n y = Neg(r) }"
BODY = G + "{ h = Exp(x)\n b = Relu(h)\n r = Tanh(b)\n y = Neg(r) }"
BRANCH = (
    "g (bool c, float[N] x) => (float[N] y) {{ {0}\n y = If<then_branch = t () => (float[N] p) {{ p = {1}(a) }},"
    " else_branch = e () => (float[N] q) {{ q = Neg(a) }}>(c) }}"
)
JOINED = (
    "g (float[N,4] x) => (float[M,8] y) <float[{0}] b, float[{0}] c>"
    " {{ b = Concat<axis={1}>(x, x)\n c = Neg(b)\n y = Exp(c) }}"
)
IMAGES = "g (float[1,2,4,4] x) => (float[1,2,4,4] y) "
LAID = "{ a = Relu(x); t = Transpose<perm=[0,2,3,1]>(a); p = Elu(t); u = Transpose<perm=[0,3,1,2]>(p); y = Tanh(u) }"
N = "/graph/node"
I = "/graph/initializer"  # noqa: E741 - what it is called in the cases below

CASES: dict[str, tuple[str, str, list[Said]]] = {
    "a node between": (CHAIN, G + "{ a = Relu(x)\n n = Neg(a)\n y = Tanh(n) }", [("inserted", "Neg", (), (f"{N}/1",))]),
    "a node at the output, which keeps its name": (
        CHAIN,
        G + "{ a = Relu(x)\n z = Tanh(a)\n y = Neg(z) }",
        [("inserted", "Neg", (), (f"{N}/2",))],
    ),
    "a node that goes": (
        G + "{ a = Relu(x)\n i = Neg(a)\n y = Tanh(i) }",
        CHAIN,
        [("eliminated", "Neg", (f"{N}/1",), ())],
    ),
    "an Identity that goes, and the output keeps its name": (
        G + "{ a = Relu(x)\n t = Tanh(a)\n y = Identity(t) }",
        CHAIN,
        [("eliminated", "Identity", (f"{N}/2",), ())],
    ),
    "constant nodes computed ahead": (
        G + "{ k = Constant<value_float = 2.0>()\n l = Exp(k)\n y = Mul(x, l) }",
        G + "<float l = {7.389}> { y = Mul(x, l) }",
        [("folded", "Exp -> constant", (f"{N}/1",), ())],
    ),
    "n to 1": (
        G + W + "{ m = MatMul(x, w)\n y = Add(m, b) }",
        G + W + "{ y = Gemm(x, w, b) }",
        [("fused", "MatMul+Add -> Gemm", (f"{N}/0", f"{N}/1"), (f"{N}/0",))],
    ),
    "BatchNormalization into the weights of Conv": (
        IMAGE
        + f"<float[1,1,1,1] w = {{2}}, {NORM}>"
        + "{ c = Conv(x, w)\n n = BatchNormalization(c, s, bb, mm, v)\n y = Relu(n) }",
        IMAGE + "<float[1,1,1,1] w = {2.5}, float[1] b = {9}> { c = Conv(x, w, b)\n y = Relu(c) }",
        [("fused", "Conv+BatchNormalization -> Conv", (f"{N}/0", f"{N}/1"), (f"{N}/0",))],
    ),
    "1 to n": (
        G + "{ a = Gelu(x)\n y = Tanh(a) }",
        G + "<float h={0.5}, float o={1.0}, float q={1.41}> { d = Div(x, q)\n e = Erf(d)\n f = Add(e, o)\n"
        " i = Mul(x, f)\n a = Mul(i, h)\n y = Tanh(a) }",
        [("decomposed", "Gelu -> Div+Erf+Add+2 Mul", (f"{N}/0",), tuple(f"{N}/{at}" for at in range(5)))],
    ),
    "one operator for another": (
        CHAIN,
        G + "{ a = LeakyRelu(x)\n y = Tanh(a) }",
        [("replaced", "Relu -> LeakyRelu", (f"{N}/0",), (f"{N}/0",))],
    ),
    "a common subexpression": (
        G + "{ a = Relu(x)\n b = Relu(x)\n c = Neg(a)\n d = Exp(b)\n y = Add(c, d) }",
        G + "{ a = Relu(x)\n c = Neg(a)\n d = Exp(a)\n y = Add(c, d) }",
        [("merged", "Relu", (f"{N}/0", f"{N}/1"), (f"{N}/0",))],
    ),
    "computed twice": (
        G + "{ a = Relu(x)\n c = Neg(a)\n d = Exp(a)\n y = Add(c, d) }",
        G + "{ a = Relu(x)\n b = Relu(x)\n c = Neg(a)\n d = Exp(b)\n y = Add(c, d) }",
        [("inserted", "Relu, computed again", (f"{N}/0",), (f"{N}/0", f"{N}/1"))],
    ),
    "a node that nobody takes anything of": (
        G + "{ a = Relu(x)\n z = Neg(a)\n y = Tanh(a) }",
        CHAIN,
        [("dead-code-removed", "Neg", (f"{N}/1",), ())],
    ),
    "quantized activations": (
        G + f"<{SQUARE}>" + "{ y = MatMul(x, w) }",
        G
        + f"<{SQUARE}, float s = {{0.1}}, uint8 z = {{1}}>"
        + "{ q = QuantizeLinear(x, s, z)\n d = DequantizeLinear(q, s, z)\n y = MatMul(d, w) }",
        [("quantized", "QuantizeLinear+DequantizeLinear", (), (f"{N}/0", f"{N}/1"))],
    ),
    "casts around a node": (
        CHAIN,
        G + "{ a = Relu(x)\n b = Cast<to=11>(a)\n c = Tanh(b)\n y = Cast<to=1>(c) }",
        [("cast-inserted", "Cast", (), (f"{N}/1",)), ("cast-inserted", "Cast", (), (f"{N}/3",))],
    ),
    "another layout between two transposes": (
        IMAGES + "{ a = Relu(x)\n p = Elu(a)\n y = Tanh(p) }",
        IMAGES + LAID.replace("; ", "\n "),
        [("layout-changed", "Transpose", (), (f"{N}/1",)), ("layout-changed", "Transpose", (), (f"{N}/3",))],
    ),
    "an attribute": (
        G + "{ y = LeakyRelu<alpha=0.1>(x) }",
        G + "{ y = LeakyRelu<alpha=0.2>(x) }",
        [("attribute-changed", "LeakyRelu.alpha", (f"{N}/0",), (f"{N}/0",))],
    ),
    "a default written out": (
        G + "{ y = LeakyRelu(x) }",
        G + "{ y = LeakyRelu<alpha=0.01>(x) }",
        [("storage-changed", "LeakyRelu.alpha, as by default", (f"{N}/0",), (f"{N}/0",))],
    ),
    "an input that takes another value": (
        G + "{ a = Relu(x)\n b = Neg(a)\n c = Exp(b)\n y = Sub(c, a) }",
        G + "{ a = Relu(x)\n b = Neg(a)\n c = Exp(b)\n y = Sub(c, b) }",
        [("rewired", "Sub input 1", (f"{N}/3",), (f"{N}/3",))],
    ),
    "inputs swapped where their order means nothing": (
        G + "{ a = Relu(x)\n b = Neg(a)\n y = Add(b, a) }",
        G + "{ a = Relu(x)\n b = Neg(a)\n y = Add(a, b) }",
        [("reordered", "inputs of Add", (f"{N}/2",), (f"{N}/2",))],
    ),
    "other weights": (
        G + f"<{SQUARE}>" + "{ y = MatMul(x, w) }",
        G + f"<{SQUARE}>".replace("16}", "17}") + "{ y = MatMul(x, w) }",
        [("weights-changed", "MatMul input 1", (f"{I}/0",), (f"{I}/0",))],
    ),
    "weights transposed": (
        "g (float[N,2] x) => (float[N,3] y) <float[2,3] w={1,2,3,4,5,6}> { y = MatMul(x, w) }",
        "g (float[N,2] x) => (float[N,3] y) <float[3,2] w={1,4,2,5,3,6}> { y = MatMul(x, w) }",
        [("weights-re-laid", "MatMul input 1", (f"{I}/0",), (f"{I}/0",))],
    ),
    "weights of another type": (
        G + W + "{ m = MatMul(x, w)\n y = Add(m, b) }",
        G + W.replace("float[4] b", "double[4] b") + "{ m = MatMul(x, w)\n y = Add(m, b) }",
        [("retyped", "float32 -> float64", (f"{I}/1",), (f"{I}/1",))],
    ),
    "weights of another shape": (
        G + W + "{ m = MatMul(x, w)\n y = Add(m, b) }",
        G + W.replace("float[4] b", "float[1,4] b") + "{ m = MatMul(x, w)\n y = Add(m, b) }",
        [("reshaped", "constant", (f"{I}/1",), (f"{I}/1",))],
    ),
    "a Constant node that became an initializer": (
        G + "{ k = Constant<value_float = 2.0>()\n y = Mul(x, k) }",
        G + "<float k = {2.0}> { y = Mul(x, k) }",
        [("storage-changed", "Constant node -> initializer", (f"{N}/0",), (f"{I}/0",))],
    ),
    "another value of a Constant node": (
        G + "{ k = Constant<value_float = 2.0>()\n y = Mul(x, k) }",
        G + "{ k = Constant<value_float = 3.0>()\n y = Mul(x, k) }",
        [("weights-changed", "Mul input 1", (f"{N}/0",), (f"{N}/0",))],
    ),
    "other inputs and outputs": (
        G + "{ y = Relu(x) }",
        "g (float[N,8] x, float z) => (float[N,8] y, float[N,8] q) { y = Relu(x)\n q = Neg(x) }",
        [
            ("io-changed", "input type", ("/graph/input/0",), ("/graph/input/0",)),
            ("io-changed", "output type", ("/graph/output/0",), ("/graph/output/0",)),
            ("io-changed", "input added", (), ("/graph/input/1",)),
            ("io-changed", "output added", (), ("/graph/output/1",)),
            ("inserted", "Neg", (), (f"{N}/1",)),
        ],
    ),
    "an operator in a branch": (
        BRANCH.format("a = Relu(x)", "Exp"),
        BRANCH.format("a = Relu(x)", "Sigmoid"),
        [
            (
                "replaced",
                "Exp -> Sigmoid",
                (f"{N}/1/attribute/then_branch/g/node/0",),
                (f"{N}/1/attribute/then_branch/g/node/0",),
            )
        ],
    ),
    "a node before what branches capture": (
        BRANCH.format("a = Relu(x)", "Exp"),
        BRANCH.format("z = Relu(x)\n a = Softplus(z)", "Exp"),
        [("inserted", "Softplus", (), (f"{N}/1",))],
    ),
    "types that follow from an attribute": (
        JOINED.format("N,8", 1),
        JOINED.format("M,4", 0),
        [("attribute-changed", "Concat.axis", (f"{N}/0",), (f"{N}/0",))],
    ),
    "types that follow from nothing": (
        "g (float[N,4] x) => (float[M,8] y) <float[N,8] b> { b = Neg(x)\n y = Exp(b) }",
        "g (float[N,4] x) => (float[M,8] y) <float[M,8] b> { b = Neg(x)\n y = Exp(b) }",
        [("value-info-changed", "types of values", ("/graph",), ("/graph",))],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_cause_is_one_event(case: str) -> None:
    before, after, expected = CASES[case]
    opset = 20 if "Gelu" in before else 18
    assert said(explained(model(before, opset=opset), model(after, opset=opset))) == expected


def test_a_function_written_out_takes_its_definition_and_its_domain_along() -> None:
    call, body = model(CALL, FUNCTION, domains=', "d": 1'), model(BODY)
    inlined, outlined = explained(call, body), explained(body, call)
    assert said(inlined) == [("function-inlined", "d::f -> Relu+Tanh", (f"{N}/1",), (f"{N}/1", f"{N}/2"))]
    assert said(outlined) == [("function-outlined", "Relu+Tanh -> d::f", (f"{N}/1", f"{N}/2"), (f"{N}/1",))]


def test_a_function_with_another_name_is_renamed_and_so_are_its_calls() -> None:
    other = model(CALL.replace("d.f", "d.h"), FUNCTION.replace(" f (", " h ("), domains=', "d": 1')
    found = explained(model(CALL, FUNCTION, domains=', "d": 1'), other)
    assert said(found) == [("renamed", "functions", ("/functions/0",), ("/functions/0",))]
    assert details(found) == [("function", "d::f", "d::h")]


def test_the_body_of_a_function_is_compared_as_graphs_are() -> None:
    other = model(CALL, FUNCTION.replace("Tanh", "Sigmoid"), domains=', "d": 1')
    found = explained(model(CALL, FUNCTION, domains=', "d": 1'), other)
    assert said(found) == [("replaced", "Tanh -> Sigmoid", ("/functions/0/node/1",), ("/functions/0/node/1",))]


def test_a_domain_that_is_imported_twice_is_paired_in_order() -> None:
    text = "g (float[N] x) => (float[N] y) { y = Relu(x) }"
    before, after = model(text, domains=', "": 20'), model(text, domains=', "": 20, "d": 1')
    assert said(explained(before, after)) == [("opset-changed", "d added", (), ("/opset_import/2",))]


def test_of_a_long_attribute_only_the_first_difference_is_reported() -> None:
    def trees(values: list[int], weights: list[float]) -> Model:
        lists = f"ids={values}, w={weights}"
        return model(f"g (float[N] x) => (float[N] y) {{ y = t.Trees<{lists}>(x) }}", domains=', "t": 3')

    numbers, weights = list(range(1000)), [0.5] * 200
    one = trees(numbers, weights)
    events = explained(one, trees([*numbers[:500], 7, 8, *numbers[502:]], [*weights, 1.5]))
    shown = "496,497,498,499"
    assert details(events, 0) == [
        (
            "attribute ids",
            f"[…,{shown},500,501,502,503,504,505,506,507,508,509,510,511,…], 1,000 elements",
            f"[…,{shown},7,8,502,503,504,505,506,507,508,509,510,511,…], 1,000 elements; 2 differ",
        )
    ]
    assert details(events, 1) == [
        ("attribute w", "[…,0.5,0.5,0.5,0.5], 200 elements", "[…,0.5,0.5,0.5,0.5,1.5], 201 elements; 1 differs")
    ]


def test_an_attribute_of_another_operator_with_the_same_value_is_no_detail() -> None:
    before, after = (model(f"g (float[N] x) => (float[N] y) {{ y = {call}(x) }}", domains=', "d": 1')
                     for call in ("d.One <k = 1, a = 2>", "d.Other <k = 1, a = 3>"))  # fmt: skip
    assert after.graph is not None
    (node,) = after.graph.node
    described = tuple([replace(each, doc_string="kept") for each in node.attribute])
    graph = replace(after.graph, node=(replace(node, attribute=described),))
    found = explained(before, replace(after, graph=graph))
    assert said(found)[0][:2] == ("replaced", "d::One -> d::Other")
    assert details(found) == [("attribute a", "2", "3")]


def test_an_attribute_that_became_an_input_is_one_change() -> None:
    before = model("g (float[N,1] x) => (float[N] y) { y = Squeeze<axes=[1]>(x) }", opset=12)
    after = model("g (float[N,1] x) => (float[N] y) <int64[1] a={1}> { y = Squeeze(x, a) }", opset=13)
    events = explained(before, after)
    assert said(events) == [
        ("opset-changed", "ai.onnx 12 -> 13", ("/opset_import/0",), ("/opset_import/0",)),
        ("attribute-changed", "Squeeze.axes, now an input", (f"{N}/0",), (f"{N}/0",)),
    ]
    assert details(events, 1) == [("attribute axes", "[1]", None), ("input 1", None, "a")]
    assert said(explained(after, before))[1][:2] == ("attribute-changed", "Squeeze.axes, was an input")


def test_a_fusion_says_which_constant_went_where() -> None:
    before, after, _ = CASES["BatchNormalization into the weights of Conv"]
    conv, norm = "input 1 of Conv", "BatchNormalization"
    into = "in input 1 of Conv, input 2 of Conv"
    assert details(explained(model(before), model(after))) == [
        ("constant w", conv, into),
        ("constant s", f"input 1 of {norm}", into),
        ("constant bb", f"input 2 of {norm}", into),
        ("constant mm", f"input 3 of {norm}", into),
        ("constant v", f"input 4 of {norm}", into),
    ]
    fused = explained(*map(model, CASES["n to 1"][:2]))
    assert details(fused) == [
        ("constant w", "input 1 of MatMul", "input 1 of Gemm"),
        ("constant b", "input 1 of Add", "input 2 of Gemm"),
    ]


def test_a_region_can_be_cut_out_at_its_boundary() -> None:
    before, after, _ = CASES["n to 1"]
    region = explained(model(before), model(after)).regions[0, 0]
    assert (region.base, region.target) == ((0, 1), (0,))
    assert region.inputs == (("x", "x"),)
    assert region.outputs == (("y", "y"),)
    assert (region.base_constants, region.target_constants) == (("w", "b"), ("w", "b"))


def test_the_region_of_a_node_that_goes_passes_a_value_through() -> None:
    before, after, _ = CASES["a node that goes"]
    region = explained(model(before), model(after)).regions[0, 0]
    assert (region.base, region.target, region.inputs, region.outputs) == ((1,), (), (("a", "a"),), (("i", "a"),))


def test_the_same_rewrite_at_many_places_is_one_event() -> None:
    layers = range(6)
    weights = ", ".join(
        f"{SQUARE.replace(' w', f' w{at}').replace('{1,', f'{{{at},')}, float[4] b{at} = {{1,2,3,{at}}}"
        for at in layers
    )
    before = "\n".join(
        f"m{at} = MatMul(h{at}, w{at})\n a{at} = Add(m{at}, b{at})\n h{at + 1} = Relu(a{at})" for at in layers
    )
    after = "\n".join(f"a{at} = Gemm(h{at}, w{at}, b{at})\n h{at + 1} = Relu(a{at})" for at in layers)
    start, end = "h0 = Identity(x)\n", "\n y = Neg(h6)"
    events = explained(
        model(f"{G}<{weights}> {{ {start}{before}{end} }}"), model(f"{G}<{weights}> {{ {start}{after}{end} }}")
    )
    assert [(event.kind, event.pattern, event.count) for event in events.events] == [("fused", "MatMul+Add -> Gemm", 6)]
    assert [member.base[0] for member in events.events[0].members] == [f"{N}/{1 + 3 * at}" for at in layers]


def test_rewrites_that_follow_each_other_end_where_other_nodes_take_what_they_make() -> None:
    layers = range(3)
    weights = "float[4] s = {1,1,1,1}, float[4] t = {2,2,2,2}"
    before = "\n".join(f"a{at} = Mul(h{at}, s)\n b{at} = Add(a{at}, t)\n h{at + 1} = Neg(b{at})" for at in layers)
    after = "\n".join(f"b{at} = d.MulAdd(h{at}, s, t)\n h{at + 1} = Neg(b{at})" for at in layers)
    # Every sum is taken by the next layer's product, too, so that all of them touch.
    before, after = [text.replace("(h1, s", "(b0, s").replace("(h2, s", "(b1, s") for text in (before, after)]
    start, end = "h0 = Exp(x)\n", "\n u = Max(h1, h2, h3)\n y = Tanh(u)"
    events = explained(
        model(f"{G}<{weights}> {{ {start}{before}{end} }}", domains=', "d": 1'),
        model(f"{G}<{weights}> {{ {start}{after}{end} }}", domains=', "d": 1'),
    )
    assert [(event.kind, event.pattern, event.count) for event in events.events] == [
        ("fused", "Mul+Add -> d::MulAdd", 3)
    ]
    assert events.regions[0, 1].inputs == (("b0", "b0"),)
    assert events.regions[0, 1].outputs == (("b1", "b1"),)


def test_every_kind_has_properties_in_the_order_of_the_kinds() -> None:
    assert list(KIND_PROPERTIES) == list(KINDS)


def test_what_leaves_all_results_unchanged_is_not_about_nodes() -> None:
    assert not [kind for kind, each in KIND_PROPERTIES.items() if each.effect == "quiet" and each.about_nodes]
