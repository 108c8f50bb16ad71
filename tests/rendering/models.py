"""A model with all that a summary counts: subgraphs, a function, training, sparse, external and typed constants."""

import struct

from onnxjson.model.document import (
    Attribute,
    DeviceConfiguration,
    Function,
    Graph,
    Model,
    Node,
    OperatorSetId,
    SparseTensor,
    StringStringEntry,
    Tensor,
    TensorType,
    TrainingInfo,
    Type,
    ValueInfo,
)

FLOATS = Tensor(
    dims=(2, 3), data_type=1, name="w", raw_data=struct.pack("<6f", 1, 2, 3, -4, float("nan"), float("inf"))
)
EXTERNAL = Tensor(
    dims=(4,),
    data_type=1,
    name="outside",
    data_location=1,
    external_data=(StringStringEntry("location", "weights.bin"), StringStringEntry("length", "16")),
)
CONSTANT = Tensor(dims=(2,), data_type=7, raw_data=struct.pack("<2q", 5, 2**60))
SPARSE = SparseTensor(
    values=Tensor(dims=(1,), data_type=1, name="s", raw_data=bytes(4)),
    indices=Tensor(dims=(1,), data_type=7, raw_data=bytes(8)),
    dims=(100,),
)
STRINGS = Tensor(dims=(2,), data_type=8, name="texts", string_data=(b"a\x1b", b"\xff"))


def value(name: str, elem_type: int) -> ValueInfo:
    return ValueInfo(name=name, type=Type(tensor_type=TensorType(elem_type=elem_type)))


BRANCH = Graph(
    name="branch",
    node=(Node(op_type="Relu", input=("w",), output=("r",)),),
    initializer=(Tensor(dims=(3,), data_type=9, name="inner", raw_data=b"\0\1\1"),),
    output=(ValueInfo(name="r"),),
)
NODES = (
    Node(op_type="Constant", output=("k",), attribute=(Attribute(name="value", type=4, t=CONSTANT),)),
    Node(
        op_type="If",
        name="/block/if\x1b[2J",
        input=("flag", "", "nowhere"),
        output=("y",),
        attribute=(Attribute(name="then_branch", type=5, g=BRANCH), Attribute(name="value", type=2, i=3)),
    ),
    Node(
        op_type="Twice",
        domain="my",
        name="call",
        input=("w",),
        output=("z", ""),
        attribute=(
            Attribute(name="alpha", type=1, f=struct.pack("<f", 0.1)),
            Attribute(name="text", type=3, s=b"\xff"),
            Attribute(name="floats", type=6, floats=struct.pack("<2f", 1, float("nan"))),
            Attribute(name="given", type=1, ref_attr_name="outer"),
        ),
        metadata_props=(StringStringEntry("origin", "here"),),
    ),
    Node(op_type="Odd", domain="not.imported", input=("w", "w"), output=("o",)),
)
FUNCTION = Function(
    name="Twice",
    domain="my",
    input=("x",),
    output=("x2",),
    node=(Node(op_type="Add", input=("x", "x"), output=("x2",)),),
    opset_import=(OperatorSetId(domain="", version=11),),
)
MODEL = Model(
    ir_version=8,
    producer_name="tests",
    doc_string="First line.\nSecond line.",
    graph=Graph(
        name="main",
        node=NODES,
        input=(value("flag", 9), value("w", 1)),
        output=(value("y", 1), ValueInfo(name="z")),
        initializer=(FLOATS, EXTERNAL, STRINGS, Tensor(dims=(2,), data_type=6, name="typed", int32_data=b"\1\2")),
        sparse_initializer=(SPARSE,),
        value_info=(value("o", 10),),
    ),
    opset_import=(OperatorSetId(version=17), OperatorSetId(domain="my", version=1)),
    metadata_props=(StringStringEntry("author", "n\x1b"),),
    training_info=(TrainingInfo(algorithm=Graph(node=(Node(op_type="Sub", input=("w",)),))),),
    functions=(FUNCTION,),
    configuration=(DeviceConfiguration(name="cpu"),),
)
