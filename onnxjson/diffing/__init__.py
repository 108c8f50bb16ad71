"""The difference of two models: counterparts of nodes, and all changes as events and as a patch.

Here: `matching` pairs nodes by structure, independent of their names; the other modules classify everything else:
regions, fused constants, rewiring, interfaces, weights. `unified` and `line_changes` compare texts line by line.

Not here: reports of a difference (`onnxjson.rendering`), proof that a rewrite computes the same (`onnxjson.running`),
merging two changes (`onnxjson.merging`).

Read first: `difference` (`onnxjson.diff`, the entry, and the order of the search), `events` (the vocabulary; a new kind
of event starts there), `comparing` (pairs of graphs).
"""
