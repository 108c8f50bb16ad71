"""How long the text of a model is: ``python text_size.py MODEL`` prints a JSON object.

It has the lines and bytes of onnxjson's text and of proto-JSON with an indent of 2, and for how many of some
attributes spread over the graph a changed value changed exactly one line.
"""

import json
import sys

import onnx
from google.protobuf import json_format
from onnx import AttributeProto, ModelProto

import onnxjson

MOST_ATTRIBUTES = 20
"""How many attributes are changed, each on its own."""


def measured(path: str) -> dict[str, int]:
    """`lines` and `bytes`, `proto_lines` and `proto_bytes`, `changed` attributes and `one_line` of them."""
    model = onnx.load(path)
    text, proto_json = _text(model), json_format.MessageToJson(model, indent=2)
    attributes = [attribute for node in model.graph.node for attribute in node.attribute if _can_change(attribute)]
    some = attributes[:: -(-len(attributes) // MOST_ATTRIBUTES) or 1]
    return {
        "lines": text.count("\n"),
        "bytes": len(text.encode()),
        "proto_lines": proto_json.count("\n") + 1,
        "proto_bytes": len(proto_json.encode()),
        "changed": len(some),
        "one_line": sum(_changed_lines(model, text, attribute) == (1, 1) for attribute in some),
    }


def _text(model: ModelProto) -> str:
    return onnxjson.dumps(onnxjson.from_proto(model))


def _can_change(attribute: AttributeProto) -> bool:
    return attribute.type in (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING) or (
        attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) and len(attribute.ints or attribute.floats) > 0
    )


def _changed_lines(model: ModelProto, text: str, attribute: AttributeProto) -> tuple[int, int]:
    """How many lines go and how many come when the value of `attribute`, one of `model`, is another."""
    kept = AttributeProto()
    kept.CopyFrom(attribute)
    if attribute.type == AttributeProto.INT:
        attribute.i += 1
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f += 0.5
    elif attribute.type == AttributeProto.STRING:
        attribute.s += b"_CHANGED"
    elif attribute.type == AttributeProto.INTS:
        attribute.ints[0] += 1
    else:
        attribute.floats[0] += 0.5
    before, after = text.splitlines(), _text(model).splitlines()
    attribute.CopyFrom(kept)
    shorter = min(len(before), len(after))
    head = next((index for index in range(shorter) if before[index] != after[index]), shorter)
    tail = next((index for index in range(shorter - head) if before[-1 - index] != after[-1 - index]), shorter - head)
    return len(before) - head - tail, len(after) - head - tail


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
