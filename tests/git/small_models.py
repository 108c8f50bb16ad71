"""A model of two nodes with values to change, as text and as binary."""

from onnxjson.storage import api
from onnxjson.storage.files import write
from onnxjson.storage.saving import Sink

_TEXT = """{
"format": "onnxjson/1",
"ir_version": 10,
"opset_import": {"": 20},
"graph": {
  "name": "g",
  "input": [
    {"name": "x", "type": "float32[2]"}
  ],
  "output": [
    {"name": "z", "type": "float32[2]"}
  ],
  "node": [
    {"op_type": "LeakyRelu", "output": ["y"],
     "input": ["x"],
     "name": "first",
     "attribute": {
       "alpha": ALPHA
     }},
    {"op_type": "Elu", "output": ["z"],
     "input": ["y"],
     "name": "second",
     "attribute": {
       "alpha": BETA
     }}
  ]
}
}
"""


class _Bytes:
    def __init__(self) -> None:
        self.content = b""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.content += bytes(data)


def text(alpha: float = 0.1, beta: float = 0.5) -> bytes:
    """The canonical text."""
    return _TEXT.replace("ALPHA", str(alpha)).replace("BETA", str(beta)).encode()


def binary(alpha: float = 0.1, beta: float = 0.5) -> bytes:
    """The same model as protobuf writes it."""
    sink = _Bytes()
    write(api.loads(text(alpha, beta).decode()), _as_sink(sink), "onnx")
    return sink.content


def _as_sink(sink: Sink) -> Sink:
    return sink
