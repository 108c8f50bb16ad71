"""Tensors of a model by name, wherever they stand, with their elements."""

import struct
from pathlib import Path

import pytest

from onnxjson.model.document import (
    Attribute,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    StringStringEntry,
    Tensor,
)
from onnxjson.model.elements import varints
from onnxjson.model.errors import AddressError, DecodeError, MissingInputError, UntrustedError
from onnxjson.storage.constant_reading import find_tensor, with_elements
from onnxjson.storage.constant_values import write_object
from onnxjson.storage.external import Resolver

INT8 = 3


def int8(name: str | None, *values: int) -> Tensor:
    return Tensor(dims=(len(values),), data_type=INT8, raw_data=struct.pack(f"{len(values)}b", *values), name=name)


INDICES = "/graph/sparse_initializer/0/indices"
ATTRIBUTE = "/graph/node/2/attribute/"

INNER = Graph(name="inner", initializer=(int8("deep", 5), int8("twice", 6)))
MODEL = Model(
    graph=Graph(
        name="main",
        initializer=(int8("w", 1, 2), int8("/a/b", 3), int8("twice", 4)),
        sparse_initializer=(SparseTensor(values=int8("s", 7), indices=int8(None, 0), dims=(9,)),),
        node=(
            Node(
                op_type="Constant",
                output=("k",),
                name="konst",
                attribute=(Attribute(name="value", type=4, t=int8(None, 8)),),
            ),
            Node(
                op_type="Constant",
                output=("ks",),
                attribute=(Attribute(name="value_floats", type=6, floats=struct.pack("<2f", 0.5, 2)),),
            ),
            Node(
                op_type="If",
                output=("y",),
                name="/x/If",
                attribute=(
                    Attribute(name="then_branch", type=5, g=INNER),
                    Attribute(name="f", type=1, f=struct.pack("<f", 1.5)),
                    Attribute(name="i", type=2, i=-1),
                    Attribute(name="s", type=3, s=b"text"),
                    Attribute(name="ints", type=7, ints=(1, 2, 3)),
                    Attribute(name="strings", type=8, strings=(b"a", b"\xff")),
                ),
            ),
        ),
    ),
    functions=(
        Function(
            name="F",
            node=(Node(op_type="Constant", output=("fk",), attribute=(Attribute(name="value_int", type=2, i=7),)),),
        ),
    ),
)


def shown(name: str, model: Model = MODEL) -> str:
    text = bytearray()
    write_object(with_elements(find_tensor(model, name), Resolver(Path("/nowhere"))), text.extend)
    return text.decode().strip()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("w", '{"name": "w", "type": "int8[2]", "values": [1, 2]}'),
        ("/a/b", '{"name": "/a/b", "type": "int8[1]", "values": [3]}'),
        ("deep", '{"name": "deep", "type": "int8[1]", "values": [5]}'),
        ("@/graph/sparse_initializer/0/values", '{"name": "s", "type": "int8[1]", "values": [7]}'),
        (
            "@/graph/sparse_initializer/0/indices",
            '{"name": "/graph/sparse_initializer/0/indices", "type": "int8[1]", "values": [0]}',
        ),
        ("k", '{"name": "k", "type": "int8[1]", "values": [8]}'),
        ("dee*", '{"name": "deep", "type": "int8[1]", "values": [5]}'),
        ("re:/a/.", '{"name": "/a/b", "type": "int8[1]", "values": [3]}'),
        ("ks", '{"name": "ks", "type": "float32[2]", "values": [0.5, 2.0]}'),
        ("fk", '{"name": "fk", "type": "int64[]", "values": 7}'),
        (f"@{ATTRIBUTE}f", f'{{"name": "{ATTRIBUTE}f", "type": "float32[]", "values": 1.5}}'),
        (f"@{ATTRIBUTE}i", f'{{"name": "{ATTRIBUTE}i", "type": "int64[]", "values": -1}}'),
        (f"@{ATTRIBUTE}s", f'{{"name": "{ATTRIBUTE}s", "type": "string[]", "values": "text"}}'),
        (
            "@/graph/node/2/attribute/ints",
            '{"name": "/graph/node/2/attribute/ints", "type": "int64[3]", "values": [1, 2, 3]}',
        ),
        (
            "@/graph/node/2/attribute/strings",
            '{"name": "/graph/node/2/attribute/strings", "type": "string[2]", "values": ["a", {"base64": "/w=="}]}',
        ),
        ("@/graph/initializer/2", '{"name": "twice", "type": "int8[1]", "values": [4]}'),
        (
            "@/graph/node/2/attribute/then_branch/g/initializer/1",
            '{"name": "twice", "type": "int8[1]", "values": [6]}',
        ),
    ],
)
def test_tensor_is_found_by_name(name: str, text: str) -> None:
    assert shown(name) == text


def test_name_of_several_tensors_is_refused_with_the_address_of_each() -> None:
    with pytest.raises(MissingInputError) as raised:
        find_tensor(MODEL, "twice")
    message = str(raised.value)
    assert "twice finds 2 tensors" in message
    for address in ("@/graph/initializer/2", "@/graph/node/2/attribute/then_branch/g/initializer/1"):
        assert address in message
        assert find_tensor(MODEL, address).name == "twice"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("depe", 'did you mean "deep"?'),
        ("qqqqqqqqq", 'nothing is called "qqqqqqqqq"'),
        ("s", "s is sparse; select @/graph/sparse_initializer/0/values and @/graph/sparse_initializer/0/indices"),
        ("@/graph/sparse_initializer/0", "/graph/sparse_initializer/0/values"),
        ("y", "y is not a constant"),
        ("@/graph/node/0", "is not a tensor"),
    ],
)
def test_name_of_no_tensor_is_refused_with_what_is_near(name: str, says: str) -> None:
    with pytest.raises(MissingInputError) as raised:
        find_tensor(MODEL, name)
    assert says in str(raised.value)


def test_address_of_nothing_is_refused() -> None:
    with pytest.raises(AddressError):
        find_tensor(MODEL, "@/graph/initializer/9")


def test_model_without_tensors_says_so() -> None:
    with pytest.raises(MissingInputError, match='nothing is called "w"'):
        find_tensor(Model(graph=Graph()), "w")


@pytest.mark.parametrize(
    "stored",
    [
        {"int32_data": varints([1, -2 & (1 << 64) - 1])},
        {"raw_data": b"\x01\xfe"},
        {"raw_data": b"\x01\xfe", "data_location": 0},
    ],
    ids=str,
)
def test_elements_are_found_wherever_they_stand(stored: dict[str, object]) -> None:
    tensor = Tensor(dims=(2,), data_type=INT8, name="w", **stored)  # type: ignore[arg-type]
    found = with_elements(tensor, Resolver(Path("/nowhere")))
    assert found == Tensor(dims=(2,), data_type=INT8, name="w", raw_data=b"\x01\xfe")


def external(*pairs: tuple[str, str], dims: tuple[int, ...] = (2,), data_type: int = INT8) -> Tensor:
    entries = tuple(StringStringEntry(key, value) for key, value in pairs)
    return Tensor(dims=dims, data_type=data_type, name="w", external_data=entries, data_location=1)


def test_external_data_is_read_by_the_one_resolver(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"xx\x01\xfeyy")
    resolver = Resolver(tmp_path)
    found = with_elements(external(("location", "w.bin"), ("offset", "2"), ("length", "2")), resolver)
    assert found.raw_data == b"\x01\xfe"
    with pytest.raises(UntrustedError):
        with_elements(external(("location", "../w.bin")), resolver)
    with pytest.raises(MissingInputError):
        with_elements(external(("location", "v.bin")), resolver)
    with pytest.raises(DecodeError, match="dtype and dims do not determine its size"):
        with_elements(external(("location", "w.bin"), dims=(-1,)), resolver)


@pytest.mark.parametrize(
    ("tensor", "says"),
    [
        (Tensor(dims=(3,), data_type=INT8, name="w", raw_data=b"a"), "raw_data holds 1 byte; int8[3] needs 3"),
        (Tensor(dims=(3,), name="w", raw_data=b"a"), "no data_type"),
        (Tensor(dims=(2,), data_type=8, name="w", string_data=(b"a",)), "string_data holds 1 string"),
        (Tensor(dims=(-1,), data_type=INT8, name="w", raw_data=b"a"), "the dim -1"),
        (Tensor(dims=(1,), data_type=99, name="w", raw_data=b"a"), "defines no data type"),
    ],
)
def test_tensor_that_does_not_hold_its_elements_is_refused_with_what_is_wrong(tensor: Tensor, says: str) -> None:
    with pytest.raises(DecodeError) as raised:
        with_elements(tensor, Resolver(Path("/nowhere")))
    assert str(raised.value).startswith("tensor 'w' cannot be read: ")
    assert says in str(raised.value)
