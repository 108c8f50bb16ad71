"""The one kind of change: a `Patch`, exact, invertible, serialisable.

`Patch.between` makes one of two models; `onnxjson.Patch` is the public name.
"""

from onnxjson.patching.changes import ABSENT, Fields, ListChange, Members, Operation, Replace, Set, Unit
from onnxjson.patching.patch import ExternalFile, Patch, sha256_of_model

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
