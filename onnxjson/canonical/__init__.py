"""Records -> the one canonical text of onnxjson/1 (docs/format.md)."""
