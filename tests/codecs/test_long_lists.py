"""Long lists of numbers in binaries, which are read as a whole."""

import random

import pytest

from onnxjson.codecs.wire_format import read_run
from onnxjson.codecs.wire_reading import read_model
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model.document import Attribute, Graph, Model, Node


def _varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def _run(values: list[int]) -> bytes:
    return b"".join([b"\x40" + _varint(value) for value in values])


@pytest.mark.parametrize("bits", [1, 7, 8, 14, 21, 35, 56, 63])
def test_a_run_is_read_as_its_numbers(bits: int) -> None:
    numbers = random.Random(bits)
    values = [numbers.getrandbits(numbers.randint(1, bits)) for _ in range(300)]
    assert read_run(_run(values), 0x40) == tuple(values)


@pytest.mark.parametrize(
    "part",
    [
        b"\x40\x81\x00",
        b"\x48\x01",
        b"\x40",
        b"\x40\x81",
        b"\x40" + _varint((1 << 64) - 1),
        b"\xc0\x40\x01",
        b"\x40" + b"\x80" * 12 + b"\x01",
    ],
    ids=["not minimal", "another tag", "no number", "cut off", "negative", "longer tag", "too long"],
)
@pytest.mark.parametrize("place", ["start", "middle", "end"])
def test_other_bytes_are_no_run(part: bytes, place: str) -> None:
    run = _run(list(range(200)))
    parts = {"start": (part, run), "middle": (run, part, run), "end": (run, part)}[place]
    assert read_run(b"".join(parts), 0x40) == ()


@pytest.mark.parametrize("values", [range(3000), range(-2000, 2000), [1 << 62] * 500])
def test_lists_of_a_model_are_written_as_they_were_read(values: range | list[int]) -> None:
    node = Node(op_type="X", output=("y",), attribute=(Attribute("a", ints=tuple(values), type=7),))
    model = Model(ir_version=10, graph=Graph(node=(node,), name="g"))
    data = message_bytes(model)
    assert read_model(data) == model
