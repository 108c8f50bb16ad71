"""Exact changes: a `Patch` applies to one model, inverts, composes with another and is stored as JSON.

Here: the tree of changes between two models; derive it, apply it with every expectation checked, invert, compose, read
and write it. `onnxjson.Patch` is the public name; `Patch.between` derives a patch from two models.

Not here: which node of one model is the counterpart of which node of another, and what a change means
(`onnxjson.diffing`); edits requested by name (`onnxjson.editing`).

Read first: `changes` (the tree), `patch` (all operations on it), `deriving` (from two models to a patch).
"""

from onnxjson.patching.changes import (
    ABSENT,
    ExternalFile,
    Fields,
    ListChange,
    Members,
    Operation,
    Replace,
    Set,
    Unit,
)
from onnxjson.patching.patch import Patch, sha256_of_model

__all__ = [
    "ABSENT",
    "ExternalFile",
    "Fields",
    "ListChange",
    "Members",
    "Operation",
    "Patch",
    "Replace",
    "Set",
    "Unit",
    "sha256_of_model",
]
