"""Node of the list that represents an address."""

from onnxjson.model.addresses import parse_address
from onnxjson.model.errors import AddressError
from onnxjson.model.index import Scope
from onnxjson_tui.session.session import Session


def place_of(session: Session, address: str) -> tuple[Scope, int] | None:
    """The graph and position of the node that an address names, or is inside of; the start of a graph for the rest.

    An element that is not a node, such as an initializer or an input, is represented by its first consumer.
    """
    scopes = session.index.by_address
    try:
        parts = parse_address(address)
    except AddressError:
        return None
    starts = _prefixes(address, len(parts))
    for length in range(len(parts), 0, -1):
        scope = scopes.get(starts[length])
        if scope is None:
            continue
        if length + 1 < len(parts) and parts[length] == "node" and parts[length + 1].isdigit():
            position = int(parts[length + 1])
            return (scope, position) if position < len(scope.graph.node) else None
        return scope, _first_use(scope, parts[length:])
    return None


def _prefixes(address: str, count: int) -> list[str]:
    """Return the prefixes of an address by number of segments."""
    pieces = address.split("/")
    return ["/".join(pieces[: length + 1]) for length in range(count + 1)]


def _first_use(scope: Scope, rest: tuple[str, ...]) -> int:
    if len(rest) < 2 or not rest[1].isdigit():
        return 0
    members = getattr(scope.graph, rest[0], ())
    position = int(rest[1])
    if position >= len(members):
        return 0
    member = members[position]
    name = member if isinstance(member, str) else getattr(member, "name", None)
    if not name:
        return 0
    if rest[0] in ("output", "value_info") and name in scope.producers:
        return scope.producers[name][0]
    return next((consumer for consumer, _ in scope.uses(name) if consumer is not None), 0)
