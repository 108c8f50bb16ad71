"""extract and combine: what sne4onnx and snc4onnx do, without their damage."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.parser import parse_model

import onnxjson
from onnxjson.editing.composing import Combine, Extract
from onnxjson.editing.edits import Script, apply, run
from onnxjson.model.document import Graph, Model, TensorType, Type
from onnxjson.model.errors import EditError, MissingInputError, SelectorError, UntrustedError
from onnxjson.model.structure import check_structure
from onnxjson.model.types import format_type

MODELS = Path(__file__).parent.parent / "models"


def read(text: str) -> Model:
    return onnxjson.from_proto(parse_model(text))


def graph_of(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def names(values: Sequence[Any]) -> list[str]:
    return [f"{each.name}: {format_type(each.type)}" for each in values]


def evaluate(model: Model, inputs: dict[str, Any]) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(onnxjson.to_proto(model).SerializeToString(), options)
    taken = {each.name: inputs[each.name] for each in session.get_inputs()}
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, taken), strict=True))


def check(model: Model) -> None:
    onnx.checker.check_model(onnxjson.to_proto(model), full_check=True)
    assert not check_structure(model)


CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[2,3] x, float[2,3] z) => (float[2,3] y, float[2,3] w)
<float[3] b = {1, 2, 3}, float[3] unused = {0, 0, 0}>
{
  a = Relu (x)
  s = Add (a, b)
  c = Mul (s, z)
  y = Neg (c)
  w = Abs (s)
}
"""


def test_sne4onnx_the_part_has_exactly_the_named_inputs_and_outputs_in_order() -> None:
    model = read(CHAIN)
    part = apply(model, Extract(inputs=("z", "s"), outputs=("y",)))
    graph = graph_of(part)
    assert names(graph.input) == ["z: float32[2,3]", "s: float32[2,3]"]
    assert names(graph.output) == ["y: float32[2,3]"]
    assert [node.op_type for node in graph.node] == ["Mul", "Neg"]
    assert graph.initializer == ()
    assert all(node in graph_of(model).node for node in graph.node)
    check(part)


def test_the_outputs_of_the_model_are_those_of_a_part_that_names_none() -> None:
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    model = read(f"{head} g (float[4] x) => (float[4] y, float[4] z) {{ a = Abs(x) y = Neg(a) z = Exp(a) }}")
    part = graph_of(apply(model, Extract(inputs=("a",))))
    assert ([each.name for each in part.input], [each.name for each in part.output]) == (["a"], ["y", "z"])
    assert len(part.node) == 2
    with pytest.raises(EditError, match="needs `inputs` or `outputs`"):
        apply(model, Extract())


def test_sne4onnx_only_the_named_outputs_of_a_node_come_out() -> None:
    split = read("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[2] q) { p, q = Split (x) }""")
    part = apply(split, Extract(outputs=("p",)))
    assert names(graph_of(part).output) == ["p: float32[2]"]
    check(part)


def test_sne4onnx_scalars_and_values_without_a_rank_may_be_inputs() -> None:
    model = read("""<ir_version: 8, opset_import: ["" : 17]>
    g (float x) => (float y) { t = Neg (x) y = Abs (t) }""")
    assert names(graph_of(apply(model, Extract(inputs=("t",), outputs=("y",)))).input) == ["t: float32[]"]
    free = read(
        """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x, int64[M] s) => (y)
        { t = Reshape (x, s) u = Neg (t) y = Abs (u) }"""
    )
    result = run(free, Extract(inputs=("u",), outputs=("y",)))
    assert names(graph_of(result.model).input) == ["u: float32"]
    said = [note for note in result.outcomes[0].notes if "is not known" in note]
    assert ['the rank of "u" is' in note for note in said] == [True, False]
    assert ['"y"' in note for note in said] == [False, True]
    u = numpy.array([[-1, 2]], numpy.float32)
    assert evaluate(result.model, {"u": u})["y"].tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("one", "other", "first", "last"),
    [
        ("N,3", "N,C", "N,3", "N,3"),
        ("N,3", "B,C", "N,3", "N,3"),
        ("N,D", "N,3", "N,3", "N,3"),
        ("2,3", "B,3", "2,3", "2,3"),
        ("N,D", "D,N", "N,D", "N,D"),
    ],
)
def test_combined_models_have_one_size_for_joined_dimensions(
    one: str, other: str, first: str, last: str, tmp_path: Path
) -> None:
    a = read(f"""<ir_version: 8, opset_import: ["" : 17]> g (float[{one}] x) => (float[{one}] y) {{ y = Neg (x) }}""")
    b = read(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[{other}] y) => (float[{other}] z) {{ z = Abs (y) }}"""
    )
    onnxjson.save(b, tmp_path / "b.onnx")
    result = run(a, Combine(with_="b.onnx"), folder=tmp_path)
    graph = graph_of(result.model)
    assert names(graph.input) == [f"x: float32[{first}]"]
    assert names(graph.output) == [f"z: float32[{last}]"]
    assert any("dimensions of the" in note for note in result.outcomes[0].notes)
    check(result.model)


def test_dimensions_that_cannot_be_one_are_refused_and_others_get_another_name(tmp_path: Path) -> None:
    a = read("""<ir_version: 8, opset_import: ["" : 17]> g (float[3,4] x) => (float[3,4] y) { y = Neg (x) }""")
    b = read("""<ir_version: 8, opset_import: ["" : 17]> g (float[C,C] y) => (float[C,C] z) { z = Abs (y) }""")
    onnxjson.save(b, tmp_path / "b.onnx")
    with pytest.raises(EditError, match='the dimension "C" of the second model would be 3 and 4'):
        apply(a, Combine(with_="b.onnx"), folder=tmp_path)
    a = read("""<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Neg (x) }""")
    b = read(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[B] y, float[N] w) => (float[B] z, float[N] v) { z = Abs (y) v = Abs (w) }"""
    )
    onnxjson.save(b, tmp_path / "b.onnx")
    graph = graph_of(apply(a, Combine(with_="b.onnx"), folder=tmp_path))
    assert names(graph.output) == ["z: float32[N]", "v: float32[N_2]"]


def test_outputs_of_a_part_get_the_rank_that_follows_from_the_model() -> None:
    model = read("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,N] x) => (float y) { t = Relu (x) y = Transpose (t) }""")
    graph = graph_of(model)
    value = graph.output[0]
    flat = msgspec.structs.replace(value, type=Type(tensor_type=TensorType(elem_type=1)))
    model = msgspec.structs.replace(model, graph=msgspec.structs.replace(graph, output=(flat,)))
    result = run(model, Extract(outputs=("y",)))
    assert names(graph_of(result.model).output) == ["y: float32[N,2]"]
    assert "rank" not in str(result.outcomes[0].notes)
    check(result.model)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Extract(inputs=("ss",), outputs=("y",)), 'nothing is called "ss"'),
        (Extract(inputs=("s",), outputs=("yy",)), 'nothing is called "yy"'),
        (Extract(inputs=("s",), outputs=("y",)), '"y" also needs the input "z" of the model; name it among'),
        (Extract(inputs=("y", "x", "z"), outputs=("y",)), "there is no node between"),
        (Extract(inputs=("x", "x"), outputs=("a",)), '"x" is given twice as an input'),
        (Extract(inputs=("y", "z"), outputs=("a",)), '"a" also needs the input "x"'),
    ],
)
def test_sne4onnx_what_cannot_be_cut_is_refused(edit: Extract, message: str) -> None:
    with pytest.raises((EditError, SelectorError), match=message):
        apply(read(CHAIN), edit)


def test_an_input_that_nothing_needs_stays_and_is_said() -> None:
    result = run(read(CHAIN), Extract(inputs=("x", "z"), outputs=("a",)))
    assert names(graph_of(result.model).input) == ["x: float32[2,3]", "z: float32[2,3]"]
    assert result.outcomes[0].notes == ("1 of 5 nodes are kept", '"z" is an input that no node needs')


def test_a_constant_may_become_an_input() -> None:
    part = apply(read(CHAIN), Extract(inputs=("x", "b"), outputs=("s",)))
    assert names(graph_of(part).input) == ["x: float32[2,3]", "b: float32[3]"]
    assert graph_of(part).initializer == ()
    check(part)


def branching() -> Model:
    then = helper.make_graph(
        [helper.make_node("Mul", ["s", "k"], ["m"]), helper.make_node("Neg", ["m"], ["t"])],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, [2])],
        [helper.make_tensor("k", TensorProto.FLOAT, [2], [2.0, 3.0])],
    )
    other = helper.make_graph(
        [helper.make_node("Add", ["s", "outer"], ["e"])],
        "other",
        [],
        [helper.make_tensor_value_info("e", TensorProto.FLOAT, [2])],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Abs", ["x"], ["s"]),
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [helper.make_tensor("outer", TensorProto.FLOAT, [2], [1.0, 1.0])],
    )
    return onnxjson.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


def test_what_a_subgraph_takes_from_around_it_becomes_an_input_and_constants_come_along() -> None:
    result = run(branching(), Extract(outputs=("t",)))
    graph = graph_of(result.model)
    assert names(graph.input) == ["s: float32[2]"]
    assert [tensor.name for tensor in graph.initializer] == ["k"]
    assert result.outcomes[0].notes[1] == 'values of enclosing graphs, now inputs: "s"'
    check(result.model)
    other = apply(branching(), Extract(outputs=("e",)))
    assert [tensor.name for tensor in graph_of(other).initializer] == ["outer"]
    check(other)


def test_values_that_a_kept_subgraph_takes_are_kept() -> None:
    part = apply(branching(), Extract(outputs=("y",)))
    assert names(graph_of(part).input) == ["x: float32[2]", "c: bool[]"]
    cut = apply(branching(), Extract(inputs=("s", "c"), outputs=("y",)))
    assert [node.op_type for node in graph_of(cut).node] == ["If"]
    check(cut)


def test_functions_that_are_not_called_stay_behind_and_metadata_stays() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = [
        helper.make_function("f", name, ["a"], ["b"], [helper.make_node(op, ["a"], ["b"], domain=domain)], opsets)
        for name, op, domain in (("Inner", "Relu", ""), ("Outer", "Inner", "f"), ("Other", "Neg", ""))
    ]
    nodes = [helper.make_node("Outer", ["x"], ["t"], domain="f"), helper.make_node("Other", ["t"], ["y"], domain="f")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, [2])], [value("y", 1, [2])])
    proto = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)
    proto.metadata_props.add(key="k", value="v")
    proto.graph.quantization_annotation.add(tensor_name="t")
    proto.graph.value_info.append(value("t", 1, [2]))
    part = apply(onnxjson.from_proto(proto), Extract(outputs=("t",)))
    assert [function.name for function in part.functions] == ["Inner", "Outer"]
    assert part.metadata_props[0].value == "v"
    assert [each.tensor_name for each in graph_of(part).quantization_annotation] == ["t"]
    assert part.ir_version == 9
    check(part)


@pytest.mark.parametrize("name", ["encoder_ts", "encoder_dynamo", "mobile_ts", "mobile_dynamo"])
def test_extract_and_combine_of_exports_compute_bit_for_bit_the_same(name: str, tmp_path: Path) -> None:
    model = onnxjson.load(MODELS / f"{name}.onnx")
    graph = graph_of(model)
    middle = _bottleneck(model)
    head = apply(model, Extract(outputs=(middle,)))
    tail = apply(
        model,
        Extract(inputs=(middle, *_others(model, middle)), outputs=tuple([each.name or "" for each in graph.output])),
    )
    for part in (head, tail):
        onnx.checker.check_model(onnxjson.to_proto(part))
    onnxjson.save(tail, tmp_path / "tail.onnx")
    joins = tuple([f"{each.name}={each.name}" for each in graph_of(tail).input if each.name in _known(head)])
    again = apply(head, Combine(with_="tail.onnx", join=joins), folder=tmp_path)
    assert len(graph_of(again).node) <= len(graph.node)
    inputs = _random_inputs(model)
    expected, found = evaluate(model, inputs), evaluate(again, inputs)
    assert {key: value.tobytes() for key, value in found.items()} == {
        key: value.tobytes() for key, value in expected.items()
    }


def _known(model: Model) -> set[str | None]:
    graph = graph_of(model)
    return {each.name for each in graph.input} | {name for node in graph.node for name in node.output}


def _bottleneck(model: Model) -> str:
    """The output of a node near the middle of the graph."""
    graph = graph_of(model)
    weighty = [node for node in graph.node if node.op_type in {"Conv", "MatMul", "Gemm"}]
    return weighty[len(weighty) // 2].output[0]


def _others(model: Model, middle: str) -> list[str]:
    """The other values and inputs that what comes after needs: outputs of the head's nodes are taken as they are."""
    from onnxjson.editing.extraction import Extraction
    from onnxjson.model.index import Index

    index = Index(model)
    main = index.scopes[0]
    extraction = Extraction(model, index, None)
    upstream, _ = extraction._upstream(main, [middle], set())
    rest, _ = extraction._upstream(main, [each.name or "" for each in main.graph.output], {middle})  # type: ignore[union-attr]
    made = {name for position in upstream for name in main.graph.node[position].output}
    below = {name for position in set(rest) - set(upstream) for name in main.graph.node[position].input}
    needed = [name for name in main.inputs if name in below and name not in main.initializers]
    return [*sorted((made & below) - {middle}), *needed]


def _random_inputs(model: Model) -> dict[str, Any]:
    generator = numpy.random.default_rng(7)
    found = {}
    for value in graph_of(model).input:
        assert value.type is not None
        tensor = value.type.tensor_type
        assert tensor is not None
        assert tensor.shape is not None
        shape = [dim.dim_value or 2 for dim in tensor.shape.dim]
        if tensor.elem_type == TensorProto.INT64:
            found[value.name or ""] = generator.integers(0, 2, shape)
        else:
            found[value.name or ""] = generator.normal(size=shape).astype(numpy.float32)
    return found


HEAD = """<ir_version: 8, opset_import: ["" : 17]>
    head (float[N,3] x) => (float[N,3] y, float[N,3] aux)
<float[3] w = {1, 2, 3}> { t = Mul (x, w) y = Relu (t) aux = Neg (t) }"""

TAIL = """<ir_version: 8, opset_import: ["" : 17]>
    tail (float[N,3] x, float[3] k) => (float[N,3] y)
<float[3] w = {4, 5, 6}> { t = Add (x, w) y = Mul (t, k) }"""


def pair(folder: Path, tail: str = TAIL, head: str = HEAD) -> Model:
    onnxjson.save(read(tail), folder / "tail.onnx")
    return read(head)


def test_snc4onnx_names_that_clash_get_a_prefix_and_the_map_is_said(tmp_path: Path) -> None:
    result = run(pair(tmp_path), Combine(with_="tail.onnx", join=("y=x",)), folder=tmp_path)
    graph = graph_of(result.model)
    assert names(graph.input) == ["x: float32[N,3]", "k: float32[3]"]
    assert names(graph.output) == ["aux: float32[N,3]", "tail/y: float32[N,3]"]
    assert [tensor.name for tensor in graph.initializer] == ["w", "tail/w"]
    assert result.outcomes[0].notes == (
        (
            "values of the second model renamed, because the first has these names: "
            '"w" is now "tail/w", "t" is now "tail/t", "y" is now "tail/y"'
        ),
    )
    check(result.model)
    x, k = numpy.array([[1, -2, 3]], numpy.float32), numpy.array([1, 2, 3], numpy.float32)
    found = evaluate(result.model, {"x": x, "k": k})
    expected = numpy.add(numpy.maximum(x * [1, 2, 3], 0), [4, 5, 6]) * k
    assert found["tail/y"].tolist() == expected.tolist()


def test_snc4onnx_the_first_model_keeps_its_records_and_the_result_can_be_ordered(tmp_path: Path) -> None:
    first = pair(tmp_path)
    edit = Combine(with_="tail.onnx", join=("y=x",), prefix="b.", outputs=("b.y", "y", "aux"), inputs=("k", "x"))
    after = apply(first, edit, folder=tmp_path)
    assert graph_of(after).node[:3] == graph_of(first).node
    assert [each.name for each in graph_of(after).output] == ["b.y", "y", "aux"]
    assert [each.name for each in graph_of(after).input] == ["k", "x"]
    assert graph_of(after).value_info == ()
    check(after)


def test_snc4onnx_two_versions_are_converted_and_never_both_imported(tmp_path: Path) -> None:
    old = """<ir_version: 8, opset_import: ["" : 11]>
    tail (float[1,N,3] x) => (float[N,3] y) { y = Squeeze <axes = [0]> (x) }"""
    new = """<ir_version: 8, opset_import: ["" : 13]>
    head (float[N,3] x, int64[1] axes) => (float[1,N,3] u) { u = Unsqueeze (x, axes) }"""
    for head, tail in ((new, old), (old, new)):
        first = pair(tmp_path, tail, head)
        joins = ("u=x",) if head is new else ("y=x",)
        result = run(first, Combine(with_="tail.onnx", join=joins), folder=tmp_path)
        assert [(each.domain, each.version) for each in result.model.opset_import] == [("", 13)]
        which = "second" if head is new else "first"
        assert f"; the {which} was converted to 13" in result.outcomes[0].notes[0]
        check(result.model)


def test_snc4onnx_versions_that_cannot_be_converted_are_refused(tmp_path: Path) -> None:
    tail = """<ir_version: 8, opset_import: ["" : 17, "own" : 2]>
    tail (float[N,3] x) => (float[N,3] z) { z = own.Do (x) }"""
    head = HEAD.replace('["" : 17]', '["" : 17, "own" : 1]')
    with pytest.raises(EditError, match='the models import the domain "own" as 1 and 2, and the first cannot be conv'):
        apply(pair(tmp_path, tail, head), Combine(with_="tail.onnx", join=("y=x",)), folder=tmp_path)


@pytest.mark.parametrize(
    ("join", "message"),
    [
        (("yy=x",), 'this model has no value "yy"; did you mean'),
        (("y=xx",), 'the other model has no input "xx"; did you mean "x"'),
        (("y",), '"y" is not a join; a join is OUT=IN'),
        (("y=x", "aux=x"), 'the input "x" of the other model is joined twice'),
        (("y=k",), r'"y" of the first model is float32\[N,3\], and "k" of the second needs float32\[3\]'),
        (None, "no input of the other model has the name of an output of this one"),
    ],
)
def test_snc4onnx_joins_that_do_not_fit_are_refused(join: tuple[str, ...] | None, message: str, tmp_path: Path) -> None:
    with pytest.raises((EditError, SelectorError), match=message):
        apply(pair(tmp_path), Combine(with_="tail.onnx", join=join), folder=tmp_path)


def test_snc4onnx_dtypes_that_differ_are_refused_even_where_they_are_only_inferred(tmp_path: Path) -> None:
    tail = """<ir_version: 8, opset_import: ["" : 17]>
    tail (int64[N,3] i) => (int64[N,3] o) { o = Abs (i) }"""
    with pytest.raises(EditError, match=r'"t" of the first model is float32\[N,3\], and "i" of the second needs int64'):
        apply(pair(tmp_path, tail), Combine(with_="tail.onnx", join=("t=i",)), folder=tmp_path)


def test_snc4onnx_functions_metadata_and_constants_are_united_and_conflicts_said(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    value = helper.make_tensor_value_info

    def made(name: str, op: str, note: str) -> onnx.ModelProto:
        functions = [
            helper.make_function("f", "Same", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])], opsets[:1]),
            helper.make_function("f", "Act", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])], opsets[:1]),
        ]
        nodes = [
            helper.make_node("Same", [f"{name}_in"], ["u"], "one", domain="f"),
            helper.make_node("Add", ["u", "shared"], ["v"]),
            helper.make_node("Act", ["v"], [f"{name}_out"], "two", domain="f"),
        ]
        graph = helper.make_graph(
            nodes,
            name,
            [value(f"{name}_in", 1, [2])],
            [value(f"{name}_out", 1, [2])],
            [helper.make_tensor("shared", 1, [2], [1.0, 2.0])],
        )
        sparse = graph.sparse_initializer.add(dims=[2])
        sparse.values.CopyFrom(helper.make_tensor(f"{name}_sparse", 1, [1], [1.0]))
        sparse.indices.CopyFrom(helper.make_tensor("", 7, [1], [0]))
        model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)
        model.metadata_props.add(key="author", value=note)
        model.metadata_props.add(key=name, value="here")
        return model

    onnxjson.save(onnxjson.from_proto(made("b", "Neg", "Bob")), tmp_path / "b.onnx.json")
    first = onnxjson.from_proto(made("a", "Relu", "Ada"))
    result = run(first, Combine(with_="b.onnx.json", join=("a_out=b_in",)), folder=tmp_path)
    after = result.model
    assert [function.name for function in after.functions] == ["Same", "Act", "b/Act"]
    assert [node.op_type for node in graph_of(after).node] == ["Same", "Add", "Act", "Same", "Add", "b/Act"]
    assert [node.name for node in graph_of(after).node if node.name] == ["one", "two", "b/one", "b/two"]
    assert [tensor.name for tensor in graph_of(after).initializer] == ["shared"]
    assert len(graph_of(after).sparse_initializer) == 2
    assert [(each.key, each.value) for each in after.metadata_props] == [
        ("author", "Ada"),
        ("a", "here"),
        ("b", "here"),
    ]
    notes = "\n".join(result.outcomes[0].notes)
    assert 'because the first has others with these names: "Act" is now "b/Act"' in notes
    assert 'metadata of the model: "author" differs; that of the first model is kept' in notes
    assert not check_structure(after)
    found = evaluate(after, {"a_in": numpy.array([-1, -5], numpy.float32)})
    assert found["b_out"].tolist() == [-3.0, -9.0]


def test_an_input_of_the_first_may_feed_the_second_too(tmp_path: Path) -> None:
    tail = """<ir_version: 8, opset_import: ["" : 17]>
    tail (float[N,3] x, float[N,3] h) => (float[N,3] s) { s = Add (x, h) }"""
    after = apply(pair(tmp_path, tail), Combine(with_="tail.onnx", join=("x=x", "y=h")), folder=tmp_path)
    assert [each.name for each in graph_of(after).input] == ["x"]
    check(after)


def test_subgraphs_of_the_second_follow_the_names_and_hide_none(tmp_path: Path) -> None:
    onnxjson.save(branching(), tmp_path / "tail.onnx")
    head = read(
        """<ir_version: 8, opset_import: ["" : 17]>
    head (float[2] m, bool c) => (float[2] t) { t = Neg (m) }"""
    )
    after = apply(head, Combine(with_="tail.onnx", join=("t=x", "c=c")), folder=tmp_path)
    check(after)
    inputs = {"m": numpy.array([1, -2], numpy.float32), "c": numpy.array(True)}
    assert evaluate(after, inputs)["y"].tolist() == [-2.0, -6.0]


def test_a_script_names_models_of_its_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "script"
    folder.mkdir()
    first = pair(tmp_path)
    text = '{"format": "onnxjson-rewrite/1", "edits": [{"edit": "combine", "with": "%s", "join": ["y=x"]}]}'
    (folder / "away.json").write_text(text % "../tail.onnx")
    (folder / "here.json").write_text(text % "tail.onnx")
    with pytest.raises(UntrustedError, match="is not in the folder of the script"):
        apply(first, Script.load(folder / "away.json"))
    with pytest.raises(MissingInputError):
        apply(first, Script.load(folder / "here.json"))
    onnxjson.save(read(TAIL), folder / "tail.onnx")
    assert len(graph_of(apply(first, Script.load(folder / "here.json"))).node) == 5
    with pytest.raises(EditError, match="no file is read or written without a folder"):
        apply(first, Combine(with_="tail.onnx", join=("y=x",)))


def test_weights_in_other_files_come_along(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    model = onnxjson.to_proto(read(TAIL))
    onnx.save_model(model, beside / "tail.onnx", save_as_external_data=True, location="tail.data", size_threshold=0)
    after = apply(read(HEAD), Combine(with_="beside/tail.onnx", join=("y=x",)), folder=tmp_path)
    assert [tensor.external_data for tensor in graph_of(after).initializer] == [(), ()]
    check(after)


def test_equal_models_combine_and_extract_back(tmp_path: Path) -> None:
    model = read(CHAIN)
    part = apply(model, Extract(outputs=("y", "w")))
    unused = msgspec.structs.replace(graph_of(model), initializer=graph_of(model).initializer[:1])
    assert part == msgspec.structs.replace(model, graph=unused)
