"""All edits by name."""

from typing import Final

from onnxjson.display import visible
from onnxjson.edits.attributes import RemoveAttribute, SetAttribute
from onnxjson.edits.batch import SetBatchSize
from onnxjson.edits.composing import Combine, Extract
from onnxjson.edits.dead_code import Prune
from onnxjson.edits.declaration import Edit, name_of
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
from onnxjson.edits.shapes import SetDim, SetShape
from onnxjson.edits.stripping import Strip
from onnxjson.edits.tensor_values import CastTensor, SetTensor
from onnxjson.edits.versions import SetMetadata, StampOpset
from onnxjson.errors import ParameterError
from onnxjson.suggestions import suggest

EDITS: Final[tuple[type[Edit], ...]] = (
    AddNode,
    DeleteNode,
    ReplaceNode,
    Rewire,
    SwapInputs,
    SetAttribute,
    RemoveAttribute,
    SetTensor,
    CastTensor,
    InferShapes,
    InlineFunctions,
    ConvertOpset,
    StampOpset,
    SetMetadata,
    SetDoc,
    Extract,
    Combine,
    Rename,
    SetName,
    NameNodes,
    Prefix,
    DeduplicateInitializers,
    Prune,
    Strip,
    ConstantsToInitializers,
    InitializersToConstants,
    InitializersToInputs,
    AddInput,
    AddOutput,
    RemoveOutput,
    RemoveInput,
    TransposeInput,
    SetShape,
    SetDim,
    SetBatchSize,
)
"""Every edit, in the order of the help."""

NAMES: Final[dict[str, type[Edit]]] = {name_of(edit): edit for edit in EDITS}
"""Every edit by its name."""


def edit_named(name: str) -> type[Edit]:
    """The edit of a name such as ``set-attribute``.

    Raises:
        ParameterError: there is none; the message says what is near.
    """
    found = NAMES.get(name)
    if found is None:
        hint = suggest(name, NAMES) or "`onnxjson rewrite --list` shows all"
        raise ParameterError(f'there is no edit "{visible(name)}"; {hint}')
    return found
