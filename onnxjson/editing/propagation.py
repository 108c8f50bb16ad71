"""Keep the stated types of a workspace true: correct them after edits, and find nodes that cannot have them."""

from onnxjson.editing.type_correction import correct_types
from onnxjson.editing.workspace import Workspace


def propagate_types(workspace: Workspace) -> tuple[str, ...]:
    """Correct the types of values after the nodes, constants and inputs that changed, and return remarks.

    Nodes that cannot have these types are added to `Workspace.complaints`.

    Raises:
        EditError, UntrustedError: see `sandbox.LightModel`.
    """
    if workspace.typed is workspace.model:
        return ()
    found = correct_types(workspace.typed, workspace.model, workspace.model_folder)
    workspace.keep_types()
    if found.model is not workspace.model:
        workspace.replace_equivalent(found.model)
    workspace.complaints.update(found.complaints)
    return found.notes
