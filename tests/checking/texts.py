"""Small models from onnx's text form."""

import onnx.parser

from onnxjson.model.document import Model
from onnxjson.storage.api import from_proto


def parsed(body: str, *, opset: int = 21, ir: int = 10, imports: str = "") -> Model:
    """Return the model of a graph such as ``g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }``."""
    domains = f', "{imports}": 1' if imports else ""
    return from_proto(onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["": {opset}{domains}]> {body}'))
