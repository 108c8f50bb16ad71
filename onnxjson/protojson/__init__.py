"""Proto-JSON, protobuf's own JSON: what ``onnx.save(..., format="json")`` and onnx2json write, and ``onnx.load`` reads.

protobuf's json_format does the work. It drops what it cannot hold and takes much that is no proto-JSON without a word;
so `loads` checks the text before, and `dumps` the model.
"""

from onnxjson.protojson.reading import loads
from onnxjson.protojson.writing import dumps, losses

__all__ = ["dumps", "loads", "losses"]
