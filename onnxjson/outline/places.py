"""The line of the outline that has a node, for reports about nodes."""

from collections.abc import Collection
from typing import Final

from onnxjson.model.addresses import innermost
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import index_of
from onnxjson.outline.lines import Line, Outline

LARGEST: Final = 30_000
"""Nodes of a model whose outline is computed for a report about something else."""

INFERRED: Final = 10_000
"""Nodes of a model whose types are inferred for that."""


def reported_outline(model: Model, *, infer: bool = True) -> Outline | None:
    """Return the outline for a report about something else; None for a model of more than `LARGEST` nodes.

    With `infer`, types that a model of at most `INFERRED` nodes does not state are inferred first.
    """
    count = len(index_of(model).node_refs)
    return None if count > LARGEST else model.outline(infer=infer and count <= INFERRED)


def lines_of(model: Model, addresses: Collection[str], *, infer: bool = False) -> dict[str, Line]:
    """Return, by address, the innermost lines with the nodes at or around some addresses.

    In the outline of `reported_outline`. Without addresses that no line has; empty if there is no outline, or one that
    needs a constant that cannot be read.
    """
    try:
        outline = reported_outline(model, infer=infer) if any("/node/" in each for each in addresses) else None
    except OnnxJsonError:
        return {}
    by_node = {ref.address: line for _, line in outline.walk() for ref in line.nodes} if outline is not None else {}
    lines = {address: innermost(by_node, address) for address in addresses}
    return {address: line for address, line in lines.items() if line is not None}
