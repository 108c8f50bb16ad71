"""The line of the outline that has a node, for reports about nodes."""

from collections.abc import Collection
from typing import Final

from onnxjson.model.addresses import innermost
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import index_of
from onnxjson.outline.lines import Line

LARGEST: Final = 30_000
"""Nodes of a model whose outline is computed for a report about something else."""

INFERRED: Final = 10_000
"""Nodes of a model whose types are inferred for that."""


def lines_of(model: Model, addresses: Collection[str], *, infer: bool = False) -> dict[str, Line]:
    """Return, by address, the innermost lines with the nodes at or around some addresses.

    With `infer`, types that a model of at most `INFERRED` nodes does not state are inferred first. Without addresses
    that no line has; empty if the model has more than `LARGEST` nodes, or its outline needs a constant that cannot be
    read.
    """
    count = len(index_of(model).node_refs)
    if not any("/node/" in each for each in addresses) or count > LARGEST:
        return {}
    try:
        outline = model.outline(infer=infer and count <= INFERRED)
    except OnnxJsonError:
        return {}
    by_node = {ref.address: line for _, line in outline.walk() for ref in line.nodes}
    lines = {address: innermost(by_node, address) for address in addresses}
    return {address: line for address, line in lines.items() if line is not None}
