"""Models of one operator: every operator, every version, every dtype; what is not valid is refused."""

from contextlib import suppress
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest

import onnxjson
from onnxjson.editing.new_models.operator_model import DEFAULT_OPSET, OperatorSpec, make_operator
from onnxjson.editing.new_models.recipes import recipe_for
from onnxjson.model.document import Graph, Model
from onnxjson.model.errors import EditError, OnnxJsonError, ParameterError
from onnxjson.model.operators import all_operators, operator_signature
from onnxjson.model.structure import check_structure
from onnxjson.model.types import format_type
from tests.editing.attribute_values import changed_attributes


def graph_of(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def newest() -> list[tuple[str, str, int]]:
    found = {(domain, name): version for domain, name, version in all_operators()}
    return [(domain, name, version) for (domain, name), version in sorted(found.items())]


def deprecated(domain: str, name: str, version: int) -> bool:
    signature = operator_signature(domain, name, version)
    return signature is None or signature.deprecated


NEWEST = [each for each in newest() if not deprecated(*each)]
OLDER = [each for each in all_operators() if not deprecated(*each) and each not in set(NEWEST)]


def require_made(domain: str, name: str, version: int) -> onnx.ModelProto:
    model = make_operator(OperatorSpec(name, domain, version))
    assert not [finding for finding in check_structure(model) if finding.severity == "error"]
    proto = onnxjson.to_proto(model)
    onnx.checker.check_model(proto)
    (node,) = graph_of(model).node
    assert (node.op_type, node.domain or "") == (name, domain)
    assert all(output.type is not None for output in graph_of(model).output)
    return proto


@pytest.mark.parametrize("which", range(4))
def test_every_operator_has_a_valid_model_in_its_newest_version_that_onnxruntime_runs(which: int) -> None:
    """Where onnxruntime implements an operator, its model runs on what it says it takes."""
    ran, other = 0, []
    generator = numpy.random.default_rng(1)
    for domain, name, version in NEWEST[which::4]:
        proto = require_made(domain, name, version)
        signature = operator_signature(domain, name, DEFAULT_OPSET) if not domain else None
        if signature is None or signature.deprecated:
            continue
        if version > DEFAULT_OPSET:
            proto = onnxjson.to_proto(make_operator(OperatorSpec(name)))
        try:
            session = onnxruntime.InferenceSession(proto.SerializeToString(), quiet_options())
            session.run(None, {each.name: random_value(each, generator) for each in session.get_inputs()})
        except Exception as error:
            if "NOT_IMPLEMENTED" not in str(error):
                other.append((name, str(error)[:200]))
            continue
        ran += 1
    assert ran >= 38, ran
    assert other == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("which", range(8))
def test_every_older_version_has_a_valid_model_too(which: int) -> None:
    for each in OLDER[which::8]:
        require_made(*each)


def quiet_options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


UNSUPPORTED = {
    ("GRU", "layout"),
    ("GroupNormalization", "stash_type"),
    ("ImageDecoder", "pixel_format"),
    ("LSTM", "layout"),
    ("RNN", "layout"),
}
"""Operators and attributes that onnxruntime does not implement."""


def require_consistent(op_type: str, attribute: str, value: Any) -> None:
    """One attribute is given; onnx accepts the model, and onnxruntime runs it if it implements that."""
    model = make_operator(OperatorSpec(op_type, attributes={attribute: value}))
    proto = onnxjson.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    assert attribute in [each.name for each in graph_of(model).node[0].attribute]
    if (op_type, attribute) in UNSUPPORTED:
        return
    session = onnxruntime.InferenceSession(proto.SerializeToString(), quiet_options())
    inputs = session.get_inputs()
    if not any("float8" in each.type for each in inputs):  # numpy has no such values
        session.run(None, {each.name: random_value(each, numpy.random.default_rng(0)) for each in inputs})


def test_inputs_fit_a_given_attribute() -> None:
    require_consistent("Gemm", "transB", 1)
    for op_type, attribute, value in list(changed_attributes())[::32]:
        require_consistent(op_type, attribute, value)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(8))
def test_inputs_fit_every_attribute(part: int) -> None:
    for op_type, attribute, value in list(changed_attributes())[part::8]:
        require_consistent(op_type, attribute, value)


@pytest.mark.parametrize(
    ("op_type", "attributes", "shapes"),
    [
        ("Gemm", {"transA": 1, "transB": 1}, ["3,2", "4,3", "4"]),
        ("Conv", {"kernel_shape": [3], "group": 2}, ["1,4,7", "6,2,3"]),
        ("LSTM", {"hidden_size": 2, "direction": "bidirectional"}, ["3,2,4", "2,8,4", "2,8,2"]),
        ("Einsum", {"equation": "ab,bc,cd->ad"}, ["4,5", "5,6", "6,2"]),
        ("Transpose", {"perm": [1, 2, 0]}, ["2,3,4"]),
    ],
)
def test_shapes_follow_the_attributes(op_type: str, attributes: dict[str, Any], shapes: list[str]) -> None:
    graph = made(op_type, **attributes)
    assert [format_type(each.type) for each in graph.input if each.type] == [f"float32[{shape}]" for shape in shapes]


def random_value(value: Any, generator: numpy.random.Generator) -> Any:
    shape = [size if isinstance(size, int) else 2 for size in value.shape]
    kind = value.type
    if kind.startswith("seq("):
        return [generator.normal(size=(2, 3)).astype(numpy.float32)] * 2
    if kind.startswith("optional("):
        return generator.normal(size=(2, 3)).astype(numpy.float32)
    if kind == "tensor(string)":
        return numpy.full(shape, "a-b")
    if kind == "tensor(bool)":
        return generator.integers(0, 2, shape).astype(bool)
    names = {"float": "float32", "double": "float64"}
    dtype = kind.removeprefix("tensor(").removesuffix(")")
    made = numpy.asarray(generator.uniform(0, 2, shape) if "float" in dtype or dtype == "double" else numpy.ones(shape))
    return made.astype(names.get(dtype, dtype))


DTYPES = ["float16", "float64", "bfloat16", "int8", "uint16", "int32", "uint64", "bool", "string", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_identity_and_others_take_every_dtype_they_allow(dtype: str) -> None:
    names = ("Identity", "Concat", "Reshape", "Transpose", "Gather", "Where", "If", "Loop", "Scan")
    for name in names[DTYPES.index(dtype) % 3 :: 3]:  # all are in the exhaustive test below
        signature = operator_signature("", name, DEFAULT_OPSET)
        assert signature is not None
        variable = next(
            each.variable for each in (*signature.outputs, *signature.inputs) if dtype in map(format_type, each.types)
        )
        model = make_operator(OperatorSpec(name, types={variable: dtype}))
        values = [format_type(each.type) for each in graph_of(model).output if each.type is not None]
        assert any(text is not None and text.startswith(dtype) for text in values), values


@pytest.mark.exhaustive
@pytest.mark.parametrize("which", range(8))
def test_every_operator_takes_every_dtype_that_its_schema_allows(which: int) -> None:
    count = 0
    for domain, name, version in NEWEST[which::8]:
        signature = operator_signature(domain, name, version)
        assert signature is not None
        formals = (*signature.inputs, *signature.outputs)
        for variable in dict.fromkeys(each.variable for each in formals):
            formal = next(each for each in formals if each.variable == variable)
            for each in formal.types[:: max(len(formal.types) // 4, 1)]:
                # Types of one set may depend on another, or on values that the usual call has.
                with suppress(EditError, ParameterError):
                    make_operator(OperatorSpec(name, domain, version, types={variable: format_type(each) or ""}))
                    count += 1
    assert count > 40


def made(name: str, *inputs: str, opset: int | None = None, **attributes: Any) -> Graph:
    return graph_of(make_operator(OperatorSpec(name, opset=opset, inputs=inputs, attributes=attributes)))


def test_inputs_stand_in_their_order_or_under_the_names_of_the_operator() -> None:
    graph = made("Conv", "W:float32[4,3,3,3]", "X:float32[1,3,8,8]", "bias:float32[4]")
    assert graph.node[0].input == ("X", "W", "bias")
    assert [format_type(each.type) for each in graph.output if each.type] == ["float32[1,4,6,6]"]


def test_optional_inputs_may_be_left_out_and_constants_given() -> None:
    graph = made("Clip", "x:float32[2,N]", "-", "max:float32[]=6")
    assert graph.node[0].input == ("x", "", "max")
    assert [tensor.name for tensor in graph.initializer] == ["max"]
    assert [each.name for each in graph.input] == ["x"]


def test_variadic_inputs_may_be_many() -> None:
    graph = made("Concat", "a:int64[2,1]", "b:int64[2,5]", "c:int64[2,3]", axis=1)
    assert [format_type(each.type) for each in graph.output if each.type] == ["int64[2,9]"]


def test_infinities_and_texts_in_attributes_stay_what_they_are() -> None:
    # sog4onnx makes [-inf] of [1.0, -inf].
    graph = made("Constant", value_floats=[1.0, "-Infinity", "NaN"])
    assert numpy.frombuffer(graph.node[0].attribute[0].floats, "<f4").tolist()[:2] == [1.0, -numpy.inf]
    assert made("Cast", "x:float32[1]", to=10).node[0].attribute[0].i == 10
    assert made("BitShift", "x:uint8[1]", "y:uint8[1]", direction="LEFT").node[0].attribute[0].s == b"LEFT"


def test_constants_of_every_dtype_are_made() -> None:
    # sog4onnx makes constants of eight dtypes.
    for dtype in ("float16", "bfloat16", "int4", "uint2", "float8_e4m3fn", "bool", "string", "complex128"):
        value = {
            "type": f"{dtype}[1]",
            "values": ["a"] if dtype == "string" else [[1, 0]] if "complex" in dtype else [1],
        }
        graph = made("Constant", opset=25, value={**value, "values": [True]} if dtype == "bool" else value)
        assert [format_type(each.type) for each in graph.output if each.type] == [f"{dtype}[1]"]


def test_bodies_of_loops_may_be_given_as_in_a_document() -> None:
    body = {
        "name": "square",
        "input": [
            {"name": "i", "type": "int64[]"},
            {"name": "go", "type": "bool[]"},
            {"name": "v", "type": "float32[2]"},
        ],
        "output": [{"name": "go2", "type": "bool[]"}, {"name": "v2", "type": "float32[2]"}],
        "node": [
            {"op_type": "Identity", "output": ["go2"], "input": ["go"]},
            {"op_type": "Mul", "output": ["v2"], "input": ["v", "v"]},
        ],
    }
    wanted = OperatorSpec(
        "Loop", inputs=("M:int64[]=3", "-", "v:float32[2]"), attributes={"body": body}, outputs=("last",)
    )
    data = onnxjson.to_proto(make_operator(wanted)).SerializeToString()
    (last,) = onnxruntime.InferenceSession(data).run(None, {"v": numpy.array([2, 3], numpy.float32)})
    assert last.tolist() == [256.0, 6561.0]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (OperatorSpec("Gemmm"), 'there is no operator "Gemmm"; did you mean "Gemm"?'),
        (OperatorSpec("Gelu", opset=13), "Gelu exists since version 20 of its operators, not in 13"),
        (OperatorSpec("Upsample", opset=10), "Upsample is deprecated since version 10"),
        (OperatorSpec("Conv", inputs=("X:float32[1,3,8,8]",)), r"also needs W \(.*\); add --input W:TYPE"),
        (OperatorSpec("Relu", inputs=("a:float32[1]", "b:float32[1]")), "accepts at most 1 input, but 2 are given"),
        (OperatorSpec("Relu", inputs=("a:bool[1]",)), r"X is .*, not bool"),
        (OperatorSpec("Add", inputs=("a:float32[2]", "b:int64[2]")), "b is int64, others are float32"),
        (OperatorSpec("Relu", inputs=("a:flat[1]",)), '"flat\\[1\\]" is not a type'),
        (OperatorSpec("Clip", inputs=("a:float32[1]", "m:float32[]=x")), "m"),
        (OperatorSpec("Conv", attributes={"pods": [1]}), 'has no attribute "pods"; did you mean "pads"'),
        (OperatorSpec("Conv", attributes={"pads": "all"}), "pads"),
        (OperatorSpec("Cast", inputs=("x:float32[1]",)), r"also needs the attribute to \(INT\); add --attr to="),
        (OperatorSpec("Add", inputs=("a:float32[2,3]", "b:float32[4]")), "the model would not be valid: .*Add"),
        (OperatorSpec("MatMul", types={"T9": "float16"}), 'has no type variable "T9"'),
        (OperatorSpec("MatMul", types={"T": "bool"}), "T is .*, not bool"),
    ],
)
def test_what_is_not_valid_is_refused(wanted: OperatorSpec, message: str) -> None:
    with pytest.raises(OnnxJsonError, match=message):
        make_operator(wanted)


def test_versions_are_low_enough_for_runtimes_and_high_enough_for_the_dtypes() -> None:
    assert make_operator(OperatorSpec("Relu")).ir_version == 10
    assert make_operator(OperatorSpec("Relu", opset=13)).ir_version == 8
    assert make_operator(OperatorSpec("Identity", opset=23, types={"V": "float4_e2m1fn"})).ir_version == 11
    assert [each.version for each in make_operator(OperatorSpec("Gelu")).opset_import] == [DEFAULT_OPSET]


def test_recipes_are_of_operators_that_exist() -> None:
    from onnxjson.editing.new_models.recipes import _recipes

    assert set(_recipes()) <= {name for _, name, _ in all_operators()}
    assert recipe_for("Squeeze", 11).inputs == ("data:[1,3]",)
    assert recipe_for("Squeeze", 13).inputs == ("data:[1,3]", "axes:[1]=[0]")
