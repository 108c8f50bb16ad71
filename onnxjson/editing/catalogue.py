"""The catalogue of all edits."""

from typing import Final

from onnxjson.editing.annotations import SetDoc, SetIrVersion, SetMetadata
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute
from onnxjson.editing.batch import SetBatchSize
from onnxjson.editing.cleaning import Prune, Strip
from onnxjson.editing.composing import Combine, Extract
from onnxjson.editing.declaration import Edit, name_of
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
from onnxjson.editing.shapes import SetDim, SetShape, TransposeInput
from onnxjson.editing.tensor_values import CastTensor, SetTensor
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import ParameterError

EDITS: Final[tuple[type[Edit], ...]] = (
    AddNode, DeleteNode, ReplaceNode, Rewire, SwapInputs, ReplacePattern, SetAttribute, RemoveAttribute, SetTensor,
    CastTensor, InferShapes, InlineFunctions, ConvertOpset, StampOpset, SetIrVersion, SetMetadata, SetDoc, Extract,
    Combine, Rename, SetName, NameNodes, Prefix, DeduplicateInitializers, Prune, Strip, ConstantsToInitializers,
    InitializersToConstants, InitializersToInputs, AddInput, AddOutput, RemoveOutput, RemoveInput, TransposeInput,
    SetShape, SetDim, SetBatchSize,
)  # fmt: skip
"""All edits, in the order of the help text."""

NAMES: Final[dict[str, type[Edit]]] = {name_of(edit): edit for edit in EDITS}
"""All edits by name."""


def edit_named(name: str) -> type[Edit]:
    """Return the edit of a name such as ``set-attribute``.

    Raises:
        ParameterError: there is none; the message suggests similar names.
    """
    found = NAMES.get(name)
    if found is None:
        hint = suggest(name, NAMES) or "`onnxjson rewrite --list` shows all"
        raise ParameterError(f'there is no edit "{visible(name)}"; {hint}')
    return found
