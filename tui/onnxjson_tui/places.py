"""From an address to the node that a list of nodes can show for it."""

from onnxjson.addresses import parse_address
from onnxjson.errors import AddressError
from onnxjson.index import Scope
from onnxjson_tui.session import Session


def place_of(session: Session, address: str) -> tuple[Scope, int] | None:
    """The graph and position of the node that an address names, or is inside of; the start of a graph for the rest.

    Something of a graph that is no node, such as an initializer or an input, is where it is first taken.
    """
    scopes = {scope.address: scope for scope in session.index.scopes}
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
    """The address cut after each number of segments."""
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
    if rest[0] in ("output", "value_info") and name in scope.makers:
        return scope.makers[name][0]
    return next((taker for taker, _ in scope.uses(name) if taker is not None), 0)
