"""What a pass loses silently: metadata, annotations, versions, and changes of inputs and outputs."""

from collections.abc import Iterable, Mapping
from typing import Any

from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Graph, Model, Node
from onnxjson.model.operators import plain_domain
from onnxjson.model.walking import walk


def losses(before: Model, after: Model) -> tuple[str, ...]:
    """Return messages about metadata and other information that a pass lost although its subject remains.

    Covers metadata of nodes whose outputs still exist, quantization annotations of remaining values, metadata and
    texts of the model, changed versions, and changed inputs and outputs.
    """
    messages = [*_versions(before, after), *_metadata(before, after)]
    if before.graph is not None and after.graph is not None:
        messages += [*_nodes(before.graph, after.graph), *_graph(before.graph, after.graph)]
    return tuple(messages)


class _Changes:
    """Keys of two dicts that are removed, added, or have other values; in order."""

    def __init__(self, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> None:
        self.removed = [key for key in old if key not in new]
        self.added = [key for key in new if key not in old]
        self.changed = [key for key in old if key in new and old[key] != new[key]]


def _versions(before: Model, after: Model) -> Iterable[str]:
    if before.ir_version != after.ir_version:
        yield f"ir_version changed from {before.ir_version} to {after.ir_version}"
    old, new = ({plain_domain(each.domain): each.version for each in model.opset_import} for model in (before, after))
    changes = _Changes(old, new)
    for what, texts in (
        ("changed", [f"{_domain(name)} {old[name]} -> {new[name]}" for name in changes.changed]),
        ("added", [f"{_domain(name)} {new[name]}" for name in changes.added]),
        ("removed", [f"{_domain(name)} {old[name]}" for name in changes.removed]),
    ):
        if texts:
            yield f"operator sets {what}: {', '.join(texts)}"


def _domain(name: str) -> str:
    return visible(name) if name else "ai.onnx"


def _metadata(before: Model, after: Model) -> Iterable[str]:
    old, new = ({each.key: each.value for each in model.metadata_props} for model in (before, after))
    changes = _Changes(old, new)
    if changes.removed:
        yield f"metadata of the model is lost: {_some(changes.removed)}"
    if changes.added:
        yield f"metadata of the model is added: {_some(changes.added)}"
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        one, other = getattr(before, name), getattr(after, name)
        if one and one != other:
            yield f"{name} of the model is {'lost' if not other else 'changed'}"
    if before.training_info and not after.training_info:
        yield "training_info is lost"


def _nodes(before: Graph, after: Graph) -> Iterable[str]:
    old = {each.output: each for each in walk(before, Node) if each.output}
    kept = [(old[each.output], each) for each in walk(after, Node) if each.output in old]
    for field, what in (("metadata_props", "metadata"), ("doc_string", "doc_string"), ("name", "name")):
        losing = [one.name or one.output[0] for one, other in kept if getattr(one, field) and not getattr(other, field)]
        if losing:
            whose = "its" if len(losing) == 1 else "their"
            yield f"{counted(len(losing), 'remaining node')} lost {whose} {what}: {_some(losing)}"


def _graph(before: Graph, after: Graph) -> Iterable[str]:
    existing = {each.name for each in after.input} | {each.name for each in after.initializer}
    existing |= {name for each in after.node for name in each.output}
    existing -= {each.tensor_name for each in after.quantization_annotation}
    lost = [each for each in before.quantization_annotation if each.tensor_name in existing]
    if lost:
        yield f"quantization annotations of {counted(len(lost), 'value')} are lost"
    if before.doc_string and not after.doc_string:
        yield "doc_string of the graph is lost"
    if before.metadata_props and not after.metadata_props:
        yield "metadata of the graph is lost"
    if before.sparse_initializer and not after.sparse_initializer:
        yield f"{counted(len(before.sparse_initializer), 'sparse initializer')} converted to something else"
    for what, old, new in (("input", before.input, after.input), ("output", before.output, after.output)):
        yield from _interface(what, {each.name: each.type for each in old}, {each.name: each.type for each in new})


def _interface(what: str, old: Mapping[str | None, Any], new: Mapping[str | None, Any]) -> Iterable[str]:
    changes = _Changes(old, new)
    for names, verb in (
        (changes.removed, "are removed"), (changes.added, "are added"), (changes.changed, "have other types")
    ):  # fmt: skip
        if names:
            yield f"{what}s {verb}: {_some(names)}"
    if not changes.removed and not changes.added and list(old) != list(new):
        yield f"{what}s are in another order"


def _some(names: Iterable[str | None]) -> str:
    return listed([visible(name or "") for name in names])
