"""set-attribute, remove-attribute, set-tensor, cast-tensor (sam4onnx done right)."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import apply, edits
from onnxjson.editing.spelling import parse_line
from onnxjson.model.document import Attribute, Model, Node
from onnxjson.model.errors import EditError, OnnxJsonError
from onnxjson.model.tensors import to_numpy
from tests.editing.graphs import EXPORTED, exported, model_of, require_valid, run

SMALL = """g (float[1,2,4,4] x) => (float[1,32] y)
<float[2,2,1,1] w = {1, 2, 3, 4}, float[2] s = {1, 2}, int64[2] r = {1, 32}> {
    c = Conv<pads = [0, 0, 0, 0], auto_pad = "NOTSET">(x, w)
    l = LeakyRelu<alpha = 0.5>(c)
    k = Constant<value = float[1] {2}>()
    m = Mul(l, k)
    f = Reshape(m, r)
    y = Identity(f)
}"""

DILATED = SMALL.replace("pads = [0, 0, 0, 0]", "dilations = [1, 1]")

BRANCH = """g (float[N] x, bool c) => (float[N] y) {
    y = If(c) <then_branch = t () => (float[N] p) { p = LeakyRelu<alpha=0.5>(x) },
               else_branch = e () => (float[N] q) { q = If(c) <
                   then_branch = tt () => (float[N] r) { r = LeakyRelu<alpha=0.5>(x) },
                   else_branch = ee () => (float[N] s) { s = Neg(x) }> }>
}"""


def node_of(model: Model, position: int = 0) -> Node:
    """A node of the main graph."""
    assert model.graph is not None
    return model.graph.node[position]


def attributes_of(node: Node) -> dict[str | None, object]:
    """Attributes with their values."""
    return {each.name: value(each) for each in node.attribute}


def value(attribute: Attribute) -> object:
    """The value of an attribute as Python has it."""
    from onnxjson.model.messages import value_of

    return value_of(attribute)


def changed(text: str, line: str) -> Model:
    """A valid model after one edit."""
    model = model_of(text)
    after = apply(model, parse_line(line))
    require_valid(after)
    assert edits.plan(model, parse_line(line)).invert().apply(after) == model
    return after


def refused(text: str, line: str) -> str:
    """What the error says."""
    with pytest.raises(OnnxJsonError) as caught:
        apply(model_of(text), parse_line(line))
    return str(caught.value)


def test_sam4onnx_attribute_is_set_at_its_place_and_nothing_else_changes() -> None:
    model = model_of(DILATED)
    assert model.graph is not None
    node = node_of(model)
    odd = replace(
        node, attribute=(replace(node.attribute[0], doc_string="why", unknown_fields=b"\xc2>\x01a"), node.attribute[1])
    )
    model = replace(
        model,
        producer_name="p",
        doc_string="d",
        unknown_fields=b"\xc2>\x01b",
        graph=replace(model.graph, node=(odd, *model.graph.node[1:])),
    )
    after = apply(model, parse_line("set-attribute op:Conv dilations [2,2]"))
    new = node_of(after).attribute
    assert (new[0].name, new[0].ints, new[0].doc_string) == ("dilations", (2, 2), "why")
    assert after.graph is not None
    back = replace(new[0], ints=(1, 1))
    nodes = (replace(node_of(after), attribute=(back, *new[1:])), *after.graph.node[1:])
    assert replace(after, graph=replace(after.graph, node=nodes)) == model


def test_sam4onnx_attributes_are_found_in_every_branch() -> None:
    result = edits.run(model_of(BRANCH), parse_line("set-attribute op:LeakyRelu alpha 0.25"))
    assert result.outcomes[0].matches == 2
    x = np.array([-1.0, 1.0], np.float32)
    assert run(result.model, {"x": x, "c": np.array(True)})[0].tolist() == [-0.25, 1.0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("set-attribute op:LeakyRelu alpha 1", 1.0),
        ("set-attribute op:LeakyRelu alpha -0.0", -0.0),
        ("set-attribute op:LeakyRelu alpha Infinity", float("inf")),
        ("set-attribute op:LeakyRelu alpha '{\"FLOAT\": 3}'", 3.0),
    ],
)
def test_value_becomes_what_the_operator_takes(line: str, expected: float) -> None:
    found = value(node_of(apply(model_of(SMALL), parse_line(line)), 1).attribute[0])
    assert repr(found) == repr(expected)


def test_texts_tensors_and_new_attributes_are_set() -> None:
    assert attributes_of(node_of(changed(SMALL, "set-attribute op:Conv auto_pad VALID")))["auto_pad"] == "VALID"
    after = changed(SMALL, "set-attribute op:Conv group 1")
    assert [each.name for each in node_of(after).attribute] == ["pads", "auto_pad", "group"]
    tensor = """set-attribute op:Constant value '{"type": "float32[1]", "values": [3]}'"""
    found = node_of(changed(SMALL, tensor), 2).attribute[0].t
    assert found is not None
    assert found.raw_data == np.float32(3).tobytes()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("set-attribute op:Conv padz [1]", '/graph/node/0: Conv has no attribute "padz"; did you mean "pads"?'),
        ("set-attribute op:Identity foo 1", 'Identity has no attribute "foo"; Identity has none'),
        ("set-attribute op:Conv pads x", 'value: "x", but "pads" of Conv must be INTS, a list of integers'),
        ("set-attribute op:Conv pads [1,x]", "begins like JSON but is not"),
        ("set-attribute op:Conv pads '[1,\"x\"]'", 'value[1]: found the string "x", expected an integer'),
        ("set-attribute op:Conv pads '{\"FLOATS\": [1]}'", '"pads" of Conv is INTS, but the value is FLOATS'),
        ("set-attribute op:LeakyRelu alpha 1e39", "value: "),
        ("set-attribute op:Convv pads [1]", 'no node has op:Convv; did you mean "Conv"?'),
        ("remove-attribute op:Conv padz", '/graph/node/0 has no attribute "padz"; did you mean "pads"?'),
        ("remove-attribute '*' foo", 'none of the 6 nodes has an attribute "foo"; there are'),
    ],
)
def test_what_would_be_wrong_is_refused(line: str, says: str) -> None:
    assert says in refused(SMALL, line)


def test_required_attribute_stays() -> None:
    text = "g (float[N] x) => (float16[N] y) { y = Cast<to=10>(x) }"
    assert 'Cast requires the attribute "to"; set-attribute sets it' in refused(text, "remove-attribute op:Cast to")


def test_attribute_is_removed_from_those_that_have_it() -> None:
    found = edits.run(model_of(SMALL), parse_line("remove-attribute '*' alpha"))
    assert found.outcomes[0] == edits.Outcome(1, ("5 of 6 nodes do not have it",))
    assert node_of(found.model, 1).attribute == ()
    assert attributes_of(node_of(changed(SMALL, "remove-attribute op:Conv pads"))) == {"auto_pad": "NOTSET"}


def test_value_that_is_there_already_is_said_and_changes_nothing() -> None:
    model = model_of(SMALL)
    found = edits.run(model, parse_line("set-attribute op:LeakyRelu alpha 0.5"))
    assert found.model is model
    assert found.outcomes[0] == edits.Outcome(1, ("the node has that value of alpha already",))


def test_operators_of_other_domains_keep_the_type_that_they_have() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20, "mine" : 1]>
    g (float[N] x) => (float[N] y) { y = mine.Odd<f = 0.5, n = 1>(x) }"""
    model = model_of(text)
    after = apply(model, parse_line("set-attribute op:Odd f 2"))
    assert value(node_of(after).attribute[0]) == 2.0
    after = apply(model, parse_line("set-attribute op:Odd more 2"))
    assert value(node_of(after).attribute[2]) == 2
    assert "the type of 0.5 is not known" in refused(text, "set-attribute op:Odd more 0.5")
    after = apply(model, parse_line("""set-attribute op:Odd more '{"FLOATS": [0.5]}'"""))
    assert value(node_of(after).attribute[2]) == (0.5,)


def test_attribute_that_stands_twice_is_not_guessed() -> None:
    model = model_of(DILATED)
    assert model.graph is not None
    twice = replace(node_of(model), attribute=(*node_of(model).attribute, node_of(model).attribute[0]))
    broken = replace(model, graph=replace(model.graph, node=(twice, *model.graph.node[1:])))
    with pytest.raises(OnnxJsonError, match="has 2 attributes called"):
        apply(broken, parse_line("set-attribute op:Conv dilations [2,2]"))
    after = apply(broken, parse_line("set-attribute op:Conv #2 [2,2]"))
    assert [each.ints for each in node_of(after).attribute if each.name == "dilations"] == [(1, 1), (2, 2)]


# tensors


def constant(model: Model, name: str) -> onnxjson.Tensor:
    """An initializer."""
    assert model.graph is not None
    return next(each for each in model.graph.initializer if each.name == name)


def test_sam4onnx_constants_get_values_base64_and_arrays(tmp_path: Path) -> None:
    expected = np.array([3, 4], np.float32)
    np.save(tmp_path / "s.npy", expected)
    np.savez(tmp_path / "s.npz", one=expected, two=expected)
    model = model_of(SMALL)
    for line in (
        "set-tensor s [3,4]",
        "set-tensor s --base64 AABAQAAAgEA=",
        "set-tensor s --file s.npy",
        "set-tensor s --file s.npz:two",
    ):
        after = apply(model, parse_line(line), folder=tmp_path)
        assert constant(after, "s").raw_data == expected.tobytes()
        require_valid(after)
    after = changed(SMALL, "set-tensor k [5]")
    held = node_of(after, 2).attribute[0].t
    assert held is not None
    assert held.raw_data == np.float32(5).tobytes()


def test_flat_and_nested_values_and_other_shapes_are_told_apart() -> None:
    flat = changed(SMALL, "set-tensor w [5,6,7,8]")
    nested = changed(SMALL, "set-tensor w [[[[5]],[[6]]],[[[7]],[[8]]]]")
    assert flat == nested
    assert constant(flat, "w").dims == (2, 2, 1, 1)
    assert (
        "found 3 values of the shape [3], expected float32[2]; give 2 values, or another dtype or shape with type"
        in refused(SMALL, "set-tensor s [1,2,3]")
    )
    assert constant(apply(model_of(SMALL), parse_line("set-tensor s [1,2,3] --type float32[3]")), "s").dims == (3,)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("set-tensor s", "set-tensor needs one of value, base64, file, but has none of them"),
        ("set-tensor s [1,2] --base64 AA==", "but has value and base64"),
        ("set-tensor r [0.5,1]", "set-tensor: r: element [0]"),
        ("set-tensor s [1e39,1]", "with --lossy it becomes"),
        ("set-tensor x [1]", '"x" is not a constant (@/graph/input/0)'),
        ("set-tensor z [1]", 'nothing is called "z"'),
        ("set-tensor s [1,2] --type float33[2]", "set-tensor: type: "),
        ("set-tensor s --base64 AAA", "set-tensor: s: "),
        ("set-tensor s --file s.npy", "s.npy"),
        ("cast-tensor s float16[2]", "dtype: float16[2] has dims; write the dtype alone"),
        ("cast-tensor s floaty", "cast-tensor: dtype: "),
        ("cast-tensor w float16", 'Conv needs one dtype for "x" and "w", but they are float32 and float16'),
        ("cast-tensor r int32", 'input 1 of Reshape must be int64, but "r" is int32; add a Cast with add-node'),
    ],
)
def test_constant_that_would_be_wrong_is_refused(line: str, says: str) -> None:
    assert says in refused(SMALL, line)


def test_lossy_takes_the_nearest_and_says_what_it_took() -> None:
    found = edits.run(model_of(SMALL), parse_line("set-tensor s [1e39,1] --lossy"))
    assert "1 value is not represented exactly" in found.outcomes[0].notes[0]
    assert constant(found.model, "s").raw_data == np.array([np.finfo(np.float32).max, 1], np.float32).tobytes()


def test_cast_constant_says_its_new_type_where_the_graph_says_one() -> None:
    text = "g (float[2] x, float[2] s) => (float[2] y) <float[2] s = {1, 2}, float[2] t = {1, 2}> { y = Relu(x) }"
    after = changed(text, "cast-tensor s float16")
    assert after.graph is not None
    assert constant(after, "s").data_type == 10
    kind = after.graph.input[1].type
    assert kind is not None
    assert kind.tensor_type is not None
    assert kind.tensor_type.elem_type == 10
    found = edits.run(model_of(text), parse_line("cast-tensor s float32"))
    assert found.outcomes[0].notes == ('"s" is float32 already',)


@pytest.mark.parametrize("name", [name for name in EXPORTED if name != "branches_ts.onnx"])
def test_weights_of_exported_models_are_replaced_and_put_back(name: str) -> None:
    model = exported(name)
    assert model.graph is not None
    first = next(each for each in model.graph.initializer if each.raw_data is not None and each.data_type == 1)
    from onnxjson.model.tensors import to_numpy

    doubled = to_numpy(first) * 2
    patch = edits.plan(model, edits.SetTensor(tensor=f"@{_address(model, first)}", value=doubled))
    after = patch.apply(model)
    assert np.array_equal(to_numpy(constant(after, first.name or "")), doubled)
    assert onnxjson.dumps(patch.invert().apply(after)) == onnxjson.dumps(model)


def _address(model: Model, tensor: onnxjson.Tensor) -> str:
    assert model.graph is not None
    return f"/graph/initializer/{model.graph.initializer.index(tensor)}"


def test_only_values_that_do_not_fit_are_a_reason_for_another_type(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("text")
    with pytest.raises(EditError, match=r"text\.npy does not have a readable array: [^;]*$"):
        apply(model_of(SMALL), parse_line("set-tensor s --file text.npy"), folder=tmp_path)
    assert "give another" not in refused(SMALL, "set-tensor s --base64 ?")
    assert "found 1 value of the shape []" in refused(SMALL, "set-tensor s 1")


@pytest.mark.parametrize("perm", ["[1,0]", "[0,0,1]"])
def test_a_perm_that_the_rank_does_not_allow_is_refused_also_where_the_rank_is_inferred(perm: str) -> None:
    text = "g (float[2,3,4] x) => (float[2,4,3] y) { a = Relu(x) y = Transpose<perm = [0, 2, 1]>(a) }"
    with pytest.raises(EditError, match="perm "):
        apply(model_of(text), parse_line(f"set-attribute op:Transpose perm {perm}"))


INDICES = """g (float[2,6] x) => (float[1,2] y, double[2] d)
<int64[2] i = {1, 0}, int64[2] s = {3, 4}, int64[2] big = {1, 1099511627776}, int64[1] n = {1},
 double[2] w = {0.5, 2}> {
    a = Gather(x, i)
    b = Reshape(a, s)
    c = Gather<axis = 1>(b, big)
    m = Add(n, n)
    y = Gather(c, m)
    d = Identity(w)
}"""


def test_constants_are_cast_in_bulk_where_nothing_else_changes() -> None:
    model = model_of(INDICES)
    done = edits.run(model, parse_line("cast-tensor '*' int32"))
    assert done.model.graph is not None
    types = {each.name: each.data_type for each in done.model.graph.initializer}
    assert types == {"i": 6, "s": 7, "big": 7, "n": 7, "w": 11}
    assert done.matches == 1
    assert done.outcomes[0].notes[0] == "1 constant of 4 cast to int32"
    require_valid(done.model)


def test_constants_in_bulk_lose_digits_only_if_that_is_allowed_and_told() -> None:
    text = """g (float[2] x) => (float[2] y) <double[1] w = {0.1}, double[1] v = {0.5}> {
        a = Cast<to = 1>(w) b = Cast<to = 1>(v) c = Add(x, a) y = Add(c, b) }"""
    exact = edits.run(model_of(text), parse_line("cast-tensor re:[vw] float32")).outcomes[0]
    assert (exact.matches, "cannot represent 0.1" in exact.notes[-1]) == (1, True)
    near = edits.run(model_of(text), parse_line("cast-tensor re:[vw] float32 --lossy")).outcomes[0]
    assert (near.matches, "1 value is not represented exactly" in near.notes[1]) == (2, True)
    with pytest.raises(EditError, match="no constant can become float16"):
        apply(model_of(text), parse_line("cast-tensor re:[wx] float16"))


def test_constants_in_bulk_stay_where_their_consumers_need_the_dtype() -> None:
    """The exports of PyTorch have each constant in a node Constant."""
    text = """g (float[N,2] x, int64[2] i) => (float[1,N,2] y, float[2,2] z, int64[2] s) {
        axes = Constant<value = int64[1] {0}>() y = Unsqueeze(x, axes)
        rows = Constant<value = int64[2] {0, 1}>() z = Gather(x, rows)
        one = Constant<value = int64 {1}>() s = Add(i, one) }"""
    done = edits.run(model_of(text), parse_line("cast-tensor * int32"))
    tensors = [node_of(done.model, position).attribute[0].t for position in (0, 2, 4)]
    assert [tensor.data_type for tensor in tensors if tensor is not None] == [7, 6, 7]
    first, stay = done.outcomes[0].notes
    assert first == "1 constant of 3 cast to int32"
    assert stay == '2 not cast, such as /graph/node/1: input 1 of Unsqueeze must be int64, but "axes" is int32'
    with pytest.raises(EditError, match="input 1 of Unsqueeze must be int64"):
        apply(model_of(text), parse_line("cast-tensor @/graph/node/0/attribute/value/t int32"))
    with pytest.raises(EditError, match="none of 8 matching constants has a wider dtype"):
        apply(model_of(text), parse_line("cast-tensor * float32"))


ADAPTED = """g (float[1,2] x) => (float[1,2] y) <float[2,1] q_lora_A = {1, 2}, float[1,2] q_lora_B = {3, 4}> {
    a = MatMul(x, q_lora_A)
    y = MatMul(a, q_lora_B)
}"""


def test_the_constants_of_an_adapter_come_from_a_file_that_must_have_them_all(tmp_path: Path) -> None:
    lists = {"q_lora_A": [[5], [6]], "q_lora_B": [[7, 8]], "more": [1]}
    arrays = {name: np.array(values, np.float32) for name, values in lists.items()}
    np.savez(tmp_path / "a.npz", allow_pickle=False, **arrays)
    model = model_of(ADAPTED)
    done = edits.run(model, parse_line("set-tensor *_lora_* --file a.npz"), folder=tmp_path)
    assert done.model.graph is not None
    for each in done.model.graph.initializer:
        np.testing.assert_array_equal(to_numpy(each), arrays[each.name or ""])
    assert (done.matches, done.outcomes[0].notes) == (2, ("1 array of a.npz not used",))
    np.savez(tmp_path / "b.npz", q_lora_A=arrays["q_lora_A"])
    with pytest.raises(EditError, match=r"b\.npz has no q_lora_B; nothing is changed"):
        apply(model, parse_line("set-tensor *_lora_* --file b.npz"), folder=tmp_path)
    with pytest.raises(EditError, match="2 tensors match"):
        apply(model, parse_line("set-tensor *_lora_* 1"))
