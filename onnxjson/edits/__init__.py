"""Edits: what a person wants changed, for Python, the command line, rewrite scripts and forms.

::

    from onnxjson import apply, edits

    model = apply(model, edits.SetAttribute(node="op:Conv", attribute="pads", value=[0, 0, 0, 0]))
    patch = edits.plan(model, edits.Script.load("rewrite.json"))
"""

from onnxjson.edits.applying import Result, apply, plan, run
from onnxjson.edits.attributes import RemoveAttribute, SetAttribute
from onnxjson.edits.batch import SetBatchSize
from onnxjson.edits.composing import Combine, Extract
from onnxjson.edits.dead_code import Prune
from onnxjson.edits.declaration import Edit
from onnxjson.edits.deduplication import DeduplicateInitializers
from onnxjson.edits.deletion import DeleteNode
from onnxjson.edits.doc_strings import SetDoc
from onnxjson.edits.initializers import ConstantsToInitializers, InitializersToConstants, InitializersToInputs
from onnxjson.edits.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.edits.layout import TransposeInput
from onnxjson.edits.names import NameNodes, Prefix, Rename
from onnxjson.edits.native import ConvertOpset, InferShapes, InlineFunctions
from onnxjson.edits.node_names import SetName
from onnxjson.edits.nodes import AddNode, ReplaceNode, Rewire, SwapInputs
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.script import Script
from onnxjson.edits.shapes import SetDim, SetShape
from onnxjson.edits.stripping import Strip
from onnxjson.edits.tensor_values import CastTensor, SetTensor
from onnxjson.edits.versions import SetMetadata, StampOpset
from onnxjson.edits.workspace import Workspace

__all__ = [
    "AddInput",
    "AddNode",
    "AddOutput",
    "CastTensor",
    "Combine",
    "ConstantsToInitializers",
    "ConvertOpset",
    "DeduplicateInitializers",
    "DeleteNode",
    "Edit",
    "Extract",
    "InferShapes",
    "InitializersToConstants",
    "InitializersToInputs",
    "InlineFunctions",
    "NameNodes",
    "Outcome",
    "Prefix",
    "Prune",
    "RemoveAttribute",
    "RemoveInput",
    "RemoveOutput",
    "Rename",
    "ReplaceNode",
    "Result",
    "Rewire",
    "Script",
    "SetAttribute",
    "SetBatchSize",
    "SetDim",
    "SetDoc",
    "SetMetadata",
    "SetName",
    "SetShape",
    "SetTensor",
    "StampOpset",
    "Strip",
    "SwapInputs",
    "TransposeInput",
    "Workspace",
    "apply",
    "plan",
    "run",
]
