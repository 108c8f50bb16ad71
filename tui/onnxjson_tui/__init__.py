"""The terminal program of onnxjson."""
