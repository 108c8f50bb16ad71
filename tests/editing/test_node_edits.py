"""add-node, delete-node, replace-node, rewire, swap-inputs (sna4onnx, snd4onnx, svs4onnx, each done right)."""

import re
from functools import partial

import msgspec
import numpy as np
import pytest

import onnxjson
from onnxjson import apply, edits
from onnxjson.editing import applying
from onnxjson.editing.spelling import parse_line
from onnxjson.model.dataflow import consumed_names, sort_nodes
from onnxjson.model.document import Model, TrainingInfo
from onnxjson.model.errors import EditError, OnnxJsonError, SelectorError
from tests.editing.graphs import model_of, require_valid, run
from tests.work import count_calls

CHAIN = """g (float[N,4] x) => (float[N,4] y) <float[4] b = {1, 2, 3, 4}> {
    a = Relu(x)
    i = Identity(a)
    c = Add(i, b)
    y = Identity(c)
}"""

NESTED = """g (float[N] x, bool c) => (float[N] y) <float[1] w = {1}> {
    a = Relu(x)
    k = Identity(a)
    h = If(c) <then_branch = t () => (float[N] p) { k2 = Identity(k) p = Add(k2, w) },
               else_branch = e () => (float[N] q) { q = Mul(k, k) }>
    y = Identity(h)
}"""

X = np.array([[-1.0, 2.0, -3.0, 4.0]], np.float32)


def shape_of(model: Model) -> list[tuple[str, str, str]]:
    """The nodes of the main graph: operator, inputs, outputs."""
    assert model.graph is not None
    return [(node.op_type or "", ",".join(node.input), ",".join(node.output)) for node in model.graph.node]


def changed(text: str, line: str) -> Model:
    """A model after one edit, which is valid, undoable, and shares what is not touched."""
    model = model_of(text)
    after = apply(model, parse_line(line))
    require_valid(after)
    patch = edits.plan(model, parse_line(line))
    assert patch.apply(model) == after
    assert patch.invert().apply(after) == model
    return after


def refused(text: str, line: str) -> str:
    """What the error says where an edit cannot be made."""
    with pytest.raises(OnnxJsonError) as caught:
        apply(model_of(text), parse_line(line))
    return str(caught.value)


# delete-node


def test_snd4onnx_deleted_nodes_are_bypassed_for_all_consumers_in_subgraphs_too() -> None:
    after = changed(NESTED, "delete-node op:Identity")
    assert shape_of(after) == [("Relu", "x", "a"), ("If", "c", "y")]
    assert after.graph is not None
    then, other = (each.g for each in after.graph.node[1].attribute)
    assert then is not None
    assert other is not None
    assert [node.input for node in (*then.node, *other.node)] == [("a", "w"), ("a", "a")]
    for choice in (True, False):
        inputs = {"x": X[0], "c": np.array(choice)}
        assert np.array_equal(run(after, inputs)[0], run(model_of(NESTED), inputs)[0])


def test_output_of_the_graph_keeps_its_name() -> None:
    assert shape_of(changed(CHAIN, "delete-node output:y"))[-1] == ("Add", "i,b", "y")


def test_the_one_input_that_is_no_constant_takes_the_place() -> None:
    assert shape_of(changed(CHAIN, "delete-node op:Add"))[-1] == ("Identity", "i", "y")


def test_weights_that_other_nodes_compute_are_no_choice() -> None:
    text = """g (float[N,4] x) => (float[N,4] y) <float[4] s = {1, 2, 3, 4}> {
        scale = Identity(s)
        bias = Neg(scale)
        n = LayerNormalization(x, scale, bias)
        y = Add(bias, n)
    }"""
    after = changed(text, "delete-node op:LayerNormalization")
    assert shape_of(after)[-1] == ("Add", "bias,x", "y")
    assert shape_of(changed(text.replace("y = Add(bias, n)", "a = Add(bias, n) y = Relu(a)"), "delete-node op:Add"))[
        -1
    ] == ("Relu", "n", "y")


def test_of_constants_alone_the_computed_one_takes_the_place() -> None:
    text = "g (float[N] x) => (float[N] y) <float[1] w = {1}> { v = Neg(w) k = Mul(w, v) y = Add(x, k) }"
    assert shape_of(changed(text, "delete-node op:Mul"))[-1] == ("Add", "x,v", "y")


def test_node_with_one_input_needs_no_bypass_if_that_is_a_constant() -> None:
    text = "g (float[N] x) => (float[N] y) <float[1] w = {1}> { v = Identity(w) y = Add(x, v) }"
    assert shape_of(changed(text, "delete-node op:Identity")) == [("Add", "x,w", "y")]


def test_if_any_makes_no_match_no_error() -> None:
    text = "g (float[N] x) => (float[N] y) { y = Relu(x) }"
    model = model_of(text)
    result = applying.run(model, parse_line("delete-node op:Identity --if-any"))
    assert result.model == model
    assert result.outcomes[0].matches == 0
    assert result.outcomes[0].notes == ('nothing is changed: no node has op:Identity; values are "Relu"',)
    assert applying.run(model, parse_line("delete-node op:Identity --expect 0")).model == model
    assert "0 matches, but 1 expected" in refused(text, "delete-node op:Identity --if-any --expect 1")
    assert "nothing follows op:" in refused(text, "delete-node 'op:' --if-any")


def test_bypass_says_which_of_several_inputs_it_is() -> None:
    text = "g (float[N] x, float[N] z) => (float[N] y) { s = Add(x, z) y = Relu(s) }"
    assert shape_of(changed(text, "delete-node op:Add 1")) == [("Relu", "z", "y")]
    says = refused(text, "delete-node op:Add")
    assert says == (
        'delete-node: /graph/node/0: "s" is used by /graph/node/1/input/0, and Add has the inputs 0 "x", 1 "z"; '
        "choose one with bypass"
    )
    assert 'Add has no input 5; its inputs are 0 "x", 1 "z"' in refused(text, "delete-node op:Add 5")


def test_chain_of_deleted_nodes_is_bypassed_as_a_whole() -> None:
    text = "g (float[N] x) => (float[N] y) { a = Identity(x) b = Dropout(a) c = Identity(b) y = Relu(c) }"
    assert shape_of(changed(text, "delete-node '!op:Relu'")) == [("Relu", "x", "y")]


def test_node_that_nobody_needs_is_just_gone() -> None:
    text = "g (float[N] x, float[N] z) => (float[N] y) { y = Relu(x) d = Add(x, z) }"
    assert shape_of(changed(text, "delete-node op:Add")) == [("Relu", "x", "y")]


def test_what_cannot_be_bypassed_is_refused() -> None:
    both = "g (float[N] x) => (float[N] y) { y = Identity(x) }"
    assert '"x" cannot get that name; replace-node can make the node an Identity' in refused(
        both, "delete-node op:Identity"
    )
    constant = "g () => (float[1] y) { k = Constant<value = float[1] {1}>() y = Relu(k) }"
    assert "has no input that could replace it" in refused(constant, "delete-node op:Constant")
    second = "g (float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x) y = Relu(b) }"
    assert "only the first output of Split" in refused(second, "delete-node op:Split")
    cast = "g (float[N] x) => (float16[N] y) { h = Cast<to=10>(x) y = Relu(h) }"
    assert "another dtype; give bypass=0 to allow it" in refused(cast, "delete-node op:Cast")
    two = "g (float[N] x) => (float[N] y, float[N] z) { a = Relu(x) y = Identity(a) z = Identity(a) }"
    assert "/graph/node/2" in refused(two, "delete-node op:Identity")
    assert "no node has op:Conv" in refused(both, "delete-node op:Conv")


def test_types_and_annotations_of_what_is_gone_go_with_it() -> None:
    text = """g (float[N] x) => (float[N] y) <float[N] i, float[N] a> { a = Relu(x) i = Identity(a) y = Neg(i) }"""
    after = changed(text, "delete-node op:Identity")
    assert after.graph is not None
    assert [value.name for value in after.graph.value_info] == ["a"]


def test_deleting_in_a_function_changes_its_body() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
    g (float[N] x) => (float[N] y) { y = local.f(x) }
    <domain: "local", opset_import: ["" : 20]> f (a) => (d) { b = Relu(a) c = Identity(b) d = Neg(c) }"""
    after = changed(text, "delete-node op:Identity")
    assert [node.op_type for node in after.functions[0].node] == ["Relu", "Neg"]


# add-node


def test_sna4onnx_node_is_added_after_an_input_for_all_consumers() -> None:
    after = changed(CHAIN, "add-node Neg --input x --output n --insert")
    assert shape_of(after)[:2] == [("Neg", "x", "n"), ("Relu", "n", "a")]
    assert np.array_equal(run(after, {"x": X})[0], np.maximum(-X, 0) + np.array([1, 2, 3, 4], np.float32))


def test_sna4onnx_node_is_added_before_an_output() -> None:
    after = changed(CHAIN, "add-node Neg --input y --output before --insert")
    assert shape_of(after)[-2:] == [("Identity", "c", "before"), ("Neg", "before", "y")]


def test_sna4onnx_node_is_added_for_one_consumer_with_two_edits() -> None:
    text = "g (float[N] x) => (float[N] y) { a = Relu(x) b = Neg(x) y = Add(a, b) }"
    script = [parse_line("add-node Abs --input x --output p"), parse_line("rewire op:Neg x p")]
    after = apply(model_of(text), script)
    require_valid(after)
    assert shape_of(after)[1:3] == [("Relu", "x", "a"), ("Neg", "p", "b")]


def test_constant_and_custom_operators_are_added() -> None:
    (outcome,) = applying.run(model_of(CHAIN), parse_line("add-node Abs --input x --output p")).outcomes
    assert outcome.notes[0].startswith('nothing uses "p" yet; add-output')
    line = """add-node Constant --output k --attribute 'value={"type": "float[1]", "values": [2]}'"""
    assert ("Constant", "", "k") in shape_of(changed(CHAIN, line))
    custom = CHAIN.replace("g (", '<ir_version: 10, opset_import: ["" : 20, "mine" : 1]> g (', 1)
    after = apply(model_of(custom), parse_line("add-node Odd --domain mine --input x --output o --attribute n=3"))
    assert ("Odd", "x", "o") in shape_of(after)
    says = refused(CHAIN, "add-node Odd --domain mine --input x --output o")
    assert 'the model has no opset_import for the domain "mine"; `stamp-opset 1 --domain mine` adds it' in says


def test_node_is_added_inside_a_subgraph_and_takes_values_from_around() -> None:
    line = "add-node Neg --input a --output na --graph @/graph/node/2/attribute/then_branch/g"
    after = changed(NESTED, line)
    assert after.graph is not None
    then = after.graph.node[2].attribute[0].g
    assert then is not None
    assert [node.op_type for node in then.node] == ["Neg", "Identity", "Add"]


def test_inserted_node_with_inputs_from_later_moves_those_who_take_it() -> None:
    text = "g (float[N] x) => (float[N] y) { a = Relu(x) b = Neg(a) k = Abs(x) y = Add(b, k) }"
    after = changed(text, "add-node Mul --input a --input k --output m --insert")
    assert shape_of(after) == [
        ("Relu", "x", "a"),
        ("Abs", "x", "k"),
        ("Mul", "a,k", "m"),
        ("Neg", "m", "b"),
        ("Add", "b,k", "y"),
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("add-node Rely --input x --output n", 'there is no operator Rely; did you mean "Relu"'),
        ("add-node Upsample --input x --output n", "Upsample was removed before version 20"),
        ("add-node Relu --input x --input a --output n", "Relu accepts 1 input, but the node has 2"),
        ("add-node Add --input x --output n", "Add accepts 2 inputs, but the node has 1"),
        ("add-node Concat --input x --output n", 'Concat needs the attribute "axis"; add it'),
        ("add-node Relu --input x --output n --attribute alpha=1", 'Relu has no attribute "alpha"; it has none'),
        ("add-node LeakyRelu --input x --output n --attribute alhpa=1", 'did you mean "alpha"?'),
        ("add-node LeakyRelu --input x --output n --attribute alpha=red", 'alpha: "red", but "alpha" of LeakyRelu'),
        ("add-node Relu --input x --output a", '"a" already exists in /graph; choose another name'),
        ("add-node Split --input x --output p --output p", "two outputs have the same name"),
        ("add-node Relu --input zz --output n", 'nothing is called "zz"'),
        ("add-node Relu --output n --insert", "Relu accepts 1 input, but the node has 0"),
        ("add-node Add --input x --input b64 --output n", 'nothing is called "b64"'),
        (
            "add-node Gather --input x --input b --output n",
            'input 1 of Gather must be int32 or int64, but "b" is float32',
        ),
        ("add-node Relu --input x --output n --graph /functions/0", "there is no graph at /functions/0"),
    ],
)
def test_node_that_would_be_wrong_is_refused(line: str, says: str) -> None:
    assert says in refused(CHAIN, line)


def test_dtypes_that_do_not_go_together_are_refused_through_other_nodes() -> None:
    text = "g (float[N] x, int64[N] z) => (float[N] y) { a = Relu(x) k = Neg(z) y = Identity(a) }"
    says = refused(text, "add-node Add --input a --input k --output n")
    assert (
        'Add needs one dtype for "a" and "k", but they are float32 and int64; convert one of them with a Cast' in says
    )
    assert "needs one dtype for" in refused(text.replace("Identity(a)", "Mul(a, x)"), "rewire op:Mul 1 k")


# rewire and swap-inputs


def test_svs4onnx_one_some_or_all_consumers_take_another_value() -> None:
    text = """g (float[N] x, float[N] z) => (float[N] y) {
        a = Relu(x) b = Neg(x) c = Add(x, x) d = Add(a, b) y = Add(c, d)
    }"""
    assert shape_of(changed(text, "rewire op:Neg x z"))[:3] == [
        ("Relu", "x", "a"),
        ("Neg", "z", "b"),
        ("Add", "x,x", "c"),
    ]
    after = shape_of(changed(text, "rewire input:x x z"))
    assert [inputs for _, inputs, _ in after] == ["z", "z", "z,z", "a,b", "c,d"]
    assert shape_of(changed(text, "rewire output:c 1 z"))[2] == ("Add", "x,z", "c")


def test_svs4onnx_cycle_is_refused_and_said() -> None:
    says = refused(CHAIN, "rewire op:Relu x c")
    assert says == 'rewire: /graph/node/0 cannot use "c", which depends on it: that would be a cycle'
    assert "cycle" in refused(NESTED, "rewire op:Relu x h")
    assert "is not visible in /graph" in refused(NESTED, "rewire op:Relu x p")
    assert "would be a cycle" in refused(NESTED, "rewire 'in:main output:k' a h")


def test_cycle_of_several_rewired_nodes_is_found_too() -> None:
    text = "g (float[N] x) => (float[N] y, float[N] z) { a = Relu(x) y = Neg(a) b = Abs(x) z = Neg(b) }"
    with pytest.raises(EditError, match=r'edit 2 of 2 .rewire.: /graph/node/\d cannot use "y".* would be a cycle'):
        apply(model_of(text), [parse_line("rewire op:Relu x z"), parse_line("rewire op:Abs x y")])


def test_node_that_takes_what_is_made_later_is_moved() -> None:
    text = "g (float[N] x) => (float[N] y, float[N] z) { z = Relu(x) b = Neg(x) c = Abs(b) y = Neg(c) }"
    after = changed(text, "rewire op:Relu x c")
    assert [op for op, _, _ in shape_of(after)] == ["Neg", "Abs", "Relu", "Neg"]


def test_node_with_a_subgraph_is_moved_behind_what_its_subgraph_takes() -> None:
    text = NESTED.replace("y = Identity(h)", "late = Neg(x)\n    y = Add(h, late)")
    after = changed(text, "rewire op:Mul 1 late")
    assert [op for op, _, _ in shape_of(after)] == ["Relu", "Identity", "Neg", "If", "Add"]


def test_optional_input_is_left_out_and_given_again() -> None:
    text = "g (float[N] x, float lo, float hi) => (float[N] y) { y = Clip(x, lo, hi) }"
    assert shape_of(changed(text, "rewire op:Clip 1 ''")) == [("Clip", "x,,hi", "y")]
    assert shape_of(changed(text, "rewire op:Clip 2 ''")) == [("Clip", "x,lo", "y")]
    shorter = text.replace("Clip(x, lo, hi)", "Clip(x, lo)")
    assert shape_of(changed(shorter, "rewire op:Clip 2 hi")) == [("Clip", "x,lo,hi", "y")]
    assert 'Clip needs its input 0 ("input")' in refused(text, "rewire op:Clip 0 ''")
    assert "Clip accepts 1 to 3 inputs, but the node has 4" in refused(text, "rewire op:Clip 3 hi")


def test_what_a_node_does_not_take_cannot_be_rewired() -> None:
    assert 'has no input "q"; its inputs are "i", "b"' in refused(CHAIN, "rewire op:Add q x")
    assert "has no input -1" in refused(CHAIN, "rewire op:Add -- -1 x")
    found = edits.run(model_of(CHAIN), parse_line("rewire op:Relu x x"))
    assert found.outcomes[0] == edits.Outcome(1, ("1 of 1 node had it already",))


def test_inputs_are_swapped() -> None:
    assert shape_of(changed(CHAIN, "swap-inputs op:Add"))[2] == ("Add", "b,i", "c")
    assert "has 1 input, none at 1" in refused(CHAIN, "swap-inputs op:Relu")
    assert "are the same input" in refused(CHAIN, "swap-inputs op:Add 1 1")


# replace-node


def test_operator_is_replaced_and_what_it_has_not_is_said() -> None:
    text = "g (float[N] x) => (float[N] y) { y = LeakyRelu<alpha=0.5>(x) }"
    found = edits.run(model_of(text), parse_line("replace-node op:LeakyRelu Relu"))
    assert shape_of(found.model) == [("Relu", "x", "y")]
    assert found.outcomes[0].notes == ('the attribute "alpha" of 1 node is removed',)
    after = changed(text, "replace-node op:LeakyRelu Elu --attribute alpha=2")
    assert after.graph is not None
    assert after.graph.node[0].attribute[0].f == np.float32(2).tobytes()
    assert changed(text, "replace-node op:LeakyRelu ThresholdedRelu").graph is not None
    assert "Add accepts 2 inputs, but the node has 1" in refused(text, "replace-node op:LeakyRelu Add")
    assert "there is no operator Relyu" in refused(text, "replace-node op:LeakyRelu Relyu")


def test_call_of_a_function_takes_no_more_than_the_function_has() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
    g (float[N] x) => (float[N] y) { y = Relu(x) }
    <domain: "local", opset_import: ["" : 20]> f (a) => (d) { d = Neg(a) }"""
    assert shape_of(changed(text, "replace-node op:Relu f --domain local")) == [("f", "x", "y")]
    says = refused(text, "add-node f --domain local --input x --input x --output n")
    assert "f accepts 0 to 1 inputs, but the node has 2" in says


# order


def test_order_changes_no_more_than_it_must() -> None:
    model = model_of(NESTED)
    assert model.graph is not None
    nodes = model.graph.node
    assert sort_nodes(nodes) == nodes
    assert set(consumed_names(nodes[2])) == {"c", "k", "w"}
    assert sort_nodes((nodes[2], nodes[1], nodes[0], nodes[3])) == (nodes[0], nodes[1], nodes[2], nodes[3])
    from msgspec.structs import replace

    assert sort_nodes((replace(nodes[0], input=("k",)), nodes[1])) is None


def test_value_is_named_by_selectors_too() -> None:
    after = changed(CHAIN, "rewire op:Add i @/graph/node/0/output/0")
    assert shape_of(after)[2] == ("Add", "a,b", "c")
    with pytest.raises(SelectorError, match="did you mean"):
        apply(
            model_of(CHAIN.replace("c = Add", "value = Add").replace("(c)", "(value)")),
            parse_line("rewire op:Relu x valeu"),
        )
    assert onnxjson.edits.DeleteNode(node="a").bypass is None


RETYPED = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[N,4] x, int64[N,4] k) => (float[N,4] y, float[N,4] z) <float[N,4] a, float[N,4] b, float[N,4] c> {
        a = Cast <to = 1> (k)
        b = Neg (a)
        y = Add (x, b)
        c = Cast <to = 1> (k)
        z = Neg (c)
    }"""


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (edits.SetAttribute(node="output:a", attribute="to", value=7), 'Add needs one dtype for "x" and "b"'),
        (edits.Rewire(node="output:b", input=0, tensor="k"), 'Add needs one dtype for "x" and "b"'),
        (edits.DeleteNode(node="output:a", bypass=0), 'Add needs one dtype for "x" and "b"'),
        (edits.ReplaceNode(node="output:b", op_type="IsNaN"), 'but "b" is bool; add a Cast with add-node'),
        (edits.AddNode(op_type="IsNaN", input=("b",), output=("n",), insert=True), "is bool; add a Cast with add-node"),
        (edits.AddOutput(tensor="b", type="int32[N,4]"), '"b" is float32, not int32'),
        (edits.AddNode(op_type="Constant", output=("n",)), "a Constant needs one of"),
    ],
)
def test_a_dtype_that_nodes_further_on_do_not_take_is_refused(edit: edits.Edit, says: str) -> None:
    """snd4onnx and svs4onnx write such models; a runtime refuses them."""
    with pytest.raises(EditError, match=re.escape(says)):
        apply(model_of(RETYPED), edit)


@pytest.mark.parametrize(
    "edit",
    [
        edits.SetAttribute(node="output:c", attribute="to", value=6),
        edits.Rewire(node="output:z", input=0, tensor="k"),
        edits.DeleteNode(node="output:c", bypass=0),
        edits.AddNode(op_type="Cast", attribute={"to": 6}, input=("c",), output=("n",), insert=True),
        edits.AddNode(op_type="Cast", attribute={"to": 6}, input=("z",), output=("n",), insert=True),
    ],
)
def test_what_is_said_of_dtypes_follows(edit: edits.Edit) -> None:
    """value_info of another dtype than the nodes make is refused by a runtime."""
    after = apply(model_of(RETYPED), edit)
    require_valid(after)
    one = np.ones((1, 4))
    found = run(after, {"x": one.astype(np.float32), "k": one.astype(np.int64)})
    assert found[1].dtype in (np.int32, np.int64)
    assert after.graph is not None
    assert {each.name for each in after.graph.value_info} >= {"a", "b"}


def test_dtypes_follow_within_functions_and_stop_at_the_edge_of_a_subgraph() -> None:
    model = model_of(
        """<ir_version: 10, opset_import: ["" : 20]>
        g (bool q, int64[2] k) => (float[2] y) {
            y = If (q) <
                then_branch = t () => (float[2] a) { a = Cast <to = 1> (k) },
                else_branch = e () => (float[2] b) { b = Cast <to = 1> (k) }
            >
        }"""
    )
    with pytest.raises(EditError, match='"a" would be int32, and the node around this graph needs float32'):
        apply(model, edits.SetAttribute(node="output:a", attribute="to", value=6))


def test_the_condition_of_an_if_takes_its_place_only_where_that_is_meant() -> None:
    model = model_of(
        """g (bool c, float[2] x) => (float[2] y, bool z) {
            h = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                       else_branch = e () => (float[2] q) { q = Abs(x) }>
            y = Relu(h)
            i = If(c) <then_branch = t2 () => (bool r) { r = Not(c) },
                       else_branch = e2 () => (bool s) { s = Identity(c) }>
            z = Not(i)
        }"""
    )
    for node in ("output:h", "output:i"):
        with pytest.raises(EditError, match="choose one with bypass"):
            apply(model, edits.DeleteNode(node=node))
    with pytest.raises(EditError, match=r'input 0 of Relu must be .* but "h" is bool'):
        apply(model, edits.DeleteNode(node="output:h", bypass=0))
    after = apply(model, edits.DeleteNode(node="output:i", bypass=0))
    require_valid(after)
    found = run(after, {"c": np.array(True), "x": np.ones(2, np.float32)})
    assert not found[1]


def test_nodes_without_stated_types_do_not_walk_to_a_known_dtype_one_by_one() -> None:
    """Each asks for a dtype that is known only a long way up."""
    count, kinds = 1200, ("Relu", "Identity")
    nodes = "\n".join([f"t{i + 1} = {kinds[i % 2]}(t{i})" for i in range(count)])
    model = model_of(f"g (float[2] t0) => (float[2] t{count}) {{\n{nodes}\n}}")
    delete = edits.DeleteNode(node=f"op:Identity !output:t{count}")
    for edit in (delete, edits.ReplaceNode(node="op:Relu", op_type="Neg")):
        # A walk for each of them calls thousands of functions a node.
        assert count_calls(partial(apply, model, edit)) < 400 * count


def test_a_deleted_node_whose_output_has_the_name_of_an_input_leaves_the_input_alone() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { a = Relu(x) y = Relu(a) }")
    assert model.graph is not None
    wrong = msgspec.structs.replace(model.graph.node[0], output=("x",))
    graph = msgspec.structs.replace(model.graph, node=(wrong, *model.graph.node[1:]))
    result = onnxjson.apply(msgspec.structs.replace(model, graph=graph), [edits.DeleteNode(node="@/graph/node/0")])
    after = result.graph
    assert after is not None
    assert [node.output for node in after.node] == [("y",)]


def test_a_node_of_a_step_of_training_is_deleted() -> None:
    model = model_of(CHAIN)
    step = model_of("s () => (float[2] u) <float[2] g = {1, 2}> { t = Relu(g) u = Identity(t) }").graph
    model = msgspec.structs.replace(model, training_info=(TrainingInfo(algorithm=step),))
    result = apply(model, [edits.DeleteNode(node="@/training_info/0/algorithm/node/0", bypass=0)])
    after = result.training_info[0].algorithm
    assert after is not None
    assert [node.op_type for node in after.node] == ["Identity"]
    assert result.graph == model.graph
