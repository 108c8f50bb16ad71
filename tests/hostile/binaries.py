"""Binary files that are broken in one way each, by category. None of them may load; none may do anything else."""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import NamedTuple

from google.protobuf.message import DecodeError
from onnx import AttributeProto, ModelProto, TensorProto, helper

from tests.generation.descriptors import messages
from tests.generation.wire_encoding import (
    END_GROUP,
    FIXED32,
    FIXED64,
    LENGTH,
    START_GROUP,
    VARINT,
    fields,
    length_delimited,
    longer,
    tag,
    varint,
)


class BrokenBinary(NamedTuple):
    """The bytes of a file that is no model."""

    name: str
    data: bytes
    exit_code: int = 65


@cache
def base() -> bytes:
    """A valid model that has something of everything; the tests load it."""
    branch = helper.make_graph([helper.make_node("Relu", ["h"], ["r"])], "branch", [], [])
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="/fc/Gemm", alpha=0.5, transB=1),
            helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        ],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [
            helper.make_tensor("w", TensorProto.FLOAT, [2, 4], [0.5] * 8),
            helper.make_tensor("b", TensorProto.INT64, [2], b"\x01" * 16, raw=True),
            TensorProto(name="s", data_type=TensorProto.STRING, dims=[2], string_data=[b"one", b"two"]),
        ],
        doc_string="a graph",
    )
    function = helper.make_function("com.acme", "f", ["a"], ["c"], [helper.make_node("Relu", ["a"], ["c"])], [])
    model = helper.make_model(graph, functions=[function], producer_name="hand", ir_version=10)
    model.metadata_props.add(key="author", value="me")
    return model.SerializeToString()


def complete_lengths(data: bytes) -> set[int]:
    """Lengths at which a file cut there is a model all the same: between two top-level fields, with the graph whole."""
    graph = messages()["ModelProto"].by_name["graph"].number
    found, has_graph = set(), False
    for number, _, _, _, end in fields(data):
        has_graph = has_graph or number == graph
        if has_graph:
            found.add(end)
    return found


def cut() -> Iterator[BrokenBinary]:
    """The valid model cut at every byte, but for the cuts that leave a whole model."""
    data = base()
    whole = complete_lengths(data)
    for length in range(len(data)):
        if length not in whole:
            yield BrokenBinary(f"cut at {length}", data[:length])


def lengthened() -> Iterator[BrokenBinary]:
    """Top-level fields whose length says more than there is."""
    data = base()
    for number, wire_type, start, payload, end in fields(data):
        if wire_type == LENGTH:
            for length in (len(data), 2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1):
                head = data[:start] + tag(number, LENGTH) + varint(length)
                yield BrokenBinary(f"field {number} at {start} of {length} bytes", head + data[payload + 1 : end])


def tags() -> Iterator[BrokenBinary]:
    """Tags that protobuf does not know, groups that are not closed or were never opened."""
    data = base()
    for place, (before, after) in {"front": (b"", data), "end": (data, b"")}.items():
        broken = {
            "field number 0": tag(0, VARINT) + b"\x01",
            "field number 0, bytes": tag(0, LENGTH) + b"\x00",
            "wire type 6": bytes([99 << 3 & 0x7F | 6 | 0x80, 6]),
            "wire type 7": bytes([99 << 3 & 0x7F | 7 | 0x80, 6]),
            "wire type 6 of a known field": bytes([1 << 3 | 6, 1]),
            "wire type 7 of a known field": bytes([1 << 3 | 7, 1]),
            "group closed but not opened": tag(99, END_GROUP),
            "group of a known field closed but not opened": tag(7, END_GROUP),
            "group closed by another number": tag(99, START_GROUP) + tag(98, END_GROUP),
            "group with a broken field": tag(99, START_GROUP) + b"\x0f" + tag(99, END_GROUP),
            "tag of eleven bytes": b"\x88" + b"\x80" * 9 + b"\x00\x01",
            "tag over 32 bits": varint(1 << 35 | 8) + b"\x01",
            "tag of the largest varint": varint(2**64 - 1) + b"\x01",
            "varint of eleven bytes": tag(1, VARINT) + b"\xff" * 10 + b"\x01",
            "varint of twenty bytes": tag(99, VARINT) + b"\x80" * 19 + b"\x01",
            "length of eleven bytes": tag(2, LENGTH) + b"\x81" + b"\x80" * 9 + b"\x00" + b"a",
        }
        for name, part in broken.items():
            yield BrokenBinary(f"{name}, at the {place}", before + part + after)
    unfinished = {
        "varint": tag(1, VARINT),
        "varint after a byte": tag(1, VARINT) + b"\x80",
        "tag": b"\x80",
        "fixed32": tag(99, FIXED32) + b"\x01\x02\x03",
        "fixed64": tag(99, FIXED64) + b"\x01\x02\x03\x04\x05\x06\x07",
        "bytes": tag(99, LENGTH) + b"\x05ab",
        "group": tag(99, START_GROUP),
        "group with a field": tag(99, START_GROUP) + b"\x08\x01",
        "group in a group": tag(99, START_GROUP) * 2 + tag(99, END_GROUP),
        "fixed32 of a known field": tag(1, FIXED32) + b"\x01",
    }
    for name, part in unfinished.items():
        yield BrokenBinary(f"unfinished {name}, at the end", data + part)


def nested_bytes() -> Iterator[BrokenBinary]:
    """Messages inside the graph that are no messages."""
    shape = messages()["GraphProto"]
    bad = {
        "field number 0": b"\x00\x01", "wire type 7": b"\x0f", "length too long": b"\x0a\x05a",
        "unfinished varint": b"\x80", "end of a group": b"\x0c", "open group": b"\x9b\x06",
    }  # fmt: skip
    for field in shape.fields:
        for name, payload in bad.items():
            inner = payload if field.message is None else length_delimited(field.number, payload)
            if field.message is not None:
                yield BrokenBinary(f"{field.path}: {name}", length_delimited(7, inner))
    packed = [field for field in messages()["TensorProto"].fields if field.packed]
    for field in packed:
        for size in (1, 2, 3, 5, 7, 9):
            payload = b"\x80" * size if field.wire_type == VARINT else bytes(size)
            if field.wire_type == FIXED64 or size % 4 or field.wire_type == VARINT:
                tensor = length_delimited(field.number, payload)
                yield BrokenBinary(f"{field.path} of {size} bytes", length_delimited(7, length_delimited(5, tensor)))
    for name, number in (("floats", 7), ("ints", 8)):
        payload = b"\x00\x00\x00" if name == "floats" else b"\x80"
        node = length_delimited(1, length_delimited(5, length_delimited(number, payload)))
        yield BrokenBinary(f"AttributeProto.{name}, packed and odd", length_delimited(7, node))


def deep() -> Iterator[BrokenBinary]:
    """Graphs, types and groups inside one another, over protobuf's limit by one and by far."""
    for levels in (34, 35, 100, 1_000, 20_000):
        yield BrokenBinary(f"{levels} graphs", graphs(levels), 71)
    for levels in (50, 100, 20_000):
        yield BrokenBinary(f"{levels} types", types(levels), 71)
    for levels in (101, 1_000, 20_000, 200_000):
        group = tag(99, START_GROUP) * levels + tag(99, END_GROUP) * levels
        yield BrokenBinary(f"{levels} groups", base() + group, 71)
    yield BrokenBinary("20,000 groups never closed", base() + tag(99, START_GROUP) * 20_000, 71)


def graphs(levels: int) -> bytes:
    """A model with `levels` graphs inside the outermost one."""
    inner = b""
    for _ in range(levels):
        inner = length_delimited(1, length_delimited(5, length_delimited(6, inner)))
    return length_delimited(7, inner)


def types(levels: int) -> bytes:
    """A model with an input whose type is `levels` sequences of a tensor."""
    inner = length_delimited(1, b"\x08\x01")
    for _ in range(levels):
        inner = length_delimited(4, length_delimited(1, inner))
    return length_delimited(7, length_delimited(11, length_delimited(2, inner)))


def whole() -> Iterator[BrokenBinary]:
    """Files that are wrong as a whole."""
    data = base()
    model = ModelProto.FromString(data)
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    others = {
        "empty": b"",
        "one zero": b"\x00",
        "zeros": bytes(4096),
        "0xff": b"\xff" * 4096,
        "two models": data + data,
        "the model and its graph again": data + length_delimited(7, model.graph.SerializeToString()),
        "ir_version twice": b"\x08\x0a" + data,
        "producer_name twice": data + length_delimited(2, b"again"),
        "no graph": ModelProto(ir_version=10, producer_name="x").SerializeToString(),
        "a graph for a model": model.graph.SerializeToString(),
        "a node for a model": model.graph.node[0].SerializeToString(),
        "a tensor for a model": tensor.SerializeToString(),
        "an attribute for a model": AttributeProto(name="x", i=1).SerializeToString(),
        "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + bytes(100),
        "zip": b"PK\x03\x04\x14\x00\x08\x08" + bytes(100),
        "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00",
        "ELF": b"\x7fELF\x02\x01\x01" + bytes(100),
        "PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(100),
        "TFLite": b"\x1c\x00\x00\x00TFL3" + bytes(100),
        "one line feed": b"\n",
        "LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "model after a byte order mark": b"\xef\xbb\xbf" + data,
        "model after a line feed": b"\n" + data,
        "model with CRLF for LF": data.replace(b"\n", b"\r\n"),
        "model with a length before it": varint(len(data)) + data,
    }
    for name, part in others.items():
        if protobuf_reads(part) and name in ("zip", "model with CRLF for LF"):
            continue
        yield BrokenBinary(name, part)


def protobuf_reads(data: bytes) -> bool:
    """Whether protobuf parses `data` as a ModelProto."""
    try:
        ModelProto.FromString(data)
    except DecodeError:
        return False
    return True


def mutated() -> Iterator[BrokenBinary]:
    """Bytes of the valid model changed, removed and doubled at random, where protobuf refuses the result."""
    rng = Random(1)
    data = base()
    for index in range(1_500):
        changed = mutation(rng, data)
        if not protobuf_reads(changed):
            yield BrokenBinary(f"mutation {index}", changed)


def mutation(rng: Random, data: bytes) -> bytes:
    """`data` with one to three random changes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed))
        kind = rng.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at] = rng.choice((0, 0x7F, 0x80, 0xFF, 1))
        elif kind == 2:
            del changed[at : at + rng.randint(1, 4)]
        elif kind == 3:
            changed[at:at] = rng.randbytes(rng.randint(1, 4))
        else:
            changed[at:at] = longer(bytes([changed[at] & 0x7F]), 2)
    return bytes(changed)


CATEGORIES: dict[str, Callable[[], Iterator[BrokenBinary]]] = {
    one.__name__: one for one in (cut, lengthened, tags, nested_bytes, deep, whole, mutated)
}


@cache
def binaries(category: str) -> tuple[BrokenBinary, ...]:
    """The broken files of one category."""
    return tuple(CATEGORIES[category]())
