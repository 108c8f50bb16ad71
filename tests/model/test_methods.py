"""The values that attributes, nodes, tensors and types give to Python programs."""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import onnx
import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson import Attribute, Dimension, Graph, Model, Node, Tensor, TensorShape, TensorType, Type
from onnxjson.example import make_example
from onnxjson.storage.external_files import externalize


@pytest.mark.parametrize(
    ("proto", "value"),
    [
        (helper.make_attribute("a", 3), 3),
        (helper.make_attribute("a", 0.5), 0.5),
        (helper.make_attribute("a", "same"), "same"),
        (helper.make_attribute("a", b"\xff\x00"), b"\xff\x00"),
        (helper.make_attribute("a", [1, 2]), (1, 2)),
        (helper.make_attribute("a", [1.5, 2.0]), (1.5, 2.0)),
        (helper.make_attribute("a", ["x", b"\xff"]), ("x", b"\xff")),
        (helper.make_attribute("a", [], attr_type=onnx.AttributeProto.INTS), ()),
        (onnx.AttributeProto(name="a", type=onnx.AttributeProto.INT, ref_attr_name="b"), None),
    ],
)
def test_attribute_has_its_python_value(proto: onnx.AttributeProto, value: object) -> None:
    (node,) = _model([helper.make_node("X", [], [])]).graph.node  # type: ignore[union-attr]
    assert not node.attributes
    with_attribute = helper.make_node("X", [], [])
    with_attribute.attribute.append(proto)
    (node,) = _model([with_attribute]).graph.node  # type: ignore[union-attr]
    assert node.attribute[0].value == value
    assert type(node.attribute[0].value) is type(value)
    assert node.attributes == {"a": value}


def _model(nodes: list[onnx.NodeProto]) -> Model:
    return onnxjson.from_proto(helper.make_model(helper.make_graph(nodes, "g", [], [])))


def test_attribute_has_records_of_tensors_and_graphs() -> None:
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "branch", [], [])
    tensor = helper.make_tensor("t", TensorProto.INT64, [2], [1, 2])
    (node,) = _model([helper.make_node("X", [], [], t=tensor, g=branch)]).graph.node  # type: ignore[union-attr]
    assert node.attributes["g"].node[0].op_type == "Identity"
    assert node.attributes["t"].numpy().tolist() == [1, 2]


def test_nan_attribute_is_a_nan() -> None:
    assert math.isnan(Attribute(name="a", f=struct.pack("<f", math.nan), type=1).value)


def test_attributes_are_read_only() -> None:
    with pytest.raises(TypeError):
        Node().attributes["a"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        lambda names: names.__delitem__("fc.bias"),
        lambda names: names.__ior__({}),
        lambda names: names.update(a=1),
        lambda names: names.pop("fc.bias"),
        lambda names: names.popitem(),
        lambda names: names.setdefault("a", 1),
        lambda names: names.clear(),
    ],
)
def test_every_change_of_things_by_name_is_refused(change: Callable[[Any], object]) -> None:
    names = onnxjson.from_proto(make_example()).initializers
    with pytest.raises(TypeError, match="models do not change; write model"):
        change(names)
    assert "fc.bias" in names


@pytest.mark.parametrize(
    ("of", "name", "advice"),
    [
        (lambda model: model, "inputs", "graph=msgspec.structs.replace(model.graph, input=...))"),
        (lambda model: model, "opsets", "model.rewrite(onnxjson.edits.ConvertOpset(...))"),
        (lambda model: model, "domain", "msgspec.structs.replace(model, domain=...)"),
        (lambda model: model.inputs[0], "shape", "edits.SetShape('image', ...)"),
        (lambda model: model.inputs[0], "name", "model.rename('image', ...)"),
        (lambda model: model.inputs[0], "dtype", "replace(valueinfo, FIELD=...); its fields are name, type"),
        (lambda model: model.nodes[0], "doc_string", "model.node(...).update(doc_string=...)"),
        (lambda model: model.nodes[0].node, "inputs", "model.node(...).update(input=...)"),
        (lambda model: model.nodes[0], "attributes", 'model.node(...).set_attribute("NAME", ...)'),
    ],
)
def test_an_assignment_is_answered_with_a_way_that_works(of: Callable[[Model], Any], name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=r"^an? [A-Z][a-zA-Z]+ does not change; write ") as caught:
        setattr(of(onnxjson.from_proto(make_example())), name, ())
    assert advice in str(caught.value)


def test_dtype_of_a_constant_is_where_the_message_says() -> None:
    place = onnxjson.from_proto(make_example()).tensor("fc.bias")
    with pytest.raises(AttributeError, match=r"write \.tensor\.dtype for a constant"):
        place.dtype  # type: ignore[attr-defined]  # noqa: B018
    assert place.tensor is not None
    assert place.tensor.dtype == "float32"


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "float8_e4m3fn", "int4", "float4_e2m1fn"])
def test_tensor_is_an_array_of_its_dtype(dtype: str) -> None:
    array = numpy.array([[1, 0, 1]]).astype(getattr(ml_dtypes, dtype, dtype))
    model = onnxjson.from_proto(
        helper.make_model(helper.make_graph([], "g", [], [], [onnx.numpy_helper.from_array(array, "t")]))
    )
    assert model.graph is not None
    (tensor,) = model.graph.initializer
    assert (tensor.dtype, tensor.shape) == (dtype, (1, 3))
    assert (tensor.numpy() == array).all()


def test_external_and_lazy_tensors_are_read_from_their_files(tmp_path: Path) -> None:
    model = onnxjson.from_proto(make_example())
    assert model.graph is not None
    apart = externalize(model, tmp_path / "w.data", threshold=1).model
    onnxjson.save(apart, tmp_path / "m.onnx")
    loaded = onnxjson.load(tmp_path / "m.onnx")
    assert loaded == apart
    assert loaded.graph is not None
    for external, inside in zip(loaded.graph.initializer, model.graph.initializer, strict=True):
        assert (external.numpy() == inside.numpy()).all()
    for name in ("again.onnx", "again.onnx.json", "again.onnxjson"):
        onnxjson.save(loaded, tmp_path / name)
        assert onnxjson.load(tmp_path / name) == apart
    assert onnxjson.diff(model, loaded, weights="exact").incomplete == ()


def test_external_tensor_of_no_known_file_needs_a_folder(tmp_path: Path) -> None:
    model = onnxjson.from_proto(make_example())
    apart = externalize(model, tmp_path / "w.data", threshold=1).model
    assert apart.graph is not None
    tensor = apart.graph.initializer[0]
    with pytest.raises(onnxjson.DecodeError, match=r"tensor 'conv.weight' is in another file; give the folder"):
        tensor.numpy()
    assert tensor.numpy(tmp_path).shape == (4, 1, 3, 3)


def test_tensor_without_bytes_says_so() -> None:
    model = onnxjson.from_proto(make_example())
    digests = onnxjson.loads(onnxjson.dumps(model, weights="digest"))
    assert digests.graph is not None
    with pytest.raises(onnxjson.WeightsMissingError):
        digests.graph.initializer[2].numpy()


@pytest.mark.parametrize(
    ("kind", "text", "dtype", "shape"),
    [
        (
            Type(
                tensor_type=TensorType(
                    1,
                    TensorShape(
                        (Dimension(dim_param="N"), Dimension(dim_value=3), Dimension(), Dimension(dim_value=0))
                    ),
                )
            ),
            "float32[N,3,?,0]",
            "float32",
            ("N", 3, None, 0),
        ),
        (Type(tensor_type=TensorType(7)), "int64", "int64", None),
        (Type(tensor_type=TensorType(99, TensorShape())), "dtype(99)[]", "dtype(99)", ()),
        (Type(sequence_type=onnxjson.SequenceType(Type(tensor_type=TensorType(1)))), "seq(float32)", None, None),
    ],
)
def test_type_has_text_dtype_and_shape(kind: Type, text: str, dtype: str | None, shape: object) -> None:
    assert (str(kind), kind.dtype, kind.shape) == (text, dtype, shape)
    value = onnxjson.ValueInfo("x", kind)
    assert (value.dtype, value.shape) == (dtype, shape)


def test_nothing_is_known_of_what_is_not_stated() -> None:
    assert (Tensor().dtype, onnxjson.ValueInfo().dtype, onnxjson.ValueInfo().shape) == (None, None, None)
    assert str(Type(denotation="TENSOR")).startswith("Type(")


def test_records_show_what_they_have() -> None:
    assert repr(Dimension(dim_param="N")) == "Dimension(dim_param='N')"
    assert repr(Graph(node=(Node(),) * 9, name="g")) == "Graph(node=<9 items>, name='g')"
    assert repr(Graph(doc_string="d" * 99, node=(Node(),))) == f"Graph(node=(Node(),), doc_string='{'d' * 39}...)"
