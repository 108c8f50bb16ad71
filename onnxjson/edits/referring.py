"""How an edit that is written down refers to a node or a tensor, so that it is found in the next version too."""

from onnxjson.document import Node
from onnxjson.edits.described import described
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import OnnxJsonError
from onnxjson.index import NodeRef, Scope
from onnxjson.selector_syntax import spelled


def selector_of(workspace: Workspace, ref: NodeRef) -> str:
    """The name of a node, or of what it makes, where that is clear; else its address."""
    node = ref.node
    texts = []
    if node.name:
        texts += [node.name, spelled("name", node.name)]
    texts += [spelled("output", name) for name in node.output if name][:1]
    for text in texts:
        try:
            if [found.address for found in workspace.select(text)] == [ref.address]:
                return text
        except OnnxJsonError:
            continue
    return f"@{ref.address}"


def maker_of(scope: Scope, node: Node) -> NodeRef | None:
    """The node of a graph that makes what another node makes."""
    for name in node.output:
        if name in scope.makers:
            return NodeRef(scope, scope.makers[name][0])
    return None


def is_described_by(workspace: Workspace, name: str, address: str) -> bool:
    """Whether a name alone leads to what is said of a tensor at an address."""
    try:
        return described(workspace.tensor(name), "it")[0] == address
    except OnnxJsonError:
        return False
