"""Match the nodes of two models by structure.

Here: labels from structure and content, candidates, assignment, and the repair of swapped pairs. The modules of this
package import numpy, except `alignment` and `contents`; import them only when they are needed.

Not here: the meaning of a pair or of an unpaired node; see the other modules of `onnxjson.diffing`.

Read first: `models` (the entry), `alignment` (its result), `stages` (the order in which pairs are found).
"""
