"""The edit that names one node, whatever it is called now."""

from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.edits.declaration import Edit
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.renaming import collision_error
from onnxjson.edits.workspace import Workspace


class SetName(Edit, frozen=True, kw_only=True, eq=False, tag="set-name"):
    """Give one node a name, whether it has one or not.

    It is for a node that has none, or that shares its name with others; rename changes names wherever they stand. No
    other node of the graph may have the name.
    """

    words: ClassVar = ("node", "name")
    examples: ClassVar = (
        '{"edit": "set-name", "node": "output:logits", "name": "head"}',
        '{"edit": "set-name", "node": "@/graph/node/3", "name": "pool"}',
    )

    node: Annotated[str, Role("node"), Meta(description="The node: a name or a selector.")]
    name: Annotated[str, Meta(description='Its name; "" takes the one away that it has.')]

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        ref = workspace.one(self.node)
        if (ref.node.name or "") == self.name:
            said = f'is called "{visible(self.name)}" already' if self.name else "has no name already"
            return Outcome(1, (f"{ref.address} {said}",))
        if self.name:
            for other in workspace.index.nodes_with("name", self.name):
                if other.scope is ref.scope:
                    both = f"{other.address} and {ref.address}"
                    raise collision_error([f'{both} would both be "{visible(self.name)}"'])
        workspace.replace_node(ref, replace(ref.node, name=self.name or None))
        return Outcome(1)
