"""What changed in the names of nodes and in doc strings, as edits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from onnxjson.addresses import attribute_segments, escape
from onnxjson.document import Attribute, Node
from onnxjson.edits.declaration import Edit
from onnxjson.edits.doc_strings import SetDoc
from onnxjson.edits.names import Rename
from onnxjson.edits.node_names import SetName
from onnxjson.edits.rebuilding import Body
from onnxjson.edits.referring import is_described_by, maker_of, selector_of
from onnxjson.edits.workspace import Workspace
from onnxjson.index import NodeRef, Scope


class Named(NamedTuple):
    """A node as it is, and the name that it is to have."""

    ref: NodeRef
    name: str
    """ "" for none."""


def name_edits(workspace: Workspace, scope: Scope, wanted: Sequence[Named]) -> Iterator[Edit]:
    """The edits that give nodes of one graph other names; each is to be made before the next is asked for.

    Args:
        workspace: has the model as it is now.
        scope: the graph.
        wanted: nodes of it that are to stay, with the names that they are to have.
    """
    counts = Counter([node.name for node in scope.graph.node])
    groups: dict[str, list[Named]] = {}
    for each in wanted:
        groups.setdefault(each.ref.node.name or "", []).append(each)
    together: dict[str, str] = {}
    single: list[Named] = []
    for old, group in groups.items():
        names = {each.name for each in group}
        if old and len(group) == counts[old] and len(names) == 1 and "" not in names:
            together[old] = group[0].name
        else:
            single += group
    changing = [each for each in single if each.name != (each.ref.node.name or "")]
    # Names that nobody has any more are free for others.
    for each in changing:
        if not each.name:
            yield SetName(node=selector_of(workspace, each.ref), name="")
    renamed = {old: new for old, new in together.items() if old != new}
    if renamed:
        yield Rename(kind="node", names=renamed, within=scope.address)
    scope = workspace.scope(scope.address)
    for each in changing:
        if each.name:
            yield SetName(node=selector_of(workspace, NodeRef(scope, each.ref.position)), name=each.name)


def doc_edits(workspace: Workspace, scope: Scope, target: Body) -> Iterator[SetDoc]:
    """The edits that give a graph, and what stands in it, the doc strings of another one with the same names.

    Args:
        workspace: has the model as it is now.
        scope: the graph.
        target: what it is to be like.
    """
    if _differ(scope.graph.doc_string, target.doc_string):
        yield SetDoc(text=target.doc_string or "", graph=scope.address)
    for node in target.node:
        ref = maker_of(scope, node)
        if ref is not None:
            yield from _of_node(workspace, ref, node)
    for field in ("initializer", "input", "output", "value_info"):
        there, wanted = getattr(scope.graph, field, ()), getattr(target, field, ())
        if field != "value_info" and (not there or isinstance(there[0], str)):
            continue
        texts = {each.name: each.doc_string for each in wanted}
        for position, each in enumerate(there):
            if each.name and each.name in texts and _differ(each.doc_string, texts[each.name]):
                address, text = f"{scope.address}/{field}/{position}", texts[each.name] or ""
                if is_described_by(workspace, each.name, address):
                    yield SetDoc(text=text, tensor=each.name)
                else:
                    yield SetDoc(text=text, address=address)


def _of_node(workspace: Workspace, ref: NodeRef, node: Node) -> Iterator[SetDoc]:
    now = ref.node
    if now.doc_string is node.doc_string and now.attribute is node.attribute:
        return
    if _differ(now.doc_string, node.doc_string):
        yield SetDoc(text=node.doc_string or "", node=selector_of(workspace, ref))
    wanted = dict(zip(attribute_segments(node.attribute), node.attribute, strict=True))
    for segment, old in zip(attribute_segments(now.attribute), now.attribute, strict=True):
        new: Attribute | None = wanted.get(segment)
        if new is not None and _differ(old.doc_string, new.doc_string):
            yield SetDoc(text=new.doc_string or "", address=f"{ref.address}/attribute/{escape(segment)}")


def _differ(one: str | None, other: str | None) -> bool:
    return (one or "") != (other or "")
