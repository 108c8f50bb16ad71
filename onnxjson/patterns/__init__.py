"""Naming nodes and tensors of a model: selectors by their properties, patterns by the structure around them.

Here: the text of a selector or pattern, the search for what it matches, and why a part of a model does not match.

Not here: changes of what was found (`onnxjson.editing`), and commands.

Read first: `selectors` (naming nodes and tensors), `selector_terms` (the properties of nodes that terms
compare), `name_patterns` (wildcards and regular expressions).
"""
