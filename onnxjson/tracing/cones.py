"""What each node of a big rewrite was made of, by the names of values.

One event may rewrite thousands of nodes at once, and that every new node was made of all old ones says nothing. Most
optimizers keep the names of values that others take, so a new node was made of the old nodes between the values of its
name: those that computed its outputs, back to its own inputs.
"""

from collections.abc import Iterable
from typing import Final

from onnxjson.document import Model, Node
from onnxjson.index import Index

_MOST: Final = 64
"""Old nodes of one new node; if there seem to be more, its inputs have other names, and nothing is known."""


def cones(before: Model, after: Model, base: Iterable[str], target: Iterable[str]) -> dict[str, list[str]]:
    """For new nodes the old nodes that they were made of, as far as names tell; all by address.

    Args:
        before: the model before.
        after: the model after.
        base: the old nodes of a rewrite.
        target: its new nodes.
    """
    old, new = (_nodes(model, addresses) for model, addresses in ((before, base), (after, target)))
    makers = {name: address for address, node in old.items() for name in node.output if name}
    return {address: _cone(node, old, makers) for address, node in new.items()}


def _nodes(model: Model, addresses: Iterable[str]) -> dict[str, Node]:
    wanted = set(addresses)
    return {ref.address: ref.node for ref in Index(model).nodes() if ref.address in wanted}


def _cone(node: Node, old: dict[str, Node], makers: dict[str, str]) -> list[str]:
    stops = set(node.input)
    found: dict[str, None] = {}
    pending = [name for name in node.output if name]
    while pending:
        address = makers.get(pending.pop())
        if address is None or address in found:
            continue
        found[address] = None
        if len(found) > _MOST:
            return []
        pending += [name for name in old[address].input if name and name not in stops]
    return list(found)
