"""Exact changes: a `Patch` applies to one model, inverts, composes with another and is stored as JSON.

Here: the tree of changes between two models; derive it, apply it with every expectation checked, invert, compose, read
and write it. `onnxjson.Patch` is the public name; `Patch.between` derives a patch from two models.

Not here: which node of one model is the counterpart of which node of another, and what a change means
(`onnxjson.diffing`); edits requested by name (`onnxjson.editing`).

Read first: `changes` (the tree), `patch` (all operations on it), `applying` (from two models to a patch, and back).
"""
