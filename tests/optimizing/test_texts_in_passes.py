"""Nothing in a model is evaluated by a pass, and a result has the names of dimensions of the model."""

import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model import document as d
from onnxjson.model.walking import walk
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.dimension_names import HiddenNames
from onnxjson.optimizing.passes.sympy_guard import is_arithmetic
from tests.hostile.box_lifted import box_lifted

VOCABULARY = [b"\xc4\xa0the", b"##ing", "日本".encode(), b"the", b"[MASK]"]
DIMS = ["größe!", "N", "past length + 1", "__import__('os').system('exit 3')", "lambda", "onnxjson0_d0"]


def code(canary: Path) -> str:
    """Python that creates a file."""
    return f"__import__('pathlib').Path({str(canary)!r}).touch()"


def text_tensor(name: str, *texts: bytes) -> onnx.TensorProto:
    """A tensor of texts, of one dimension."""
    return onnx.TensorProto(name=name, data_type=TensorProto.STRING, dims=[len(texts)], string_data=texts)


def function_model(text: str, place: str, opset: int = 17, operator: str = "Resize") -> onnx.ModelProto:
    """A valid model that calls its own function with four equal texts."""
    inputs = ["X", "roi", "scales", "sizes"]
    body = [helper.make_node("Relu", ["X"], ["Y"])]
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("evil", 1)]
    function = helper.make_function("evil", operator, inputs, ["Y"], body, versions[:1])
    tensor = text_tensor("text", *[text.encode()] * 4)
    given = ["x", *["text" if name == place else "" for name in inputs[1:]]]
    graph = helper.make_graph(
        [helper.make_node(operator, given, ["y"], domain="evil")],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 4, 4])],
        initializer=[tensor],
    )
    made = helper.make_model(graph, functions=[function], opset_imports=versions, ir_version=9)
    onnx.checker.check_model(made)
    return made


def dims_model(dims: Sequence[str], nodes: Sequence[onnx.NodeProto] = ()) -> onnx.ModelProto:
    """A model from x to y with names of dimensions, and a function and a subgraph that have them too."""
    value = helper.make_tensor_value_info
    then = helper.make_graph([helper.make_node("Relu", ["r"], ["t"])], "then", [], [value("t", 1, list(dims))])
    other = helper.make_graph([helper.make_node("Abs", ["r"], ["e"])], "else", [], [value("e", 1, list(dims))])
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("If", ["c"], ["i"], then_branch=then, else_branch=other),
            helper.make_node("Identity", ["i"], ["y"]),
            *nodes,
        ],
        "graph",
        [value("x", 1, list(dims)), value("c", TensorProto.BOOL, [])],
        [value("y", 1, list(dims))],
        value_info=[value("r", 1, list(dims))],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def vocabulary_model() -> onnx.ModelProto:
    """Texts to numbers to rows of a table, with names of dimensions that are not identifiers."""
    encoder = helper.make_node(
        "LabelEncoder",
        ["words"],
        ["ids"],
        domain="ai.onnx.ml",
        keys_strings=VOCABULARY,
        values_int64s=range(len(VOCABULARY)),
        default_int64=0,
    )
    table = helper.make_tensor("table", TensorProto.FLOAT, [5, 2], [float(number) for number in range(10)])
    graph = helper.make_graph(
        [
            encoder,
            helper.make_node("Gather", ["table", "ids"], ["rows"]),
            helper.make_node("Identity", ["rows"], ["same"]),
            helper.make_node("Concat", ["same", "rows"], ["pairs"], axis=0),
            helper.make_node("Gather", ["labels", "ids"], ["named"]),
            helper.make_node("Constant", [], ["others"], value=text_tensor("", *VOCABULARY)),
            helper.make_node("Gather", ["others", "ids"], ["also"]),
        ],
        "graph",
        [helper.make_tensor_value_info("words", TensorProto.STRING, ["größe!", "N"])],
        [
            helper.make_tensor_value_info("pairs", TensorProto.FLOAT, [None, "N", 2]),
            helper.make_tensor_value_info("named", TensorProto.STRING, ["größe!", "N"]),
            helper.make_tensor_value_info("also", TensorProto.STRING, ["größe!", "N"]),
        ],
        initializer=[table, text_tensor("labels", *VOCABULARY)],
    )
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=versions, ir_version=9)
    onnx.checker.check_model(made)
    return made


def made_by(model: onnx.ModelProto, *passes: str) -> onnx.ModelProto:
    """What passes make of a model, one after the other."""
    with box_lifted(), Pipeline() as pipeline:
        *_, last = pipeline.run(serde.parse(model.SerializeToString()).model, [parse_step(name) for name in passes])
    return onnx.ModelProto.FromString(last.after.data)


def failure(model: onnx.ModelProto, name: str) -> str:
    """Why a pass fails; "" where it does not."""
    with box_lifted(), Pipeline(keep_going=True) as pipeline:
        (made,) = pipeline.run(serde.parse(model.SerializeToString()).model, [parse_step(name)])
    return str(made.failure or "")


@pytest.mark.parametrize("opset", [10, 17])
@pytest.mark.parametrize("place", ["sizes", "scales"])
@pytest.mark.parametrize("name", ["symbolic-shapes", "onnxslim", "transformers", "onnxscript", "quantize-dynamic"])
def test_code_in_a_tensor_does_not_run(tmp_path: Path, name: str, place: str, opset: int) -> None:
    canary = tmp_path / "canary"
    failure(function_model(code(canary), place, opset), name)
    assert not canary.exists()


@pytest.mark.parametrize("name", ["symbolic-shapes", "onnxslim"])
def test_code_in_names_does_not_run(tmp_path: Path, name: str) -> None:
    canary = tmp_path / "canary"
    made = made_by(dims_model([code(canary), f"floor({code(canary)})"]), name)
    assert not canary.exists()
    dims = made.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == [code(canary), f"floor({code(canary)})"]
    failure(function_model("four", "sizes", operator=code(canary)), name)
    assert not canary.exists()


def test_a_pass_whose_library_evaluates_a_text_fails_and_says_so(tmp_path: Path) -> None:
    said = failure(function_model(code(tmp_path / "canary"), "sizes"), "symbolic-shapes")
    assert "text from the model is not evaluated" in said


@pytest.mark.parametrize("name", ["onnxruntime", "quantize-static{preprocess=false}"])
def test_what_is_computed_from_a_text_is_computed_from_the_text_of_the_model(name: str) -> None:
    model = text_to_number_model()
    results = made_by(model, name)
    feeds = {"x": numpy.ones((1, 4), numpy.float32)}
    before, after = [
        InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
        for each in (model, results)
    ]
    numpy.testing.assert_allclose(after, before, rtol=0.02)


def text_to_number_model() -> onnx.ModelProto:
    """A model that adds the number written in a text of its own."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["text"], ["number"], name="to number", to=TensorProto.FLOAT),
            helper.make_node("Add", ["x", "number"], ["sum"]),
            helper.make_node("MatMul", ["sum", "w"], ["y"]),
        ],
        "graph",
        [value("x", 1, [1, 4])],
        [value("y", 1, [1, 4])],
        initializer=[text_tensor("text", b"3.25e1"), helper.make_tensor("w", 1, [4, 4], [0.5] * 16)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("name", ["float16", "mixed-precision"])
def test_errors_and_sizes_are_measured_with_the_texts_of_the_model(name: str) -> None:
    model = text_to_number_model()
    with box_lifted(), Pipeline(keep_going=True) as pipeline:
        (made,) = pipeline.run(serde.parse(model.SerializeToString()).model, [parse_step(name)])
    assert made.failure is None
    after = serde.to_proto(made.after.model)
    saved = model.ByteSize() - after.ByteSize()
    assert any([f"{abs(saved):,} bytes {'saved' if saved >= 0 else 'more'}" in each for each in made.notes])
    assert not any(["could not be measured" in each for each in made.notes]), made.notes
    assert [tensor.string_data for tensor in after.graph.initializer if tensor.name == "text"] == [[b"3.25e1"]]


PASSES = [
    "extract-adapters", "float16", "mixed-precision", "onnxoptimizer", "onnxruntime", "onnxruntime{level=all}",
    "onnxscript", "onnxsim", "onnxslim", "qnn-preprocess", "quantize-dynamic", "symbolic-shapes", "transformers",
]  # fmt: skip


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_restores_the_texts(name: str) -> None:
    model = vocabulary_model()
    if name == "extract-adapters":
        assert "no weight" in failure(model, name)
        return
    results = made_by(model, name)
    assert b"onnxjson0" not in results.SerializeToString()
    dims = [dim.dim_param or dim.dim_value for dim in results.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["größe!", "N"]
    (encoder,) = [node for node in results.graph.node if node.op_type == "LabelEncoder"]
    (keys,) = [attribute.strings for attribute in encoder.attribute if attribute.name == "keys_strings"]
    assert list(keys) == VOCABULARY
    read = serde.parse(results.SerializeToString()).model
    tensors = [list(tensor.string_data) for tensor in walk(read, d.Tensor) if tensor.string_data]
    assert tensors in ([VOCABULARY], [VOCABULARY] * 2)


def test_expressions_have_the_names_of_the_model() -> None:
    once = made_by(vocabulary_model(), "symbolic-shapes")
    dims = once.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims[:2]] == ["2*(größe!)", "N"]
    assert made_by(once, "symbolic-shapes") == once


def test_a_second_round_takes_expressions_of_the_first() -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2])],
        "graph",
        [value("x", 1, ["N", 1, "sequence"])],
        [value("y", 1, ["N", 1, None])],
    )
    once = made_by(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "symbolic-shapes"
    )
    named = once.graph.output[0].type.tensor_type.shape.dim[2].dim_param
    assert named.startswith("floor(sequence/2")
    assert made_by(once, "symbolic-shapes") == once


def test_options_name_dimensions_of_the_model() -> None:
    said = failure(dims_model(["größe!", "N"]), "quantize-static{dims={grosse: 3}}")
    assert "there are N, größe!" in said or 'did you mean "größe!"' in said
    assert "onnxjson0" not in said


def test_arithmetic_in_a_name_is_one_dimension_with_its_own_parentheses() -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "x"], ["c"], axis=0), helper.make_node("Relu", ["c"], ["y"])],
        "graph",
        [value("x", 1, ["batch+1"])],
        [value("y", 1, [None])],
    )
    made = made_by(helper.make_model(graph, ir_version=9), "symbolic-shapes")
    (dim,) = made.graph.output[0].type.tensor_type.shape.dim
    assert dim.dim_param.replace(" ", "") == "2*(batch+1)"


def test_a_name_that_a_pass_sees_is_none_of_the_model() -> None:
    model = dims_model(["onnxjson0_d0", "größe!"])
    hidden = HiddenNames(model.SerializeToString())
    assert hidden.replaced == {"größe!": "onnxjson1_d0", "onnxjson0_d0": "onnxjson1_d1"}
    assert made_by(model, "onnxoptimizer:nop") == model


def test_a_model_without_names_of_dimensions_is_not_encoded_again() -> None:
    data = dims_model([]).SerializeToString()
    assert HiddenNames(data).model is data


@pytest.mark.parametrize("seed", range(200))
def test_restoring_is_exact(seed: int) -> None:
    data = message_bytes(_Random(seed).model())
    hidden = HiddenNames(data)
    read = serde.parse(hidden.model).model
    names = [dim.dim_param for dim in walk(read, d.Dimension)]
    names += [dim.dim_param for dim in walk(read, d.SimpleShardedDim)]
    assert all([re.fullmatch(r"onnxjson\d_d\d+", name) for name in names if name])
    other = msgspec.structs.replace(read, producer_name="a pass")  # the result of no pass is returned unread
    restored = serde.parse(hidden.restored(message_bytes(other))).model
    assert message_bytes(msgspec.structs.replace(restored, producer_name=None)) == data


class _Random:
    """Models of every record that has a type, a tensor or an attribute, with texts of all kinds."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def model(self) -> d.Model:
        return d.Model(
            graph=self._graph(0),
            functions=(
                d.Function(
                    name=self._text(),
                    node=self._nodes(0),
                    attribute_proto=(self._attribute(0),),
                    value_info=(self._value(),),
                ),
            ),
            training_info=(d.TrainingInfo(algorithm=self._graph(1)),),
        )

    def _text(self) -> str:
        characters = "aN_0 .+-*/()'\"\\é日\0\udcff"
        random_text = "".join(self._random.choices(characters, k=self._random.randrange(1, 9)))
        return self._random.choice([*DIMS, "batch", "2*batch", "floor(N/2)", "onnxjson1_d1", "a" * 300, random_text])

    def _bytes(self) -> bytes:
        return self._text().encode("utf-8", "surrogateescape")

    def _graph(self, depth: int) -> d.Graph:
        return d.Graph(
            node=self._nodes(depth),
            initializer=(self._tensor(),),
            sparse_initializer=(d.SparseTensor(values=self._tensor(), dims=(1,)),),
            input=(self._value(),),
            output=(self._value(),),
            value_info=(self._value(),),
        )

    def _nodes(self, depth: int) -> tuple[d.Node, ...]:
        sharded = d.ShardedDim(simple_sharding=(d.SimpleShardedDim(dim_param=self._text()),))
        device = d.NodeDeviceConfiguration(sharding_spec=(d.ShardingSpec(sharded_dim=(sharded,)),))
        node = d.Node(op_type=self._text(), attribute=(self._attribute(depth),), device_configurations=(device,))
        return (node,) * self._random.randrange(1, 3)

    def _attribute(self, depth: int) -> d.Attribute:
        return self._random.choice(
            (
                lambda: d.Attribute(name="a", s=self._bytes(), type=3),
                lambda: d.Attribute(name="a", strings=(self._bytes(), self._bytes()), type=8),
                lambda: d.Attribute(name="a", t=self._tensor(), type=4),
                lambda: d.Attribute(name="a", tp=self._type(0), type=13),
                lambda: d.Attribute(name="a", sparse_tensor=d.SparseTensor(values=self._tensor()), type=11),
                lambda: d.Attribute(name="a", g=self._graph(depth + 1) if depth < 2 else d.Graph(), type=5),
            )
        )()

    def _tensor(self) -> d.Tensor:
        return d.Tensor(dims=(2,), data_type=8, string_data=(self._bytes(), self._bytes()), name=self._text())

    def _value(self) -> d.ValueInfo:
        return d.ValueInfo(name=self._text(), type=self._type(0))

    def _type(self, depth: int) -> d.Type:
        shape = d.TensorShape(dim=(d.Dimension(dim_param=self._text()), d.Dimension(dim_value=3), d.Dimension()))
        kinds: list[Callable[[], d.Type]] = [
            lambda: d.Type(tensor_type=d.TensorType(elem_type=1, shape=shape)),
            lambda: d.Type(sparse_tensor_type=d.SparseTensorType(elem_type=1, shape=shape)),
        ]
        if depth < 3:
            kinds += [
                lambda: d.Type(sequence_type=d.SequenceType(elem_type=self._type(depth + 1))),
                lambda: d.Type(optional_type=d.OptionalType(elem_type=self._type(depth + 1))),
                lambda: d.Type(map_type=d.MapType(key_type=8, value_type=self._type(depth + 1))),
            ]
        return self._random.choice(kinds)()


@pytest.mark.parametrize(
    "text", ["N", "2*N", "floor(N/2)", "1.5", "Mod(a, 3)", "Max(a, b) + 1", "N**2", "-a % 3", "(a + 1)//2", "12"]
)
def test_arithmetic(text: str) -> None:
    assert is_arithmetic(text)


@pytest.mark.parametrize(
    "text",
    ["f(N)", "exit()", "exit ()", "floor(a)(b)", "floor(a) (b)", "Max (a)", "a.b", "9**9", "a**9**9", "N**10", "N**-1",
     "(a)**9", "9999999999999999999", "[a]", "a[0]", "__a", "Max(a=1)", "größe", "a\n+b", "1" * 2000, "a:b", "'a'", "#",
     "1e99", "9!", "a@b", "a{b}", "a`", "a\\", "ａ", "(" * 2000],
)  # fmt: skip
def test_what_is_no_arithmetic(text: str) -> None:
    assert not is_arithmetic(text)


@pytest.mark.parametrize("first", ["import sympy", ""])
def test_sympy_refuses_code(tmp_path: Path, first: str) -> None:
    canary = tmp_path / "canary"
    script = f"""
{first}
from onnxjson.optimizing.passes.sympy_guard import forbid_evaluation
forbid_evaluation()
forbid_evaluation()
import sympy
assert str(sympy.sympify("floor(a/2) + 2*3")) == "floor(a/2) + 6"
assert sympy.simplify("2*a - a") == sympy.Symbol("a")
for read in (sympy.sympify, sympy.simplify, sympy.floor, sympy.parse_expr, lambda text: sympy.Max(1, text)):
    for text in ({code(canary)!r}, "().__class__", "9**9**9**9", "[1]", "exec('1')"):
        try:
            read(text)
        except (sympy.SympifyError, SyntaxError):
            continue
        raise SystemExit(f"{{read}} takes {{text}}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert not canary.exists()
