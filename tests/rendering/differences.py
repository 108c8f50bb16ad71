"""Diffs made by hand: two models, which node is which by equal names, and events as a comparison would find them."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from onnxjson.diffing.events import Detail, Event, Member
from onnxjson.diffing.matching.alignment import UNMATCHED, Alignment, GraphPair
from onnxjson.model.document import (
    Attribute,
    Dimension,
    Graph,
    Model,
    Node,
    OperatorSetId,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.model.index import Index


class Made(NamedTuple):
    """What a diff has, for those who show it."""

    alignment: Alignment
    events: Sequence[Event] = ()
    equal: bool = False
    incomplete: Sequence[str] = ()


def align(base: Model, target: Model) -> Alignment:
    """Nodes of one operator whose first outputs have one name are counterparts, as are the main graphs."""
    indexes = Index(base), Index(target)
    one, other = (index.scopes[0] for index in indexes)
    target_of, base_of = [UNMATCHED] * len(one.graph.node), [UNMATCHED] * len(other.graph.node)
    for position, node in enumerate(one.graph.node):
        found, _ = other.producers.get(node.output[0], (UNMATCHED, 0))
        if found != UNMATCHED and other.graph.node[found].op_type == node.op_type:
            target_of[position], base_of[found] = found, position
    values = {name: name for name in (*one.inputs, *one.initializers, *one.producers) if other.defines(name)}
    pair = GraphPair(one, other, target_of, base_of, values, {}, {})
    return Alignment(*indexes, (pair,), {one.address: pair}, (), None)


def tensor(name: str, *dims: int) -> Tensor:
    count = 1
    for dim in dims:
        count *= dim
    return Tensor(dims=dims, data_type=1, name=name, raw_data=struct.pack(f"<{count}f", *([0.5] * count)))


def value(name: str, *dims: int | str) -> ValueInfo:
    shape = TensorShape(
        dim=tuple(Dimension(dim_param=dim) if isinstance(dim, str) else Dimension(dim_value=dim) for dim in dims)
    )
    return ValueInfo(name=name, type=Type(tensor_type=TensorType(elem_type=1, shape=shape)))


def node(op_type: str, inputs: str, output: str, **attributes: tuple[int, ...] | float) -> Node:
    found = []
    for name, each in attributes.items():
        if isinstance(each, float):
            found.append(Attribute(name=name, type=1, f=struct.pack("<f", each)))
        elif isinstance(each, int):
            found.append(Attribute(name=name, type=2, i=each))
        else:
            found.append(Attribute(name=name, type=7, ints=each))
    return Node(
        op_type=op_type, input=tuple(inputs.split()), output=(output,), name=f"/{output}", attribute=tuple(found)
    )


def model(nodes: Sequence[Node], weights: Sequence[Tensor], opset: int) -> Model:
    graph = Graph(
        name="net",
        node=tuple(nodes),
        initializer=tuple(weights),
        input=(value("image", "N", 3, 32, 32),),
        output=(value("scores", "N", 10),),
        value_info=(value("features", "N", 8, 32, 32), value("flat", "N", 8192), value("b1/act", "N", 64)),
    )
    return Model(ir_version=8, opset_import=(OperatorSetId(domain="", version=opset),), graph=graph)


def networks() -> tuple[Model, Model]:
    """A network before and after fusions, an inserted node, a changed attribute and trained weights."""
    before = [
        node("Conv", "image conv.w conv.b", "conv", pads=(1, 1, 1, 1)),
        node("BatchNormalization", "conv bn.s bn.b bn.m bn.v", "features", epsilon=1e-5),
        node("Relu", "features", "active"),
        node("Identity", "active", "same"),
        node("MaxPool", "same", "pool", kernel_shape=(2, 2)),
        node("Flatten", "pool", "flat"),
    ]
    after = [
        node("Conv", "image conv.w conv.b", "features", pads=(0, 0, 0, 0)),
        node("Relu", "features", "active"),
        node("MaxPool", "active", "pool", kernel_shape=(2, 2)),
        node("Flatten", "pool", "flat"),
    ]
    weights = [tensor("conv.w", 8, 3, 3, 3), tensor("conv.b", 8)]
    previous = "flat"
    for block in ("b0", "b1", "b2"):
        weights += [tensor(f"{block}.w", 16, 16), tensor(f"{block}.bias", 16)]
        before += [
            node("MatMul", f"{previous} {block}.w", f"{block}/mm"),
            node("Add", f"{block}/mm {block}.bias", f"{block}/fc"),
            node("Relu", f"{block}/fc", f"{block}/act"),
        ]
        after += [node("Gemm", f"{previous} {block}.w {block}.bias", f"{block}/fc")]
        after += [node("Relu", f"{block}/fc", f"{block}/act")]
        previous = f"{block}/act"
    before += [node("Softmax", previous, "scores")]
    after += [node("Gelu", previous, "gelu"), node("Softmax", "gelu", "scores")]
    norms = [tensor(f"bn.{part}", 8) for part in "sbmv"]
    return model(before, [*weights, *norms], 13), model(after, weights, 20)


def events() -> tuple[Event, ...]:
    """What happened between the two networks."""
    blocks = tuple(
        Member(
            base=(f"/graph/node/{6 + 3 * block}", f"/graph/node/{7 + 3 * block}"),
            target=(f"/graph/node/{4 + 2 * block}",),
            place=f"/b{block}/fc",
            details=(Detail(f"b{block}.bias", "input 1 of Add", "input 2 of Gemm"),),
        )
        for block in range(3)
    )
    figures = Detail("max absolute difference", None, "0.0021"), Detail("elements changed", None, "216 of 216")
    opset = ("/opset_import/0/version",)
    conv = Member(
        ("/graph/node/0",), ("/graph/node/0",), "/conv", (Detail("attribute pads", "[1, 1, 1, 1]", "[0, 0, 0, 0]"),)
    )
    norm = Member(
        ("/graph/node/0", "/graph/node/1"),
        ("/graph/node/0",),
        "/conv",
        (Detail("bn.s", "scale of BatchNormalization", "in conv.w, conv.b"),),
    )
    trained = Member(("/graph/initializer/0",), ("/graph/initializer/0",), "conv.w", figures)
    same = Member(("/graph/node/3",), (), "/same", (Detail("same is now", None, "active"),))
    long = "/encoder/layer{}/attention/output"
    renamed = [Member((f"/graph/node/{n}",), (f"/graph/node/{n}",), long.format(n)) for n in range(9)]
    return (
        Event("opset-changed", "ai.onnx 13 -> 20", (Member(opset, opset),)),
        Event("attribute-changed", "Conv.pads", (conv,)),
        Event("fused", "Conv+BatchNormalization -> Conv", (norm,), "within-tolerance", "greatest difference 2.4e-07"),
        Event("eliminated", "Identity", (same,), "equal"),
        Event("fused", "MatMul+Add -> Gemm", blocks, "equal", "4 runs on random inputs gave the same bits"),
        Event("inserted", "Gelu", (Member((), ("/graph/node/10",), "/gelu"),), "different", "differs by up to 1.1"),
        Event("weights-changed", "float32[8,3,3,3]", (trained,)),
        Event("renamed", "nodes", tuple(renamed)),
    )


def example() -> Made:
    """The two networks and what happened."""
    return Made(align(*networks()), events())


HOSTILE = (
    "\x1b[2J\x1b]52;c;aGk=\x07", "\u202etxt.exe\u2066", "a\nb\r\nc\u2028d", "</script><script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(1)>", "\" onload='alert(1)' x=\"", "`code` ``more`` ```",
    "a | b \\| c \\", "[link](https://example.com) ![image](http://example.com/x.png) <https://example.com>",
    "@everyone #1 GH-1 www.example.com https://example.com someone@example.com",
    "**bold** _it_ ~~no~~ $x$ &lt; &#124; <!-- comment", "| --- |", "<b>x</b>\x00", "-->]]>", "\udcff\udcfe",
    "{{7*7}} ${7*7} [red]markup[/red]", "x" * 5000,
)  # fmt: skip
"""Names that want to be more than names."""


def hostile() -> Made:
    """The two networks with a hostile name wherever a model has a name."""

    def renamed(side: Model) -> Model:
        assert side.graph is not None
        names = iter(HOSTILE * 2)
        nodes = [
            Node(
                op_type=hostile_name, domain=hostile_name, name=hostile_name, input=each.input, output=each.output,
                attribute=tuple(Attribute(name=hostile_name, type=3, s=b"\xff\x1b[0m") for _ in each.attribute),
            )
            for each, hostile_name in zip(side.graph.node, names, strict=False)
        ]  # fmt: skip
        new = {name: f"{name}{hostile}" for name, hostile in zip(_names(side), HOSTILE * 9, strict=False)}
        nodes = [
            Node(
                op_type=each.op_type, domain=each.domain, name=each.name, attribute=each.attribute,
                input=tuple(new.get(name, name) for name in each.input),
                output=tuple(new.get(name, name) for name in each.output),
            )
            for each in nodes
        ]  # fmt: skip
        tensors = tuple(
            Tensor(dims=each.dims, data_type=1, name=new.get(each.name or ""), raw_data=each.raw_data)
            for each in side.graph.initializer
        )
        graph = Graph(name=HOSTILE[3], node=tuple(nodes), initializer=tensors)
        return Model(ir_version=8, opset_import=(OperatorSetId(domain=HOSTILE[3], version=1),), graph=graph)

    found = []
    for event, name in zip(events(), HOSTILE * 2, strict=False):
        details = tuple(Detail(each, each, each) for each in HOSTILE)
        members = tuple(
            Member(each.base, each.target, place, details) for each, place in zip(event.members, HOSTILE, strict=False)
        )
        found.append(Event(event.kind, name, members, event.verdict, name))
    for kind in ("field-changed", "replaced", "io-changed"):
        for name in HOSTILE:
            address = "/graph/node/0/attribute/" + name.replace("~", "~0").replace("/", "~1")
            found.append(Event(kind, name, (Member((address,), (address,), "", ()),), None, name))
    return Made(align(*map(renamed, networks())), found, incomplete=HOSTILE)


def _names(side: Model) -> list[str]:
    assert side.graph is not None
    names = [name for each in side.graph.node for name in (*each.input, *each.output)]
    return sorted({*names, *(each.name or "" for each in side.graph.initializer)})


def hostile_names() -> tuple[str, str]:
    """What the two models are called."""
    return "".join(HOSTILE[:-1]), HOSTILE[3]
