"""The edit that says what an element of a model is for."""

from typing import Annotated, ClassVar, Final, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.addresses import find_element
from onnxjson.display import visible
from onnxjson.document import Attribute, Function, Graph, Model, Node, Tensor, ValueInfo
from onnxjson.edits.declaration import Edit
from onnxjson.edits.described import DescribedGraph, DescribedTensor, described
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.parameters import Role
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.index import Scope

Documented = Model | Graph | Function | Node | Attribute | Tensor | ValueInfo
"""Records that have a doc string."""

Kind = TypeVar("Kind", bound=Documented)

_NOTHING: Final = "there is no doc string to take away"


class SetDoc(Edit, frozen=True, kw_only=True, eq=False, tag="set-doc"):
    """Set the doc string of the model, or of something in it.

    Nodes, tensors and graphs have their own parameters; anything else is named by its address. The text takes the place
    of the one that is there; an empty text takes that away.
    """

    words: ClassVar = ("text",)
    examples: ClassVar = (
        '{"edit": "set-doc", "text": "Trained on digits."}',
        '{"edit": "set-doc", "text": "first layer", "node": "op:Conv"}',
        '{"edit": "set-doc", "text": "Pixels from 0 to 1.", "address": "/graph/input/0"}',
    )

    text: Annotated[str, Role("text"), Meta(description='The doc string; "" takes it away.')]
    node: Annotated[
        str | None, Role("nodes"), Meta(description="The nodes whose doc string it is; else it is the model's.")
    ] = None
    tensor: DescribedTensor = None
    graph: DescribedGraph = None
    address: Annotated[
        str | None,
        Role("address"),
        Meta(description="The address of any element that has one, such as /graph/output/0."),
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        places = [each for each in (self.node, self.tensor, self.graph, self.address) if each is not None]
        if len(places) > 1:
            raise EditError("node, tensor, graph and address each say whose doc string it is; give at most one of them")
        if self.node is not None:
            return self._nodes(workspace, self.node)
        if self.tensor is not None:
            return self._put(workspace, *described(workspace.tensor(self.tensor), "a doc string"))
        address = self.address or ""
        if self.graph is not None:
            address = workspace.scope(self.graph.removeprefix("@")).address
        found = find_element(workspace.model, address.removeprefix("@"))
        if not isinstance(found.value, Documented):
            kinds = "a graph, function, node, attribute, tensor or value"
            raise EditError(f"{visible(found.address, 200)} has no doc string; name {kinds} by its address", address)
        return self._put(workspace, found.address, found.value)

    def _nodes(self, workspace: Workspace, selector: str) -> Outcome:
        by_scope: dict[Scope, list[int]] = {}
        for ref in workspace.select(selector):
            if self.text or ref.node.doc_string is not None:
                by_scope.setdefault(ref.scope, []).append(ref.position)
        for scope, positions in by_scope.items():
            nodes = scope.graph.node
            workspace.replace_nodes(scope, {each: self._with(nodes[each]) for each in positions})
        count = sum(map(len, by_scope.values()))
        return Outcome(count, () if count else (_NOTHING,))

    def _put(self, workspace: Workspace, address: str, record: Documented) -> Outcome:
        if not self.text and record.doc_string is None:
            return Outcome(0, (_NOTHING,))
        new: Documented = self._with(record)
        if isinstance(new, Model):
            workspace.replace_model(doc_string=new.doc_string)
        elif isinstance(new, Graph | Function):
            workspace.replace_graph(workspace.scope(address), new)
        elif isinstance(new, Node):
            owner, _, position = address.rpartition("/node/")
            workspace.replace_nodes(workspace.scope(owner), {int(position): new})
        else:
            workspace.replace_record(address, new)
        return Outcome(1)

    def _with(self, record: Kind) -> Kind:
        return replace(record, doc_string=self.text or None)
