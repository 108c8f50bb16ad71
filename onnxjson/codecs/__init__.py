"""Codecs: protobuf, the canonical text onnxjson/1 and proto-JSON, each to a model and back.

Here: `canonical_*`, `short_forms` and `tensor_text` write the text, `reading` reads it and reports every mistake with
line and column, `wire_*` reads and writes the bytes of protobuf without protobuf, `protojson` is protobuf's own JSON,
`node_blocks` is the text of some nodes.

Not here: opening, saving and finding files, and weights outside the text (`onnxjson.storage`). A codec gets bytes
and returns records, or the reverse.

Read first: `text_file` (chooses the reader for a text), `canonical_writer` (a model as text), `serde` (a model as
protobuf).
"""
