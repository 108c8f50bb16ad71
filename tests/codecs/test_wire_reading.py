"""Each message is read by a function that is generated from the table of fields."""

import pytest

from onnxjson.codecs.serde import needed_parts
from onnxjson.codecs.wire_format import NotCanonicalError, size_text
from onnxjson.codecs.wire_reading import read_model
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Attribute, Dimension, Graph, Model, Node, Tensor, TensorShape, TensorType, Type
from onnxjson.model.document import ValueInfo as Value
from onnxjson.model.errors import LimitError, WireError


def _within(number: int, *parts: bytes) -> bytes:
    data = b"".join(parts)
    assert number < 16
    assert len(data) < 0x80
    return bytes([number << 3 | 2, len(data)]) + data


def _node(*parts: bytes) -> bytes:
    return _within(7, _within(1, *parts))


@pytest.mark.parametrize("values", [range(3000), range(-2000, 2000), [1 << 62] * 500])
def test_lists_of_a_model_are_written_as_they_were_read(values: range | list[int]) -> None:
    node = Node(op_type="X", output=("y",), attribute=(Attribute("a", ints=tuple(values), type=7),))
    model = Model(ir_version=10, graph=Graph(node=(node,), name="g"))
    assert read_model(message_bytes(model)) == model


def test_equal_bytes_become_the_same_objects() -> None:
    type_ = Type(TensorType(1, TensorShape((Dimension(2), Dimension(dim_param="n")))))
    nodes = [Node(("x",), (f"y{n}",), f"n{n}", "Relu", (Attribute("a", i=1, type=2),)) for n in range(3)]
    model = Model(graph=Graph(tuple(nodes), input=(Value("x", type_), Value("z", type_))))
    graph = read_model(message_bytes(model)).graph
    assert graph is not None
    assert graph == model.graph
    assert len({id(node.attribute) for node in graph.node}) == 1
    assert len({id(value.type) for value in graph.input}) == 1
    assert graph.node[0].input[0] is graph.input[0].name


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (_within(7, b"\x0a\x05\x22"), "node is longer than the message that contains it (byte 4)"),
        (_node(b"\x22\x04Relu\x3a\x05a"), "domain is longer than the message that contains it (byte 10)"),
        (
            _node(b"\x22\x04Relu", _within(5, b"\x0a\x02k")),
            "name is longer than the message that contains it (byte 12)",
        ),
        (_within(7, _within(5, b"\x22\x03abc")), "float_data ends within a number (byte 6)"),
        (_within(7, _within(5, b"\x3a\x02\x01\x81")), "a packed field ends within a number (byte 8)"),
        (b"\x08", "the bytes end within a field: the file is cut off (byte 1)"),
        (_node(b"\x22\x04Relu\x0f"), "a field has no valid wire type (byte 10)"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(data: bytes, error: str) -> None:
    with pytest.raises(WireError) as caught:
        read_model(data)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    "data",
    [
        _node(b"\x22\x04Relu\x0a\x01x"), _node(b"\x22\x04Relu\x22\x04Relu"), _node(b"\x22\x84\x00Relu"),
        b"\x08\x88\x00", b"\x88\x00\x08", _within(7, _within(5, b"\x10\x80\x80\x80\x80\x10")),
        _within(7, _within(5, b"\x22\x00")),
        _within(7, _within(11, _within(2, _within(1, b"\x08\x01"), _within(4, b"")))),
        _node(_within(5, b"\x0a\x01a\xa0\x01\x82\x00")), b"\xfa\x01\x00\x08\x08",
    ],
    ids=[
        *("order", "twice", "long length", "long number", "long tag", "beyond 32 bits", "packed but empty"),
        *("two of a oneof", "long enum", "known after unknown"),
    ],
)  # fmt: skip
def test_other_spellings_are_left_to_protobuf(data: bytes) -> None:
    with pytest.raises(NotCanonicalError):
        read_model(data)


@pytest.mark.parametrize("tail", [b"\xfa\x01\x01z", b"\xa0\x01\x63", b"\xa0\x01\xe3\x00"])
def test_unknown_fields_and_numbers_of_enums_stay_as_bytes(tail: bytes) -> None:
    data = _node(_within(5, b"\x0a\x01a", tail))
    graph = read_model(data).graph
    assert graph is not None
    assert graph.node[0].attribute[0] == Attribute("a", unknown_fields=tail)


def test_no_message_is_read_below_the_limit_though_equal_ones_are_known() -> None:
    def nested(node: bytes, levels: int) -> bytes:
        for _ in range(levels):
            for head in (b"\x0a", b"\x32", b"\x2a"):  # a node in a graph in an attribute in a node
                node = head + size_text(len(node)).encode("latin-1") + node
        return node

    fits, deep = (nested(b"\x22\x04Relu", levels) for levels in (32, 33))
    whole = [b"\x0a" + size_text(len(each)).encode("latin-1") + each for each in (fits, fits, deep)]
    assert read_model(b"\x3a" + size_text(len(whole[0] * 2)).encode("latin-1") + whole[0] * 2).graph is not None
    graph = b"".join(whole)
    with pytest.raises(LimitError, match="nest deeper"):
        read_model(b"\x3a" + size_text(len(graph)).encode("latin-1") + graph)


def test_the_parts_that_reading_needs_are_all_but_big_weights() -> None:
    tensors = [Tensor((50_000,), 3, raw_data=bytes([n + 1]) * 50_000, name=f"w{n}") for n in range(3)]
    model = Model(ir_version=8, graph=Graph((Node(op_type="Relu"),), "g", (*tensors, Tensor((), 3, raw_data=b"1"))))
    data = message_bytes(model)
    needed = bytearray(len(data))
    for start, end in needed_parts(data, 1000):
        needed[start:end] = b"\1" * (end - start)
    assert needed.count(0) - 150_000 < 100
    assert not any(needed[data.index(bytes([n + 1]) * 100)] for n in range(3))
