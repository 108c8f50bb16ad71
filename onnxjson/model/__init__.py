"""The model in memory and queries on it: records, names, types, values of tensors, addresses, operators.

Here: everything that needs a model in memory and nothing else, such as who produces a value, errors in the
structure, and the rewriters that build a changed model from an unchanged one. Errors,
findings and the display of text from models are here too, since all rooms use them.

Not here: reading or writing any form of a model (`onnxjson.codecs`), files (`onnxjson.storage`), edits that have a name
(`onnxjson.editing`). No module of this room imports another room.

Read first: `document` (the records), `index` (producers, consumers, scopes), `operators` (what ONNX
defines).
"""
