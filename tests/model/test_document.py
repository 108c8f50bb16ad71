"""Records cost the garbage collector nothing, compare by bits, and leave external data where it is."""

import gc
import struct
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import onnxjson
from onnxjson.model.document import Attribute, Record
from onnxjson.model.messages import FIELDS

NODES = 100_000


@pytest.mark.parametrize("way", ["binary", "text"])
def test_a_big_graph_leaves_nothing_for_the_garbage_collector_to_look_at(way: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", [f"t{n}", "x"], [f"t{n + 1}"], f"/add{n}") for n in range(1000)] * (NODES // 1000)
    proto = helper.make_model(helper.make_graph(nodes, "g", [], []))
    path = tmp_path / ("m.onnx" if way == "binary" else "m.onnx.json")
    onnxjson.save(onnxjson.from_proto(proto), path)
    gc.collect()
    before = len(gc.get_objects())
    model = onnxjson.load(path)
    gc.collect()
    assert model.graph is not None
    assert len(model.graph.node) == NODES
    assert len(gc.get_objects()) - before < NODES // 20


def test_no_record_is_in_the_books_of_the_garbage_collector() -> None:
    assert not any(gc.is_tracked(record()) for record in FIELDS)
    assert all(issubclass(record, Record) for record in FIELDS)


def test_numbers_compare_by_bits() -> None:
    def float_attribute(bits: int) -> Attribute:
        return Attribute("a", f=struct.pack("<I", bits), type=1)

    assert float_attribute(0x8000_0000) != float_attribute(0)
    assert float_attribute(0x7FC0_0000) == float_attribute(0x7FC0_0000)
    assert float_attribute(0x7F80_0001) != float_attribute(0x7FC0_0001)


def test_ten_gigabytes_of_external_data_are_not_even_opened(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[10 << 30], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="not there")
    tensor.external_data.add(key="length", value=str(10 << 30))
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(helper.make_graph([], "g", [], [], [tensor])).SerializeToString())
    onnxjson.save(onnxjson.load(path), tmp_path / "m.onnx.json")
    onnxjson.save(onnxjson.load(tmp_path / "m.onnx.json"), tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()
