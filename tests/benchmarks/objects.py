"""ModelProto to text and back within one process: ``python objects.py onnxjson|json_format MODEL WARMUP``.

Prints a JSON object: seconds of each way and whether the message came back. WARMUP, a small model, is converted first,
so that no import is part of a time.
"""

import json
import sys
import time
from collections.abc import Callable

import onnx
from onnx import ModelProto

Ways = tuple[Callable[[ModelProto], str], Callable[[str], ModelProto]]


def ways(tool: str) -> Ways:
    """What turns a message into text, and a text into a message."""
    if tool == "json_format":
        from google.protobuf import json_format

        return json_format.MessageToJson, lambda text: json_format.Parse(text, ModelProto())
    import onnxjson

    return (
        lambda proto: onnxjson.dumps(onnxjson.from_proto(proto)),
        lambda text: onnxjson.to_proto(onnxjson.loads(text)),
    )


def measured(tool: str, model: str, warmup: str) -> dict[str, float | bool]:
    """Seconds of `to_text` and `to_onnx`, and whether the message that came back is `same`."""
    to_text, to_proto = ways(tool)
    to_proto(to_text(onnx.load(warmup)))
    proto = onnx.load(model)
    start = time.perf_counter()
    text = to_text(proto)
    written = time.perf_counter()
    back = to_proto(text)
    read = time.perf_counter()
    same = back.SerializeToString() == proto.SerializeToString()
    return {"to_text": written - start, "to_onnx": read - written, "same": same}


if __name__ == "__main__":
    print(json.dumps(measured(*sys.argv[1:])))
