"""Naming nodes and tensors of a model: selectors by their properties, patterns by the structure around them.

Here: the text of a selector or pattern, the search for what it matches, and why a part of a model does not match.

Not here: changes of what was found (`onnxjson.editing`), and commands.

Read first: `selectors` (naming nodes and tensors), `expression` (a pattern as records), `searching` (what matches, what
nearly does).
"""
