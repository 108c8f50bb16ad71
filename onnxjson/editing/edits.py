"""The public names of edits: import them from here.

::

    from onnxjson import apply, edits

    model = apply(model, edits.SetAttribute(node="op:Conv", attribute="pads", value=[0, 0, 0, 0]))
    patch = edits.plan(model, edits.Script.load("rewrite.json"))
"""

from onnxjson.editing.annotations import SetDoc, SetIrVersion, SetMetadata
from onnxjson.editing.applying import Result, apply, plan, run
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute
from onnxjson.editing.batch import SetBatchSize
from onnxjson.editing.cleaning import Prune, Strip
from onnxjson.editing.composing import Combine, Extract
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.deduplication import DeduplicateInitializers
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.inference import InferShapes
from onnxjson.editing.initializers import ConstantsToInitializers, InitializersToConstants, InitializersToInputs
from onnxjson.editing.inlining import InlineFunctions
from onnxjson.editing.interface import AddInput, AddOutput, RemoveInput, RemoveOutput
from onnxjson.editing.names import NameNodes, Prefix, Rename, SetName
from onnxjson.editing.nodes import AddNode, ReplaceNode, Rewire, SwapInputs
from onnxjson.editing.opsets import ConvertOpset, StampOpset
from onnxjson.editing.pattern_replacement import ReplacePattern
from onnxjson.editing.script import Script
from onnxjson.editing.shapes import SetDim, SetShape, TransposeInput
from onnxjson.editing.tensor_values import CastTensor, SetTensor
from onnxjson.editing.workspace import Workspace

__all__ = [
    "AddInput", "AddNode", "AddOutput", "CastTensor", "Combine", "ConstantsToInitializers", "ConvertOpset",
    "DeduplicateInitializers", "DeleteNode", "Edit", "Extract", "InferShapes", "InitializersToConstants",
    "InitializersToInputs", "InlineFunctions", "NameNodes", "Outcome", "Prefix", "Prune", "RemoveAttribute",
    "RemoveInput", "RemoveOutput", "Rename", "ReplaceNode", "ReplacePattern", "Result", "Rewire", "Script",
    "SetAttribute", "SetBatchSize", "SetDim", "SetDoc", "SetIrVersion", "SetMetadata", "SetName", "SetShape",
    "SetTensor", "StampOpset", "Strip", "SwapInputs", "TransposeInput", "Workspace", "apply", "plan", "run",
]  # fmt: skip
