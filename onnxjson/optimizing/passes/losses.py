"""Side effects of a pass: metadata, versions and interfaces that optimizers drop or change silently."""

from collections.abc import Iterable

from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Graph, Model, Node, ValueInfo
from onnxjson.model.operators import plain_domain
from onnxjson.model.walking import walk

_SHOWN = 3


def losses(before: Model, after: Model) -> tuple[str, ...]:
    """Return messages about what the model lost in a pass although its subject remains.

    Covers metadata of nodes whose outputs still exist, quantization annotations of remaining values, metadata and
    texts of the model, changed versions, and changed inputs and outputs.
    """
    found = [*_versions(before, after), *_metadata(before, after)]
    if before.graph is not None and after.graph is not None:
        found += [*_nodes(before.graph, after.graph), *_graph(before.graph, after.graph)]
    return tuple(found)


def _versions(before: Model, after: Model) -> Iterable[str]:
    if before.ir_version != after.ir_version:
        yield f"ir_version changed from {before.ir_version} to {after.ir_version}"
    old = {plain_domain(each.domain): each.version for each in before.opset_import}
    new = {plain_domain(each.domain): each.version for each in after.opset_import}
    changed = [f"{_domain(name)} {old[name]} -> {new[name]}" for name in old if name in new and old[name] != new[name]]
    if changed:
        yield f"operator sets changed: {', '.join(changed)}"
    added = [f"{_domain(name)} {new[name]}" for name in new if name not in old]
    if added:
        yield f"operator sets added: {', '.join(added)}"
    gone = [f"{_domain(name)} {old[name]}" for name in old if name not in new]
    if gone:
        yield f"operator sets removed: {', '.join(gone)}"


def _domain(name: str) -> str:
    return visible(name) if name else "ai.onnx"


def _metadata(before: Model, after: Model) -> Iterable[str]:
    old = {each.key: each.value for each in before.metadata_props}
    new = {each.key: each.value for each in after.metadata_props}
    gone = [key or "" for key in old if key not in new]
    if gone:
        yield f"metadata of the model is lost: {_some(gone)}"
    more = [key or "" for key in new if key not in old]
    if more:
        yield f"metadata of the model is added: {_some(more)}"
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        one, other = getattr(before, name), getattr(after, name)
        if one and one != other:
            yield f"{name} of the model is {'lost' if not other else 'changed'}"
    if before.training_info and not after.training_info:
        yield "training_info is lost"


def _nodes(before: Graph, after: Graph) -> Iterable[str]:
    old = {each.output: each for each in walk(before, Node) if each.output}
    kept = [(old[each.output], each) for each in walk(after, Node) if each.output in old]
    metadata = [one for one, other in kept if one.metadata_props and not other.metadata_props]
    if metadata:
        yield f"{counted(len(metadata), 'remaining node')} lost {_its(metadata)} metadata"
    texts = [one for one, other in kept if one.doc_string and not other.doc_string]
    if texts:
        yield f"{counted(len(texts), 'remaining node')} lost {_its(texts)} doc_string"
    names = [one for one, other in kept if one.name and not other.name]
    if names:
        yield f"{counted(len(names), 'remaining node')} lost {_its(names)} name"


def _graph(before: Graph, after: Graph) -> Iterable[str]:
    existing = {each.name for each in after.input} | {each.name for each in after.initializer}
    existing |= {name for each in after.node for name in each.output}
    annotated = {each.tensor_name for each in after.quantization_annotation}
    lost = [
        each
        for each in before.quantization_annotation
        if each.tensor_name in existing and each.tensor_name not in annotated
    ]
    if lost:
        yield f"quantization annotations of {counted(len(lost), 'value')} are lost"
    if before.doc_string and not after.doc_string:
        yield "doc_string of the graph is lost"
    if before.metadata_props and not after.metadata_props:
        yield "metadata of the graph is lost"
    if before.sparse_initializer and not after.sparse_initializer:
        yield f"{counted(len(before.sparse_initializer), 'sparse initializer')} converted to something else"
    for what, old, new in (("input", before.input, after.input), ("output", before.output, after.output)):
        yield from _interface(what, old, new)


def _interface(what: str, before: tuple[ValueInfo, ...], after: tuple[ValueInfo, ...]) -> Iterable[str]:
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    gone = [name or "" for name in old if name not in new]
    if gone:
        yield f"{what}s are removed: {_some(gone)}"
    more = [name or "" for name in new if name not in old]
    if more:
        yield f"{what}s are added: {_some(more)}"
    other = [name or "" for name in old if name in new and old[name].type != new[name].type]
    if other:
        yield f"{what}s have other types: {_some(other)}"
    if not gone and not more and list(old) != list(new):
        yield f"{what}s are in another order"


def _some(names: Iterable[str]) -> str:
    return listed([visible(name) for name in names], _SHOWN)


def _its(items: list[Node]) -> str:
    return "its" if len(items) == 1 else "their"


__all__ = ["losses"]
