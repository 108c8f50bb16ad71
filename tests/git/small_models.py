"""A model of two nodes with values to change, as text and as binary."""

from onnxjson.git.driver_lines import _MODEL
from onnxjson.storage import api
from onnxjson.storage.files import write
from onnxjson.storage.saving import Sink


class _Bytes:
    def __init__(self) -> None:
        self.content = b""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.content += bytes(data)


def text(alpha: float = 0.1, beta: float = 0.5) -> bytes:
    """The canonical text."""
    return _MODEL.replace("ALPHA", str(alpha)).replace("BETA", str(beta)).encode()


def binary(alpha: float = 0.1, beta: float = 0.5) -> bytes:
    """The same model as protobuf writes it."""
    sink = _Bytes()
    write(api.loads(text(alpha, beta).decode()), _as_sink(sink), "onnx")
    return sink.content


def _as_sink(sink: Sink) -> Sink:
    return sink
